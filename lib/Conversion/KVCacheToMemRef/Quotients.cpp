//===- Quotients.cpp - Quantize in kernels without divisions --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A chip divides in some ten instructions for an element, and in a subroutine
// where numbers are not normal. All elements of a group have one divisor, so a
// product and a fused one by its reciprocal, in two parts, do as well.
//
// They do because few quotients are critical. By the exact scale, one that is
// not half way between two numbers of the quantized type is away from there by
// far more than f32 rounds off, since values have at most 11 bits. From half
// way, it is the rounding of the scale that moves a quotient to either side or,
// with that of the quotient, to neither: by a multiple of a 7th, a 3rd or a
// 127th of the scale's last place, as the largest numbers are 7 * 2^n, 3 * 2^n
// and 127. The quotients here are closer than that to exact ones. This has been
// tried for every group of bf16 and a fifth of those of f16, with elements of
// twenty binades, for all types of quantized values and scales, each with any
// reciprocal that is wrong in its last place. test_quotients.py has the
// quotients that are closest to half way between any two numbers.
//
//===----------------------------------------------------------------------===//

#include "Quotients.h"
#include "Quantization.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::kvcache;

bool kvcache::avoidsDivisions(OpBuilder &builder, Value values) {
  Type lane = getLaneType(values.getType());
  return isInGPUCode(builder.getInsertionBlock()->getParentOp()) &&
         lane.getIntOrFloatBitWidth() == 16;
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

/// The f32 that is `places` of its last place closer to zero.
static Value subtractFromBits(const FloatBuilder &b, Value number, int places) {
  Type type = withLane(number.getType(), b.builder.getI32Type());
  TypedAttr attr = b.builder.getI32IntegerAttr(places);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, Attribute(attr));
  Value bits = arith::BitcastOp::create(b.builder, b.loc, type, number);
  bits =
      arith::SubIOp::create(b.builder, b.loc, bits,
                            arith::ConstantOp::create(b.builder, b.loc, attr));
  return arith::BitcastOp::create(b.builder, b.loc, number.getType(), bits);
}

namespace {

/// A number close to the reciprocal of a divisor, in two parts.
struct Reciprocal {
  /// Not more than the reciprocal.
  Value high;
  /// What is missing, positive or zero.
  Value low;
};

} // namespace

/// The reciprocals of divisors for which they are normal numbers.
static Reciprocal getReciprocals(const FloatBuilder &b, Value divisors) {
  // One that is wrong in its last place will do. Two places less are too
  // little, so that what is missing has the sign of the rest: a negative part
  // would make a positive zero of a negative one, and so would the sum.
  Value one = b.constant(divisors, 1.0f);
  Value approximate = arith::DivFOp::create(b.builder, b.loc, one, divisors,
                                            arith::FastMathFlags::afn);
  Value high = subtractFromBits(b, approximate, 2);
  Value negative = b.negate(divisors);
  Value missing = b.fma(negative, high, one);
  return {high, b.mul(high, missing)};
}

/// Brings values and the scales of their groups, where these may have any
/// exponent, to where neither the reciprocals of the scales nor the parts of
/// these are subnormal: times the same power of two, so that the quotients
/// stay. A value that vanishes has a quotient that would too.
static void balance(const FloatBuilder &b, Value &values, Value &scales,
                    int64_t granularity) {
  constexpr float kSmall = 0x1p-20f, kUp = 0x1p64f, kDown = 0x1p-64f;
  Value factors = b.select(arith::CmpFPredicate::OLT, scales, kSmall,
                           b.constant(scales, kUp), b.constant(scales, kDown));
  scales = b.mul(scales, factors);
  // In the type of the values, of which a chip multiplies two at a time.
  Value narrow =
      convertFloat(b.builder, b.loc, factors, getLaneType(values.getType()));
  values = b.mul(values, b.spread(narrow, values, granularity));
}

Value kvcache::divideByScales(const FloatBuilder &b, Value values, Value scales,
                              int64_t granularity) {
  // The exponents of f16 are small enough.
  if (getLaneType(values.getType()).isBF16())
    balance(b, values, scales, granularity);
  Reciprocal reciprocal = getReciprocals(b, scales);
  values = convertFloat(b.builder, b.loc, values, b.f32);
  Value high = b.spread(reciprocal.high, values, granularity);
  Value low = b.spread(reciprocal.low, values, granularity);
  return b.fma(values, high, b.mul(values, low));
}
