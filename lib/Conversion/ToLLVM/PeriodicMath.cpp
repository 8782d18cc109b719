//===- PeriodicMath.cpp - Sines and cosines without libdevice -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPUMath.h"

#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/Support/FloatBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Builds the sine and cosine of an angle in f32, or of a vector of them.
class AngleBuilder {
public:
  AngleBuilder(OpBuilder &builder, Value angle)
      : math(builder, angle.getLoc()), type(angle.getType()) {
    reduce(angle);
    Value square = math.mul(remainder, remainder);
    sine =
        evaluate(square, {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1});
    sine = math.fma(math.mul(remainder, square), sine, remainder);
    // The sum makes a positive zero of a negative one.
    sine = math::CopySignOp::create(math.builder, math.loc, sine, remainder);
    cosine = evaluate(square, {2.443315711809948e-5, -1.388731625493765e-3,
                               4.166664568298827e-2, -0.5, 1});
  }

  Value buildSine() const { return choose(sine, cosine, quadrant); }

  /// cos(x) = sin(x + pi / 2).
  Value buildCosine() const {
    Value next =
        arith::AddIOp::create(math.builder, math.loc, quadrant, integer(1));
    return choose(sine, cosine, next);
  }

  /// In an odd quadrant, tan(x) = -cos(r) / sin(r).
  Value buildTangent() const {
    Value isOdd = hasBit(quadrant, 1);
    Value numerator = math.select(isOdd, cosine, sine);
    Value denominator = math.select(isOdd, math.negate(sine), cosine);
    return math.div(numerator, denominator);
  }

private:
  /// Subtracts the nearest multiple of pi / 2, in f64. A sum with 1.5 * 2^52
  /// rounds to an integer, whose lowest bits are those of the sum.
  void reduce(Value angle) {
    constexpr double toInteger = 0x1.8p52;
    constexpr double halfPi = 0x1.921fb54442d18p0;
    constexpr double halfPiRest = 0x1.1a62633145c07p-54;
    OpBuilder &builder = math.builder;
    Type wide = withLane(type, builder.getF64Type());
    auto wideConstant = [&](double number) {
      return createFloatConstant(builder, math.loc, wide, number);
    };
    Value exact = arith::ExtFOp::create(builder, math.loc, wide, angle);
    Value sum = math.fma(exact, wideConstant(0x1.45f306dc9c883p-1),
                         wideConstant(toInteger));
    quadrant = arith::BitcastOp::create(
        builder, math.loc, withLane(type, builder.getI64Type()), sum);
    Value multiple = math.sub(sum, wideConstant(toInteger));
    Value rest = math.fma(multiple, wideConstant(-halfPi), exact);
    rest = math.fma(multiple, wideConstant(-halfPiRest), rest);
    remainder = arith::TruncFOp::create(builder, math.loc, type, rest);
    // Angles beyond 2^51 have no quadrant. NaNs remain.
    remainder = arith::MaximumFOp::create(builder, math.loc, remainder,
                                          math.constant(type, -1.0f));
    remainder = arith::MinimumFOp::create(builder, math.loc, remainder,
                                          math.constant(type, 1.0f));
  }

  /// Evaluates a polynomial, whose highest coefficient comes first.
  Value evaluate(Value x, ArrayRef<float> coefficients) const {
    Value result = math.constant(type, coefficients.front());
    for (float coefficient : coefficients.drop_front())
      result = math.fma(result, x, math.constant(type, coefficient));
    return result;
  }

  /// Returns `even` or `odd` by the lowest bit of the quadrant, negated if the
  /// next bit is set.
  Value choose(Value even, Value odd, Value quadrant) const {
    Value value = math.select(hasBit(quadrant, 1), odd, even);
    return math.select(hasBit(quadrant, 2), math.negate(value), value);
  }

  Value hasBit(Value number, int64_t bit) const {
    Value masked =
        arith::AndIOp::create(math.builder, math.loc, number, integer(bit));
    return arith::CmpIOp::create(math.builder, math.loc,
                                 arith::CmpIPredicate::ne, masked, integer(0));
  }

  Value integer(int64_t number) const {
    Type integers = withLane(type, math.builder.getI64Type());
    return createScalarOrSplatConstant(math.builder, math.loc, integers,
                                       APInt(64, number, /*isSigned=*/true));
  }

  FloatBuilder math;
  Type type;
  Value remainder, quadrant, sine, cosine;
};

/// Replaces an op by its value on a reduced angle.
template <typename OpTy, Value (AngleBuilder::*build)() const>
struct ExpandPeriodic : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not f32");
    AngleBuilder angle(rewriter, op.getOperand());
    rewriter.replaceOp(op, (angle.*build)());
    return success();
  }
};

struct ExpandSincos : OpRewritePattern<math::SincosOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::SincosOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value sine =
        math::SinOp::create(rewriter, loc, op.getOperand(), op.getFastmath());
    Value cosine =
        math::CosOp::create(rewriter, loc, op.getOperand(), op.getFastmath());
    rewriter.replaceOp(op, {sine, cosine});
    return success();
  }
};

} // namespace

void kvcache::populatePeriodicMathPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandPeriodic<math::SinOp, &AngleBuilder::buildSine>,
               ExpandPeriodic<math::CosOp, &AngleBuilder::buildCosine>,
               ExpandPeriodic<math::TanOp, &AngleBuilder::buildTangent>,
               ExpandSincos>(patterns.getContext());
}
