//===- TensorMap.h - Geometry of TMA descriptors ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `cuTensorMapEncodeTiled` of the CUDA driver takes, for every way to view
// a cache. Plain C++ without MLIR or LLVM: compilers, runtimes and tests share
// it.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TMA_TENSORMAP_H
#define KVCACHE_TMA_TENSORMAP_H

#include "kvcache/TMA/Swizzle.h"

#include <array>
#include <optional>
#include <string>

namespace mlir::kvcache::tma {

/// A tensor in global memory and the box of it that one copy moves. Dimensions
/// are innermost first, as in CUDA; element strides are 1, nothing is
/// interleaved, and what lies out of bounds reads as zeros.
template <typename SizeT> struct BasicTensorMap {
  static constexpr int kMaxRank = 5;

  int rank = 0;
  int64_t elementBytes = 0;
  /// In elements. The stride of the innermost dimension is 1.
  std::array<SizeT, kMaxRank> dims{}, strides{};
  std::array<int64_t, kMaxRank> box{};
  Swizzle swizzle = Swizzle::None;
  /// From the base of the view to that of the tensor, in bytes.
  int64_t offset = 0;

  /// Adds a dimension outside of the others.
  void add(SizeT dim, SizeT stride, int64_t boxSide) {
    dims[rank] = dim;
    strides[rank] = stride;
    box[rank] = boxSide;
    ++rank;
  }
};

/// What of a view is known at run time only.
struct Extents {
  /// Rows from the first to the last of the view: `num_kv_rows`.
  int64_t rows = 1;
  /// Pages, and the elements from one to the next.
  int64_t pages = 1, pageStride = 16;
};

/// A constant, added to one of the extents if `of` is given.
struct Size {
  int64_t constant = 0;
  int64_t Extents::*of = nullptr;

  constexpr Size(int64_t constant = 0) : constant(constant) {}
  constexpr Size(int64_t Extents::*of, int64_t constant = 0)
      : constant(constant), of(of) {}

  constexpr int64_t resolve(const Extents &extents) const {
    return of ? extents.*of + constant : constant;
  }
};

using TensorMap = BasicTensorMap<int64_t>;
/// One whose extents are still open.
using OpenTensorMap = BasicTensorMap<Size>;

TensorMap resolve(const OpenTensorMap &map, const Extents &extents);

/// The first of the hardware's limits that the map breaks, as a message in the
/// style of our diagnostics; none if it keeps all. CUDA Driver API,
/// cuTensorMapEncodeTiled; a size is at most 2^31 because coordinates are
/// signed and have 32 bits. The base counts as a multiple of 16 bytes.
std::optional<std::string> findBrokenLimit(const TensorMap &map);
/// The same for a view whose base is at the address `base`.
std::optional<std::string> findBrokenLimit(const TensorMap &map, uint64_t base);
/// The same of what is known before the extents are: that they break no limit
/// is assumed.
std::optional<std::string> findBrokenLimit(const OpenTensorMap &map);

/// A view of a cache, as far as its type says. Rows have `numHeads * headSize`
/// elements.
struct CacheShape {
  int64_t elementBytes, numHeads, headSize;
  /// Tokens of a page; 0 in a continuous cache.
  int64_t pageSize = 0;

  int64_t getRowElements() const { return numHeads * headSize; }
};

/// Which index of a matrix product runs along a tile's rows of memory.
enum class Major : uint8_t { K, MN };

/// Rows of one head: (E, H, rows), box (span, 1, rows). The box stays in a
/// page.
OpenTensorMap getTile(const CacheShape &cache, int64_t rows, Swizzle swizzle);
/// Rows of a continuous cache as a matrix: (H * E, rows).
OpenTensorMap getMatrixTile(const CacheShape &cache, int64_t rows,
                            int64_t columns, Major major, Swizzle swizzle);
/// Rows of one head and page: (E, H, P, NB).
OpenTensorMap getPagedTile(const CacheShape &cache, int64_t rows,
                           int64_t columns, Swizzle swizzle);
/// Rows of one head of which the last may be missing: (E, BM, H, rows + 1) from
/// BM rows before the view on. With v valid rows at row r of head m the
/// coordinates (column, BM - v, m, r + v) leave the others out of bounds.
/// Without a swizzle the box has `columns`, or 16 bytes of them if that is 0.
OpenTensorMap getRaggedTile(const CacheShape &cache, int64_t rows,
                            int64_t columns, Swizzle swizzle);
/// The bf16 rope, `columns` elements, behind `paddedDepth` bytes of content.
OpenTensorMap getRopeTile(const CacheShape &cache, int64_t rows,
                          int64_t columns, int64_t paddedDepth,
                          Swizzle swizzle);
/// Single rows, for gather4: (stride, rows), in elements of `elementBytes`,
/// which need not be the cache's.
OpenTensorMap getGather4Tile(const CacheShape &cache, int64_t elementBytes,
                             int64_t width, int64_t stride, Swizzle swizzle);
/// Single rows of the bf16 rope.
OpenTensorMap getRopeGather4Tile(const CacheShape &cache, int64_t width,
                                 int64_t paddedDepth, Swizzle swizzle);
/// Scales of which a row has one: (P, NB). `scales` is their shape.
OpenTensorMap getScaleTile(const CacheShape &scales, int64_t rows);

/// `depth` rounded up to whole spans.
int64_t getPaddedDepth(int64_t elementBytes, Swizzle swizzle, int64_t depth);
/// The inner side of a gather4 box: a span, or the tile's width without
/// swizzle.
int64_t getGather4BoxWidth(int64_t elementBytes, int64_t width,
                           Swizzle swizzle);
/// Single scales that a box takes so that a tile of `rows` that starts anywhere
/// lies in a box that starts at 16 bytes.
int64_t getScaleWindow(int64_t elementBytes, int64_t rows);
/// The chunks of a tile that one copy can move with one dimension more: all of
/// them, or 1 where the chunks of a copy and those of the tile lie differently.
/// With `chunkInner` the box has the chunks inside 8 rows, so that a page may
/// be less than the tile.
int64_t getFoldedChunks(int64_t elementBytes, Swizzle swizzle, int64_t headSize,
                        int64_t rows, int64_t columns, int64_t boxRows,
                        bool chunkInner);

} // namespace mlir::kvcache::tma

#endif // KVCACHE_TMA_TENSORMAP_H
