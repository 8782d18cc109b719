//===- ViewPatterns.cpp - Collections and views ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bundle.h"

#include "kvcache/IR/CacheShape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// A tensor of a collection, taken apart.
class TensorParts : public IntegerBuilder {
public:
  TensorParts(OpBuilder &builder, Location loc, Value memref)
      : IntegerBuilder(builder, loc) {
    auto metadata =
        memref::ExtractStridedMetadataOp::create(builder, loc, memref);
    base = metadata.getBaseBuffer();
    offset = metadata.getOffset();
    llvm::append_range(sizes, metadata.getSizes());
    llvm::append_range(strides, metadata.getStrides());
  }

  /// Where the tensor starts: a rank-0 memref.
  Value getPointer() const {
    auto type = MemRefType::get(
        {}, cast<MemRefType>(base.getType()).getElementType(),
        StridedLayoutAttr::get(builder.getContext(), ShapedType::kDynamic, {}));
    return memref::ReinterpretCastOp::create(
        builder, loc, type, base, OpFoldResult(offset),
        ArrayRef<OpFoldResult>(), ArrayRef<OpFoldResult>());
  }
  /// A size, below 2^32, as i32.
  Value getCount(unsigned dim) const { return truncate(sizes[dim]); }
  Value getStride(unsigned dim) const { return strides[dim]; }

private:
  Value base, offset;
  SmallVector<Value> sizes, strides;
};

/// Appends the parts of the blocks, or of the scales, of a collection with this
/// layout.
void appendTensor(SmallVectorImpl<Value> &parts, const TensorParts &tensor,
                  bool isMLA, bool withLayers, LayoutAttrInterface layout) {
  parts.append({tensor.getPointer(), tensor.getCount(0)});
  if (withLayers)
    parts.push_back(tensor.getCount(2));
  if (!isMLA)
    parts.push_back(tensor.getStride(1));
  parts.append({tensor.getStride(2), tensor.getStride(0)});
  if (isOpen(layout))
    parts.push_back(tensor.getStride(4));
}

/// The size of the blocks' pages, by which tokens are divided: arrays without
/// rows must not stop the process.
Value getPageSize(const TensorParts &blocks) {
  return blocks.builder.createOrFold<arith::MaxUIOp>(
      blocks.loc, blocks.getCount(3), blocks.i32(1));
}

/// Appends the parts of a lookup table of pages.
void appendTable(SmallVectorImpl<Value> &parts, const TensorParts &table) {
  parts.append({table.getPointer(), table.getCount(1),
                table.truncate(table.getStride(0))});
}

struct LowerPagedCollection : OpConversionPattern<PagedCollectionOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PagedCollectionOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    CacheTypeInterface type = op.getCollection().getType();
    auto takeApart = [&](Value tensor) {
      return TensorParts(rewriter, op.getLoc(), tensor);
    };
    TensorParts lengths = takeApart(adaptor.getCacheLengths());
    SmallVector<Value> parts;
    TensorParts blocks = takeApart(adaptor.getBlocks());
    appendTensor(parts, blocks, type.isMLA(), /*withLayers=*/true,
                 type.getLayout());
    if (!type.hasStaticPageSize())
      parts.push_back(getPageSize(blocks));
    parts.append({lengths.getPointer(), lengths.getCount(0)});
    appendTable(parts, takeApart(adaptor.getLookupTable()));
    parts.append({adaptor.getMaxSeqLength(), adaptor.getMaxCacheLength()});
    if (adaptor.getScales()) {
      appendTensor(parts, takeApart(adaptor.getScales()), type.isMLA(),
                   /*withLayers=*/false, type.getScaleLayout());
      appendTable(parts, takeApart(adaptor.getScalesLookupTable()
                                       ? adaptor.getScalesLookupTable()
                                       : adaptor.getLookupTable()));
    }
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }
};

struct LowerContinuousCollection : OpConversionPattern<ContinuousCollectionOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ContinuousCollectionOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    CacheTypeInterface type = op.getCollection().getType();
    Location loc = op.getLoc();
    TensorParts blocks(rewriter, loc, adaptor.getBlocks());
    TensorParts lengths(rewriter, loc, adaptor.getCacheLengths());
    TensorParts table(rewriter, loc, adaptor.getLookupTable());
    SmallVector<Value> parts;
    appendTensor(parts, blocks, type.isMLA(), /*withLayers=*/true,
                 type.getLayout());
    parts.append({blocks.getCount(3), lengths.getPointer(), lengths.getCount(0),
                  table.getPointer(), adaptor.getMaxSeqLength(),
                  adaptor.getMaxCacheLength()});
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }
};

/// Moves a collection's base to the layer's keys or values; the other parts
/// are the collection's, without those that only a view needs.
template <typename OpTy> struct LowerView : OpConversionPattern<OpTy> {
  using OpConversionPattern<OpTy>::OpConversionPattern;
  using OneToNOpAdaptor = typename OpConversionPattern<OpTy>::OneToNOpAdaptor;

  LogicalResult
  matchAndRewrite(OpTy op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Bundle collection(rewriter, op.getLoc(), op.getCollection().getType(),
                      adaptor.getCollection());
    Value layer = getSingle(adaptor.getLayer());
    SmallVector<Value> parts;
    for (Part part : op.getCache().getType().getParts()) {
      Value value = collection.get(part.kind);
      if (part.kind == PartKind::Blocks)
        value = moveToLayer(op, collection, value, layer, PartKind::RoleStride,
                            PartKind::LayerStride);
      else if (part.kind == PartKind::Scales)
        value =
            moveToLayer(op, collection, value, layer, PartKind::ScaleRoleStride,
                        PartKind::ScaleLayerStride);
      parts.push_back(value);
    }
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }

private:
  Value moveToLayer(OpTy op, const Bundle &collection, Value pointer,
                    Value layer, PartKind roleStride,
                    PartKind layerStride) const {
    Value offset = collection.mulSigned(layer, collection.get(layerStride));
    if (op.getRole() == Role::Value)
      offset = collection.addSigned(offset, collection.get(roleStride));
    return collection.advance(pointer, offset);
  }
};

} // namespace

void kvcache::populateViewPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  patterns.add<LowerPagedCollection, LowerContinuousCollection,
               LowerView<PagedViewOp>, LowerView<ContinuousViewOp>>(
      converter, patterns.getContext());
}
