//===- WidePatterns.cpp - Conversions of bf16 and f64, and prints ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "kvcache/Support/Powers.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::narrow;

namespace {

/// Extends bf16 to f64 through f32, exactly.
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

/// Truncates f64 to bf16 through f32.
struct TruncateF64ToBF16 : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getIn().getType()).isF64() ||
        !getElementTypeOrSelf(op.getType()).isBF16())
      return rewriter.notifyMatchFailure(op, "not from f64 to bf16");
    Value odd = roundToOddF32(rewriter, op.getLoc(), op.getIn());
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), odd);
    return success();
  }
};

/// Prints narrow floats and bf16 as f32: as bits, they would print as integers.
struct PrintAsF32 : OpRewritePattern<vector::PrintOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(vector::PrintOp op,
                                PatternRewriter &rewriter) const override {
    Value source = op.getSource();
    Type element = source ? getElementTypeOrSelf(source.getType()) : Type();
    if (!isNarrow(element) && !isa_and_present<BFloat16Type>(element))
      return rewriter.notifyMatchFailure(op, "prints no narrow floats");
    Elementwise e(rewriter, op.getLoc(), source.getType());
    Value wide = e.extendFloat(makeOpaque(rewriter, op.getLoc(), source),
                               rewriter.getF32Type());
    rewriter.modifyOpInPlace(op, [&] { op.getSourceMutable().assign(wide); });
    return success();
  }
};

} // namespace

Value narrow::roundToOddF32(OpBuilder &builder, Location loc, Value in) {
  Elementwise e(builder, loc, in.getType());
  FloatType f32 = builder.getF32Type(), f64 = builder.getF64Type();
  Value nearest = e.truncateFloat(in, f32);
  Value back = e.extendFloat(nearest, f64);
  Value inexact =
      arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::ONE, back, in);
  uint64_t magnitude = Format(f64).signBit() - 1;
  Value away =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt,
                            e.op<arith::AndIOp>(e.toBits(back), magnitude),
                            e.op<arith::AndIOp>(e.toBits(in), magnitude));
  Value bits = e.toBits(nearest);
  Value toZero = e.select(away, e.op<arith::SubIOp>(bits, 1), bits);
  bits = e.select(inexact, e.op<arith::OrIOp>(toZero, 1), bits);
  return e.bitcast(bits, f32);
}

void narrow::populateWidePatterns(RewritePatternSet &patterns) {
  patterns.add<ExtendBF16ToF64, TruncateF64ToBF16, PrintAsF32>(
      patterns.getContext());
}
