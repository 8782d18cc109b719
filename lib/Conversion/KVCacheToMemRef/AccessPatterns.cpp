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

/// What a load or store of elements accesses: `memory[element]`.
struct Elements {
  template <typename OpTy, typename AdaptorTy>
  Elements(OpTy op, AdaptorTy adaptor, OpBuilder &builder)
      : type(op.getCache().getType()),
        cache(builder, op.getLoc(), type, adaptor.getCache()),
        element(cache.getElement(
            getSingle(adaptor.getBatch()), getSingle(adaptor.getHead()),
            getSingle(adaptor.getToken()), getSingle(adaptor.getElement()),
            getSingle(adaptor.getPage()))),
        alignment(getAccessAlignment(op, type, op.getAccessedWidth())) {}

  CacheTypeInterface type;
  Bundle cache;
  /// Counted from the view's base.
  Value element;
  llvm::Align alignment;
};

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
    Elements source(op, adaptor, rewriter);
    Location loc = op.getLoc();
    Value memory = source.cache.getBlocks();
    Value loaded;
    if (auto result = dyn_cast<VectorType>(op.getType()))
      loaded = vector::LoadOp::create(
          rewriter, loc, result.clone(source.type.getElementType()), memory,
          source.element, /*nontemporal=*/false, source.alignment);
    else
      loaded = memref::LoadOp::create(rewriter, loc, memory, source.element);
    rewriter.replaceOp(op, convertFloat(rewriter, loc, loaded, op.getType()));
    return success();
  }
};

struct LowerStore : OpConversionPattern<StoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Elements target(op, adaptor, rewriter);
    Value value = getSingle(adaptor.getValue());
    Value memory = target.cache.getBlocks();
    // Pairs of 4-bit elements are stored as bytes, the first one low.
    Type stored = target.type.getStorageType();
    if (stored != target.type.getElementType())
      value = vector::BitCastOp::create(
          rewriter, op.getLoc(),
          VectorType::get(op.getAccessedWidth() / 2, stored), value);
    if (isa<VectorType>(value.getType()))
      rewriter.replaceOpWithNewOp<vector::StoreOp>(
          op, value, memory, target.element, /*nontemporal=*/false,
          target.alignment);
    else
      rewriter.replaceOpWithNewOp<memref::StoreOp>(op, value, memory,
                                                   target.element);
    return success();
  }
};

struct LowerBlockTile : OpConversionPattern<BlockTileOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BlockTileOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Elements source(op, adaptor, rewriter);
    const Bundle &cache = source.cache;
    auto base = memref::ExtractStridedMetadataOp::create(
        rewriter, op.getLoc(), cache.get(PartKind::Blocks));
    Value offset = cache.add(base.getOffset(), source.element);
    MemRefType tile = op.getType();
    rewriter.replaceOpWithNewOp<memref::ReinterpretCastOp>(
        op, tile, base.getBaseBuffer(), OpFoldResult(offset),
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
