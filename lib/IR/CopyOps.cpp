//===- CopyOps.cpp - Copies into tiles ------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"

using namespace mlir;
using namespace mlir::kvcache;

KVCACHE_DEFINE_INDICES(AsyncLoadTileOp)

TypedValue<CacheTypeInterface> AsyncGatherTileOp::getAccessedCache() {
  return getCache();
}
Value AsyncGatherTileOp::getAccessedHead() { return getHead(); }
Value AsyncGatherTileOp::getAccessedElement() { return getElement(); }

/// Returns the number of elements in 16 bytes, the unit of a copy, of which the
/// first element must be a multiple.
static int64_t getUnit(CacheTypeInterface cache) {
  return 16 * 8 / cache.getElementType().getIntOrFloatBitWidth();
}

int64_t AsyncLoadTileOp::getAccessedWidth() {
  return getUnit(getCache().getType());
}
int64_t AsyncGatherTileOp::getAccessedWidth() {
  return getUnit(getCache().getType());
}

/// Checks (C1) and (C2) of copies.
static LogicalResult verifyCopy(Operation *op, CacheTypeInterface cache,
                                TileType tile) {
  Type stored = cache.getStorageType();
  if (tile.getElementType() != stored)
    return op->emitOpError("expects 'tile' to have the stored element type of "
                           "'cache' (")
           << stored << "), got " << tile.getElementType();
  if (tile.getColumns() > cache.getStoredHeadSize())
    return op->emitOpError("expects 'tile' to have at most one column per "
                           "stored element of a head (")
           << cache.getStoredHeadSize() << "), got " << tile.getColumns();
  return success();
}

LogicalResult AsyncLoadTileOp::verify() {
  return verifyCopy(*this, getCache().getType(), getTile().getType());
}

LogicalResult AsyncGatherTileOp::verify() {
  TileType tile = getTile().getType();
  if (failed(verifyCopy(*this, getCache().getType(), tile)))
    return failure();
  // (C3)
  int64_t ids = getRows().getType().getDimSize(0);
  if (ids != tile.getRows())
    return emitOpError("expects 'rows' to have an id for each row of 'tile' (")
           << tile.getRows() << "), got " << getRows().getType();
  return success();
}
