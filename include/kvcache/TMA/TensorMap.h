//===- TensorMap.h - Geometry of TMA descriptors ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arguments of `cuTensorMapEncodeTiled` of the CUDA driver, for every kind
// of descriptor of a cache. Plain C++ without MLIR or LLVM: compilers, runtimes
// and tests share it.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TMA_TENSORMAP_H
#define KVCACHE_TMA_TENSORMAP_H

#include "kvcache/TMA/Swizzle.h"

#include <array>
#include <optional>
#include <string>

namespace mlir::kvcache::tma {

/// A tensor in global memory, and the box that one copy moves. Dimensions are
/// innermost first, as in CUDA. Element strides are 1, the layout is not
/// interleaved, and elements out of bounds read as zeros.
template <typename SizeT> struct BasicTensorMap {
  static constexpr int kMaxRank = 5;

  int rank = 0;
  int64_t elementBytes = 0;
  /// Sizes and strides in elements. The innermost stride is 1.
  std::array<SizeT, kMaxRank> dims{}, strides{};
  std::array<int64_t, kMaxRank> box{};
  Swizzle swizzle = Swizzle::None;
  /// Bytes from the base of the view to the base of the tensor.
  int64_t offset = 0;

  /// Adds an outermost dimension.
  void add(SizeT dim, SizeT stride, int64_t boxSide) {
    dims[rank] = dim;
    strides[rank] = stride;
    box[rank] = boxSide;
    ++rank;
  }
};

/// The sizes of a view that are known only at run time.
struct Extents {
  /// Rows from the first to the last of the view: `num_kv_rows`.
  int64_t rows = 1;
  /// The number of pages, and the strides of pages and heads in elements.
  int64_t pages = 1, pageStride = 16, headStride = 16;
};

/// A constant, plus the extent `of`, if given, in `divisor` of its units.
struct Size {
  int64_t constant = 0;
  int64_t Extents::*of = nullptr;
  int64_t divisor = 1;

  constexpr Size(int64_t constant = 0) : constant(constant) {}
  constexpr Size(int64_t Extents::*of, int64_t constant = 0,
                 int64_t divisor = 1)
      : constant(constant), of(of), divisor(divisor) {}

  constexpr int64_t resolve(const Extents &extents) const {
    return of ? extents.*of / divisor + constant : constant;
  }
};

using TensorMap = BasicTensorMap<int64_t>;
/// A tensor map whose extents are not known yet.
using OpenTensorMap = BasicTensorMap<Size>;

TensorMap resolve(const OpenTensorMap &map, const Extents &extents);

/// Returns a diagnostic for the first hardware limit that the map exceeds, or
/// `nullopt`. CUDA Driver API, cuTensorMapEncodeTiled; a size is at most 2^31
/// because coordinates are signed 32-bit integers. Assumes that the base is a
/// multiple of 16 bytes.
std::optional<std::string> findBrokenLimit(const TensorMap &map);
/// Checks a view whose base is at the address `base`.
std::optional<std::string> findBrokenLimit(const TensorMap &map, uint64_t base);
/// Checks the known parts of a map, and assumes that the extents are within
/// their limits.
std::optional<std::string> findBrokenLimit(const OpenTensorMap &map);

/// The static shape of a view.
struct CacheShape {
  int64_t elementBytes, numHeads, headSize;
  /// Tokens of a page; 0 in a continuous cache.
  int64_t pageSize = 0;
  /// The distances of tokens and heads in elements; 0 in packed rows.
  int64_t tokenStride = 0, headStride = 0;
  /// The distance of keys and values in elements; 0 if it is as aligned as
  /// tokens and heads.
  int64_t roleStride = 0;
  /// Whether the stride of heads is known only at run time.
  bool hasOpenHeadStride = false;
  /// Elements of the cache in an element of this shape: of the strides that are
  /// known only at run time, which are in those of the cache.
  int64_t elementsOfCache = 1;

  /// Whether a head, and what lies between rows and heads, are elements of so
  /// many bytes.
  bool isMultipleOf(int64_t bytes) const;
  /// Gives the shape of this memory in elements of `bytes` bytes.
  CacheShape countIn(int64_t bytes) const;

  /// The distance from a row to the next in elements.
  int64_t getRowPitch() const {
    return tokenStride ? tokenStride : numHeads * headSize;
  }
  /// The elements from the first of a row to its last. The stride of heads must
  /// be known.
  int64_t getRowElements() const {
    return (numHeads - 1) * getHeadStride() + headSize;
  }
  Size getHeadPitch() const {
    return hasOpenHeadStride ? Size(&Extents::headStride, 0, elementsOfCache)
                             : getHeadStride();
  }
  /// Whether rows are packed.
  bool isPacked() const { return !tokenStride; }
  /// Gives the alignment of every head of every row, up to 16 bytes, if pages
  /// start at multiples of 16 bytes or of the least that the strides allow.
  int64_t getRowAlignment() const;

private:
  int64_t getHeadStride() const { return headStride ? headStride : headSize; }
};

/// The index of a matrix product that runs along the rows of a tile.
enum class Major : uint8_t { K, MN };

// With a swizzle, the inner side of a box is a span. Without one, it is
// `columns`, or 16 bytes if `columns` is 0.

/// Rows of one head: (E, H, rows), box (columns, 1, rows). The box lies inside
/// a page.
OpenTensorMap getTile(const CacheShape &cache, int64_t rows, int64_t columns,
                      Swizzle swizzle);
/// Rows of a continuous cache as a matrix: (H * E, rows), box (columns, rows).
/// For `Major::MN`, the box has 8 rows if the tile is wider than the box.
OpenTensorMap getMatrixTile(const CacheShape &cache, int64_t rows,
                            int64_t columns, Major major, Swizzle swizzle);
/// Rows of one head and page: (E, H, P, NB).
OpenTensorMap getPagedTile(const CacheShape &cache, int64_t rows,
                           int64_t columns, Swizzle swizzle);
/// Rows of one head, some of which may be invalid: (E, BM, H, rows + 1),
/// starting BM rows before the view. For v valid rows from row r of head m on,
/// use the coordinates (column, BM - v, m, r + v), which leave the invalid rows
/// out of bounds.
OpenTensorMap getRaggedTile(const CacheShape &cache, int64_t rows,
                            int64_t columns, Swizzle swizzle);
/// The bf16 rope of `columns` elements that follows `paddedDepth` bytes of
/// content.
OpenTensorMap getRopeTile(const CacheShape &cache, int64_t rows,
                          int64_t columns, int64_t paddedDepth,
                          Swizzle swizzle);
/// Single rows, for gather4: (stride, rows), in elements of `elementBytes`,
/// which may differ from those of the cache. Row r starts r strides after the
/// view; with a layout, it has the elements of a row of the cache.
OpenTensorMap getGather4Tile(const CacheShape &cache, int64_t elementBytes,
                             int64_t width, int64_t stride, Swizzle swizzle);
/// Single rows of the bf16 rope.
OpenTensorMap getRopeGather4Tile(const CacheShape &cache, int64_t width,
                                 int64_t paddedDepth, Swizzle swizzle);
/// Scales of a cache with one scale per row: (P, NB). `scales` is their shape.
OpenTensorMap getScaleTile(const CacheShape &scales, int64_t rows);

/// Rounds `depth` up to whole spans.
int64_t getPaddedDepth(int64_t elementBytes, Swizzle swizzle, int64_t depth);
/// The inner side of a gather4 box: a span, or `width` without a swizzle.
int64_t getGather4BoxWidth(int64_t elementBytes, int64_t width,
                           Swizzle swizzle);
/// The number of single scales in a box that starts at a multiple of 16 bytes
/// and contains a tile of `rows` with any start.
int64_t getScaleWindow(int64_t elementBytes, int64_t rows);
/// The number of chunks of a tile that one copy can move with an additional
/// dimension: all chunks, or 1 if the layouts of the copy and the tile differ.
/// With `chunkInner`, the box has the chunks inside of groups of 8 rows, so
/// that a page may be smaller than the tile.
int64_t getFoldedChunks(int64_t elementBytes, Swizzle swizzle, int64_t headSize,
                        int64_t rows, int64_t columns, int64_t boxRows,
                        bool chunkInner);

} // namespace mlir::kvcache::tma

#endif // KVCACHE_TMA_TENSORMAP_H
