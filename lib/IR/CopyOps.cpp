//===- CopyOps.cpp - Copies into tiles ------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"
#include "DescriptorRules.h"

#include "kvcache/IR/CopyOps.h"

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

ArrayRef<CopyKind> AsyncLoadTileOp::getCopyKinds() {
  static constexpr CopyKind kinds[] = {CopyKind::TensorBoxes, CopyKind::CpAsync,
                                       CopyKind::Plain};
  return kinds;
}
ArrayRef<CopyKind> AsyncGatherTileOp::getCopyKinds() {
  static constexpr CopyKind kinds[] = {CopyKind::TensorRows, CopyKind::BulkRows,
                                       CopyKind::CpAsync, CopyKind::Plain};
  return kinds;
}

/// Checks that `copy` is a kind that can do the op, and that it is `withTensor`
/// if the op has a descriptor.
static LogicalResult verifyKind(TileCopyOpInterface op, CopyKind withTensor) {
  ArrayRef<CopyKind> kinds = op.getCopyKinds();
  if (op.getCopy() && !llvm::is_contained(kinds, *op.getCopy())) {
    InFlightDiagnostic error = op->emitOpError("expects 'copy' to be one of ");
    llvm::interleaveComma(
        kinds, error, [&](CopyKind kind) { error << stringifyCopyKind(kind); });
    return error << ", got " << stringifyCopyKind(*op.getCopy());
  }
  if (op.getDescriptor() && op.getCopy() != withTensor)
    return op->emitOpError("expects 'copy' to be ")
           << stringifyCopyKind(withTensor) << " with 'descriptor'";
  return success();
}

/// Checks (C1) and (C2) of copies.
static LogicalResult verifyCopy(TileCopyOpInterface op) {
  CacheTypeInterface cache = op.getViewType();
  TileType tile = op.getTile().getType();
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

/// Checks (C5): boxes of rows of a page, or of rows of all pages.
static LogicalResult verifyBoxes(AsyncLoadTileOp op, TMATileType descriptor) {
  CacheTypeInterface cache = op.getCache().getType();
  ArrayRef<int64_t> box = descriptor.getBox();
  bool isRagged = op.getValid() || !cache.isPaged();
  size_t rowSide = isRagged ? 1 : 2;
  if (box.size() != 4 || box[rowSide] != descriptor.getRows())
    return op.emitOpError("expects a box (columns, ")
           << (isRagged ? "rows, 1, 1" : "1, rows, 1")
           << ") of 'descriptor', got " << descriptor;
  if (failed(verifyLayout(op, descriptor, op.getTile().getType())) ||
      failed(
          verifyPartOfRows(op, descriptor, op.getTile().getType().getRows())))
    return failure();
  if (cache.isPaged() && cache.hasStaticPageSize() &&
      cache.getPageSize() % descriptor.getRows() != 0)
    return op.emitOpError("expects the rows of the box to divide those of a "
                          "page (")
           << cache.getPageSize() << "), got " << descriptor.getRows();
  return success();
}

/// Checks (C5): boxes of the same bytes.
static LogicalResult verifyZeros(AsyncLoadTileOp op, TMATileType descriptor,
                                 TMATileType zeros) {
  if (zeros.getInnerBytes() == descriptor.getInnerBytes() &&
      zeros.getRows() == descriptor.getRows() &&
      zeros.getSwizzle() == descriptor.getSwizzle())
    return success();
  return op.emitOpError("expects boxes of 'zeros' like those of 'descriptor' (")
         << descriptor << "), got " << zeros;
}

LogicalResult AsyncLoadTileOp::verify() {
  if (failed(verifyCopy(*this)) ||
      failed(verifyKind(*this, CopyKind::TensorBoxes))) // (C4), (C5)
    return failure();
  if (getMulticast() && getCopy() && getCopy() != CopyKind::TensorBoxes) // (C4)
    return emitOpError(
               "expects 'copy' to be tensor_boxes with 'multicast', got ")
           << stringifyCopyKind(*getCopy());
  if (getZeros() && (!getDescriptor() || !getValid())) // (C5)
    return emitOpError("expects 'zeros' only with 'descriptor' and 'valid'");
  if (!getDescriptor())
    return success();
  if (failed(verifyBoxes(*this, getDescriptor().getType())))
    return failure();
  if (getZeros())
    return verifyZeros(*this, getDescriptor().getType(), getZeros().getType());
  return success();
}

LogicalResult AsyncGatherTileOp::verify() {
  TileType tile = getTile().getType();
  if (failed(verifyCopy(*this)))
    return failure();
  // (C3)
  int64_t ids = getRows().getType().getDimSize(0);
  if (ids != tile.getRows())
    return emitOpError("expects 'rows' to have an id for each row of 'tile' (")
           << tile.getRows() << "), got " << getRows().getType();
  if (failed(verifyKind(*this, CopyKind::TensorRows))) // (C6), (C7)
    return failure();
  if (getDescriptor())
    return verifyGather(*this, getDescriptor().getType(), tile); // (C7)
  return success();
}
