//===- MatrixDescriptor.h - Matrices in shared memory -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The 64 bits by which wgmma and tcgen05 find a matrix in shared memory: PTX
// ISA, "Matrix Descriptor Format" and "Shared memory descriptor". Plain C++
// without MLIR or LLVM: compilers, runtimes and tests share it.
//
//   bits     wgmma                              tcgen05
//   0-13     start / 16                         the same
//   16-29    leading dimension byte offset / 16 the same
//   32-45    stride dimension byte offset / 16  the same
//   46-48    0                                  0b001
//   49-51    base offset                        the same
//   61-63    swizzle in 62-63: 0 none, 1 128B,  0 none, 2 128B, 4 64B, 6 32B,
//            2 64B, 3 32B                       1 128B with wide units
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TMA_MATRIXDESCRIPTOR_H
#define KVCACHE_TMA_MATRIXDESCRIPTOR_H

#include "kvcache/TMA/TensorMap.h"

namespace mlir::kvcache::tma {

/// The instructions that a descriptor is for.
enum class MatrixFormat : uint8_t { WGMMA, TCGen05 };

/// A matrix in shared memory. Addresses are multiples of 16 bytes below 2^18.
struct MatrixDescriptor {
  static constexpr uint32_t kUnitBytes = 16, kAddressBytes = 1 << 18;

  /// The address of element (0, 0), as it is without the swizzle.
  uint32_t start = 0;
  /// "Leading dimension byte offset" and "Stride dimension byte offset": the
  /// distances of 8x16-byte core matrices, or of swizzle atoms.
  uint32_t leadingBytes = 0, strideBytes = 0;
  /// The number of the 128-byte line, modulo 8, at which the pattern of the
  /// swizzle starts: 0 where patterns start at multiples of their size, as in
  /// tiles of tensor copies.
  uint32_t baseOffset = 0;
  Swizzle swizzle = Swizzle::None;
  /// Whether the swizzle of 128 bytes moves 32 bytes as a whole, not 16: "128B
  /// with 32B atomicity", of tcgen05 for 32-bit elements that are MN-major.
  bool hasWideUnits = false;

  /// The address of an element, for a base offset of 0. `mn` is its row in A,
  /// or its column in B, and `k` the other index. PTX ISA, "Strides" and
  /// "Canonical Layouts".
  uint32_t getAddress(Major major, int64_t elementBytes, int64_t mn,
                      int64_t k) const;
};

/// The bits of a descriptor whose addresses are in range.
uint64_t encode(const MatrixDescriptor &descriptor, MatrixFormat format);
/// The way back; `nullopt` if reserved bits are set, or for a swizzle that
/// tensor copies don't have.
std::optional<MatrixDescriptor> decodeMatrix(uint64_t bits,
                                             MatrixFormat format);

/// The matrix that begins at an element of a tile at byte `address`: of
/// `Major::K`, the columns of the tile are K, and the row has to be a multiple
/// of 8, the column one of 32 bytes; of `Major::MN`, the rows of the tile are
/// K, and the column has to be one of a span. `nullopt` if it does not begin
/// there, or if no descriptor has the layout: rows of more than 16 bytes
/// without a swizzle, or an address with another pattern.
std::optional<MatrixDescriptor> getMatrix(const TileLayout &tile,
                                          uint32_t address, Major major,
                                          int64_t row, int64_t column);

} // namespace mlir::kvcache::tma

#endif // KVCACHE_TMA_MATRIXDESCRIPTOR_H
