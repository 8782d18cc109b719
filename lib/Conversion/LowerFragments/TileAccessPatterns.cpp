//===- TileAccessPatterns.cpp - Lower loads and stores of fragments -------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Registers.h"
#include "WideBytes.h"

#include "kvcache/IR/FragmentTileOps.h"
#include "kvcache/IR/TileOps.h"
#include "kvcache/Support/Pointers.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// ldmatrix
//===----------------------------------------------------------------------===//

MatrixLoader::MatrixLoader(OpBuilder &builder, Location loc,
                           TypedValue<TileType> tile, Value lane,
                           MatrixOrder order)
    : b(builder, loc), tile(tile) {
  // Eight lanes after eight have the rows of a matrix.
  Value half = b.div(lane, 16);
  if (order == MatrixOrder::RowsFirst) {
    row = b.rem(lane, 16);
    column = half;
  } else {
    row = b.add(b.rem(lane, 8), b.mul(half, 8));
    column = b.rem(b.div(lane, 8), 2);
  }
  column = b.mul(column, FragmentMmaOp::kColumnBytes /
                             tile.getType().getLayout().elementBytes);
}

Value MatrixLoader::getPointer(Value firstRow, Value firstColumn) const {
  // The swizzle's pattern has 8 rows: a multiple of them further, it is the
  // same.
  TileType type = tile.getType();
  tma::TileLayout layout = type.getLayout();
  Value offset = TileOffsetOp::create(b.builder, b.loc, tile, row,
                                      b.add(column, firstColumn));
  offset = b.add(
      offset, b.mul(firstRow, layout.getChunkColumns() * layout.elementBytes));
  Value memory =
      TileMemoryOp::create(b.builder, b.loc, type.getMemoryType(), tile);
  return getSharedPointer(b.builder, b.loc, memory, offset);
}

SmallVector<Value> MatrixLoader::load(Value firstRow, Value firstColumn,
                                      bool isTransposed, int64_t count) const {
  Type i32 = b.builder.getI32Type();
  auto result = LLVM::LLVMStructType::getLiteral(b.builder.getContext(),
                                                 SmallVector<Type>(count, i32));
  Value loaded = NVVM::LdMatrixOp::create(
      b.builder, b.loc, result, getPointer(firstRow, firstColumn),
      /*num=*/static_cast<uint32_t>(count),
      isTransposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(b.builder.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  SmallVector<Value> words;
  for (int64_t i = 0; i < count; ++i)
    words.push_back(LLVM::ExtractValueOp::create(b.builder, b.loc, loaded, i));
  return words;
}

void MatrixLoader::store(ValueRange words, Value firstRow,
                         Value firstColumn) const {
  NVVM::StMatrixOp::create(
      b.builder, b.loc, getPointer(firstRow, firstColumn), words,
      NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(b.builder.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
}

/// The row of a team's tile in which the matrices of a warp begin.
static Value getMatrixRow(const IndexBuilder &b, Value tileRow,
                          const TeamThread &thread) {
  return b.add(tileRow, b.mul(thread.warp, LayoutDigits::kRowsOfWarp));
}

/// Columns of 16 bits of the matrices that are loaded or stored at once.
static constexpr int64_t kMatrixColumns = 16;

/// Whether a lane has the words of a matrix, as `ldmatrix` gives them.
static bool hasMatrixWords(FragmentType type) {
  const auto &digits = LayoutDigits::get(type);
  return digits.elementBits == 16 && digits.lane.front().distance == 2;
}

//===----------------------------------------------------------------------===//
// Runs of elements
//===----------------------------------------------------------------------===//

namespace {

/// A run of the thread, its place in the tile, and the distance of its column
/// from the thread's first one.
struct Run {
  SmallVector<int64_t> elements;
  Value row, column;
  int64_t distance;
};

} // namespace

static SmallVector<Run> getRuns(const IndexBuilder &b, FragmentType type,
                                Value row, Value column, Value thread,
                                bool isTransposed = false) {
  auto first = FirstPlace::get(b, type, thread);
  if (isTransposed)
    std::swap(first.row, first.column);
  Value firstRow = b.add(row, first.row),
        firstColumn = b.add(column, first.column);
  SmallVector<Run> runs;
  for (ElementRun &run : LayoutDigits::getRuns(type, isTransposed)) {
    if (isTransposed)
      std::swap(run.place.row, run.place.column);
    runs.push_back({run.elements, b.add(firstRow, b.index(run.place.row)),
                    b.add(firstColumn, b.index(run.place.column)),
                    run.place.column});
  }
  return runs;
}

namespace {

struct LowerFragmentLoad : OpConversionPattern<FragmentLoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FragmentLoadOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkPlaces(op, op.getPart())))
      return failure();
    SmallVector<Value> registers;
    if (op.dequantizes())
      registers = loadBytes(rewriter, op);
    else
      registers =
          hasMatrices(op) ? loadMatrices(rewriter, op) : loadRuns(rewriter, op);
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }

private:
  /// Loads 16 rows and up to 32 bytes at a time. A matrix has 8 rows and 16
  /// bytes, those of the next rows follow.
  static SmallVector<Value> loadBytes(OpBuilder &builder, FragmentLoadOp op) {
    constexpr int64_t columnsOfMatrix = 16, matrices = 4;
    IndexBuilder b(builder, op.getLoc());
    FragmentType type = op.getType();
    Type element = op.getTile().getType().getElementType();
    MatrixLoader loader(builder, op.getLoc(), op.getTile(),
                        TeamThread::get(b, type, op.getThread()).lane);
    SmallVector<Value> registers;
    for (int64_t column = 0; column < type.getColumns();
         column += 2 * columnsOfMatrix) {
      bool isHalf = type.getColumns() - column == columnsOfMatrix;
      SmallVector<Value> words = loader.load(
          op.getTileRow(), b.add(op.getTileColumn(), b.index(column)),
          /*isTransposed=*/false, isHalf ? matrices / 2 : matrices);
      for (size_t i = 0; i < words.size(); i += 2) {
        auto upper = widenBytes(b, element, words[i], /*byParity=*/false);
        auto lower = widenBytes(b, element, words[i + 1], /*byParity=*/false);
        registers.append({upper[0], lower[0], upper[1], lower[1]});
      }
    }
    return registers;
  }

  /// Whether a lane has the elements that `ldmatrix` gives it.
  static bool hasMatrices(FragmentLoadOp op) {
    return op.getPaired() || hasMatrixWords(op.getType());
  }

  static SmallVector<Value> loadMatrices(OpBuilder &builder,
                                         FragmentLoadOp op) {
    IndexBuilder b(builder, op.getLoc());
    FragmentType type = op.getType();
    TeamThread thread = TeamThread::get(b, type, op.getThread());
    MatrixLoader loader(builder, op.getLoc(), op.getTile(), thread.lane);
    Value row = getMatrixRow(b, op.getTileRow(), thread);
    SmallVector<Value> words;
    for (int64_t column = 0; column < type.getColumns();
         column += kMatrixColumns)
      llvm::append_range(
          words, loader.load(row, b.add(op.getTileColumn(), b.index(column)),
                             /*isTransposed=*/false));
    return words;
  }

  static SmallVector<Value> loadRuns(OpBuilder &builder, FragmentLoadOp op) {
    IndexBuilder b(builder, op.getLoc());
    FragmentType type = op.getType();
    const auto &digits = LayoutDigits::get(type);
    auto vector = VectorType::get(digits.countRun(), type.getElementType());
    SmallVector<Value> elements(LayoutDigits::getPlaces(type).size());
    // Of each column, those of the only row.
    DenseMap<int64_t, SmallVector<Value>> repeated;
    for (const Run &run : getRuns(b, type, op.getTileRow(), op.getTileColumn(),
                                  op.getThread())) {
      SmallVector<Value> loaded = repeated.lookup(run.distance);
      if (loaded.empty())
        loaded = split(
            builder, op.getLoc(),
            TileLoadOp::create(builder, op.getLoc(), vector, op.getTile(),
                               op.getRepeated() ? op.getTileRow() : run.row,
                               run.column));
      if (op.getRepeated())
        repeated[run.distance] = loaded;
      for (auto [number, element] : llvm::zip_equal(run.elements, loaded))
        elements[number] = element;
    }
    return pack(builder, op.getLoc(), type, elements);
  }
};

struct LowerFragmentStore : OpConversionPattern<FragmentStoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FragmentStoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkPlaces(op, op.getPart())))
      return failure();
    if (hasMatrices(op))
      storeMatrices(rewriter, op, adaptor.getValue());
    else
      storeRuns(rewriter, op, adaptor.getValue());
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Whether the chip stores the words of a lane as matrices.
  static bool hasMatrices(FragmentStoreOp op) {
    const Chip *chip = getTargetChip(op);
    return chip && chip->has(Feature::TMA) && !op.getTransposed() &&
           hasMatrixWords(op.getValue().getType());
  }

  static void storeMatrices(OpBuilder &builder, FragmentStoreOp op,
                            ValueRange words) {
    constexpr size_t count = 4;
    IndexBuilder b(builder, op.getLoc());
    FragmentType type = op.getValue().getType();
    TeamThread thread = TeamThread::get(b, type, op.getThread());
    MatrixLoader matrices(builder, op.getLoc(), op.getTile(), thread.lane);
    Value row = getMatrixRow(b, op.getTileRow(), thread);
    for (int64_t column = 0; column < type.getColumns();
         column += kMatrixColumns, words = words.drop_front(count))
      matrices.store(words.take_front(count), row,
                     b.add(op.getTileColumn(), b.index(column)));
  }

  static void storeRuns(OpBuilder &builder, FragmentStoreOp op,
                        ValueRange registers) {
    Location loc = op.getLoc();
    FragmentType type = op.getValue().getType();
    SmallVector<Value> elements = unpack(builder, loc, type, registers);
    bool isTransposed = op.getTransposed();
    auto vector = VectorType::get(
        LayoutDigits::get(type).countRun(isTransposed), type.getElementType());
    for (const Run &run :
         getRuns(IndexBuilder(builder, loc), type, op.getTileRow(),
                 op.getTileColumn(), op.getThread(), isTransposed)) {
      Value stored = vector::FromElementsOp::create(
          builder, loc, vector, select(elements, run.elements));
      TileStoreOp::create(builder, loc, stored, op.getTile(), run.row,
                          run.column);
    }
  }
};

} // namespace

void kvcache::populateTileAccessPatterns(const TypeConverter &converter,
                                         RewritePatternSet &patterns) {
  patterns.add<LowerFragmentLoad, LowerFragmentStore>(converter,
                                                      patterns.getContext());
}
