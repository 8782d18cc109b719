//===- ScalesPatterns.cpp - Scales of a quantized cache -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElementAccess.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

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
    auto base = memref::ExtractStridedMetadataOp::create(
        rewriter, op.getLoc(), cache.get(PartKind::Scales));
    auto window = cast<MemRefType>(op.getType());
    SmallVector<int64_t> strides;
    int64_t offset;
    (void)window.getStridesAndOffset(strides, offset);
    rewriter.replaceOpWithNewOp<memref::ReinterpretCastOp>(
        op, window, base.getBaseBuffer(), OpFoldResult(base.getOffset()),
        getMixedValues(window.getShape(),
                       {cache.getIndex(PartKind::ScalePages)}, rewriter),
        getMixedValues(strides, {cache.get(PartKind::ScalePageStride)},
                       rewriter));
    return success();
  }
};

struct LowerScalesBlockTile : OpConversionPattern<ScalesBlockTileOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ScalesBlockTileOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Bundle scales = Bundle(rewriter, op.getLoc(), op.getCache().getType(),
                           adaptor.getCache())
                        .getScales();
    ElementAccess first(scales, AccessIndices(adaptor, adaptor.getScalePage()));
    rewriter.replaceOp(op, first.getTile(op.getType()));
    return success();
  }
};

struct LowerLoadScale : OpConversionPattern<LoadScaleOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadScaleOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Bundle scales = Bundle(rewriter, op.getLoc(), op.getCache().getType(),
                           adaptor.getCache())
                        .getScales();
    ElementAccess first(scales, AccessIndices(adaptor, adaptor.getScalePage()));
    rewriter.replaceOp(op, first.load(op, getNumLanes(op.getType()),
                                      isa<VectorType>(op.getType())));
    return success();
  }
};

struct LowerStoreScale : OpConversionPattern<StoreScaleOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreScaleOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Bundle scales = Bundle(rewriter, op.getLoc(), op.getCache().getType(),
                           adaptor.getCache())
                        .getScales();
    ElementAccess(scales, AccessIndices(adaptor, adaptor.getScalePage()))
        .store(op, getSingle(adaptor.getScale()));
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void kvcache::populateScalesPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<LowerScalesView, LowerScalesBase, LowerScalesBlockTile,
               LowerLoadScale, LowerStoreScale>(converter,
                                                patterns.getContext());
}
