//===- Geometry.cpp - Rows of a cache in memory and in a tile -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Geometry.h"
#include "KnownDivisor.h"

#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/TensorMapOps.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

/// The maximum of a side of a box.
static constexpr int64_t kMaxSide = 256;

int64_t kvcache::getRowAlignment(CacheTypeInterface cache) {
  return getShape(cache).getRowAlignment();
}

int64_t kvcache::getChunkRowBytes(const tma::TileLayout &layout) {
  return layout.getChunkColumns() * layout.elementBytes;
}

bool kvcache::countsRowsOfAllPages(TileCopyOpInterface copy) {
  return copy.getRowIds() || copy.getValid() || !copy.getViewType().isPaged();
}

//===----------------------------------------------------------------------===//
// Boxes of consecutive tokens
//===----------------------------------------------------------------------===//

int64_t kvcache::getMostBoxRows(TileCopyOpInterface copy) {
  int64_t rows = copy.getTile().getType().getRows();
  CacheTypeInterface cache = copy.getViewType();
  return cache.isPaged() ? std::gcd(rows, cache.getPageSize()) : rows;
}

int64_t kvcache::getBoxRows(TileCopyOpInterface copy) {
  if (copy.getRowIds())
    return 1;
  int64_t rows = getMostBoxRows(copy);
  if (copy.getViewType().isPaged())
    rows = std::lcm(std::gcd(rows, getKnownDivisor(copy.getAccessedToken())),
                    std::gcd(rows, copy.getTokenAlignment()));
  for (int64_t side = std::min(rows, kMaxSide); side > 1; --side)
    if (rows % side == 0)
      return side;
  return 1;
}

/// The element type in which a descriptor counts, so that a row of a chunk fits
/// a box: that of the cache, or without a swizzle a 64-bit integer.
static Type getBoxElement(TileType tile) {
  tma::TileLayout layout = tile.getLayout();
  if (layout.swizzle != tma::Swizzle::None || layout.columns <= kMaxSide)
    return tile.getElementType();
  return IntegerType::get(tile.getContext(), 64);
}

static int64_t getBytes(Type element) {
  return element.getIntOrFloatBitWidth() / 8;
}

/// Finds the element type of boxes, which also count the bytes between heads
/// and rows.
static Type getBoxElement(TileCopyOpInterface copy) {
  TileType tile = copy.getTile().getType();
  Type element = getBoxElement(tile);
  return getShape(copy.getViewType()).isMultipleOf(getBytes(element))
             ? element
             : tile.getElementType();
}

static int64_t getBoxColumns(TileCopyOpInterface copy) {
  tma::TileLayout layout = copy.getTileLayout();
  return layout.columns * layout.elementBytes / getBytes(getBoxElement(copy));
}

static tma::OpenTensorMap getBoxes(TileCopyOpInterface copy) {
  tma::CacheShape shape =
      getShape(copy.getViewType()).countIn(getBytes(getBoxElement(copy)));
  tma::Swizzle swizzle = copy.getTileLayout().swizzle;
  int64_t rows = getBoxRows(copy), columns = getBoxColumns(copy);
  if (countsRowsOfAllPages(copy))
    return tma::getRaggedTile(shape, rows, columns, swizzle);
  return tma::getPagedTile(shape, rows, columns, swizzle);
}

/// The request for boxes of the tile, of which ragged ones count the rows of
/// all pages.
static DescriptorRequest requestBoxes(TileCopyOpInterface copy,
                                      StringRef opName, bool hasColumns) {
  TileType tile = copy.getTile().getType();
  MLIRContext *context = tile.getContext();
  Builder builder(context);
  NamedAttrList attributes;
  attributes.set("rows", builder.getI64IntegerAttr(getBoxRows(copy)));
  attributes.set("swizzle", SwizzleAttr::get(context, tile.getSwizzle()));
  // With a swizzle, the columns of other boxes are a span.
  if (hasColumns || tile.getSwizzle() == Swizzle::None)
    attributes.set("columns", builder.getI64IntegerAttr(getBoxColumns(copy)));
  if (Type element = getBoxElement(copy); element != tile.getElementType())
    attributes.set("dtype", TypeAttr::get(element));
  return {opName, attributes.getDictionary(context)};
}

static DescriptorRequest requestBoxes(TileCopyOpInterface copy) {
  if (countsRowsOfAllPages(copy))
    return requestBoxes(copy, CreateRaggedTMATileOp::getOperationName(),
                        /*hasColumns=*/false);
  return requestBoxes(copy, CreatePagedTMATileOp::getOperationName(),
                      /*hasColumns=*/true);
}

std::optional<DescriptorRequest>
kvcache::requestZeros(TileCopyOpInterface copy) {
  if (copy.getRowIds() || !copy.getValid())
    return std::nullopt;
  if (copy.getViewType().isPaged())
    return requestBoxes(copy, CreatePagedTMATileOp::getOperationName(),
                        /*hasColumns=*/true);
  return requestBoxes(copy, CreateTMATileOp::getOperationName(),
                      /*hasColumns=*/false);
}

//===----------------------------------------------------------------------===//
// Rows of row ids
//===----------------------------------------------------------------------===//

static tma::OpenTensorMap getRows(TileCopyOpInterface copy) {
  tma::CacheShape shape = getShape(copy.getViewType());
  tma::TileLayout layout = copy.getTileLayout();
  Type element = getBoxElement(copy.getTile().getType());
  int64_t bytes = getBytes(element);
  int64_t pitchBytes = shape.getRowPitch() * shape.elementBytes;
  return tma::getGather4Tile(shape, bytes,
                             layout.columns * layout.elementBytes / bytes,
                             pitchBytes / bytes, layout.swizzle);
}

static DescriptorRequest requestRows(TileCopyOpInterface copy) {
  TileType tile = copy.getTile().getType();
  MLIRContext *context = tile.getContext();
  Builder builder(context);
  Type element = getBoxElement(tile);
  int64_t bytes = getBytes(element);
  NamedAttrList attributes;
  attributes.set("tile_width", builder.getI64IntegerAttr(
                                   tile.getColumns() *
                                   tile.getLayout().elementBytes / bytes));
  attributes.set("tile_stride",
                 builder.getI64IntegerAttr(getRows(copy).strides[1].constant));
  attributes.set("swizzle", SwizzleAttr::get(context, tile.getSwizzle()));
  if (element != tile.getElementType())
    attributes.set("dtype", TypeAttr::get(element));
  return {CreateGather4TMATileOp::getOperationName(),
          attributes.getDictionary(context)};
}

//===----------------------------------------------------------------------===//
// Any copy
//===----------------------------------------------------------------------===//

tma::OpenTensorMap kvcache::getTensorMap(TileCopyOpInterface copy) {
  return copy.getRowIds() ? getRows(copy) : getBoxes(copy);
}

DescriptorRequest kvcache::requestDescriptor(TileCopyOpInterface copy) {
  return copy.getRowIds() ? requestRows(copy) : requestBoxes(copy);
}
