//===- Swizzle.h - How tiles lie in shared memory ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plain C++ without MLIR or LLVM: compilers, runtimes and tests share it.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TMA_SWIZZLE_H
#define KVCACHE_TMA_SWIZZLE_H

#include <cstdint>

namespace mlir::kvcache::tma {

/// The swizzles of a tensor map: PTX ISA, "Tensors, Swizzling Modes".
enum class Swizzle : uint8_t { None, Span32, Span64, Span128 };

/// The bytes of a row that a swizzle moves about: 32, 64 or 128, and 16, what
/// moves as a whole, without one.
constexpr int64_t getSpan(Swizzle swizzle) {
  return int64_t(16) << static_cast<int64_t>(swizzle);
}

/// Elements in the span of a row.
constexpr int64_t getGranularity(Swizzle swizzle, int64_t elementBytes) {
  return getSpan(swizzle) / elementBytes;
}

/// Where the hardware stores byte `address` of shared memory: the 16-byte unit
/// in its span, exclusive-or the lowest bits of the number of its 128 bytes.
constexpr int64_t applySwizzle(Swizzle swizzle, int64_t address) {
  int64_t mask = getSpan(swizzle) / 16 - 1;
  return address ^ (((address >> 7) & mask) << 4);
}

/// A tile of rows and columns in shared memory: chunks of as many columns as a
/// span has, each of them all rows. Without a swizzle all columns are one
/// chunk.
struct TileLayout {
  int64_t rows, columns, elementBytes;
  Swizzle swizzle;

  /// Columns of a chunk.
  constexpr int64_t getChunkColumns() const {
    return swizzle == Swizzle::None ? columns
                                    : getGranularity(swizzle, elementBytes);
  }
  constexpr int64_t getNumChunks() const {
    return (columns + getChunkColumns() - 1) / getChunkColumns();
  }
  constexpr int64_t getChunkBytes() const {
    return rows * getChunkColumns() * elementBytes;
  }
  constexpr int64_t getBytes() const {
    return getNumChunks() * getChunkBytes();
  }
  /// What the address of the tile is a multiple of, so that the pattern of the
  /// hardware, which goes by the address, starts with the tile.
  constexpr int64_t getAlignment() const {
    return swizzle == Swizzle::None ? 128 : 8 * getSpan(swizzle);
  }
  /// The byte of an element, from the tile's address on.
  constexpr int64_t getOffset(int64_t row, int64_t column) const {
    int64_t chunk = column / getChunkColumns();
    int64_t inChunk = row * getChunkColumns() + column % getChunkColumns();
    return applySwizzle(swizzle,
                        chunk * getChunkBytes() + inChunk * elementBytes);
  }
};

} // namespace mlir::kvcache::tma

#endif // KVCACHE_TMA_SWIZZLE_H
