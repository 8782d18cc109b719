//===- Quotients.h - Quantize without divisions -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_QUOTIENTS_H
#define KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_QUOTIENTS_H

#include "kvcache/Support/FloatBuilder.h"

namespace mlir::kvcache {

/// Whether a group of `values` is quantized by the functions below, which give
/// what divisions give: values of 16 bits.
bool avoidsDivisions(Value values);

/// The magnitudes of 16-bit numbers, in f32, divided by the largest number of a
/// quantized type and rounded. Infinities and NaNs become NaNs.
Value divideMagnitudes(const FloatBuilder &b, Value magnitudes, float largest);

/// A number close to the reciprocal of a divisor, in two parts.
struct Reciprocal {
  /// Not more than the reciprocal.
  Value high;
  /// The remainder, positive or zero.
  Value low;
};

/// The reciprocals of divisors for which they are normal numbers.
Reciprocal getReciprocals(const FloatBuilder &b, Value divisors);

/// Brings the scales of groups, which may have any exponent, to where neither
/// their reciprocals nor the parts of these are subnormal. Returns powers of
/// two, to multiply values by as well, so that the quotients stay. A value that
/// vanishes has a quotient that would too.
Value balanceScales(const FloatBuilder &b, Value &scales);

/// 16-bit values as f32, divided by the scales of their groups of `granularity`
/// lanes, close enough to the rounded quotients to become the same numbers of
/// the quantized type. A scale is a NaN if the group has a NaN or an infinity,
/// and otherwise positive. They `areBounded` if each is that of the group's
/// largest magnitude, rounded to any scale type and extended to f32.
Value divideByScales(const FloatBuilder &b, Value values, Value scales,
                     int64_t granularity, bool areBounded);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_QUOTIENTS_H
