//===- TensorMemoryOps.cpp - Products in tensor memory --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/TensorMemoryOps.h"
#include "kvcache/IR/Formats.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// tmem_alloc
//===----------------------------------------------------------------------===//

LogicalResult TmemAllocOp::verify() {
  if (getTiles().empty()) // (C1)
    return emitOpError("expects at least one tile");
  int64_t columns = 0;
  for (Type tile : getTiles().getTypes())
    columns += cast<TmemTileType>(tile).getWidth();
  if (columns > TmemTileType::kMemoryColumns) // (C2)
    return emitOpError("expects tiles of at most ")
           << TmemTileType::kMemoryColumns
           << " columns of tensor memory together, got " << columns;
  return success();
}

//===----------------------------------------------------------------------===//
// tmem_view
//===----------------------------------------------------------------------===//

LogicalResult TmemViewOp::verify() {
  TmemTileType tile = getTile().getType(), view = getView().getType();
  for (TmemTileType type : {tile, view})
    if (type.getRows() != TmemTileType::kMemoryLanes) // (C1)
      return emitOpError("expects tiles of ")
             << TmemTileType::kMemoryLanes << " rows, got " << type.getRows();
  // (C2)
  constexpr int64_t wordBits = 32;
  int64_t perWord = wordBits / tile.getElementType().getIntOrFloatBitWidth();
  int64_t most = tile.getColumns() - view.getWidth() * perWord;
  if (most < 0)
    return emitOpError("expects 'view' to have at most ")
           << tile.getWidth() << " columns of tensor memory, got "
           << view.getWidth();
  std::optional<int64_t> column = getConstantIntValue(getColumn());
  if (column && *column % perWord != 0)
    return emitOpError("expects 'column' to be a multiple of ")
           << perWord << ", got " << *column;
  if (column && (*column < 0 || *column > most))
    return emitOpError("expects 'column' to be from 0 to ")
           << most << ", so that the result is in the tile, got " << *column;
  return success();
}

//===----------------------------------------------------------------------===//
// tmem_mma
//===----------------------------------------------------------------------===//

static Type getElementOf(Value operand) {
  if (auto tile = dyn_cast<TileType>(operand.getType()))
    return tile.getElementType();
  return cast<TmemTileType>(operand.getType()).getElementType();
}

/// The rows of A that a block of a pair has, and the most columns of B that it
/// has for an instruction.
static constexpr int64_t kPairRows = 64, kPairColumns = 128;

int64_t TmemMmaOp::getSizeM() {
  return getPair() ? kPairRows : getD().getType().getRows();
}

int64_t TmemMmaOp::countProducts() {
  TmemTileType d = getD().getType();
  if (getPair())
    return d.getColumns() > kPairColumns ? 2 : 1;
  return d.getNumProducts();
}

int64_t TmemMmaOp::getSizeK() {
  TypedValue<TileType> tile = getTileA();
  if (!tile)
    return cast<TmemTileType>(getA().getType()).getColumns();
  if (std::optional<uint64_t> k = getK())
    return static_cast<int64_t>(*k);
  return getMajorA() == Major::K ? tile.getType().getColumns()
                                 : tile.getType().getRows();
}

SmallVector<MatrixPart, 2> TmemMmaOp::getParts() {
  SmallVector<MatrixPart, 2> parts{MatrixPart::get("b", getB(), getMajorB(),
                                                   getBRow(), getBColumn(),
                                                   getSizeN(), getSizeK())};
  if (TypedValue<TileType> tile = getTileA())
    parts.push_back(MatrixPart::get("a", tile, getMajorA(), getARow(),
                                    getAColumn(), getSizeM(), getSizeK()));
  return parts;
}

/// (C2)
static LogicalResult verifyElements(TmemMmaOp op) {
  Type a = getElementOf(op.getA()), b = getElementOf(op.getB()),
       d = getElementOf(op.getD());
  auto isFP8 = [](Type type) { return hasUse(type, FormatUse::FP8); };
  bool isFloat =
      (isFP8(a) && isFP8(b)) || (a == b && (a.isF16() || a.isBF16()));
  bool isInteger = a == b && a.isSignlessInteger(8);
  if ((isFloat && d.isF32()) || (isInteger && d.isSignlessInteger(32)))
    return success();
  return op.emitOpError("expects bf16, bf16 and f32, f16, f16 and f32, "
                        "f8E4M3FN or f8E5M2 twice and f32, or i8, i8 and i32 "
                        "as element types, got ")
         << a << ", " << b << " and " << d;
}

/// (C1), (C3) and (C5)
static LogicalResult verifyA(TmemMmaOp op) {
  bool isShared = op.getTileA() != nullptr;
  if (bool(op.getARow()) != isShared)
    return op.emitOpError("expects 'a_row' and 'a_column' if 'a' is in shared "
                          "memory, and only then");
  int64_t step = MatrixPart::kStepBytes * 8 /
                 getElementOf(op.getA()).getIntOrFloatBitWidth();
  if (isShared) {
    if (op.getSizeK() % step == 0)
      return success();
    return op.emitOpError("expects 'k' to be a multiple of ")
           << step << " (" << MatrixPart::kStepBytes << " bytes), got "
           << op.getSizeK();
  }
  if (op.getK())
    return op.emitOpError("expects no 'k', because 'a' is in tensor memory");
  if (op.getMajorA() != Major::K)
    return op.emitOpError("expects 'major_a' to be k_major, because 'a' is in "
                          "tensor memory");
  int64_t rows = cast<TmemTileType>(op.getA().getType()).getRows(),
          rowsOfD = op.getD().getType().getRows();
  if (rows == rowsOfD)
    return success();
  return op.emitOpError("expects 'a' to have the rows of 'd' (")
         << rowsOfD << "), got " << rows;
}

/// (C7)
static LogicalResult verifyHalf(TmemMmaOp op) {
  int64_t half = op.getSizeN() / op.countProducts();
  int64_t unit = op.getParts().front().columnUnit;
  if (half == op.getSizeN() || op.getMajorB() == Major::K || half % unit == 0)
    return success();
  return op.emitOpError("expects half of the columns of 'd' to be a multiple "
                        "of ")
         << unit << ", the span of the mn_major 'b', got " << half;
}

/// (C9)
static LogicalResult verifyPair(TmemMmaOp op) {
  TmemTileType d = op.getD().getType();
  int64_t columns = d.getColumns();
  if (!op.getPair() ||
      (d.getRows() == TmemTileType::kMemoryLanes &&
       (columns <= kPairColumns || columns == 2 * kPairColumns)))
    return success();
  return op.emitOpError("with 'pair' expects 'd' to have ")
         << TmemTileType::kMemoryLanes << " rows and at most " << kPairColumns
         << " columns, or " << 2 * kPairColumns << ", got " << d;
}

LogicalResult TmemMmaOp::verify() {
  if (failed(verifyElements(*this)) || failed(verifyPair(*this)) ||
      failed(verifyA(*this)))
    return failure();
  for (const MatrixPart &part : getParts())
    if (failed(part.verify(*this))) // (C4) and (C6)
      return failure();
  return verifyHalf(*this);
}

//===----------------------------------------------------------------------===//
// tmem_load and tmem_store
//===----------------------------------------------------------------------===//

/// (C5)
static LogicalResult verifyFragment(Operation *op, StringRef name,
                                    TmemTileType tile, FragmentType fragment,
                                    bool hasHalf, bool hasWholeRows) {
  if (!isTensorMemory(fragment.getLayout()) || !fragment.hasColumns() ||
      fragment.getRows() != tile.getRows() ||
      fragment.getElementType() != tile.getElementType())
    return op->emitOpError("expects '")
           << name << "' to be tmem_acc or tmem_row of two dimensions, with "
           << "the rows and elements of " << tile << ", got " << fragment;
  constexpr unsigned least = 16;
  if (tile.getElementType().getIntOrFloatBitWidth() < least)
    return op->emitOpError("expects a fragment to have elements of 16 or 32 "
                           "bits, got ")
           << tile.getElementType();
  if (hasHalf)
    return op->emitOpError("expects no 'half', because '")
           << name << "' is a fragment";
  if (hasWholeRows)
    return op->emitOpError("expects no 'whole_rows', because '")
           << name << "' is a fragment";
  int64_t most = tile.getColumns() / (tile.isSplitByLanes() ? 2 : 1);
  if (fragment.getColumns() > most)
    return op->emitOpError("expects '")
           << name << "' to have at most " << most << " columns, got "
           << fragment.getColumns();
  return success();
}

static LogicalResult verifyPart(Operation *op, StringRef name,
                                TmemTileType tile, Type type, bool hasHalf,
                                bool hasWholeRows) {
  if (auto fragment = dyn_cast<FragmentType>(type))
    return verifyFragment(op, name, tile, fragment, hasHalf, hasWholeRows);
  auto vector = cast<VectorType>(type);
  if (vector.getElementType() != tile.getElementType()) // (C1)
    return op->emitOpError("expects '")
           << name << "' to have the element type of 'tile' ("
           << tile.getElementType() << "), got " << vector.getElementType();
  bool isWide = tile.getRows() == TmemTileType::kMemoryLanes;
  if (hasWholeRows && !isWide) // (C6)
    return op->emitOpError("with 'whole_rows' expects 'tile' to have ")
           << TmemTileType::kMemoryLanes << " rows, got " << tile.getRows();
  if (hasHalf != (isWide && !hasWholeRows)) // (C2)
    return op->emitOpError("expects 'half' if 'tile' has ")
           << TmemTileType::kMemoryLanes
           << " rows and there is no 'whole_rows', and only then, got "
           << tile.getRows() << " rows";
  // (C3) and (C4)
  int64_t shares = hasWholeRows ? 1 : 2, lanes = vector.getNumElements(),
          unit = tile.getFragmentUnit() / shares;
  if (lanes % unit != 0)
    return op->emitOpError("expects '") << name << "' to have a multiple of "
                                        << unit << " lanes, got " << lanes;
  int64_t most = tile.getColumns() / (tile.isSplitByLanes() ? 2 : 1) / shares;
  if (lanes > most)
    return op->emitOpError("expects '")
           << name << "' to have at most " << most << " lanes, got " << lanes;
  return success();
}

LogicalResult TmemLoadOp::verify() {
  return verifyPart(*this, "result", getTile().getType(), getResult().getType(),
                    bool(getHalf()), getWholeRows());
}

LogicalResult TmemStoreOp::verify() {
  return verifyPart(*this, "value", getTile().getType(), getValue().getType(),
                    bool(getHalf()), getWholeRows());
}

static int64_t countColumnsOf(Type type, bool hasWholeRows) {
  if (auto fragment = dyn_cast<FragmentType>(type))
    return fragment.getColumns();
  return (hasWholeRows ? 1 : 2) * cast<VectorType>(type).getNumElements();
}

int64_t TmemLoadOp::countColumns() {
  return countColumnsOf(getResult().getType(), getWholeRows());
}
int64_t TmemStoreOp::countColumns() {
  return countColumnsOf(getValue().getType(), getWholeRows());
}
