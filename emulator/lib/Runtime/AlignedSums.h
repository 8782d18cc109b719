//===- AlignedSums.h - Sums of Hopper's tensor cores ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensor cores of Hopper align the addends of a sum to the largest exponent,
// and drop the bits far below it before they add. The numbers of bits are those
// of an H200 (emulator/docs/differences-from-a-chip.md).
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_ALIGNEDSUMS_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_ALIGNEDSUMS_H

#include <cstdint>

namespace mlir::kvcache::emulator {

/// The product of two matrices, with sums that begin with the accumulators.
class AlignedSums {
public:
  static constexpr uint32_t kMaxM = 64, kMaxN = 256, kMaxK = 32;

  /// A is indexed by M and K, B by K and N.
  float a[kMaxM][kMaxK], b[kMaxK][kMaxN];
  double sums[kMaxM][kMaxN];

  /// Adds exact products to sums, without rounding.
  void addExactly(uint32_t m, uint32_t n, uint32_t k);
  /// Adds products without the bits more than `bits` places below the first
  /// bit of the largest addend.
  void addAligned(uint32_t m, uint32_t n, uint32_t k, int bits);

private:
  void addRow(uint32_t row, uint32_t n, uint32_t k, int bits);
  double addOne(uint32_t row, uint32_t column, uint32_t k, int highest,
                int bits) const;

  int16_t exponentsB[kMaxK][kMaxN];
};

/// Returns a number without the bits more than `bits` places below its first.
double truncateMantissa(double number, int bits);

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_ALIGNEDSUMS_H
