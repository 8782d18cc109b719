//===- Swizzle.h - Layout of tiles in shared memory -------------*- C++ -*-===//
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

/// The span of a swizzle in bytes of a row: 32, 64 or 128; without a swizzle
/// 16, the unit that a swizzle moves.
constexpr int64_t getSpan(Swizzle swizzle) {
  return int64_t(16) << static_cast<int64_t>(swizzle);
}

/// The number of elements in a span.
constexpr int64_t getGranularity(Swizzle swizzle, int64_t elementBytes) {
  return getSpan(swizzle) / elementBytes;
}

/// The address at which the hardware stores byte `address` of shared memory:
/// the index of its 16-byte unit in the span, exclusive-or the lowest bits of
/// the index of its 128-byte line.
constexpr int64_t applySwizzle(Swizzle swizzle, int64_t address) {
  int64_t mask = getSpan(swizzle) / 16 - 1;
  return address ^ (((address >> 7) & mask) << 4);
}

/// The layout of a tile in shared memory. The tile consists of chunks, each
/// with all rows and the columns of one span. Without a swizzle, the tile is
/// one chunk.
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
  /// The alignment of the tile in bytes. The swizzle of the hardware depends on
  /// the address; with this alignment, its pattern starts with the tile.
  constexpr int64_t getAlignment() const {
    return swizzle == Swizzle::None ? 128 : 8 * getSpan(swizzle);
  }
  /// The byte offset of an element from the start of the tile.
  constexpr int64_t getOffset(int64_t row, int64_t column) const {
    int64_t chunk = column / getChunkColumns();
    int64_t inChunk = row * getChunkColumns() + column % getChunkColumns();
    return applySwizzle(swizzle,
                        chunk * getChunkBytes() + inChunk * elementBytes);
  }
};

} // namespace mlir::kvcache::tma

#endif // KVCACHE_TMA_SWIZZLE_H
