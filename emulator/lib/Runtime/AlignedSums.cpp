//===- AlignedSums.cpp - Sums of Hopper's tensor cores --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AlignedSums.h"
#include "Formats.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace mlir::kvcache::emulator;

/// The exponent of zero: below that of any product of other numbers, also where
/// the other factor is large.
static constexpr int kZeroExponent = -640, kHighestOfZeros = kZeroExponent / 2;

static constexpr int kBias = 1023, kMantissaBits = 52;

/// The exponents of the largest addends with which f32 holds the products, and
/// their multiples, as exactly as a sum needs them. The exponents of infinities
/// and NaNs are above.
static constexpr int kMinHighest = -100, kMaxHighest = 124;

static uint64_t getBits(double number) {
  uint64_t bits;
  std::memcpy(&bits, &number, sizeof(bits));
  return bits;
}

static double fromBits(uint64_t bits) {
  double number;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
}

/// A number of f32 or less is normal as f64.
static int getExponent(double number) {
  int biased = getBits(number) >> kMantissaBits & (2 * kBias + 1);
  return biased ? biased - kBias : kZeroExponent;
}

static double getPowerOfTwo(int exponent) {
  return fromBits(uint64_t(exponent + kBias) << kMantissaBits);
}

static float getFloatPowerOfTwo(int exponent) {
  return floatFromBits(uint32_t(exponent + 127) << 23);
}

double mlir::kvcache::emulator::truncateMantissa(double number, int bits) {
  if (!std::isfinite(number))
    return number;
  return fromBits(getBits(number) & ~uint64_t{0} << (kMantissaBits - bits));
}

void AlignedSums::addExactly(uint32_t m, uint32_t n, uint32_t k) {
  for (uint32_t row = 0; row < m; ++row)
    for (uint32_t i = 0; i < k; ++i)
      for (uint32_t column = 0; column < n; ++column)
        sums[row][column] += a[row][i] * b[i][column];
}

void AlignedSums::addAligned(uint32_t m, uint32_t n, uint32_t k, int bits) {
  for (uint32_t i = 0; i < k; ++i)
    for (uint32_t column = 0; column < n; ++column)
      exponentsB[i][column] = getExponent(b[i][column]);
  for (uint32_t row = 0; row < m; ++row)
    addRow(row, n, k, bits);
}

/// The addends of a sum are multiples of one power of two, and become integers.
/// Products have at most 25 bits after the first, and 16 of them fit in 32
/// bits; fp8 has 32, with 13 bits.
void AlignedSums::addRow(uint32_t row, uint32_t n, uint32_t k, int bits) {
  int16_t highest[kMaxN];
  for (uint32_t column = 0; column < n; ++column)
    highest[column] = getExponent(sums[row][column]);
  for (uint32_t i = 0; i < k; ++i) {
    int16_t exponent = getExponent(a[row][i]);
    for (uint32_t column = 0; column < n; ++column)
      highest[column] =
          std::max<int16_t>(highest[column], exponent + exponentsB[i][column]);
  }

  bool fits = true;
  float scales[kMaxN];
  for (uint32_t column = 0; column < n; ++column) {
    int exponent = highest[column];
    bool isZero = exponent < kHighestOfZeros;
    fits &= isZero | (exponent >= kMinHighest & exponent <= kMaxHighest);
    highest[column] = exponent = isZero ? 0 : exponent;
    scales[column] = getFloatPowerOfTwo(bits - exponent);
  }
  if (!fits) {
    for (uint32_t column = 0; column < n; ++column)
      sums[row][column] = addOne(row, column, k, highest[column], bits);
    return;
  }

  int32_t products[kMaxN];
  std::fill_n(products, n, 0);
  for (uint32_t i = 0; i < k; ++i)
    for (uint32_t column = 0; column < n; ++column)
      products[column] +=
          static_cast<int32_t>(a[row][i] * b[i][column] * scales[column]);
  for (uint32_t column = 0; column < n; ++column) {
    double &sum = sums[row][column];
    double given = static_cast<int32_t>(sum * scales[column]);
    sum = (given + products[column]) * getPowerOfTwo(highest[column] - bits);
  }
}

/// The rule in f64, also for numbers whose products f32 cannot hold, infinities
/// and NaNs.
double AlignedSums::addOne(uint32_t row, uint32_t column, uint32_t k,
                           int highest, int bits) const {
  double unit = getPowerOfTwo(std::min(highest, kBias) - bits);
  auto drop = [&](double addend) { return std::trunc(addend / unit) * unit; };
  // Not -0, as in integers.
  double sum = 0.0 + drop(sums[row][column]);
  for (uint32_t i = 0; i < k; ++i)
    sum += drop(static_cast<double>(a[row][i]) * b[i][column]);
  return sum;
}
