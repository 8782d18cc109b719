//===- ExpandForLLVM.cpp - What no conversion to LLVM takes as it is ------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPUMath.h"
#include "VectorRows.h"
#include "kvcache/Conversion/Passes.h"
#include "kvcache/Support/GreedyRewrite.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_EXPANDFORLLVM
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

/// Adds the patterns that `convert-vector-to-scf` and `convert-vector-to-llvm`
/// apply before they convert, and those of reductions and scans. LLVM has
/// vectors of one dimension only.
static void populateVectorPatterns(RewritePatternSet &patterns) {
  vector::populateVectorTransferPermutationMapLoweringPatterns(patterns,
                                                               /*benefit=*/2);
  populateVectorToSCFConversionPatterns(patterns);
  vector::populateVectorToVectorCanonicalizationPatterns(patterns);
  vector::populateVectorBitCastLoweringPatterns(patterns);
  vector::populateVectorBroadcastLoweringPatterns(patterns);
  vector::populateVectorContractLoweringPatterns(
      patterns, vector::VectorContractLowering::Dot);
  vector::populateVectorMaskOpLoweringPatterns(patterns);
  vector::populateVectorShapeCastLoweringPatterns(patterns);
  vector::populateVectorInterleaveLoweringPatterns(patterns);
  vector::populateVectorMultiReductionLoweringPatterns(
      patterns, vector::VectorMultiReductionLowering::InnerReduction);
  vector::populateVectorScanLoweringPatterns(patterns);
  vector::populateVectorFromElementsUnrollPatterns(patterns);
  vector::populateVectorToElementsUnrollPatterns(patterns);
  vector::populateVectorTransposeLoweringPatterns(
      patterns, vector::VectorTransposeLowering::EltWise);
  vector::populateVectorTransferLoweringPatterns(patterns,
                                                 /*maxTransferRank=*/1);
  populateVectorRowPatterns(patterns);
  vector::populateVectorMaskMaterializationPatterns(
      patterns, /*force32BitVectorIndices=*/true);
  vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
  vector::populateVectorStepLoweringPatterns(patterns);
  vector::populateVectorRankReducingFMAPattern(patterns);
  vector::populateVectorGatherLoweringPatterns(patterns);
}

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
      TypedAttr value =
          rewriter.getFloatAttr(getElementTypeOrSelf(type), bound);
      if (auto shaped = dyn_cast<ShapedType>(type))
        value = DenseElementsAttr::get(shaped, Attribute(value));
      Value constant = arith::ConstantOp::create(rewriter, loc, value);
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

struct ExpandForLLVM : kvcache::impl::ExpandForLLVMBase<ExpandForLLVM> {
  using ExpandForLLVMBase::ExpandForLLVMBase;

  // Once, and not for each of a module's kernels.
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet all(context);
    memref::populateExpandStridedMetadataPatterns(all);
    populateAffineToStdConversionPatterns(all);
    populateAffineToVectorConversionPatterns(all);
    populateVectorPatterns(all);
    all.add<ExpandFloatClass<math::IsInfOp>,
            ExpandFloatClass<math::IsNormalOp>>(context);
    if (gpuMath)
      populateGPUMathPatterns(all);
    patterns = std::move(all);
    return success();
  }

  void runOnOperation() override {
    bool hasLogarithms = gpuMath && scaleSubnormalsOfLogarithms(getOperation());
    bool changed = false;
    if (failed(applyPatternsGreedily(getOperation(), patterns,
                                     getGreedyRewriteConfig(), &changed)))
      signalPassFailure();
    if (!changed && !hasLogarithms)
      markAllAnalysesPreserved();
  }

private:
  FrozenRewritePatternSet patterns;
};

} // namespace
