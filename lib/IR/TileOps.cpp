//===- TileOps.cpp - Tiles in shared memory -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"

#include "kvcache/IR/TileOps.h"

using namespace mlir;
using namespace mlir::kvcache;

LogicalResult AllocTileOp::verify() {
  // (C1)
  int64_t needed = getTile().getType().getLayout().getAlignment();
  if (getMemoryAlignment() < needed)
    return emitOpError("expects 'alignment' to be at least ")
           << needed << " bytes, got " << getMemoryAlignment();
  return success();
}

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
           << name << "' to have a power of two of lanes, and at most " << unit
           << " bytes, got " << type;
  return success();
}

LogicalResult TileLoadOp::verify() {
  return verifyElements(*this, "result", getType(), getTile().getType());
}

LogicalResult ClusterLoadOp::verify() {
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

/// Checks (C1) of `tile_memory` and `tile_view`.
static LogicalResult verifyMemory(Operation *op, Type memory, TileType tile) {
  if (memory == tile.getMemoryType())
    return success();
  return op->emitOpError("expects 'memory' to be ")
         << tile.getMemoryType() << ", got " << memory;
}

LogicalResult TileMemoryOp::verify() {
  return verifyMemory(*this, getType(), getTile().getType());
}

OpFoldResult TileMemoryOp::fold(FoldAdaptor) {
  auto view = getTile().getDefiningOp<TileViewOp>();
  return view ? view.getMemory() : Value();
}

LogicalResult TileViewOp::verify() {
  return verifyMemory(*this, getMemory().getType(), getType());
}

OpFoldResult TileViewOp::fold(FoldAdaptor) {
  auto memory = getMemory().getDefiningOp<TileMemoryOp>();
  return memory && memory.getTile().getType() == getType() ? memory.getTile()
                                                           : Value();
}
