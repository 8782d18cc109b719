//===- Floats.cpp - Narrow floats from and to double ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"

#include <cmath>

using namespace mlir::kvcache;
using namespace mlir::kvcache::runtime;

/// The number of a magnitude. Beyond the largest number it is the one that
/// would follow.
static double decodeMagnitude(const KVCacheFloatFormat &format,
                              uint32_t magnitude) {
  int mantissaBits = static_cast<int>(format.mantissaBits);
  uint32_t one = 1u << mantissaBits;
  int exponent = static_cast<int>(magnitude >> mantissaBits);
  uint32_t mantissa = magnitude & (one - 1);
  if (!format.hasZero || exponent > 0)
    mantissa |= one;
  if (format.hasZero && exponent > 0)
    --exponent;
  return std::ldexp(mantissa, exponent + static_cast<int>(format.minExponent) -
                                  mantissaBits);
}

static uint32_t getSignBit(const KVCacheFloatFormat &format, int32_t bits) {
  return format.hasSign ? 1u << (bits - 1) : 0;
}

/// The magnitude of the nearest number; the one after the largest for a number
/// that is too large. Of two it is the even one; powers of two have no even
/// one, and round up.
static uint32_t findNearest(const KVCacheFloatFormat &format, double value) {
  uint32_t low = 0, high = static_cast<uint32_t>(format.largest) + 1;
  if (value >= decodeMagnitude(format, high))
    return high;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    (decodeMagnitude(format, middle) <= value ? low : high) = middle;
  }
  double below = value - decodeMagnitude(format, low);
  double above = decodeMagnitude(format, high) - value;
  bool isOdd = low % 2 == 1 || format.mantissaBits == 0;
  bool isAbove = above < below || (above == below && isOdd);
  return isAbove ? high : low;
}

uint32_t runtime::encodeFloat(const KVCacheFloatFormat &format, int32_t bits,
                              double value) {
  int64_t overflow = format.infinity >= 0 ? format.infinity
                     : format.nan >= 0    ? format.nan
                                          : format.largest;
  bool isNegative = std::signbit(value);
  if (std::isnan(value) || (isNegative && !format.hasSign))
    return static_cast<uint32_t>(format.nan >= 0 ? format.nan : format.largest);
  uint32_t magnitude = findNearest(format, std::fabs(value));
  if (magnitude > static_cast<uint32_t>(format.largest))
    magnitude = static_cast<uint32_t>(overflow);
  uint32_t code = magnitude | (isNegative ? getSignBit(format, bits) : 0);
  // Where a zero with a sign is the NaN, zero has none.
  return magnitude == 0 && code == static_cast<uint64_t>(format.nan) ? 0 : code;
}

double runtime::decodeFloat(const KVCacheFloatFormat &format, int32_t bits,
                            uint32_t code) {
  uint32_t sign = code & getSignBit(format, bits);
  uint32_t magnitude = code & ~sign;
  double value = decodeMagnitude(format, magnitude);
  if (magnitude == static_cast<uint64_t>(format.infinity))
    value = INFINITY;
  else if (magnitude > format.largest ||
           code == static_cast<uint64_t>(format.nan))
    value = NAN;
  return sign ? -value : value;
}
