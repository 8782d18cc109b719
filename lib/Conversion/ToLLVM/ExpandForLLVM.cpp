//===- ExpandForLLVM.cpp - What no conversion to LLVM takes as it is ------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommonMath.h"
#include "GPUMath.h"
#include "VectorRows.h"
#include "kvcache/Conversion/Passes.h"
#include "kvcache/Support/GreedyRewrite.h"
#include "kvcache/Support/UpstreamDefects.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_EXPANDFORLLVM
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

/// Interleaves bytes as the halves of words, where X86 may hang on a shuffle.
static LogicalResult interleaveInWords(vector::InterleaveOp op,
                                       PatternRewriter &rewriter) {
  constexpr int64_t most = 16, bits = 8;
  VectorType type = op.getSourceVectorType();
  if (type.getRank() != 1 || type.isScalable() ||
      !type.getElementType().isInteger(bits) || type.getNumElements() <= most ||
      llvm::isPowerOf2_64(type.getNumElements()))
    return failure();
  Location loc = op.getLoc();
  VectorType words =
      type.cloneWith(/*shape=*/{}, rewriter.getIntegerType(2 * bits));
  Value low = arith::ExtUIOp::create(rewriter, loc, words, op.getLhs());
  Value high = arith::ExtUIOp::create(rewriter, loc, words, op.getRhs());
  high = arith::ShLIOp::create(
      rewriter, loc, high,
      createScalarOrSplatConstant(rewriter, loc, words, bits));
  Value joined = arith::OrIOp::create(rewriter, loc, low, high);
  rewriter.replaceOpWithNewOp<vector::BitCastOp>(op, op.getType(), joined);
  return success();
}

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
  if (upstream::hangsOnInterleave)
    patterns.add(interleaveInWords, /*benefit=*/2);
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

struct ExpandForLLVM : kvcache::impl::ExpandForLLVMBase<ExpandForLLVM> {
  using ExpandForLLVMBase::ExpandForLLVMBase;

  // Once, and not for each of a module's kernels.
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet all(context);
    memref::populateExpandStridedMetadataPatterns(all);
    populateAffineToStdConversionPatterns(all);
    populateAffineToVectorConversionPatterns(all);
    populateVectorPatterns(all);
    populateCommonMathPatterns(all);
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
