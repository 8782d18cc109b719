//===- MatrixDescriptor.cpp - Matrices in shared memory -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/TMA/MatrixDescriptor.h"

using namespace mlir::kvcache::tma;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Rows of a core matrix, and of a swizzle atom.
static constexpr int64_t kAtomRows = 8;

uint32_t MatrixDescriptor::getAddress(Major major, int64_t elementBytes,
                                      int64_t mn, int64_t k) const {
  int64_t span = getSpan(swizzle);
  bool isKMajor = major == Major::K;
  // Across a row of memory, and down the rows.
  int64_t across = (isKMajor ? k : mn) * elementBytes;
  int64_t down = isKMajor ? mn : k;
  int64_t atomRows = hasWideUnits ? kAtomRows / 2 : kAtomRows;
  int64_t atomAcross = across / span, atomDown = down / atomRows;
  int64_t inAtom = down % atomRows * span + across % span;
  // Without a swizzle, the leading offset is along K of either matrix. With
  // one, it is along the rows of memory, which a K-major matrix does not leave.
  bool isLeadingAcross = isKMajor || swizzle != Swizzle::None;
  int64_t byAcross = isLeadingAcross ? leadingBytes : strideBytes;
  int64_t byDown = isLeadingAcross ? strideBytes : leadingBytes;
  if (isKMajor && swizzle != Swizzle::None)
    byAcross = span;
  int64_t address = start + atomAcross * byAcross + atomDown * byDown + inAtom;
  if (hasWideUnits)
    return address ^ (address >> 7 & 3) << 5;
  return applySwizzle(swizzle, address);
}

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

namespace {
struct Field {
  unsigned begin, bits;

  constexpr uint64_t mask() const { return (uint64_t(1) << bits) - 1; }
  uint64_t set(uint64_t value) const { return (value & mask()) << begin; }
  uint64_t get(uint64_t word) const { return word >> begin & mask(); }
};
} // namespace

static constexpr Field kStart{0, 14}, kLeading{16, 14}, kStride{32, 14},
    kVersion{46, 3}, kBaseOffset{49, 3}, kSwizzle{61, 3};

/// By swizzle, from none to 128 bytes. The two bits of wgmma are the high ones
/// of tcgen05, and the codes are equal.
static constexpr uint64_t kSwizzleCodes[] = {0, 6, 4, 2};
static constexpr uint64_t kWideUnitsCode = 1;

uint64_t mlir::kvcache::tma::encode(const MatrixDescriptor &descriptor,
                                    MatrixFormat format) {
  constexpr uint32_t unit = MatrixDescriptor::kUnitBytes;
  uint64_t swizzle =
      descriptor.hasWideUnits
          ? kWideUnitsCode
          : kSwizzleCodes[static_cast<size_t>(descriptor.swizzle)];
  return kStart.set(descriptor.start / unit) |
         kLeading.set(descriptor.leadingBytes / unit) |
         kStride.set(descriptor.strideBytes / unit) |
         kVersion.set(format == MatrixFormat::TCGen05) |
         kBaseOffset.set(descriptor.baseOffset) | kSwizzle.set(swizzle);
}

std::optional<MatrixDescriptor>
mlir::kvcache::tma::decodeMatrix(uint64_t bits, MatrixFormat format) {
  constexpr uint32_t unit = MatrixDescriptor::kUnitBytes;
  MatrixDescriptor descriptor;
  descriptor.start = kStart.get(bits) * unit;
  descriptor.leadingBytes = kLeading.get(bits) * unit;
  descriptor.strideBytes = kStride.get(bits) * unit;
  descriptor.baseOffset = kBaseOffset.get(bits);
  for (Swizzle swizzle :
       {Swizzle::None, Swizzle::Span32, Swizzle::Span64, Swizzle::Span128})
    if (kSwizzleCodes[static_cast<size_t>(swizzle)] == kSwizzle.get(bits))
      descriptor.swizzle = swizzle;
  if (format == MatrixFormat::TCGen05 && kSwizzle.get(bits) == kWideUnitsCode) {
    descriptor.swizzle = Swizzle::Span128;
    descriptor.hasWideUnits = true;
  }
  // The encoding is injective, so this detects any other bit.
  if (encode(descriptor, format) != bits)
    return std::nullopt;
  return descriptor;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

std::optional<MatrixDescriptor>
mlir::kvcache::tma::getMatrix(const TileLayout &tile, uint32_t address,
                              Major major, int64_t row, int64_t column) {
  constexpr int64_t stepBytes = 32, unit = MatrixDescriptor::kUnitBytes;
  int64_t span = getSpan(tile.swizzle), bytes = tile.elementBytes;
  bool hasSwizzle = tile.swizzle != Swizzle::None;
  int64_t inner = column * bytes;
  // Core matrices are 16 bytes wide; swizzled ones have the width of a span.
  if (!hasSwizzle && tile.columns * bytes != unit)
    return std::nullopt;
  int64_t least = major == Major::K && hasSwizzle ? stepBytes : span;
  if (address % (hasSwizzle ? kAtomRows * span : unit) != 0 ||
      row % kAtomRows != 0 || inner % least != 0 || row < 0 || column < 0)
    return std::nullopt;

  MatrixDescriptor matrix;
  matrix.swizzle = tile.swizzle;
  int64_t chunk = inner / span;
  matrix.start =
      address + chunk * tile.getChunkBytes() + row * span + inner % span;
  int64_t nextAtom = kAtomRows * span, nextChunk = tile.getChunkBytes();
  if (major == Major::MN && !hasSwizzle) {
    matrix.leadingBytes = nextAtom;
    matrix.strideBytes = nextChunk;
  } else {
    // Of a K-major matrix with a swizzle, the instruction ignores the leading
    // one, and CUTLASS sets it to 16.
    matrix.leadingBytes = major == Major::K && hasSwizzle ? unit : nextChunk;
    matrix.strideBytes = nextAtom;
  }
  bool fits = matrix.start < MatrixDescriptor::kAddressBytes &&
              matrix.leadingBytes < MatrixDescriptor::kAddressBytes &&
              matrix.strideBytes < MatrixDescriptor::kAddressBytes;
  return fits ? std::optional(matrix) : std::nullopt;
}
