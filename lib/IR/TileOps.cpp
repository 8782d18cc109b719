//===- TileOps.cpp - Tiles in shared memory -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Checks (C1) and (C2) of the ops that move elements of a tile.
static LogicalResult verifyElements(Operation *op, StringRef name, Type type,
                                    TileType tile) {
  if (getLaneType(type) != tile.getElementType())
    return op->emitOpError("expects '")
           << name << "' to have the tile's element type ("
           << tile.getElementType() << "), got " << getLaneType(type);
  constexpr int64_t unit = 16;
  int64_t lanes = getNumLanes(type);
  if (!llvm::isPowerOf2_64(lanes) ||
      lanes * tile.getLayout().elementBytes > unit)
    return op->emitOpError("expects '")
           << name << "' to have a power of two of lanes in at most " << unit
           << " bytes, got " << type;
  return success();
}

LogicalResult TileLoadOp::verify() {
  return verifyElements(*this, "result", getType(), getTile().getType());
}

LogicalResult TileStoreOp::verify() {
  return verifyElements(*this, "value", getValue().getType(),
                        getTile().getType());
}

OpFoldResult TileOffsetOp::fold(FoldAdaptor adaptor) {
  tma::TileLayout layout = getTile().getType().getLayout();
  auto row = dyn_cast_if_present<IntegerAttr>(adaptor.getRow());
  auto column = dyn_cast_if_present<IntegerAttr>(adaptor.getColumn());
  auto isBelow = [](IntegerAttr value, int64_t size) {
    return value && value.getInt() >= 0 && value.getInt() < size;
  };
  if (!isBelow(row, layout.rows) || !isBelow(column, layout.columns))
    return {};
  return IntegerAttr::get(getType(),
                          layout.getOffset(row.getInt(), column.getInt()));
}

void TileOffsetOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                     SetIntRangeFn setResultRange) {
  setResultRange(getOffset(),
                 getRangeUpTo(getTile().getType().getLayout().getBytes() - 1));
}

LogicalResult TileMemoryOp::verify() {
  // (C1)
  MemRefType expected = getTile().getType().getMemoryType();
  if (getType() != expected)
    return emitOpError("expects 'memory' to be ")
           << expected << ", got " << getType();
  return success();
}
