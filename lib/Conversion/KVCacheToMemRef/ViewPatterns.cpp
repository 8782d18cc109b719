//===- ViewPatterns.cpp - Collections and views ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bundle.h"

#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/ViewOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// A tensor of a collection, taken apart.
class TensorParts : public AddressBuilder {
public:
  TensorParts(OpBuilder &builder, Location loc, Value memref)
      : AddressBuilder(builder, loc) {
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
  Value getCount(unsigned dim) const { return toI32(sizes[dim]); }
  Value getStride(unsigned dim) const { return strides[dim]; }

private:
  Value base, offset;
  SmallVector<Value> sizes, strides;
};

/// The tensors of a cache, taken apart.
class BundledTensors : public AddressBuilder {
public:
  /// `operands` are those of the op, converted.
  BundledTensors(OpBuilder &builder, BundleOpInterface op,
                 ArrayRef<Value> operands)
      : AddressBuilder(builder, op.getLoc()), op(op),
        type(op.getBundle().getType()), operands(operands) {}

  SmallVector<Value> getParts() {
    TensorParts lengths = takeApart(op.getCacheLengths());
    TensorParts blocks = takeApart(op.getBlocks());
    appendTensor(blocks, /*withLayers=*/type.isCollection(), type.getLayout());
    if (!type.isPaged())
      parts.push_back(blocks.getCount(getTokens()));
    else if (!type.hasStaticPageSize())
      parts.push_back(getPageSize(blocks));
    parts.append({lengths.getPointer(), lengths.getCount(0)});
    if (type.isPaged())
      appendTable(takeApart(op.getLookupTable()));
    else
      parts.push_back(takeApart(op.getLookupTable()).getPointer());
    parts.append({getConverted(op.getMaxSeqLength()),
                  getConverted(op.getMaxCacheLength())});
    if (op.getScales())
      appendScales();
    return parts;
  }

private:
  Value getConverted(Value operand) const {
    return operands[llvm::find(op->getOperands(), operand).getIndex()];
  }
  TensorParts takeApart(Value tensor) const {
    return TensorParts(builder, loc, getConverted(tensor));
  }
  unsigned getTokens() { return getTokensDim(op.getBlocks().getType()); }

  /// Appends the parts of the blocks, or of the scales, with this layout.
  void appendTensor(const TensorParts &tensor, bool withLayers,
                    LayoutAttrInterface layout) {
    parts.append({tensor.getPointer(), tensor.getCount(0)});
    if (withLayers)
      parts.push_back(tensor.getCount(2));
    if (type.isCollection() && !type.isMLA())
      parts.push_back(tensor.getStride(1));
    if (type.isCollection())
      parts.push_back(tensor.getStride(2));
    parts.push_back(tensor.getStride(0));
    if (isOpen(layout))
      parts.push_back(tensor.getStride(getTokens() + 1));
  }

  /// The size of the blocks' pages, by which tokens are divided: arrays without
  /// rows must not stop the process.
  Value getPageSize(const TensorParts &blocks) {
    return builder.createOrFold<arith::MaxUIOp>(
        loc, blocks.getCount(getTokens()), i32(1));
  }

  /// Appends the parts of the lookup table.
  void appendTable(const TensorParts &table) {
    TableKind kind = type.getTable();
    unsigned columns = kind == TableKind::CSR ? 0 : 1;
    parts.append({table.getPointer(), table.getCount(columns)});
    if (kind != TableKind::CSR)
      parts.push_back(toI32(table.getStride(0)));
    if (kind != TableKind::Dense)
      parts.push_back(takeApart(op.getTableIndex()).getPointer());
    if (kind == TableKind::Rows)
      parts.push_back(table.getCount(0));
  }

  void appendScales() {
    appendTensor(takeApart(op.getScales()), /*withLayers=*/false,
                 type.getScaleLayout());
    if (type.getTable() != TableKind::Dense)
      return;
    Value own = op.getScalesLookupTable();
    appendTable(takeApart(own ? own : op.getLookupTable()));
  }

  BundleOpInterface op;
  CacheTypeInterface type;
  ArrayRef<Value> operands;
  SmallVector<Value> parts;
};

/// A cache becomes the parts of its tensors.
struct LowerBundle : OpInterfaceConversionPattern<BundleOpInterface> {
  using OpInterfaceConversionPattern::OpInterfaceConversionPattern;

  LogicalResult
  matchAndRewrite(BundleOpInterface op, ArrayRef<Value> operands,
                  ConversionPatternRewriter &rewriter) const override {
    BundledTensors tensors(rewriter, op, operands);
    rewriter.replaceOpWithMultiple(op, {tensors.getParts()});
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
  patterns
      .add<LowerBundle, LowerView<PagedViewOp>, LowerView<ContinuousViewOp>>(
          converter, patterns.getContext());
}
