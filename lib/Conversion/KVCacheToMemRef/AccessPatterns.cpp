//===- AccessPatterns.cpp - Loads, stores and tiles of a cache ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Quantization.h"

#include "kvcache/IR/AccessOps.h"

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
      AccessIndices scaleIndices(adaptor, adaptor.getScalePage());
      rewriter.replaceOp(op,
                         loadDequantized(op, cache, indices, scaleIndices,
                                         getSingle(adaptor.getTensorScale())));
      return success();
    }
    Value loaded = ElementAccess(cache, indices)
                       .load(op, withLane(op.getType(), type.getElementType()),
                             op.getNontemporal());
    Type lane = getLaneType(op.getType());
    Value tensorScale = getSingle(adaptor.getTensorScale());
    rewriter.replaceOp(
        op, tensorScale ? scaleByTensor(rewriter, op.getLoc(), loaded,
                                        tensorScale, lane)
                        : convertElements(rewriter, op.getLoc(), loaded, lane));
    return success();
  }
};

Value lowerStore(StoreOp op, const ElementAccess &first, ValueRange value) {
  first.store(op, getSingle(value), op.getNontemporal());
  return {};
}

Value lowerBlockTile(BlockTileOp op, const ElementAccess &first, ValueRange) {
  return first.getTile(op.getType());
}

} // namespace

void kvcache::populateAccessPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<LowerLoad>(converter, patterns.getContext());
  addAccess(converter, patterns, lowerStore);
  addAccess(converter, patterns, lowerBlockTile);
}
