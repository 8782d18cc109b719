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
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

Value kvcache::createFloatConstant(OpBuilder &builder, Location loc, Type type,
                                   double number) {
  TypedAttr value = builder.getFloatAttr(getElementTypeOrSelf(type), number);
  if (auto shaped = dyn_cast<ShapedType>(type))
    value = DenseElementsAttr::get(shaped, Attribute(value));
  return arith::ConstantOp::create(builder, loc, value);
}

/// Calls an intrinsic of f32 on a number, or on each element of a vector.
static Value callOnElements(OpBuilder &builder, Location loc,
                            StringRef intrinsic, Value operand,
                            LLVM::FastmathFlags flags = {}) {
  auto call = [&](Value value) -> Value {
    return LLVM::CallIntrinsicOp::create(
               builder, loc, TypeRange(value.getType()),
               builder.getStringAttr(intrinsic), value,
               LLVM::FastmathFlagsAttr::get(builder.getContext(), flags))
        .getResult(0);
  };
  auto vector = dyn_cast<VectorType>(operand.getType());
  if (!vector)
    return call(operand);
  auto elements = vector::ToElementsOp::create(builder, loc, operand);
  SmallVector<Value> results = llvm::map_to_vector(elements.getResults(), call);
  return vector::FromElementsOp::create(builder, loc, vector, results);
}

/// Whether upstream's patterns compute a function in f32 by fused products. Its
/// patterns for acos, asin, atan, atan2, cbrt and erfc are less accurate.
static bool isPolynomial(StringRef name) {
  return llvm::is_contained(
      {math::ErfOp::getOperationName(), math::ExpM1Op::getOperationName(),
       math::LogOp::getOperationName(), math::Log1pOp::getOperationName(),
       math::Log2Op::getOperationName(), math::TanhOp::getOperationName()},
      name);
}

/// Whether f16 and bf16 are computed in f32, because their f32 is native.
static bool isExtended(StringRef name) {
  return isPolynomial(name) ||
         llvm::is_contained(
             {math::CosOp::getOperationName(), math::ExpOp::getOperationName(),
              math::Exp2Op::getOperationName(),
              math::Log10Op::getOperationName(),
              math::RsqrtOp::getOperationName(),
              math::SinOp::getOperationName(), math::SqrtOp::getOperationName(),
              math::TanOp::getOperationName()},
             name);
}

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
    Value factor = createFloatConstant(rewriter, op.getLoc(), op.getType(),
                                       llvm::numbers::log2ef);
    Value scaled =
        arith::MulFOp::create(rewriter, op.getLoc(), op.getOperand(), factor);
    rewriter.replaceOpWithNewOp<math::Exp2Op>(op, scaled, op.getFastmath());
    return success();
  }
};

/// |x| = max(x, -x): upstream calls libdevice for integers of 32 bits.
struct AbsToMax : OpRewritePattern<math::AbsIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::AbsIOp op,
                                PatternRewriter &rewriter) const override {
    Value zero = arith::ConstantOp::create(rewriter, op.getLoc(),
                                           rewriter.getZeroAttr(op.getType()));
    Value negative =
        arith::SubIOp::create(rewriter, op.getLoc(), zero, op.getOperand());
    rewriter.replaceOpWithNewOp<arith::MaxSIOp>(op, op.getOperand(), negative);
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

/// Replaces f32 math that allows an approximation (`afn`) by an intrinsic that
/// is one instruction, element by element.
template <typename OpTy> struct ToApproximation : OpRewritePattern<OpTy> {
  ToApproximation(MLIRContext *context, StringRef intrinsic)
      : OpRewritePattern<OpTy>(context, /*benefit=*/2), intrinsic(intrinsic) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!arith::bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn))
      return rewriter.notifyMatchFailure(op, "no approximation is allowed");
    auto vector = dyn_cast<VectorType>(op.getType());
    if (!getElementTypeOrSelf(op.getType()).isF32() ||
        (vector && (vector.getRank() != 1 || vector.isScalable())))
      return rewriter.notifyMatchFailure(op, "no instruction for this type");
    rewriter.replaceOp(op, callOnElements(rewriter, op.getLoc(), intrinsic,
                                          op.getOperand(),
                                          LLVM::FastmathFlags::afn));
    return success();
  }

private:
  StringRef intrinsic;
};

/// 1 / sqrt(x): `rsqrt.approx.f32`, whose relative error is at most 2^-22.9
/// (PTX ISA, rsqrt), or two instructions in f64.
struct RsqrtToIntrinsic : OpRewritePattern<math::RsqrtOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::RsqrtOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto vector = dyn_cast<VectorType>(op.getType());
    if (vector && (vector.getRank() != 1 || vector.isScalable()))
      return rewriter.notifyMatchFailure(op, "not one dimension");
    Type element = getElementTypeOrSelf(op.getType());
    if (element.isF32()) {
      rewriter.replaceOp(op, callOnElements(rewriter, loc,
                                            "llvm.nvvm.rsqrt.approx.f",
                                            op.getOperand()));
      return success();
    }
    if (!element.isF64())
      return rewriter.notifyMatchFailure(op, "no instruction for this type");
    Value one = createFloatConstant(rewriter, loc, op.getType(), 1);
    Value root = math::SqrtOp::create(rewriter, loc, op.getOperand());
    rewriter.replaceOpWithNewOp<arith::DivFOp>(op, one, root);
    return success();
  }
};

/// Rewrites a logarithm in f32 as a product: log10(x) = log(x) * log10(e), and
/// log(x) = log2(x) * log(2) where an approximation is allowed.
template <typename OpTy, typename BaseOpTy>
struct LogToOtherBase : OpRewritePattern<OpTy> {
  LogToOtherBase(MLIRContext *context, double factor, bool onlyApproximate)
      : OpRewritePattern<OpTy>(context, /*benefit=*/2), factor(factor),
        onlyApproximate(onlyApproximate) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    bool isApproximate =
        arith::bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn);
    if (!getElementTypeOrSelf(op.getType()).isF32() ||
        (onlyApproximate && !isApproximate))
      return rewriter.notifyMatchFailure(op, "not this logarithm in f32");
    Value log = BaseOpTy::create(rewriter, op.getLoc(), op.getOperand(),
                                 op.getFastmath());
    rewriter.replaceOpWithNewOp<arith::MulFOp>(
        op, log,
        createFloatConstant(rewriter, op.getLoc(), op.getType(), factor));
    return success();
  }

private:
  double factor;
  bool onlyApproximate;
};

} // namespace

/// Returns the logarithm of 2 to the base of a logarithm, or nothing for
/// another op.
static std::optional<double> getLogOf2(Operation *op) {
  if (isa<math::LogOp>(op))
    return llvm::numbers::ln2;
  if (isa<math::Log2Op>(op))
    return 1;
  if (isa<math::Log10Op>(op))
    return llvm::numbers::ln2 / llvm::numbers::ln10;
  return std::nullopt;
}

/// Scales the operand of a logarithm by 2^24 where it is subnormal.
static void scaleSubnormals(OpBuilder &builder, Operation *op, double logOf2) {
  builder.setInsertionPoint(op);
  Location loc = op->getLoc();
  Type type = op->getResultTypes().front(), wide = builder.getF32Type();
  if (auto shaped = dyn_cast<ShapedType>(type))
    wide = shaped.clone(wide);
  auto constant = [&](double number) {
    return createFloatConstant(builder, loc, wide, number);
  };
  Value x = op->getOperand(0);
  if (type != wide)
    x = arith::ExtFOp::create(builder, loc, wide, x);
  Value isSmall = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT,
                                        x, constant(0x1p-126));
  Value scaled = arith::MulFOp::create(builder, loc, x, constant(0x1p24));
  x = arith::SelectOp::create(builder, loc, isSmall, scaled, x);
  Value log = clone(builder, op, wide, x)->getResult(0);
  Value shift = arith::SelectOp::create(builder, loc, isSmall,
                                        constant(24 * logOf2), constant(0));
  Value result = arith::SubFOp::create(builder, loc, log, shift);
  if (type != wide)
    result = arith::TruncFOp::create(builder, loc, type, result);
  op->replaceAllUsesWith(ValueRange(result));
  op->erase();
}

bool kvcache::scaleSubnormalsOfLogarithms(Operation *root) {
  SmallVector<std::pair<Operation *, double>> logarithms;
  root->walk([&](Operation *op) {
    std::optional<double> logOf2 = getLogOf2(op);
    if (!logOf2)
      return;
    Type type = getElementTypeOrSelf(op->getResultTypes().front());
    auto flags = cast<arith::ArithFastMathInterface>(op).getFastMathFlagsAttr();
    // Subnormals of f16 are normal in f32, in which they are computed.
    if ((type.isF32() || type.isBF16()) &&
        !arith::bitEnumContainsAll(flags.getValue(), arith::FastMathFlags::afn))
      logarithms.emplace_back(op, *logOf2);
  });
  OpBuilder builder(root->getContext());
  for (auto [op, logOf2] : logarithms)
    scaleSubnormals(builder, op, logOf2);
  return !logarithms.empty();
}

void kvcache::populateGPUMathPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<AbsToMax, ApproximateReciprocal, ExpToExp2, FlattenMath,
               RsqrtToIntrinsic>(context);
  patterns.add<ToApproximation<math::CosOp>>(context, "llvm.nvvm.cos.approx.f");
  // Without .ftz there are three more instructions, for results below 2^-126.
  patterns.add<ToApproximation<math::Exp2Op>>(context,
                                              "llvm.nvvm.ex2.approx.ftz.f32");
  patterns.add<ToApproximation<math::Log2Op>>(context,
                                              "llvm.nvvm.lg2.approx.f");
  patterns.add<ToApproximation<math::SinOp>>(context, "llvm.nvvm.sin.approx.f");
  patterns.add<ToApproximation<math::TanhOp>>(context, "llvm.tanh");
  patterns.add<LogToOtherBase<math::LogOp, math::Log2Op>>(
      context, llvm::numbers::ln2, /*onlyApproximate=*/true);
  patterns.add<LogToOtherBase<math::Log10Op, math::LogOp>>(
      context, 1 / llvm::numbers::ln10, /*onlyApproximate=*/false);
  populatePeriodicMathPatterns(patterns);
  populateMathF32ExpansionPatterns(patterns, isExtended);
  populateMathPolynomialApproximationPatterns(patterns, isPolynomial);
  patterns.add<ToIntrinsic<arith::MaxNumFOp>>(context, "llvm.maxnum");
  patterns.add<ToIntrinsic<arith::MinNumFOp>>(context, "llvm.minnum");
  SmallVector<unsigned> widths = {16, 32, 64};
  patterns.add<ToIntrinsic<math::AbsFOp>>(context, "llvm.fabs", widths);
  patterns.add<ToIntrinsic<math::CeilOp>>(context, "llvm.ceil", widths);
  patterns.add<ToIntrinsic<math::CopySignOp>>(context, "llvm.copysign", widths);
  patterns.add<ToIntrinsic<math::Exp2Op>>(context, "llvm.exp2",
                                          ArrayRef<unsigned>{32});
  patterns.add<ToIntrinsic<math::FloorOp>>(context, "llvm.floor", widths);
  patterns.add<ToIntrinsic<math::FmaOp>>(context, "llvm.fma", widths);
  patterns.add<ToIntrinsic<math::RoundOp>>(context, "llvm.round", widths);
  patterns.add<ToIntrinsic<math::RoundEvenOp>>(context, "llvm.roundeven",
                                               widths);
  patterns.add<ToIntrinsic<math::SqrtOp>>(context, "llvm.sqrt");
  patterns.add<ToIntrinsic<math::TruncOp>>(context, "llvm.trunc", widths);
  populateGpuGlobalIdPatterns(patterns);
  populateGpuShufflePatterns(patterns);
  populateGpuBreakDownSubgroupReducePatterns(patterns);
  // Shuffles of 64 bits, which are two of 32, are for wider values only.
  for (unsigned width : {32, 64}) {
    PatternBenefit benefit = width == 32 ? 2 : 1;
    populateGpuLowerSubgroupReduceToShufflePatterns(
        patterns, /*subgroupSize=*/32, width, benefit);
    populateGpuLowerClusteredSubgroupReduceToShufflePatterns(
        patterns, /*subgroupSize=*/32, width, benefit);
  }
}
