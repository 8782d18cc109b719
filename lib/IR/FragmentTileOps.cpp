//===- FragmentTileOps.cpp - Fragments and parts of tiles -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/FragmentTileOps.h"

#include "kvcache/IR/Formats.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The part of a tile that is a fragment.
static MatrixPart getPart(TypedValue<TileType> tile, FragmentType fragment,
                          Value row, Value column, bool isTransposed = false) {
  constexpr int64_t rows = 8, bytes = 16;
  int64_t sides[] = {fragment.getRows(), fragment.getColumns()};
  int64_t size = tile.getType().getLayout().elementBytes;
  return {"tile",
          tile,
          Major::K,
          row,
          column,
          rows,
          std::max<int64_t>(bytes / size, 1),
          sides[isTransposed],
          sides[!isTransposed]};
}

MatrixPart FragmentLoadOp::getPart() {
  MatrixPart part =
      ::getPart(getTile(), getType(), getTileRow(), getTileColumn());
  if (getRepeated())
    part.rows = part.rowUnit = 1;
  return part;
}
MatrixPart FragmentStoreOp::getPart() {
  return ::getPart(getTile(), getValue().getType(), getTileRow(),
                   getTileColumn(), getTransposed());
}

static LogicalResult verifyAccess(Operation *op, FragmentType fragment,
                                  TypedValue<TileType> tile) {
  // (C1)
  Type element = fragment.getElementType();
  if (!fragment.hasColumns() || element != tile.getType().getElementType() ||
      element.getIntOrFloatBitWidth() % 8 != 0)
    return op->emitOpError("expects a fragment of two dimensions with the "
                           "elements of the tile, whole bytes, got ")
           << fragment << " and " << tile.getType();
  return success();
}

bool FragmentLoadOp::dequantizes() {
  return getType().getElementType().isF16() && !getPaired() &&
         getType().getLayout() == FragmentLayout::MmaA16Pairs &&
         hasUse(getTile().getType().getElementType(), FormatUse::FP8);
}

LogicalResult FragmentLoadOp::verify() {
  if (!dequantizes() && failed(verifyAccess(*this, getType(), getTile())))
    return failure();
  // (C3)
  if (getRepeated() && !LayoutDigits::get(getType()).isAccumulator())
    return emitOpError("expects an accumulator for 'repeated', got ")
           << getType();
  FragmentLayout layout = getType().getLayout();
  if (getPaired() && layout != FragmentLayout::MmaA16Pairs &&
      layout != FragmentLayout::MmaA16Quads)
    return emitOpError("expects mma_a16_pairs or mma_a16_quads for 'paired', "
                       "got ")
           << getType();
  return getPart().verifySize(*this); // (C2)
}
LogicalResult FragmentStoreOp::verify() {
  if (failed(verifyAccess(*this, getValue().getType(), getTile())))
    return failure();
  return getPart().verifySize(*this);
}
