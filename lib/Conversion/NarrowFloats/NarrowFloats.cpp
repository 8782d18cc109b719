//===- NarrowFloats.cpp - Lower conversions of narrow floats --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conversions from and to f8E4M3FN and f8E5M2 in integer arithmetic, so that
// they run on every machine, without a call into a runtime library.
//
// Extension is exact for all 256 encodings, and keeps the sign of a NaN.
// Truncation rounds once, to nearest even, and saturates as `cvt.satfinite` of
// the PTX ISA does: what is larger than the largest finite number, infinities
// included, becomes that number, and a NaN becomes a NaN of the same sign. Only
// a constant infinity stays one in f8E5M2: the folder of `arith.truncf` gets it
// first.
//
// The arithmetic has to respect subnormal numbers and round to nearest even,
// which are the defaults of LLVM on every target.
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/NarrowFloats.h"
#include "kvcache/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_NARROWFLOATS
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;
using llvm::APFloat;
using llvm::APInt;

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

namespace {

/// The layout of a float type: from the highest bit sign, exponent, mantissa.
struct Format {
  explicit Format(FloatType type)
      : type(type), width(type.getWidth()),
        mantissa(type.getFPMantissaWidth() - 1),
        minExponent(APFloat::semanticsMinExponent(semantics())) {}

  const llvm::fltSemantics &semantics() const {
    return type.getFloatSemantics();
  }

  uint64_t signBit() const { return uint64_t(1) << (width - 1); }

  APFloat largest() const { return APFloat::getLargest(semantics()); }

  /// The exponent of ones, which IEEE formats have for infinities and NaNs.
  int infinityExponent() const { return 2 - minExponent; }

  /// The bits of a quiet NaN.
  uint64_t quietNaN() const {
    return APFloat::getQNaN(semantics()).bitcastToAPInt().getZExtValue();
  }

  /// The bits of `value` * 2^exponent, which this format must hold exactly.
  uint64_t bits(APFloat value, int exponent = 0) const {
    bool losesInfo;
    value.convert(semantics(), APFloat::rmNearestTiesToEven, &losesInfo);
    value = scalbn(value, exponent, APFloat::rmNearestTiesToEven);
    return value.bitcastToAPInt().getZExtValue();
  }

  /// The bits of 2^exponent.
  uint64_t powerOfTwo(int exponent) const {
    return uint64_t(exponent - minExponent + 1) << mantissa;
  }

  FloatType type;
  unsigned width;
  /// Stored bits of the mantissa, without the implicit one.
  unsigned mantissa;
  /// Exponent of the smallest normal number.
  int minExponent;
};

/// Builds elementwise arithmetic on scalars, or on vectors of one shape.
class Elementwise {
public:
  /// Values get the shape of `like`.
  Elementwise(OpBuilder &builder, Location loc, Type like)
      : builder(builder), loc(loc), vector(dyn_cast<VectorType>(like)) {}

  Type typeOf(Type element) const {
    if (!vector)
      return element;
    return VectorType::get(vector.getShape(), element,
                           vector.getScalableDims());
  }
  Type intType(unsigned width) const {
    return typeOf(builder.getIntegerType(width));
  }

  Value constant(Type type, uint64_t bits) const {
    Type element = getElementTypeOrSelf(type);
    APInt value(element.getIntOrFloatBitWidth(), bits, /*isSigned=*/false,
                /*implicitTrunc=*/true);
    TypedAttr attr;
    if (auto floatType = dyn_cast<FloatType>(element))
      attr = FloatAttr::get(floatType,
                            APFloat(floatType.getFloatSemantics(), value));
    else
      attr = IntegerAttr::get(element, value);
    if (auto vectorType = dyn_cast<VectorType>(type))
      attr = DenseElementsAttr::get(vectorType, attr);
    return arith::ConstantOp::create(builder, loc, attr);
  }

  template <typename BinaryOp> Value op(Value lhs, Value rhs) const {
    return BinaryOp::create(builder, loc, lhs, rhs);
  }
  /// The same with a constant, given by its bits; higher ones are ignored.
  template <typename BinaryOp> Value op(Value lhs, uint64_t rhs) const {
    return op<BinaryOp>(lhs, constant(lhs.getType(), rhs));
  }

  Value compare(arith::CmpFPredicate predicate, Value lhs, uint64_t rhs) const {
    return arith::CmpFOp::create(builder, loc, predicate, lhs,
                                 constant(lhs.getType(), rhs));
  }
  Value compare(arith::CmpIPredicate predicate, Value lhs, uint64_t rhs) const {
    return arith::CmpIOp::create(builder, loc, predicate, lhs,
                                 constant(lhs.getType(), rhs));
  }
  Value select(Value condition, Value yes, Value no) const {
    return arith::SelectOp::create(builder, loc, condition, yes, no);
  }

  /// Casts to the element type, or the width, given.
  Value bitcast(Value value, Type element) const {
    return arith::BitcastOp::create(builder, loc, typeOf(element), value);
  }
  Value toBits(Value value) const {
    Type element = getElementTypeOrSelf(value.getType());
    return bitcast(value,
                   builder.getIntegerType(element.getIntOrFloatBitWidth()));
  }
  Value extendSigned(Value value, unsigned width) const {
    return arith::ExtSIOp::create(builder, loc, intType(width), value);
  }
  Value extendUnsigned(Value value, unsigned width) const {
    return arith::ExtUIOp::create(builder, loc, intType(width), value);
  }
  Value truncate(Value value, unsigned width) const {
    return arith::TruncIOp::create(builder, loc, intType(width), value);
  }
  Value extendFloat(Value value, Type element) const {
    return arith::ExtFOp::create(builder, loc, typeOf(element), value);
  }

private:
  OpBuilder &builder;
  Location loc;
  VectorType vector;
};

} // namespace

static bool isNarrow(Type type) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(type);
}

static bool isWide(Type type) {
  return isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(type);
}

/// The float type of a scalar or of a vector's elements; null otherwise.
static FloatType getFloatLane(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    type = vector.getElementType();
  return dyn_cast<FloatType>(type);
}

//===----------------------------------------------------------------------===//
// Extension
//===----------------------------------------------------------------------===//

/// The numbers that the integers `encoded` of format `from` stand for, times
/// 2^-scale, as f32. Infinities and NaNs come out as numbers that continue the
/// format.
///
/// The bits of exponent and mantissa, moved to their places in an f32, are a
/// number whose exponent is wrong by the difference of the biases. Multiplying
/// by that power of two is exact, and normalizes subnormal numbers.
static Value scaleToF32(const Elementwise &e, Value encoded, const Format &from,
                        const Format &f32, int scale) {
  unsigned shift = f32.mantissa - from.mantissa;
  uint64_t magnitude = (from.signBit() - 1) << shift;
  Value bits = e.extendSigned(encoded, f32.width);
  bits = e.op<arith::ShLIOp>(bits, shift);
  bits = e.op<arith::AndIOp>(bits, f32.signBit() | magnitude);
  int exponent = from.minExponent - f32.minExponent - scale;
  return e.op<arith::MulFOp>(e.bitcast(bits, f32.type),
                             f32.powerOfTwo(exponent));
}

/// Extends encodings of a narrow format to `to`, which is f32, or f16 in an
/// f32: scaled by the difference of the biases, so that the low exponent bits
/// are those of the f16. Infinities and NaNs get an exponent of ones. Returns
/// the bits of the f32.
static Value extendScaled(const Elementwise &e, Value encoded,
                          const Format &from, const Format &to,
                          const Format &f32) {
  int scale = to.minExponent - f32.minExponent;
  Value number = scaleToF32(e, encoded, from, f32, scale);
  Value bits = e.toBits(number);
  Value special =
      e.op<arith::OrIOp>(bits, f32.powerOfTwo(to.infinityExponent() - scale));
  // In floating point, where hardware takes the absolute value for nothing.
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
  // biases holds it: the sign on top, the rest from the f16's mantissa on.
  Value scaled = extendScaled(e, encoded, from, f16, f32);
  Value bits = e.op<arith::ShRUIOp>(scaled, f32.mantissa - f16.mantissa);
  bits = e.op<arith::AndIOp>(bits, f16.signBit() - 1);
  Value sign = e.op<arith::ShRUIOp>(scaled, f32.width - f16.width);
  sign = e.op<arith::AndIOp>(sign, f16.signBit());
  return e.truncate(e.op<arith::OrIOp>(bits, sign), f16.width);
}

namespace {

/// Extends f8E4M3FN or f8E5M2 to f16, bf16, f32 or f64.
struct ExtendNarrow : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    FloatType from = getFloatLane(op.getIn().getType());
    FloatType to = getFloatLane(op.getType());
    if (!from || !isNarrow(from))
      return rewriter.notifyMatchFailure(op, "not from f8E4M3FN or f8E5M2");
    if (!isWide(to))
      return rewriter.notifyMatchFailure(op, "not to f16, bf16, f32 or f64");

    Elementwise e(rewriter, op.getLoc(), op.getType());
    Format f32(rewriter.getF32Type());
    Value encoded = e.toBits(op.getIn());
    if (to.isF16()) {
      Value bits = extendToF16(e, encoded, Format(from), Format(to), f32);
      rewriter.replaceOp(op, e.bitcast(bits, to));
      return success();
    }
    Value bits = extendScaled(e, encoded, Format(from), f32, f32);
    if (to.isBF16()) {
      // bf16 is the upper half of an f32, whose lower half is zero here.
      bits = e.truncate(e.op<arith::ShRUIOp>(bits, 16), 16);
      rewriter.replaceOp(op, e.bitcast(bits, to));
      return success();
    }
    Value result = e.bitcast(bits, f32.type);
    if (to.isF64())
      result = e.extendFloat(result, to);
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Truncation
//===----------------------------------------------------------------------===//

/// Rounds the integers `magnitude`, encodings of finite numbers of format
/// `from` without sign and at most the largest number of `to`, to encodings of
/// `to`.
static Value roundMagnitude(const Elementwise &e, Value magnitude,
                            const Format &from, const Format &to) {
  // Numbers that are normal in both: rebase the exponent, add half a unit of
  // the last place less one, and one more where that place is odd.
  unsigned shift = from.mantissa - to.mantissa;
  uint64_t rebase =
      from.powerOfTwo(to.minExponent) - from.powerOfTwo(from.minExponent);
  uint64_t half = (uint64_t(1) << (shift - 1)) - 1;
  Value odd = e.op<arith::AndIOp>(e.op<arith::ShRUIOp>(magnitude, shift), 1);
  Value rounded = e.op<arith::AddIOp>(magnitude, half - rebase);
  rounded = e.op<arith::AddIOp>(rounded, odd);
  rounded = e.op<arith::ShRUIOp>(rounded, shift);
  if (from.minExponent == to.minExponent)
    return rounded;

  // Numbers that are subnormal in `to`: adding the number whose last place is
  // the unit of `to` rounds to such units, and leaves their count in the low
  // bits. A count too large for a subnormal encodes the smallest normal number.
  uint64_t unit = from.powerOfTwo(to.minExponent - to.mantissa + from.mantissa);
  Value sum = e.op<arith::AddFOp>(e.bitcast(magnitude, from.type), unit);
  Value count = e.op<arith::SubIOp>(e.toBits(sum), unit);
  Value isSubnormal = e.compare(arith::CmpIPredicate::ult, magnitude,
                                from.powerOfTwo(to.minExponent));
  return e.select(isSubnormal, count, rounded);
}

/// Rounds the integers `encoded` of format `from` to encodings of `to`,
/// saturating. What is larger than 2^infinityExponent is a NaN.
static Value truncateEncoded(const Elementwise &e, Value encoded,
                             const Format &from, const Format &to,
                             int infinityExponent) {
  Value magnitude = e.op<arith::AndIOp>(encoded, from.signBit() - 1);
  Value clamped = e.op<arith::MinUIOp>(magnitude, from.bits(to.largest()));
  Value result = roundMagnitude(e, clamped, from, to);

  Value isNaN = e.compare(arith::CmpIPredicate::ugt, magnitude,
                          from.powerOfTwo(infinityExponent));
  result = e.select(isNaN, e.constant(result.getType(), to.quietNaN()), result);

  Value sign = e.op<arith::ShRUIOp>(encoded, from.width - to.width);
  sign = e.op<arith::AndIOp>(sign, to.signBit());
  return e.truncate(e.op<arith::OrIOp>(result, sign), to.width);
}

namespace {

/// Truncates f16, bf16, f32 or f64 to f8E4M3FN or f8E5M2.
struct TruncateToNarrow : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    FloatType from = getFloatLane(op.getIn().getType());
    FloatType to = getFloatLane(op.getType());
    if (!to || !isNarrow(to))
      return rewriter.notifyMatchFailure(op, "not to f8E4M3FN or f8E5M2");
    if (!isWide(from))
      return rewriter.notifyMatchFailure(op, "not from f16, bf16, f32 or f64");
    if (op.getRoundingmode().value_or(arith::RoundingMode::to_nearest_even) !=
        arith::RoundingMode::to_nearest_even)
      return rewriter.notifyMatchFailure(op, "rounds otherwise than to even");

    Elementwise e(rewriter, op.getLoc(), op.getType());
    Format source(from), target(to), f32(rewriter.getF32Type());
    Value encoded = e.toBits(op.getIn());
    int infinityExponent = source.infinityExponent();
    // bf16 is the upper half of an f32. f16 takes f32 arithmetic, unless its
    // subnormal numbers are those of the result.
    if (from.isBF16()) {
      encoded = e.extendUnsigned(encoded, f32.width);
      encoded = e.op<arith::ShLIOp>(encoded, f32.width - source.width);
      source = f32;
    } else if (from.isF16() && source.minExponent != target.minExponent) {
      encoded = e.toBits(scaleToF32(e, encoded, source, f32, /*scale=*/0));
      source = f32;
    }
    Value result =
        truncateEncoded(e, encoded, source, target, infinityExponent);
    rewriter.replaceOp(op, e.bitcast(result, to));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// bf16 and f64
//===----------------------------------------------------------------------===//

/// Extends bf16 to f64 through f32, which holds it exactly.
struct ExtendBF16ToF64 : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getIn().getType()).isBF16() ||
        !getElementTypeOrSelf(op.getType()).isF64())
      return rewriter.notifyMatchFailure(op, "not from bf16 to f64");
    Elementwise e(rewriter, op.getLoc(), op.getType());
    Value single = e.extendFloat(op.getIn(), rewriter.getF32Type());
    rewriter.replaceOp(op, e.extendFloat(single, rewriter.getF64Type()));
    return success();
  }
};

/// Truncates f64 to bf16 through f32. The first rounding is to odd, which the
/// second one can't mistake for a tie (Boldo and Melquiond, "When double
/// rounding is odd", 2005).
struct TruncateF64ToBF16 : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    Value in = op.getIn();
    if (!getElementTypeOrSelf(in.getType()).isF64() ||
        !getElementTypeOrSelf(op.getType()).isBF16())
      return rewriter.notifyMatchFailure(op, "not from f64 to bf16");
    Elementwise e(rewriter, op.getLoc(), op.getType());
    FloatType f32 = rewriter.getF32Type(), f64 = rewriter.getF64Type();
    Location loc = op.getLoc();

    Value nearest = arith::TruncFOp::create(rewriter, loc, e.typeOf(f32), in);
    Value back = e.extendFloat(nearest, f64);
    Value inexact = arith::CmpFOp::create(rewriter, loc,
                                          arith::CmpFPredicate::ONE, back, in);
    uint64_t magnitude = Format(f64).signBit() - 1;
    Value away =
        arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ugt,
                              e.op<arith::AndIOp>(e.toBits(back), magnitude),
                              e.op<arith::AndIOp>(e.toBits(in), magnitude));
    Value bits = e.toBits(nearest);
    Value toZero = e.select(away, e.op<arith::SubIOp>(bits, 1), bits);
    bits = e.select(inexact, e.op<arith::OrIOp>(toZero, 1), bits);
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(),
                                                 e.bitcast(bits, f32));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

struct NarrowFloatsPass : kvcache::impl::NarrowFloatsBase<NarrowFloatsPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateNarrowFloatsPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

void kvcache::populateNarrowFloatsPatterns(RewritePatternSet &patterns) {
  patterns
      .add<ExtendBF16ToF64, ExtendNarrow, TruncateF64ToBF16, TruncateToNarrow>(
          patterns.getContext());
}
