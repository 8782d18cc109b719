//===- TMAOps.cpp - Tensor copies -----------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DescriptorRules.h"

#include "kvcache/IR/TMAOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Checks (C1): the number of coordinates.
static LogicalResult verifyCoordinates(Operation *op, size_t number,
                                       size_t expected) {
  if (number == expected)
    return success();
  return op->emitOpError("expects ")
         << expected << " coordinates for the box, got " << number;
}

// (C2)
LogicalResult kvcache::verifyLayout(Operation *op, TMATileType descriptor,
                                    TileType tile) {
  if (descriptor.getSwizzle() != tile.getSwizzle())
    return op->emitOpError("expects 'descriptor' to have the swizzle of 'tile' "
                           "('")
           << stringifySwizzle(tile.getSwizzle()) << "'), got '"
           << stringifySwizzle(descriptor.getSwizzle()) << "'";
  tma::TileLayout layout = tile.getLayout();
  int64_t rowBytes = layout.getChunkColumns() * layout.elementBytes;
  if (descriptor.getInnerBytes() != rowBytes)
    return op->emitOpError("expects the inner side of the box to have the "
                           "bytes of a row of a chunk of 'tile' (")
           << rowBytes << "), got " << descriptor.getInnerBytes();
  return success();
}

/// Checks (C3): the box has the rows of the tile.
static LogicalResult verifyTileRows(Operation *op, TMATileType descriptor,
                                    TileType tile) {
  if (descriptor.getRows() == tile.getRows())
    return success();
  return op->emitOpError("expects the box to have the rows of the tile (")
         << tile.getRows() << "), got " << descriptor.getRows();
}

LogicalResult kvcache::verifyPartOfRows(Operation *op, TMATileType descriptor,
                                        int64_t rows) {
  int64_t boxRows = descriptor.getRows();
  if (rows % boxRows != 0)
    return op->emitOpError("expects the rows of the box to divide those of the "
                           "tile (")
           << rows << "), got " << boxRows;
  // PTX ISA, "cp.async.bulk.tensor": the destination's alignment.
  constexpr int64_t alignment = 128;
  int64_t bytes = boxRows * descriptor.getInnerBytes();
  if (boxRows != rows && bytes % alignment != 0)
    return op->emitOpError("expects the box to be a multiple of ")
           << alignment << " bytes in the tile, got " << bytes;
  return success();
}

LogicalResult TMALoadOp::verify() {
  TMATileType descriptor = getDescriptor().getType();
  TileType tile = getTile().getType();
  if (failed(verifyCoordinates(*this, getCoordinates().size(),
                               descriptor.getBox().size())) ||
      failed(verifyLayout(*this, descriptor, tile)))
    return failure();
  if (getRow())
    return verifyPartOfRows(*this, descriptor, tile.getRows());
  return verifyTileRows(*this, descriptor, tile);
}

LogicalResult TMAStoreOp::verify() {
  TMATileType descriptor = getDescriptor().getType();
  TileType tile = getTile().getType();
  if (failed(verifyCoordinates(*this, getCoordinates().size(),
                               descriptor.getBox().size())) ||
      failed(verifyLayout(*this, descriptor, tile)) ||
      failed(verifyTileRows(*this, descriptor, tile)))
    return failure();
  // (C4)
  int64_t chunkColumns = tile.getLayout().getChunkColumns();
  if (tile.getColumns() % chunkColumns != 0)
    return emitOpError("expects 'tile' to have whole chunks of ")
           << chunkColumns << " columns, got " << tile.getColumns();
  return success();
}

LogicalResult TMALoadRowsOp::verify() {
  TMATileType descriptor = getDescriptor().getType();
  TileType tile = getTile().getType();
  RowIndicesType rows = getRows().getType();
  ArrayRef<int64_t> box = descriptor.getBox();
  // (C1)
  bool isRagged = box.size() == 4 && box[2] == 1 && box[3] == 1;
  if (getValid() && !isRagged)
    return emitOpError("expects a ragged box (span, rows, 1, 1) with 'valid', "
                       "got ")
           << descriptor;
  if (!getValid() && box.back() != descriptor.getRows())
    return emitOpError("expects the rows of the box to be its last side "
                       "without 'valid', got ")
           << descriptor;
  size_t numGiven = box.size() - (getValid() ? 2 : 1);
  if (failed(verifyCoordinates(*this, getCoordinates().size(), numGiven)) ||
      failed(verifyLayout(*this, descriptor, tile))) // (C2)
    return failure();
  // (C3)
  int64_t tileRows = getPairCta() ? 2 * tile.getRows() : tile.getRows();
  if (tileRows != rows.getRows())
    return emitOpError("expects 'tile' to have ")
           << (getPairCta() ? "half of the rows" : "the rows") << " of 'rows' ("
           << rows.getRows() << "), got " << tile.getRows();
  // (C4), (C5)
  if (failed(verifyPartOfRows(*this, descriptor, tile.getRows())))
    return failure();
  if (rows.getRowsPerPage() % descriptor.getRows() != 0)
    return emitOpError("expects the rows of the box to divide those of a page "
                       "(")
           << rows.getRowsPerPage() << "), got " << descriptor.getRows();
  // (C6)
  if (getPairCta() != bool(getLeader()))
    return emitOpError("expects 'leader' if and only if 'pair_cta' is given");
  return success();
}

// (C1) to (C4) of gathers
LogicalResult kvcache::verifyGather(Operation *op, TMATileType descriptor,
                                    TileType tile) {
  ArrayRef<int64_t> box = descriptor.getBox();
  if (box.size() != 2 || box[1] != 1)
    return op->emitOpError("expects a box of one row, got ") << descriptor;
  if (failed(verifyLayout(op, descriptor, tile)))
    return failure();
  if (tile.getRows() % 4 != 0)
    return op->emitOpError("expects 'tile' to have a multiple of 4 rows, got ")
           << tile.getRows();
  // Four rows have a multiple of 128 bytes, so the next copy is aligned.
  if (descriptor.getInnerBytes() % 32 != 0)
    return op->emitOpError("expects a row of a chunk to be a multiple of 32 "
                           "bytes, got ")
           << descriptor.getInnerBytes();
  return success();
}

LogicalResult TMAGather4Op::verify() {
  return verifyGather(*this, getDescriptor().getType(), getTile().getType());
}

LogicalResult TMAGatherTileOp::verify() {
  TileType tile = getTile().getType();
  if (failed(verifyGather(*this, getDescriptor().getType(), tile)))
    return failure();
  // (C5)
  if (getRows().getType().getDimSize(0) != tile.getRows())
    return emitOpError("expects 'rows' to have an id for each row of 'tile' (")
           << tile.getRows() << "), got " << getRows().getType();
  return success();
}
