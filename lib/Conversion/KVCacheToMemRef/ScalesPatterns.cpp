//===- ScalesPatterns.cpp - Scales of a quantized cache -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElementAccess.h"

#include "kvcache/IR/ScalesOps.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Takes the parts of a cache that its scales have.
struct LowerScalesView : OpConversionPattern<ScalesViewOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ScalesViewOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Bundle cache(rewriter, op.getLoc(), op.getCache().getType(),
                 adaptor.getCache());
    SmallVector<Value> parts;
    for (Part part : op.getScales().getType().getParts())
      parts.push_back(cache.get(part.kind));
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }
};

struct LowerScalesBase : OpConversionPattern<ScalesBaseOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ScalesBaseOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Bundle cache(rewriter, op.getLoc(), op.getCache().getType(),
                 adaptor.getCache());
    rewriter.replaceOp(op, cache.getScales().getMemory(op.getType()));
    return success();
  }
};

Value lowerScalesBlockTile(ScalesBlockTileOp op, const ElementAccess &first,
                           ValueRange) {
  return first.getTile(op.getType());
}

Value lowerLoadScale(LoadScaleOp op, const ElementAccess &first, ValueRange) {
  return (op.getZeroPoint() ? first.getZeroPoints() : first)
      .load(op, op.getType());
}

Value lowerStoreScale(StoreScaleOp op, const ElementAccess &first,
                      ValueRange scale) {
  (op.getZeroPoint() ? first.getZeroPoints() : first)
      .store(op, getSingle(scale));
  return {};
}

} // namespace

void kvcache::populateScalesPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<LowerScalesView, LowerScalesBase>(converter,
                                                 patterns.getContext());
  addScalesAccess(converter, patterns, lowerScalesBlockTile);
  addScalesAccess(converter, patterns, lowerLoadScale);
  addScalesAccess(converter, patterns, lowerStoreScale);
}
