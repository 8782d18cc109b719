//===- AccessPatterns.cpp - Loads, stores and tiles of a cache ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bundle.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The largest power of two that divides the bytes of an access, of a head and
/// of a row, and the alignment of the blocks: what every address it may have is
/// a multiple of.
llvm::Align getAccessAlignment(Operation *op, CacheTypeInterface cache,
                               int64_t lanes) {
  int64_t bits = cache.getElementType().getIntOrFloatBitWidth();
  uint64_t alignment = getBaseAlignment(op);
  for (int64_t elements :
       {lanes, cache.getHeadSize(), cache.getNumHeads() * cache.getHeadSize()})
    alignment = llvm::MinAlign(alignment, elements * bits / 8);
  return llvm::Align(alignment);
}

/// The first element that an access addresses, counted from the view's base.
template <typename AdaptorT>
Value getFirstElement(const Bundle &cache, AdaptorT adaptor) {
  return cache.getElement(
      getSingle(adaptor.getBatch()), getSingle(adaptor.getHead()),
      getSingle(adaptor.getToken()), getSingle(adaptor.getElement()),
      getSingle(adaptor.getPage()));
}

/// `value` as `type`: the same lanes, of the same or another float type.
Value convertFloat(OpBuilder &builder, Location loc, Value value, Type type) {
  Type from = getLaneType(value.getType()), to = getLaneType(type);
  if (from == to)
    return value;
  unsigned fromBits = from.getIntOrFloatBitWidth();
  unsigned toBits = to.getIntOrFloatBitWidth();
  if (fromBits < toBits)
    return arith::ExtFOp::create(builder, loc, type, value);
  if (fromBits > toBits)
    return arith::TruncFOp::create(builder, loc, type, value);
  // Types of one width convert through f32, which holds both exactly.
  Type wide = builder.getF32Type();
  if (auto vector = dyn_cast<VectorType>(type))
    wide = vector.clone(wide);
  value = arith::ExtFOp::create(builder, loc, wide, value);
  return arith::TruncFOp::create(builder, loc, type, value);
}

struct LowerLoad : OpConversionPattern<LoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    CacheTypeInterface type = op.getCache().getType();
    Bundle cache(rewriter, loc, type, adaptor.getCache());
    Value element = getFirstElement(cache, adaptor);
    llvm::Align alignment = getAccessAlignment(op, type, op.getAccessedWidth());

    Value loaded;
    if (auto result = dyn_cast<VectorType>(op.getType()))
      loaded = vector::LoadOp::create(rewriter, loc,
                                      result.clone(type.getElementType()),
                                      cache.getBlocks(), element,
                                      /*nontemporal=*/false, alignment);
    else
      loaded =
          memref::LoadOp::create(rewriter, loc, cache.getBlocks(), element);
    rewriter.replaceOp(op, convertFloat(rewriter, loc, loaded, op.getType()));
    return success();
  }
};

struct LowerStore : OpConversionPattern<StoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    CacheTypeInterface type = op.getCache().getType();
    Bundle cache(rewriter, loc, type, adaptor.getCache());
    Value element = getFirstElement(cache, adaptor);
    llvm::Align alignment = getAccessAlignment(op, type, op.getAccessedWidth());

    Value value = getSingle(adaptor.getValue());
    if (isa<VectorType>(value.getType()))
      rewriter.replaceOpWithNewOp<vector::StoreOp>(
          op, value, cache.getBlocks(), element, /*nontemporal=*/false,
          alignment);
    else
      rewriter.replaceOpWithNewOp<memref::StoreOp>(op, value, cache.getBlocks(),
                                                   element);
    return success();
  }
};

struct LowerBlockTile : OpConversionPattern<BlockTileOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BlockTileOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Bundle cache(rewriter, loc, op.getCache().getType(), adaptor.getCache());
    Value element = getFirstElement(cache, adaptor);
    auto metadata = memref::ExtractStridedMetadataOp::create(
        rewriter, loc, cache.get(PartKind::Blocks));
    MemRefType tile = op.getType();
    Value offset = cache.add(metadata.getOffset(), element);
    rewriter.replaceOpWithNewOp<memref::ReinterpretCastOp>(
        op, tile, metadata.getBaseBuffer(), OpFoldResult(offset),
        getAsIndexOpFoldResult(getContext(), tile.getShape()),
        getAsIndexOpFoldResult(getContext(), {cache.getRowElements(), 1}));
    return success();
  }
};

} // namespace

void kvcache::populateAccessPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<LowerLoad, LowerStore, LowerBlockTile>(converter,
                                                      patterns.getContext());
}
