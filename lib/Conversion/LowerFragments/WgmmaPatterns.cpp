//===- WgmmaPatterns.cpp - Lower products of warpgroups, and waits --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Registers.h"

#include "kvcache/IR/MatrixOps.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Checks that the chip has wgmma, if the chip is known.
static LogicalResult checkWgmma(Operation *op) {
  const Chip *chip = getTargetChip(op);
  if (!chip || chip->has(Feature::WGMMA))
    return success();
  return op->emitOpError(getMissingFeatureMessage(*chip, Feature::WGMMA));
}

namespace {

/// Products of warpgroups become `kvcache.mma`, which has vectors.
struct LowerWgmmaProduct : OpConversionPattern<FragmentMmaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FragmentMmaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.isWgmma())
      return rewriter.notifyMatchFailure(op, "warps multiply");
    if (failed(checkWgmma(op)) || failed(checkPlaces(op, op.getParts())))
      return failure();
    if (op.isTransposed()) {
      rewriter.replaceOpWithMultiple(
          op, {multiplyTransposed(rewriter, op, adaptor.getAccumulator())});
      return success();
    }
    Location loc = op.getLoc();
    Value a = op.getA();
    if (auto fragment = dyn_cast<FragmentType>(a.getType()))
      a = join(rewriter, loc, fragment, adaptor.getA());
    Value acc;
    if (op.getAccumulator()) {
      ValueRange given = adaptor.getAccumulator();
      acc = isa<InFlightType>(op.getAccumulator().getType())
                ? given.front()
                : join(rewriter, loc, op.getType().getComplete(), given);
    }
    rewriter.replaceOpWithNewOp<MmaOp>(
        op, op.getType().getParts().front().type, a, op.getARow(),
        op.getAColumn(), op.getB(), op.getBRow(), op.getBColumn(), acc,
        op.getKAttr(), op.getMajorA(), op.getMajorB(), /*grouped=*/false);
    return success();
  }

private:
  /// Multiplies B by A: a product for each 64 columns, all in one group.
  static SmallVector<Value>
  multiplyTransposed(OpBuilder &builder, FragmentMmaOp op, ValueRange given) {
    IndexBuilder b(builder, op.getLoc());
    auto parts = op.getType().getParts();
    auto k = builder.getI64IntegerAttr(op.getSizeK());
    SmallVector<Value> products;
    for (auto [i, part] : llvm::enumerate(parts)) {
      int64_t size = cast<VectorType>(part.type).getNumElements();
      Value acc;
      if (op.getAccumulator())
        acc = isa<InFlightType>(op.getAccumulator().getType())
                  ? given[i]
                  : join(builder, op.getLoc(), op.getType().getComplete(),
                         given.slice(i * size, size));
      Value row = op.getBRow(), column = op.getBColumn();
      Value &first = op.getMajorB() == Major::K ? row : column;
      first = b.add(first, b.index(i * MmaOp::kM));
      products.push_back(MmaOp::create(
          builder, op.getLoc(), part.type, op.getB(), row, column, op.getA(),
          op.getARow(), op.getAColumn(), acc, k, op.getMajorB(), op.getMajorA(),
          /*grouped=*/i + 1 < parts.size()));
    }
    return products;
  }
};

struct LowerFragmentWait : OpConversionPattern<FragmentWaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FragmentWaitOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    SmallVector<Value> products;
    for (ValueRange each : adaptor.getProducts())
      llvm::append_range(products, each);
    auto type = cast<InFlightType>(op.getProducts().front().getType());
    if (isWgmmaAcc(type.getLayout()))
      products = SmallVector<Value>(
          MmaWaitOp::create(rewriter, loc, products, op.getPending())
              .getResults());
    SmallVector<SmallVector<Value>> results;
    ArrayRef<Value> rest = products;
    for (ValueRange each : adaptor.getProducts()) {
      SmallVector<Value> &elements = results.emplace_back();
      for (Value product : rest.take_front(each.size()))
        llvm::append_range(elements, split(rewriter, loc, product));
      rest = rest.drop_front(each.size());
    }
    rewriter.replaceOpWithMultiple(op, results);
    return success();
  }
};

/// The vote takes two instructions for a warp. It must depend on the sums:
/// ptxas moves waits across branches on other conditions.
struct LowerScheduleFence : OpConversionPattern<ScheduleFenceOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ScheduleFenceOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    SmallVector<Value> sums(adaptor.getSums());
    Value least = sums.front();
    for (Value sum : ArrayRef(sums).drop_front())
      least = arith::MinimumFOp::create(rewriter, loc, least, sum);
    Value zero =
        arith::ConstantOp::create(rewriter, loc, rewriter.getF32FloatAttr(0));
    Value isNegative = arith::CmpFOp::create(
        rewriter, loc, arith::CmpFPredicate::OLT, least, zero);
    Value voted = voteAny(rewriter, loc, isNegative);
    bool isOfWarpgroup = isWgmmaAcc(op.getSums().getType().getLayout());
    scf::IfOp::create(rewriter, loc, voted,
                      [&](OpBuilder &builder, Location nested) {
                        if (isOfWarpgroup)
                          MmaWaitOp::create(builder, nested, ValueRange(),
                                            /*pending=*/0);
                        LLVM::Trap::create(builder, nested);
                        scf::YieldOp::create(builder, nested);
                      });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void kvcache::populateWgmmaPatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<LowerFragmentWait, LowerScheduleFence, LowerWgmmaProduct>(
      converter, patterns.getContext());
}
