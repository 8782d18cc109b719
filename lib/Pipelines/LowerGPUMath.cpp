//===- LowerGPUMath.cpp - Math without libdevice --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Pipelines/Pipelines.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_LOWERGPUMATH
#include "kvcache/Pipelines/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

/// exp(x) = 2^(x * log2(e)): a chip has ex2 and no exp.
struct ExpToExp2 : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not f32");
    TypedAttr log2e = rewriter.getF32FloatAttr(llvm::numbers::log2ef);
    if (auto shaped = dyn_cast<ShapedType>(op.getType()))
      log2e = DenseElementsAttr::get(shaped, Attribute(log2e));
    Value factor = arith::ConstantOp::create(rewriter, op.getLoc(), log2e);
    Value scaled =
        arith::MulFOp::create(rewriter, op.getLoc(), op.getOperand(), factor);
    rewriter.replaceOpWithNewOp<math::Exp2Op>(op, scaled, op.getFastmath());
    return success();
  }
};

struct LowerGPUMath : kvcache::impl::LowerGPUMathBase<LowerGPUMath> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet rewrites(context);
    rewrites.add<ExpToExp2>(context);
    populateGpuRewritePatterns(rewrites);
    populateGpuBreakDownSubgroupReducePatterns(rewrites);
    populateGpuLowerSubgroupReduceToShufflePatterns(rewrites,
                                                    /*subgroupSize=*/32);
    populateGpuLowerClusteredSubgroupReduceToShufflePatterns(
        rewrites, /*subgroupSize=*/32);
    if (failed(applyPatternsGreedily(getOperation(), std::move(rewrites))))
      return signalPassFailure();

    LLVMTypeConverter converter(context);
    RewritePatternSet patterns(context);
    populateMathToLLVMConversionPatterns(converter, patterns);
    ConversionTarget target(*context);
    target.addLegalDialect<LLVM::LLVMDialect>();
    target.addIllegalOp<math::Exp2Op, math::FmaOp, math::SqrtOp, math::AbsFOp,
                        math::FloorOp, math::CeilOp, math::CopySignOp>();
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
