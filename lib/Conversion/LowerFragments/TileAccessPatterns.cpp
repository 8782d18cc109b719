//===- TileAccessPatterns.cpp - Lower loads and stores of fragments -------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Registers.h"

#include "kvcache/IR/TileOps.h"
#include "kvcache/Support/Pointers.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// ldmatrix
//===----------------------------------------------------------------------===//

MatrixLoader::MatrixLoader(OpBuilder &builder, Location loc,
                           TypedValue<TileType> tile, Value lane)
    : b(builder, loc), tile(tile), row(b.rem(lane, 16)),
      column(b.mul(b.div(lane, 16), 8)) {}

SmallVector<Value> MatrixLoader::load(Value firstRow, Value firstColumn,
                                      bool isTransposed) const {
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
  Type i32 = b.builder.getI32Type();
  auto result = LLVM::LLVMStructType::getLiteral(b.builder.getContext(),
                                                 {i32, i32, i32, i32});
  Value loaded = NVVM::LdMatrixOp::create(
      b.builder, b.loc, result,
      getSharedPointer(b.builder, b.loc, memory, offset), /*num=*/4,
      isTransposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(b.builder.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  SmallVector<Value> words;
  for (int64_t i = 0; i < 4; ++i)
    words.push_back(LLVM::ExtractValueOp::create(b.builder, b.loc, loaded, i));
  return words;
}

//===----------------------------------------------------------------------===//
// Runs of elements
//===----------------------------------------------------------------------===//

namespace {

struct Run {
  /// The number of the first element of the thread.
  int64_t element;
  Value row, column;
};

} // namespace

static SmallVector<Run> getRuns(const IndexBuilder &b, FragmentType type,
                                Value row, Value column,
                                bool isTransposed = false) {
  auto first = FirstPlace::get(b, type);
  if (isTransposed)
    std::swap(first.row, first.column);
  Value firstRow = b.add(row, first.row),
        firstColumn = b.add(column, first.column);
  auto places = LayoutDigits::getPlaces(type);
  int64_t size = LayoutDigits::get(type).countRun(isTransposed);
  SmallVector<Run> runs;
  for (size_t i = 0; i < places.size(); i += size) {
    ElementPlace place = places[i];
    if (isTransposed)
      std::swap(place.row, place.column);
    runs.push_back({static_cast<int64_t>(i),
                    b.add(firstRow, b.index(place.row)),
                    b.add(firstColumn, b.index(place.column))});
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
    const auto &digits = LayoutDigits::get(op.getType());
    SmallVector<Value> registers = digits.elementBits == 16
                                       ? loadMatrices(rewriter, op)
                                       : loadRuns(rewriter, op);
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }

private:
  static SmallVector<Value> loadMatrices(OpBuilder &builder,
                                         FragmentLoadOp op) {
    IndexBuilder b(builder, op.getLoc());
    FragmentType type = op.getType();
    TeamThread thread = TeamThread::get(b, type);
    MatrixLoader loader(builder, op.getLoc(), op.getTile(), thread.lane);
    Value row =
        b.add(op.getTileRow(), b.mul(thread.warp, LayoutDigits::kRowsOfWarp));
    SmallVector<Value> words;
    constexpr int64_t step = 16;
    for (int64_t column = 0; column < type.getColumns(); column += step)
      llvm::append_range(
          words, loader.load(row, b.add(op.getTileColumn(), b.index(column)),
                             /*isTransposed=*/false));
    return words;
  }

  static SmallVector<Value> loadRuns(OpBuilder &builder, FragmentLoadOp op) {
    IndexBuilder b(builder, op.getLoc());
    FragmentType type = op.getType();
    auto vector = VectorType::get(LayoutDigits::get(type).countRun(),
                                  type.getElementType());
    SmallVector<Value> elements;
    for (const Run &run :
         getRuns(b, type, op.getTileRow(), op.getTileColumn())) {
      Value loaded = TileLoadOp::create(builder, op.getLoc(), vector,
                                        op.getTile(), run.row, run.column);
      llvm::append_range(elements, split(builder, op.getLoc(), loaded));
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
    Location loc = op.getLoc();
    FragmentType type = op.getValue().getType();
    SmallVector<Value> elements =
        unpack(rewriter, loc, type, adaptor.getValue());
    bool isTransposed = op.getTransposed();
    int64_t size = LayoutDigits::get(type).countRun(isTransposed);
    auto vector = VectorType::get(size, type.getElementType());
    for (const Run &run :
         getRuns(IndexBuilder(rewriter, loc), type, op.getTileRow(),
                 op.getTileColumn(), isTransposed)) {
      Value stored = vector::FromElementsOp::create(
          rewriter, loc, vector, ArrayRef(elements).slice(run.element, size));
      TileStoreOp::create(rewriter, loc, stored, op.getTile(), run.row,
                          run.column);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void kvcache::populateTileAccessPatterns(const TypeConverter &converter,
                                         RewritePatternSet &patterns) {
  patterns.add<LowerFragmentLoad, LowerFragmentStore>(converter,
                                                      patterns.getContext());
}
