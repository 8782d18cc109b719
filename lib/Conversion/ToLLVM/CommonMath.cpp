//===- CommonMath.cpp - Math of the CPU and of GPUs -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommonMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Rewrites `math.isinf` and `math.isnormal` as comparisons of the magnitude.
template <typename OpTy> struct ExpandFloatClass : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type type = op.getOperand().getType();
    const llvm::fltSemantics &semantics =
        cast<FloatType>(getElementTypeOrSelf(type)).getFloatSemantics();
    Value magnitude = math::AbsFOp::create(rewriter, loc, op.getOperand());
    auto compare = [&](arith::CmpFPredicate predicate, const APFloat &bound) {
      Value constant = createScalarOrSplatConstant(rewriter, loc, type, bound);
      return arith::CmpFOp::create(rewriter, loc, predicate, magnitude,
                                   constant);
    };
    APFloat infinity = APFloat::getInf(semantics);
    if (std::is_same_v<OpTy, math::IsInfOp>) {
      rewriter.replaceOp(op, compare(arith::CmpFPredicate::OEQ, infinity));
      return success();
    }
    Value isLarge = compare(arith::CmpFPredicate::OGE,
                            APFloat::getSmallestNormalized(semantics));
    Value isFinite = compare(arith::CmpFPredicate::OLT, infinity);
    rewriter.replaceOpWithNewOp<arith::AndIOp>(op, isLarge, isFinite);
    return success();
  }
};

/// Clamps by a minimum and a maximum, of which a NaN stays one. Upstream's
/// expansion in LLVM 22 exchanges the bounds (llvm-project#175012).
struct ExpandClampF : OpRewritePattern<math::ClampFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ClampFOp op,
                                PatternRewriter &rewriter) const override {
    Value below = arith::MinimumFOp::create(
        rewriter, op.getLoc(), op.getValue(), op.getMax(), op.getFastmath());
    rewriter.replaceOpWithNewOp<arith::MaximumFOp>(op, below, op.getMin(),
                                                   op.getFastmath());
    return success();
  }
};

/// Multiplies the powers of two of the base that the bits of the exponent
/// select. A negative exponent gives the truncated reciprocal of the power.
struct ExpandIPowI : OpRewritePattern<math::IPowIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::IPowIOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type type = op.getType();
    unsigned bits = countBits(type);
    auto constant = [&](int64_t number) {
      APInt value(bits, number, /*isSigned=*/true, /*implicitTrunc=*/true);
      return createScalarOrSplatConstant(rewriter, loc, type, value);
    };
    auto compare = [&](arith::CmpIPredicate predicate, Value value,
                       int64_t number) -> Value {
      return arith::CmpIOp::create(rewriter, loc, predicate, value,
                                   constant(number));
    };
    Value one = constant(1);
    Value isOne = compare(arith::CmpIPredicate::eq, op.getLhs(), 1);
    Value isMinusOne = compare(arith::CmpIPredicate::eq, op.getLhs(), -1);
    Value isUnit = arith::OrIOp::create(rewriter, loc, isOne, isMinusOne);
    Value isNegative = compare(arith::CmpIPredicate::slt, op.getRhs(), 0);
    // The loop takes the exponent for unsigned: of 1 and -1 as good a one.
    Value power = createPower(rewriter, op, one);
    Value reciprocal =
        arith::SelectOp::create(rewriter, loc, isUnit, power, constant(0));
    rewriter.replaceOpWithNewOp<arith::SelectOp>(op, isNegative, reciprocal,
                                                 power);
    return success();
  }

private:
  static unsigned countBits(Type type) {
    Type element = getElementTypeOrSelf(type);
    return element.isIndex() ? IndexType::kInternalStorageBitWidth
                             : element.getIntOrFloatBitWidth();
  }

  /// Loops over the bits of the exponent, from the lowest one.
  static Value createPower(PatternRewriter &rewriter, math::IPowIOp op,
                           Value one) {
    Location loc = op.getLoc();
    auto index = [&](int64_t number) -> Value {
      return arith::ConstantIndexOp::create(rewriter, loc, number);
    };
    auto body = [&](OpBuilder &builder, Location loc, Value,
                    ValueRange carried) {
      Value power = carried[0], base = carried[1], exponent = carried[2];
      Value bit = arith::AndIOp::create(builder, loc, exponent, one);
      Value isSet = arith::CmpIOp::create(builder, loc,
                                          arith::CmpIPredicate::eq, bit, one);
      Value product = arith::MulIOp::create(builder, loc, power, base);
      Value next = arith::SelectOp::create(builder, loc, isSet, product, power);
      Value square = arith::MulIOp::create(builder, loc, base, base);
      Value rest = arith::ShRUIOp::create(builder, loc, exponent, one);
      scf::YieldOp::create(builder, loc, ValueRange{next, square, rest});
    };
    auto loop = scf::ForOp::create(
        rewriter, loc, index(0), index(countBits(op.getType())), index(1),
        ValueRange{one, op.getLhs(), op.getRhs()}, body);
    return loop.getResult(0);
  }
};

} // namespace

void kvcache::populateCommonMathPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandClampF, ExpandFloatClass<math::IsInfOp>,
               ExpandFloatClass<math::IsNormalOp>, ExpandIPowI>(
      patterns.getContext());
}
