//===- GPUMath.cpp - Math without libdevice -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPUMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Math on a vector of several dimensions, or of none, is that on a vector of
/// one with as many lanes.
struct FlattenMath : OpTraitRewritePattern<OpTrait::Elementwise> {
  using OpTraitRewritePattern::OpTraitRewritePattern;

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isa_and_present<math::MathDialect>(op->getDialect()) &&
        !isa<arith::MaxNumFOp, arith::MinNumFOp>(op))
      return rewriter.notifyMatchFailure(op, "not math");
    auto isFlattened = [](Type type) {
      auto vector = dyn_cast<VectorType>(type);
      return vector && vector.getRank() != 1 && !vector.isScalable();
    };
    if (op->getNumResults() != 1 ||
        !isFlattened(op->getResultTypes().front()) ||
        !llvm::all_of(op->getOperandTypes(), isFlattened))
      return rewriter.notifyMatchFailure(op, "one dimension");
    auto flatten = [](Type type) {
      auto vector = cast<VectorType>(type);
      return VectorType::get(vector.getNumElements(), vector.getElementType());
    };
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(vector::ShapeCastOp::create(
          rewriter, op->getLoc(), flatten(operand.getType()), operand));
    Type type = op->getResultTypes().front();
    Operation *flat = clone(rewriter, op, flatten(type), operands);
    rewriter.replaceOpWithNewOp<vector::ShapeCastOp>(op, type,
                                                     flat->getResult(0));
    return success();
  }
};

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

/// Replaces an op by an LLVM intrinsic that NVPTX selects an instruction
/// for: `ex2.approx.f32`, `sqrt.rn`, `fma.rn`, and so on (PTX ISA, Floating
/// Point Instructions). Called by name, because `convert-gpu-to-nvvm` rejects
/// the ops of these intrinsics in favour of libdevice.
template <typename OpTy> struct ToIntrinsic : OpRewritePattern<OpTy> {
  ToIntrinsic(MLIRContext *context, StringRef intrinsic,
              ArrayRef<unsigned> widths = {32, 64})
      : OpRewritePattern<OpTy>(context), intrinsic(intrinsic), widths(widths) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    auto vector = dyn_cast<VectorType>(op.getType());
    Type element = getElementTypeOrSelf(op.getType());
    if (!llvm::is_contained(widths, element.getIntOrFloatBitWidth()) ||
        (vector && vector.getRank() != 1))
      return rewriter.notifyMatchFailure(op, "no instruction for this type");
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, op.getType(), rewriter.getStringAttr(intrinsic), op->getOperands());
    return success();
  }

private:
  StringRef intrinsic;
  SmallVector<unsigned> widths;
};

/// 1 / x that may be approximate, of one number: PTX ISA, rcp.approx.ftz.f32.
/// Without .ftz it takes a comparison and two products more, for numbers whose
/// reciprocal is not normal, or that are not normal themselves.
struct ApproximateReciprocal : OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32() ||
        !bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn))
      return rewriter.notifyMatchFailure(op, "not an approximation in f32");
    if (!matchPattern(op.getLhs(), m_OneFloat()))
      return rewriter.notifyMatchFailure(op, "not a reciprocal");
    rewriter.replaceOpWithNewOp<NVVM::RcpApproxFtzF32Op>(op, op.getType(),
                                                         op.getRhs());
    return success();
  }
};

/// One instruction where an approximation is good enough, `ex2.approx.ftz.f32`:
/// without ftz there are three more, for results below 2^-126.
struct ApproximateExp2 : OpRewritePattern<math::Exp2Op> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::Exp2Op op,
                                PatternRewriter &rewriter) const override {
    if (!arith::bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn))
      return rewriter.notifyMatchFailure(op, "no approximation is allowed");
    auto vector = dyn_cast<VectorType>(op.getType());
    if (!getElementTypeOrSelf(op.getType()).isF32() ||
        (vector && (vector.getRank() != 1 || vector.isScalable())))
      return rewriter.notifyMatchFailure(op, "no instruction for this type");
    auto approximate = [&](Value value) -> Value {
      return LLVM::CallIntrinsicOp::create(
                 rewriter, op.getLoc(), rewriter.getF32Type(),
                 rewriter.getStringAttr("llvm.nvvm.ex2.approx.ftz.f32"), value)
          .getResult(0);
    };
    if (!vector) {
      rewriter.replaceOp(op, approximate(op.getOperand()));
      return success();
    }
    auto elements =
        vector::ToElementsOp::create(rewriter, op.getLoc(), op.getOperand());
    SmallVector<Value> results =
        llvm::map_to_vector(elements.getResults(), approximate);
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, vector, results);
    return success();
  }
};

} // namespace

void kvcache::populateGPUMathPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<ApproximateReciprocal, ExpToExp2, FlattenMath>(context);
  patterns.add<ApproximateExp2>(context, /*benefit=*/2);
  patterns.add<ToIntrinsic<arith::MaxNumFOp>>(context, "llvm.maxnum");
  patterns.add<ToIntrinsic<arith::MinNumFOp>>(context, "llvm.minnum");
  patterns.add<ToIntrinsic<math::AbsFOp>>(context, "llvm.fabs",
                                          ArrayRef<unsigned>{16, 32, 64});
  patterns.add<ToIntrinsic<math::CeilOp>>(context, "llvm.ceil");
  patterns.add<ToIntrinsic<math::CopySignOp>>(context, "llvm.copysign");
  patterns.add<ToIntrinsic<math::Exp2Op>>(context, "llvm.exp2",
                                          ArrayRef<unsigned>{32});
  patterns.add<ToIntrinsic<math::FloorOp>>(context, "llvm.floor");
  patterns.add<ToIntrinsic<math::FmaOp>>(context, "llvm.fma");
  patterns.add<ToIntrinsic<math::SqrtOp>>(context, "llvm.sqrt");
  populateGpuRewritePatterns(patterns);
  populateGpuBreakDownSubgroupReducePatterns(patterns);
  populateGpuLowerSubgroupReduceToShufflePatterns(patterns,
                                                  /*subgroupSize=*/32);
  populateGpuLowerClusteredSubgroupReduceToShufflePatterns(patterns,
                                                           /*subgroupSize=*/32);
}
