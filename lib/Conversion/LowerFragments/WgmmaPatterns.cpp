//===- WgmmaPatterns.cpp - Lower products of warpgroups, and waits --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Registers.h"

#include "kvcache/IR/MatrixOps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Products of warpgroups become `kvcache.mma`, which has vectors.
struct LowerWgmmaProduct : OpConversionPattern<FragmentMmaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FragmentMmaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.isWgmma())
      return rewriter.notifyMatchFailure(op, "warps multiply");
    Location loc = op.getLoc();
    Value a = op.getA();
    if (auto fragment = dyn_cast<FragmentType>(a.getType()))
      a = join(rewriter, loc, fragment, adaptor.getA());
    Value sums;
    if (op.getAccumulator()) {
      ValueRange given = adaptor.getAccumulator();
      sums = isa<InFlightType>(op.getAccumulator().getType())
                 ? given.front()
                 : join(rewriter, loc, op.getType().getComplete(), given);
    }
    rewriter.replaceOpWithNewOp<MmaOp>(
        op, op.getType().getParts().front().type, a, op.getARow(),
        op.getAColumn(), op.getB(), op.getBRow(), op.getBColumn(), sums,
        op.getKAttr(), op.getMajorA(), op.getMajorB());
    return success();
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
      products.push_back(each.front());
    auto type = cast<InFlightType>(op.getProducts().front().getType());
    if (type.getLayout() == FragmentLayout::WgmmaAcc)
      products = SmallVector<Value>(
          MmaWaitOp::create(rewriter, loc, products, op.getPending())
              .getResults());
    SmallVector<SmallVector<Value>> results;
    for (Value product : products)
      results.push_back(split(rewriter, loc, product));
    rewriter.replaceOpWithMultiple(op, results);
    return success();
  }
};

} // namespace

void kvcache::populateWgmmaPatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<LowerWgmmaProduct, LowerFragmentWait>(converter,
                                                     patterns.getContext());
}
