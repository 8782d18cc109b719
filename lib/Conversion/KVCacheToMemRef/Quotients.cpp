//===- Quotients.cpp - Quantize without divisions -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A chip divides in some ten instructions for an element, and in a subroutine
// where numbers are not normal. A CPU takes ten cycles for a vector of 16. All
// elements of a group have one divisor, so a product and a fused one by its
// reciprocal, in two parts, do as well: they round to the same numbers of the
// quantized type, for any divisor of f32.
//
// Proof. A quotient is rounded to f32 and then to the quantized type, so only
// this matters: on which side of c it is, for each c in the middle between a
// number m of f32, itself in the middle between two of the quantized type, and
// the f32 beside it. Let a value be p * 2^n, where p has 11 bits, and m have
// the odd significand M of at most 8 bits. Then c has 25 bits and is
// M * 2^j +- 1, up to a power of two. A quotient of p by a divisor of 24 bits
// is never c, and no closer to it than 2^-39.3 times c, but for one: where p is
// 1, M is 1 and all bits of the divisor are set, it is above c by 2^-48. (For
// each p and c only the divisors around p / c are so close: trying all of them
// takes a tenth of a second, as test_quotients.py does.)
//
// The sum of the parts is never less than the reciprocal, and more by 2^-40 of
// it at most. Let e be what the high part is short of, in parts of the
// reciprocal: between 1 and 3 units in the last place, 2^-24 and 2^-21.4. The
// low part is the product of what is missing, e, by not the high part but a
// number that is 14 to 16 units above the reciprocal, 2^-20.2 to 2^-19 of it:
// so it is too large by at least 2^-20.2 * e, of which the square of e and
// three roundings take less than 2^-20.8 * e.
//
//===----------------------------------------------------------------------===//

#include "Quotients.h"
#include "Quantization.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::kvcache;

bool kvcache::avoidsDivisions(Value values) {
  return getLaneType(values.getType()).getIntOrFloatBitWidth() == 16;
}

Value kvcache::divideMagnitudes(const FloatBuilder &b, Value magnitudes,
                                float largest) {
  // What the product by the rounded reciprocal leaves of the magnitude is
  // exact, and divided in the same way. Of an infinity it leaves a NaN.
  Value reciprocal = b.constant(magnitudes, 1 / largest);
  Value quotient = b.mul(magnitudes, reciprocal);
  Value rest = b.fma(quotient, b.constant(magnitudes, -largest), magnitudes);
  return b.fma(rest, reciprocal, quotient);
}

/// The f32 that is `places` of its last place further from zero.
static Value addToBits(const FloatBuilder &b, Value number, int places) {
  Type type = withLane(number.getType(), b.builder.getI32Type());
  Value step = createScalarOrSplatConstant(
      b.builder, b.loc, type, APInt(32, places, /*isSigned=*/true));
  Value bits = arith::BitcastOp::create(b.builder, b.loc, type, number);
  bits = arith::AddIOp::create(b.builder, b.loc, bits, step);
  return arith::BitcastOp::create(b.builder, b.loc, number.getType(), bits);
}

Reciprocal kvcache::getReciprocals(const FloatBuilder &b, Value divisors) {
  // One that is wrong in its last place will do. Two places less are too
  // little, so that what is missing has the sign of the rest: a negative part
  // would make a positive zero of a negative one, and so would the sum.
  Value one = b.constant(divisors, 1.0f);
  Value approximate = arith::DivFOp::create(b.builder, b.loc, one, divisors,
                                            arith::FastMathFlags::afn);
  Value high = addToBits(b, approximate, -2);
  Value negative = b.negate(divisors);
  Value missing = b.fma(negative, high, one);
  return {high, b.mul(addToBits(b, approximate, 15), missing)};
}

Value kvcache::balanceScales(const FloatBuilder &b, Value &scales) {
  constexpr float kSmall = 0x1p-20f, kUp = 0x1p64f, kDown = 0x1p-64f;
  Value factors = b.select(arith::CmpFPredicate::OLT, scales, kSmall,
                           b.constant(scales, kUp), b.constant(scales, kDown));
  scales = b.mul(scales, factors);
  return factors;
}

/// Positive numbers from `least` to `most`; NaNs stay.
static Value bound(const FloatBuilder &b, Value numbers, float least,
                   float most) {
  numbers = b.select(arith::CmpFPredicate::OLT, numbers, least,
                     b.constant(numbers, least), numbers);
  return b.select(arith::CmpFPredicate::OGT, numbers, most,
                  b.constant(numbers, most), numbers);
}

Value kvcache::divideByScales(const FloatBuilder &b, Value values, Value scales,
                              int64_t granularity, bool areBounded) {
  bool isBF16 = getLaneType(values.getType()).isBF16();
  // A CPU has no arithmetic of bf16.
  if (!isInGPUCode(b.builder.getInsertionBlock()->getParentOp()))
    values = convertFloat(b.builder, b.loc, values, b.f32);
  // The exponents of f16 are small enough.
  if (isBF16) {
    Value factors = balanceScales(b, scales);
    // In the type of the values, of which a chip multiplies two at a time.
    Value narrow =
        convertFloat(b.builder, b.loc, factors, getLaneType(values.getType()));
    values = b.mul(values, b.spread(narrow, values, granularity));
  }
  // Where this changes something, quotients round to zero or to the largest
  // number.
  if (!areBounded)
    scales = bound(b, scales, 0x1p-90f, 0x1p90f);
  Reciprocal reciprocal = getReciprocals(b, scales);
  values = convertFloat(b.builder, b.loc, values, b.f32);
  Value high = b.spread(reciprocal.high, values, granularity);
  Value low = b.spread(reciprocal.low, values, granularity);
  return b.fma(values, high, b.mul(values, low));
}
