//===- IntegerPatterns.cpp - Narrow floats in integer arithmetic ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Extension is exact for all encodings, and keeps the sign of a NaN. Truncation
// rounds once and saturates, as `cvt.satfinite` of the PTX ISA does: numbers
// beyond the largest finite number, and infinities, become that number. A NaN
// becomes a NaN of the same sign, or the largest positive number in formats
// without NaN. The folder of `arith.truncf` runs first on constants: it keeps
// infinities in f8E5M2, and folds infinities and NaNs to zero in the 4-bit and
// 6-bit formats.
//
// The arithmetic must support subnormal numbers and round to nearest even,
// which LLVM does by default on every target.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "kvcache/Conversion/NarrowFloats.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::narrow;
using llvm::APFloat;

//===----------------------------------------------------------------------===//
// Encodings
//===----------------------------------------------------------------------===//

/// Whether pairs of 4-bit lanes fill bytes; the lower half of a byte is the
/// even lane.
static bool isBytesOfPairs(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getRank() == 1 &&
         vector.getElementTypeBitWidth() == 4 && vector.getDimSize(0) % 2 == 0;
}

/// Returns the type of the vector of bytes of the lanes of `pairs`.
static VectorType getBytesOfPairs(VectorType pairs) {
  Type i8 = IntegerType::get(pairs.getContext(), 8);
  return VectorType::get(pairs.getDimSize(0) / 2, i8, pairs.getScalableDims());
}

/// Returns the encodings of narrow floats in the upper bits of integers, with
/// zeros in the lower bits. Reads pairs of 4 bits from the loaded bytes.
static Value readEncodings(const Elementwise &e, OpBuilder &builder,
                           Location loc, Value floats) {
  if (!isBytesOfPairs(floats.getType()))
    return e.toBits(floats);
  VectorType type = getBytesOfPairs(cast<VectorType>(floats.getType()));
  Value bytes = vector::BitCastOp::create(builder, loc, type, floats);
  Elementwise perByte(builder, loc, type);
  return vector::InterleaveOp::create(builder, loc,
                                      perByte.op<arith::ShLIOp>(bytes, 4),
                                      perByte.op<arith::AndIOp>(bytes, 0xF0));
}

/// Returns the narrow floats of `type` from encodings in the lowest byte of
/// integers, ignoring higher bits. Packs pairs of 4 bits into bytes for stores.
static Value writeEncodings(const Elementwise &e, OpBuilder &builder,
                            Location loc, Value integers, Type type) {
  Type element = getElementTypeOrSelf(type);
  if (!isBytesOfPairs(type))
    return e.bitcast(e.truncate(integers, element.getIntOrFloatBitWidth()),
                     element);
  auto halves =
      vector::DeinterleaveOp::create(builder, loc, e.truncate(integers, 8));
  Elementwise perByte(builder, loc, halves.getRes1().getType());
  Value bytes = perByte.op<arith::OrIOp>(
      halves.getRes1(), perByte.op<arith::ShLIOp>(halves.getRes2(), 4));
  return vector::BitCastOp::create(builder, loc, type, bytes);
}

//===----------------------------------------------------------------------===//
// Extension
//===----------------------------------------------------------------------===//

/// Decodes the upper bits of the integers `encoded` in the format `from`, times
/// 2^-scale, as f32. Infinities and NaNs become the numbers that would follow
/// the largest one.
///
/// The bits of exponent and mantissa, moved to their positions in an f32, are a
/// number whose exponent is off by the difference of the biases. The
/// multiplication by this power of two is exact, and normalizes subnormal
/// numbers.
static Value scaleToF32(const Elementwise &e, Value encoded, const Format &from,
                        const Format &f32, int scale) {
  unsigned shift = f32.mantissa - from.mantissa;
  uint64_t magnitude = (from.signBit() - 1) << shift;
  Type element = getElementTypeOrSelf(encoded.getType());
  unsigned unused = element.getIntOrFloatBitWidth() - from.width;
  Value bits;
  if (unused > shift)
    bits = e.op<arith::ShRSIOp>(encoded, unused - shift);
  else
    bits =
        e.op<arith::ShLIOp>(e.extendSigned(encoded, f32.width), shift - unused);
  bits = e.op<arith::AndIOp>(bits, f32.signBit() | magnitude);
  int exponent = from.minExponent - f32.minExponent - scale;
  return e.op<arith::MulFOp>(e.bitcast(bits, f32.type),
                             f32.powerOfTwo(exponent));
}

/// Extends encodings of a narrow format, or of f16, to `to`: f32, or f16 in an
/// f32, scaled by the difference of the biases so that the low exponent bits
/// are those of the f16. Infinities and NaNs get an exponent of all ones.
/// Returns the bits of the f32.
static Value extendScaled(const Elementwise &e, Value encoded,
                          const Format &from, const Format &to,
                          const Format &f32) {
  int scale = to.minExponent - f32.minExponent;
  Value number = scaleToF32(e, encoded, from, f32, scale);
  Value bits = e.toBits(number);
  if (!from.hasNaN())
    return bits;
  Value special =
      e.op<arith::OrIOp>(bits, f32.powerOfTwo(to.infinityExponent() - scale));
  // Compare as floats, because the hardware takes the absolute value for free.
  Value magnitude = e.op<arith::AndIOp>(bits, f32.signBit() - 1);
  Value isSpecial =
      e.compare(arith::CmpFPredicate::OGT, e.bitcast(magnitude, f32.type),
                f32.bits(from.largest(), -scale));
  return e.select(isSpecial, special, bits);
}

/// Extends encodings of a narrow format to encodings of f16.
static Value extendToF16(const Elementwise &e, Value encoded,
                         const Format &from, const Format &f16,
                         const Format &f32) {
  if (from.minExponent == f16.minExponent) {
    Value bits = e.extendUnsigned(encoded, f16.width);
    return e.op<arith::ShLIOp>(bits, f16.width - from.width);
  }
  // Every number is normal in f16, so an f32 scaled by the difference of the
  // biases contains the bits of the f16: the sign at the top, the others below.
  Value scaled = extendScaled(e, encoded, from, f16, f32);
  Value bits = e.op<arith::ShRUIOp>(scaled, f32.mantissa - f16.mantissa);
  bits = e.op<arith::AndIOp>(bits, f16.signBit() - 1);
  Value sign = e.op<arith::ShRUIOp>(scaled, f32.width - f16.width);
  sign = e.op<arith::AndIOp>(sign, f16.signBit());
  return e.truncate(e.op<arith::OrIOp>(bits, sign), f16.width);
}

/// Extends encodings of a narrow format with a sign.
static Value extendSigned(const Elementwise &e, Value encoded, FloatType from,
                          FloatType to, FloatType f32) {
  if (to.isF16())
    return e.bitcast(
        extendToF16(e, encoded, Format(from), Format(to), Format(f32)), to);
  Value bits = extendScaled(e, encoded, Format(from), Format(f32), Format(f32));
  if (!to.isBF16())
    return e.convertFloat(e.bitcast(bits, f32), to);
  // bf16 is the upper half of an f32, whose lower half is zero here.
  return e.bitcast(e.truncate(e.op<arith::ShRUIOp>(bits, 16), 16), to);
}

Value kvcache::extendHighBits(OpBuilder &builder, Location loc, Value integers,
                              FloatType type) {
  Elementwise e(builder, loc, integers.getType());
  return scaleToF32(e, integers, Format(type), Format(builder.getF32Type()),
                    /*scale=*/0);
}

/// Extends f8E8M0FNU, given by its bits: its exponent is that of bf16 and f32,
/// except for the smallest number, 2^-127, whose exponent would mean zero.
static Value extendE8M0(const Elementwise &e, Value encoded, FloatType to,
                        FloatType f32) {
  Format format(to.isBF16() ? to : f32);
  Value bits = e.extendUnsigned(encoded, format.width);
  bits = e.op<arith::ShLIOp>(bits, format.mantissa);
  bits = e.op<arith::MaxUIOp>(bits, uint64_t(1) << (format.mantissa - 1));
  Value isNaN = e.compare(arith::CmpIPredicate::eq, encoded, 0xFF);
  bits = e.select(isNaN, e.constant(bits.getType(), format.quietNaN()), bits);
  return e.convertFloat(e.bitcast(bits, format.type), to);
}

namespace {

/// Extends a narrow format to f16, bf16, f32 or f64.
struct ExtendNarrow : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    FloatType from = getFloatLane(op.getIn().getType());
    FloatType to = getFloatLane(op.getType());
    if (!isNarrow(from))
      return rewriter.notifyMatchFailure(op, "not from a narrow float");
    if (!isWide(to))
      return rewriter.notifyMatchFailure(op, "not to f16, bf16, f32 or f64");

    Elementwise e(rewriter, op.getLoc(), op.getType());
    FloatType f32 = rewriter.getF32Type();
    Value encoded = readEncodings(e, rewriter, op.getLoc(), op.getIn());
    rewriter.replaceOp(op, isa<Float8E8M0FNUType>(from)
                               ? extendE8M0(e, encoded, to, f32)
                               : extendSigned(e, encoded, from, to, f32));
    return success();
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Truncation
//===----------------------------------------------------------------------===//

/// Rounds by `shift` bits: adds half a unit of the last place minus one, plus
/// one if that place is odd.
static Value roundBits(const Elementwise &e, Value magnitude, unsigned shift) {
  uint64_t half = (uint64_t(1) << (shift - 1)) - 1;
  Value odd = e.op<arith::AndIOp>(e.op<arith::ShRUIOp>(magnitude, shift), 1);
  Value rounded = e.op<arith::AddIOp>(magnitude, half);
  rounded = e.op<arith::AddIOp>(rounded, odd);
  return e.op<arith::ShRUIOp>(rounded, shift);
}

/// Rounds the integers `magnitude`, encodings of finite numbers of format
/// `from` without sign and at most the largest number of `to`, to encodings of
/// `to` in the lowest byte.
static Value roundMagnitude(const Elementwise &e, Value magnitude,
                            const Format &from, const Format &to) {
  unsigned shift = from.mantissa - to.mantissa;
  if (from.minExponent == to.minExponent)
    return roundBits(e, magnitude, shift);

  // Take the power of two below the magnitude, or that of the subnormal numbers
  // of `to`. Adding 2^shift times this power rounds to places of `to`, and
  // leaves their count in the low bits. An encoding increases by 2^mantissa for
  // every power, which is the shifted exponent minus that of the first power.
  // The sum subtracts the latter in advance, as places beyond a multiple of
  // 256. Their number is even, so that ties round in the same direction.
  uint64_t exponentBits = from.powerOfTwo(from.infinityExponent());
  uint64_t smallest = from.powerOfTwo(to.minExponent);
  uint64_t less = -(smallest >> shift) & 0xFF;
  Value power = e.op<arith::MaxUIOp>(
      e.op<arith::AndIOp>(magnitude, exponentBits), smallest);
  Value sum = e.exactMultiplyAdd(e.bitcast(power, from.type),
                                 from.powerOfTwo(shift) + less,
                                 e.bitcast(magnitude, from.type));
  return e.op<arith::AddIOp>(e.toBits(sum), e.op<arith::ShRUIOp>(power, shift));
}

/// Rounds the integers `encoded` of format `from` to encodings of `to`, in
/// integers of the same width, saturating. Magnitudes above 2^infinityExponent
/// are NaNs.
static Value truncateEncoded(const Elementwise &e, Value encoded,
                             const Format &from, const Format &to,
                             int infinityExponent) {
  Value magnitude = e.op<arith::AndIOp>(encoded, from.signBit() - 1);
  Value clamped = e.op<arith::MinUIOp>(magnitude, from.bits(to.largest()));
  Value result = roundMagnitude(e, clamped, from, to);
  Value sign = e.op<arith::ShRUIOp>(encoded, from.width - to.width);
  sign = e.op<arith::AndIOp>(sign, to.signBit());

  // PTX ISA, cvt: a NaN becomes the largest positive number where the
  // destination format has no NaN.
  Value isNaN = e.compare(arith::CmpIPredicate::ugt, magnitude,
                          from.powerOfTwo(infinityExponent));
  Value &replaced = to.hasNaN() ? result : sign;
  uint64_t replacement = to.hasNaN() ? to.quietNaN() : 0;
  replaced =
      e.select(isNaN, e.constant(result.getType(), replacement), replaced);
  return e.op<arith::OrIOp>(result, sign);
}

Value narrow::truncateInIntegers(OpBuilder &builder, Location loc, Value in,
                                 Type type) {
  Elementwise e(builder, loc, type);
  Format source(getFloatLane(in.getType())), target(getFloatLane(type));
  Format f32(builder.getF32Type());
  Value encoded = e.toBits(in);
  int infinityExponent = source.infinityExponent();
  // bf16 is the upper half of an f32. f16 uses f32 arithmetic, unless the
  // result has the same subnormal numbers.
  if (source.type.isBF16()) {
    encoded = e.extendUnsigned(encoded, f32.width);
    encoded = e.op<arith::ShLIOp>(encoded, f32.width - source.width);
    source = f32;
  } else if (source.type.isF16() && source.minExponent != target.minExponent) {
    encoded = e.toBits(scaleToF32(e, encoded, source, f32, /*scale=*/0));
    source = f32;
  }
  encoded = truncateEncoded(e, encoded, source, target, infinityExponent);
  return writeEncodings(e, builder, loc, encoded, type);
}

Value kvcache::roundMagnitudes(OpBuilder &builder, Location loc,
                               Value magnitudes, FloatType type,
                               bool areBounded) {
  Elementwise e(builder, loc, magnitudes.getType());
  Format source(builder.getF32Type()), target(type);
  Value bits = e.toBits(magnitudes);
  if (!areBounded)
    bits = e.op<arith::MinUIOp>(bits, source.bits(target.largest()));
  return roundMagnitude(e, bits, source, target);
}

/// The rounding of a number between two powers of two of f8E8M0FNU. `Nearest`
/// rounds ties up.
enum class PowerRounding { Nearest, Up, Down };

static PowerRounding getPowerRounding(arith::TruncFOp op) {
  switch (op.getRoundingmode().value_or(arith::RoundingMode::to_nearest_even)) {
  case arith::RoundingMode::upward:
    return PowerRounding::Up;
  case arith::RoundingMode::downward:
  case arith::RoundingMode::toward_zero:
    return PowerRounding::Down;
  case arith::RoundingMode::to_nearest_even:
  case arith::RoundingMode::to_nearest_away:
    return PowerRounding::Nearest;
  }
  return PowerRounding::Nearest;
}

/// Truncates f32 or f64 to f8E8M0FNU.
/// Smaller numbers than 2^-127, including zeros, become 2^-127, and larger
/// numbers than 2^127 become 2^127. NaNs and negative numbers become the NaN.
static Value truncateToE8M0(const Elementwise &e, Value in, const Format &from,
                            PowerRounding rounding) {
  auto power = [&](double factor, int exponent) {
    return from.bits(APFloat(factor), exponent);
  };
  // The addend with which the mantissa carries into the exponent, and the
  // smallest number that carries from 2^-127, where f32 is subnormal.
  uint64_t one = uint64_t(1) << from.mantissa, carry = 0;
  uint64_t least = power(1, -126);
  if (rounding == PowerRounding::Nearest) {
    carry = one / 2;
    least = power(1.5, -127);
  } else if (rounding == PowerRounding::Up) {
    carry = one - 1;
    least = power(1, -127) + 1;
  }
  // Compare as signed, so that a negative zero is a small number.
  Value bits = e.toBits(in);
  Value clamped = e.op<arith::MinSIOp>(bits, power(1, 127));
  Value result = e.op<arith::AddIOp>(clamped, carry - from.powerOfTwo(-127));
  result = e.op<arith::ShRUIOp>(result, from.mantissa);
  Value zero = e.constant(result.getType(), 0);
  Value isLeast = e.compare(arith::CmpIPredicate::slt, bits, least);
  result = e.select(isLeast, zero, result);
  // True of NaNs, and not of a negative zero.
  Value isNaN = e.compare(arith::CmpFPredicate::ULT, in, 0);
  result = e.select(isNaN, e.constant(result.getType(), 0xFF), result);
  return e.bitcast(e.truncate(result, 8),
                   Float8E8M0FNUType::get(in.getContext()));
}

/// Extends f16 or bf16 to f32 without the call that a CPU may need.
static Value extendWide(const Elementwise &e, Value in, const Format &from,
                        const Format &f32) {
  Value bits = e.toBits(in);
  if (from.type.isF16())
    bits = extendScaled(e, bits, from, f32, f32);
  else
    bits = e.op<arith::ShLIOp>(e.extendUnsigned(bits, f32.width), 16);
  return e.bitcast(bits, f32.type);
}

namespace {

/// Truncates f16, bf16, f32 or f64 to a narrow format with a sign.
struct TruncateToNarrow : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    Value in = op.getIn();
    FloatType to = getFloatLane(op.getType());
    if (!isNarrow(to) || isa<Float8E8M0FNUType>(to))
      return rewriter.notifyMatchFailure(op, "not to a narrow float");
    if (!isWide(getFloatLane(in.getType())))
      return rewriter.notifyMatchFailure(op, "not from f16, bf16, f32 or f64");
    if (!roundsToNearestEven(op))
      return rewriter.notifyMatchFailure(op, "rounds otherwise than to even");
    rewriter.replaceOp(
        op, truncateInIntegers(rewriter, op.getLoc(), in, op.getType()));
    return success();
  }
};

/// Truncates f16, bf16, f32 or f64 to f8E8M0FNU.
struct TruncateToPower : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    Value in = op.getIn();
    FloatType from = getFloatLane(in.getType());
    if (!isa_and_present<Float8E8M0FNUType>(getFloatLane(op.getType())))
      return rewriter.notifyMatchFailure(op, "not to f8E8M0FNU");
    if (!isWide(from))
      return rewriter.notifyMatchFailure(op, "not from f16, bf16, f32 or f64");
    Elementwise e(rewriter, op.getLoc(), op.getType());
    Format source(from), f32(rewriter.getF32Type());
    if (source.width == 16) {
      in = extendWide(e, in, source, f32);
      source = f32;
    }
    rewriter.replaceOp(op, truncateToE8M0(e, in, source, getPowerRounding(op)));
    return success();
  }
};

} // namespace

void narrow::populateIntegerPatterns(RewritePatternSet &patterns) {
  patterns.add<ExtendNarrow, TruncateToNarrow>(patterns.getContext());
  populatePowerPatterns(patterns);
}

void narrow::populatePowerPatterns(RewritePatternSet &patterns) {
  patterns.add<TruncateToPower>(patterns.getContext());
}
