//===- AccessPatterns.cpp - Loads, stores and tiles of a cache ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Quantization.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

struct LowerLoad : OpConversionPattern<LoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    CacheTypeInterface type = op.getCache().getType();
    Bundle cache(rewriter, op.getLoc(), type, adaptor.getCache());
    AccessIndices indices(adaptor, adaptor.getPage());
    if (type.isQuantized()) {
      AccessIndices ofScale(adaptor, adaptor.getScalePage());
      rewriter.replaceOp(op,
                         loadDequantized(op, cache, indices, ofScale,
                                         getSingle(adaptor.getTensorScale()),
                                         op.getType()));
      return success();
    }
    Value loaded =
        ElementAccess(cache, indices)
            .load(op, getNumLanes(op.getType()), isa<VectorType>(op.getType()));
    rewriter.replaceOp(op, convertFloat(rewriter, op.getLoc(), loaded,
                                        getLaneType(op.getType())));
    return success();
  }
};

struct LowerStore : OpConversionPattern<StoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Bundle cache(rewriter, op.getLoc(), op.getCache().getType(),
                 adaptor.getCache());
    ElementAccess(cache, AccessIndices(adaptor, adaptor.getPage()))
        .store(op, getSingle(adaptor.getValue()));
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerBlockTile : OpConversionPattern<BlockTileOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BlockTileOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Bundle cache(rewriter, op.getLoc(), op.getCache().getType(),
                 adaptor.getCache());
    ElementAccess first(cache, AccessIndices(adaptor, adaptor.getPage()));
    rewriter.replaceOp(op, first.getTile(op.getType()));
    return success();
  }
};

} // namespace

void kvcache::populateAccessPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<LowerLoad, LowerStore, LowerBlockTile>(converter,
                                                      patterns.getContext());
}
