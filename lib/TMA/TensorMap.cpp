//===- TensorMap.cpp - Geometry of TMA descriptors ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/TMA/TensorMap.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace mlir::kvcache::tma;

/// In fp8 MLA rows, the rope follows the content, as bf16.
static constexpr int64_t kRopeBytes = 2;

/// Sums and products of sizes of any origin: the largest number
/// where 64 bits are too few, which breaks a limit of the hardware all the
/// same.
static int64_t add(int64_t left, int64_t right) {
  int64_t sum;
  return __builtin_add_overflow(left, right, &sum)
             ? std::numeric_limits<int64_t>::max()
             : sum;
}
static int64_t multiply(int64_t left, int64_t right) {
  int64_t product;
  return __builtin_mul_overflow(left, right, &product)
             ? std::numeric_limits<int64_t>::max()
             : product;
}

static int64_t divideCeil(int64_t value, int64_t divisor) {
  return value / divisor + (value % divisor > 0);
}

/// The bf16 elements in a row of content and rope.
static int64_t getRopeWidth(int64_t paddedDepth, int64_t columns) {
  return add(paddedDepth, multiply(kRopeBytes, columns)) / kRopeBytes;
}

TensorMap mlir::kvcache::tma::resolve(const OpenTensorMap &map,
                                      const Extents &extents) {
  TensorMap resolved;
  resolved.elementBytes = map.elementBytes;
  resolved.swizzle = map.swizzle;
  resolved.offset = map.offset;
  for (int dim = 0; dim < map.rank; ++dim)
    resolved.add(map.dims[dim].resolve(extents),
                 map.strides[dim].resolve(extents), map.box[dim]);
  return resolved;
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

/// Formats the diagnostic for `what` of dimension `dim`: the rule and the
/// value.
static std::string describe(const char *what, int dim, const char *rule,
                            int64_t value) {
  return std::string("expects ") + what + " " + std::to_string(dim) + " " +
         rule + ", got " + std::to_string(value);
}

static std::optional<std::string> findBrokenLimitOf(const TensorMap &map,
                                                    int dim) {
  constexpr int64_t maxDim = int64_t(1) << 31, maxStride = int64_t(1) << 40;
  if (map.dims[dim] < 1)
    return describe("size", dim, "from 1 to 2^31", map.dims[dim]) +
           ": a cache without pages has no tensor map";
  if (map.dims[dim] > maxDim)
    return describe("size", dim, "from 1 to 2^31", map.dims[dim]);
  if (map.box[dim] < 1 || map.box[dim] > 256)
    return describe("box side", dim, "from 1 to 256", map.box[dim]);
  if (dim == 0) {
    if (map.strides[0] != 1)
      return describe("stride", 0, "to be 1 element", map.strides[0]);
    return std::nullopt;
  }
  int64_t stride = multiply(map.strides[dim], map.elementBytes);
  if (stride >= maxStride)
    return describe("stride", dim, "to be below 2^40 bytes", stride);
  if (stride <= 0 || stride % 16 != 0)
    return describe("stride", dim, "to be a multiple of 16 bytes", stride);
  return std::nullopt;
}

/// Checks all limits except for the start address of the tensor.
static std::optional<std::string> findBrokenLimitOfShape(const TensorMap &map) {
  if (map.rank < 1 || map.rank > TensorMap::kMaxRank)
    return "expects from 1 to 5 dimensions, got " + std::to_string(map.rank);
  if (map.elementBytes != 1 && map.elementBytes != 2 && map.elementBytes != 4 &&
      map.elementBytes != 8)
    return "expects elements of 1, 2, 4 or 8 bytes, got " +
           std::to_string(map.elementBytes);
  for (int dim = 0; dim < map.rank; ++dim)
    if (std::optional<std::string> broken = findBrokenLimitOf(map, dim))
      return broken;
  int64_t inner = map.box[0] * map.elementBytes;
  if (inner % 16 != 0)
    return "expects the inner side of the box to be a multiple of 16 bytes, "
           "got " +
           std::to_string(inner);
  if (map.swizzle != Swizzle::None && inner != getSpan(map.swizzle))
    return "expects the inner side of the box to be the span of the swizzle (" +
           std::to_string(getSpan(map.swizzle)) + " bytes), got " +
           std::to_string(inner);
  return std::nullopt;
}

std::optional<std::string>
mlir::kvcache::tma::findBrokenLimit(const TensorMap &map) {
  if (std::optional<std::string> broken = findBrokenLimitOfShape(map))
    return broken;
  if (map.offset % 16 != 0)
    return "expects the tensor to start at a multiple of 16 bytes, got " +
           std::to_string(map.offset);
  return std::nullopt;
}

std::optional<std::string>
mlir::kvcache::tma::findBrokenLimit(const TensorMap &map, uint64_t base) {
  if (std::optional<std::string> broken = findBrokenLimitOfShape(map))
    return broken;
  if (base == 0)
    return "expects a base address, got null";
  if (uint64_t excess = (base + static_cast<uint64_t>(map.offset)) % 16)
    return "expects the tensor to start at a multiple of 16 bytes, got " +
           std::to_string(excess) + " bytes after one";
  return std::nullopt;
}

std::optional<std::string>
mlir::kvcache::tma::findBrokenLimit(const OpenTensorMap &map) {
  return findBrokenLimit(resolve(map, Extents()));
}

//===----------------------------------------------------------------------===//
// Views of a cache
//===----------------------------------------------------------------------===//

bool CacheShape::isMultipleOf(int64_t bytes) const {
  return bytes % elementBytes == 0 && headSize * elementBytes % bytes == 0 &&
         tokenStride * elementBytes % bytes == 0 &&
         headStride * elementBytes % bytes == 0 &&
         roleStride * elementBytes % bytes == 0;
}

CacheShape CacheShape::countIn(int64_t bytes) const {
  CacheShape shape = *this;
  int64_t ratio = bytes / elementBytes;
  shape.elementBytes = bytes;
  shape.headSize /= ratio;
  shape.tokenStride /= ratio;
  shape.headStride /= ratio;
  shape.roleStride /= ratio;
  shape.elementsOfCache *= ratio;
  return shape;
}

int64_t CacheShape::getRowAlignment() const {
  int64_t alignment = std::gcd<int64_t>(16, getRowPitch() * elementBytes);
  // Pages of a layout, such as values after keys, are as aligned as heads are
  // long.
  if (!isPacked())
    alignment = std::gcd(alignment, headSize * elementBytes);
  alignment = std::gcd(alignment, roleStride * elementBytes);
  // Strides of heads that are known only at run time are as aligned.
  if (numHeads > 1 && !hasOpenHeadStride)
    alignment = std::gcd(alignment, getHeadStride() * elementBytes);
  return alignment;
}

/// The inner side of a box: a span, or without a swizzle `columns`, if given.
static int64_t getInnerSide(int64_t elementBytes, int64_t columns,
                            Swizzle swizzle) {
  return swizzle == Swizzle::None && columns
             ? columns
             : getGranularity(swizzle, elementBytes);
}

static OpenTensorMap start(int64_t elementBytes, Swizzle swizzle) {
  OpenTensorMap map;
  map.elementBytes = elementBytes;
  map.swizzle = swizzle;
  return map;
}

OpenTensorMap mlir::kvcache::tma::getTile(const CacheShape &cache, int64_t rows,
                                          int64_t columns, Swizzle swizzle) {
  if (cache.pageSize)
    rows = std::min(rows, cache.pageSize);
  OpenTensorMap map = start(cache.elementBytes, swizzle);
  map.add(cache.headSize, 1,
          getInnerSide(cache.elementBytes, columns, swizzle));
  map.add(cache.numHeads, cache.getHeadPitch(), 1);
  map.add(&Extents::rows, cache.getRowPitch(), rows);
  return map;
}

OpenTensorMap mlir::kvcache::tma::getMatrixTile(const CacheShape &cache,
                                                int64_t rows, int64_t columns,
                                                Major major, Swizzle swizzle) {
  int64_t inner = getInnerSide(cache.elementBytes, columns, swizzle);
  bool isWhole = major == Major::K || columns == inner;
  OpenTensorMap map = start(cache.elementBytes, swizzle);
  map.add(cache.getRowElements(), 1, inner);
  map.add(&Extents::rows, cache.getRowPitch(), isWhole ? rows : 8);
  return map;
}

OpenTensorMap mlir::kvcache::tma::getPagedTile(const CacheShape &cache,
                                               int64_t rows, int64_t columns,
                                               Swizzle swizzle) {
  OpenTensorMap map = start(cache.elementBytes, swizzle);
  map.add(cache.headSize, 1,
          getInnerSide(cache.elementBytes, columns, swizzle));
  map.add(cache.numHeads, cache.getHeadPitch(), 1);
  map.add(cache.pageSize, cache.getRowPitch(), rows);
  map.add(&Extents::pages, {&Extents::pageStride, 0, cache.elementsOfCache}, 1);
  return map;
}

OpenTensorMap mlir::kvcache::tma::getRaggedTile(const CacheShape &cache,
                                                int64_t rows, int64_t columns,
                                                Swizzle swizzle) {
  OpenTensorMap map = start(cache.elementBytes, swizzle);
  map.add(cache.headSize, 1,
          getInnerSide(cache.elementBytes, columns, swizzle));
  map.add(rows, cache.getRowPitch(), rows);
  map.add(cache.numHeads, cache.getHeadPitch(), 1);
  map.add({&Extents::rows, 1}, cache.getRowPitch(), 1);
  map.offset =
      -multiply(rows, multiply(cache.getRowPitch(), cache.elementBytes));
  return map;
}

OpenTensorMap mlir::kvcache::tma::getRopeTile(const CacheShape &cache,
                                              int64_t rows, int64_t columns,
                                              int64_t paddedDepth,
                                              Swizzle swizzle) {
  int64_t width = getRopeWidth(paddedDepth, columns);
  if (cache.pageSize)
    rows = std::min(rows, cache.pageSize);
  OpenTensorMap map = start(kRopeBytes, swizzle);
  map.add(columns, 1, getGranularity(swizzle, kRopeBytes));
  map.add(cache.numHeads, width, 1);
  map.add(&Extents::rows, multiply(cache.numHeads, width), rows);
  map.offset = paddedDepth;
  return map;
}

OpenTensorMap mlir::kvcache::tma::getGather4Tile(const CacheShape &cache,
                                                 int64_t elementBytes,
                                                 int64_t width, int64_t stride,
                                                 Swizzle swizzle) {
  OpenTensorMap map = start(elementBytes, swizzle);
  // Rows end where the next begin, except in a layout, whose heads may lie
  // apart.
  int64_t row = stride;
  if (!cache.isPacked() && elementBytes)
    row = cache.getRowElements() * cache.elementBytes / elementBytes;
  map.add(row, 1, getGather4BoxWidth(elementBytes, width, swizzle));
  map.add(&Extents::rows, stride, 1);
  return map;
}

OpenTensorMap mlir::kvcache::tma::getRopeGather4Tile(const CacheShape &cache,
                                                     int64_t width,
                                                     int64_t paddedDepth,
                                                     Swizzle swizzle) {
  OpenTensorMap map = start(kRopeBytes, swizzle);
  map.add(width, 1, getGather4BoxWidth(kRopeBytes, width, swizzle));
  map.add(&Extents::rows, getRopeWidth(paddedDepth, width), 1);
  map.offset = paddedDepth;
  return map;
}

OpenTensorMap mlir::kvcache::tma::getScaleTile(const CacheShape &scales,
                                               int64_t rows) {
  OpenTensorMap map = start(scales.elementBytes, Swizzle::None);
  map.add(scales.pageSize, 1, rows);
  map.add(&Extents::pages, &Extents::pageStride, 1);
  return map;
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

int64_t mlir::kvcache::tma::getPaddedDepth(int64_t elementBytes,
                                           Swizzle swizzle, int64_t depth) {
  int64_t span = getGranularity(swizzle, elementBytes);
  return multiply(divideCeil(depth, span), span);
}

int64_t mlir::kvcache::tma::getGather4BoxWidth(int64_t elementBytes,
                                               int64_t width, Swizzle swizzle) {
  return swizzle == Swizzle::None ? width
                                  : getGranularity(swizzle, elementBytes);
}

int64_t mlir::kvcache::tma::getScaleWindow(int64_t elementBytes, int64_t rows) {
  return add(rows, 16 / elementBytes);
}

int64_t mlir::kvcache::tma::getFoldedChunks(int64_t elementBytes,
                                            Swizzle swizzle, int64_t headSize,
                                            int64_t rows, int64_t columns,
                                            int64_t boxRows, bool chunkInner) {
  int64_t span = getGranularity(swizzle, elementBytes);
  int64_t chunks = columns / span;
  bool isWhole = columns % span == 0 && headSize % columns == 0;
  // A swizzle repeats after eight rows of a chunk.
  bool liesAlike = chunkInner ? boxRows % 8 == 0 : boxRows == rows;
  return isWhole && liesAlike ? std::max<int64_t>(chunks, 1) : 1;
}
