//===- QueryPatterns.cpp - Queries of a cache -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bundle.h"

#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/QueryOps.h"
#include "kvcache/IR/ScalesOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Lowers an op on a cache to values computed by `lower(op, cache, operands)`,
/// where operands are those after the cache, all of them single values.
template <typename OpTy> struct LowerQuery : OpConversionPattern<OpTy> {
  using LowerFn = SmallVector<Value> (*)(OpTy op, const Bundle &cache,
                                         ValueRange operands);
  using OneToNOpAdaptor = typename OpConversionPattern<OpTy>::OneToNOpAdaptor;

  LowerQuery(const TypeConverter &converter, MLIRContext *context,
             LowerFn lower)
      : OpConversionPattern<OpTy>(converter, context), lower(lower) {}

  LogicalResult
  matchAndRewrite(OpTy op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Bundle cache(rewriter, op.getLoc(), op.getCache().getType(),
                 adaptor.getCache());
    SmallVector<Value> operands;
    for (ValueRange operand : adaptor.getOperands().drop_front())
      operands.push_back(getSingle(operand));
    rewriter.replaceOp(op, lower(op, cache, operands));
    return success();
  }

private:
  LowerFn lower;
};

SmallVector<Value> lowerEmptyCache(EmptyCacheOp, const Bundle &cache,
                                   ValueRange) {
  return {cache.builder.createOrFold<arith::CmpIOp>(
      cache.loc, arith::CmpIPredicate::eq, cache.get(PartKind::MaxCacheLength),
      cache.i32(0))};
}

SmallVector<Value> lowerMaxPromptLength(MaxPromptLengthOp, const Bundle &cache,
                                        ValueRange) {
  return {cache.fromI32(cache.get(PartKind::MaxSeqLength))};
}

SmallVector<Value> lowerMaxContextLength(MaxContextLengthOp,
                                         const Bundle &cache, ValueRange) {
  return {cache.fromI32(cache.get(PartKind::MaxCacheLength))};
}

SmallVector<Value> lowerNumKVRows(NumKVRowsOp, const Bundle &cache,
                                  ValueRange) {
  return {cache.getNumRows()};
}

SmallVector<Value> lowerNumScaleRows(NumScaleRowsOp, const Bundle &cache,
                                     ValueRange) {
  return {cache.getScales().getNumRows()};
}

SmallVector<Value> lowerCacheLength(CacheLengthOp, const Bundle &cache,
                                    ValueRange operands) {
  Value length = memref::LoadOp::create(cache.builder, cache.loc,
                                        cache.getLengths(), operands[0]);
  return {cache.fromI32(length)};
}

SmallVector<Value> lowerPageId(PageIdOp, const Bundle &cache,
                               ValueRange operands) {
  return {cache.getPage(operands[0], operands[1])};
}

/// The row of `operands`: sequence, token, and perhaps its page.
Value getRowOf(const Bundle &cache, ValueRange operands) {
  Value known = operands.size() == 3 ? operands[2] : Value();
  Value page = cache.getPage(operands[0], operands[1], known);
  return cache.getRow(page, cache.getRowInPage(operands[1]));
}

SmallVector<Value> lowerRowIndex(RowIndexOp, const Bundle &cache,
                                 ValueRange operands) {
  return {getRowOf(cache, operands)};
}

SmallVector<Value> lowerScaleRowIndex(ScaleRowIndexOp, const Bundle &cache,
                                      ValueRange operands) {
  return {getRowOf(cache.getScales(), operands)};
}

/// The row in its page and the page of `operands`: sequence and token. A tensor
/// map of single scales starts at multiples of 16 bytes.
SmallVector<Value> getCoords(const Bundle &cache, ValueRange operands) {
  Value row = cache.getRowInPage(operands[1]);
  CacheTypeInterface type = cache.getCacheType();
  if (isa<ScalesType>(type)) {
    constexpr int64_t bits = 16 * 8;
    int64_t unit = bits / type.getElementType().getIntOrFloatBitWidth();
    row = cache.mul(cache.div(row, unit), unit);
  }
  return {cache.fromI32(row), cache.getPage(operands[0], operands[1])};
}

SmallVector<Value> lowerTMACoords(TMACoordsOp, const Bundle &cache,
                                  ValueRange operands) {
  return getCoords(cache, operands);
}

SmallVector<Value> lowerScaleTMACoords(ScaleTMACoordsOp, const Bundle &cache,
                                       ValueRange operands) {
  return getCoords(cache.getScales(), operands);
}

/// e < 0 ? e : (e div P) * S + e mod P
SmallVector<Value> lowerTMARow(TMARowOp op, const Bundle &cache,
                               ValueRange operands) {
  CacheTypeInterface type = op.getCache().getType();
  Value encoded = operands[0];
  if (!type.isPaged())
    return {encoded};
  Value pageSize = cache.getPageSize();
  Value row =
      cache.getRow(cache.div(encoded, pageSize), cache.rem(encoded, pageSize));
  Value negative =
      arith::CmpIOp::create(cache.builder, cache.loc, arith::CmpIPredicate::slt,
                            encoded, cache.index(0));
  return {arith::SelectOp::create(cache.builder, cache.loc, negative, encoded,
                                  row)};
}

SmallVector<Value> lowerColIndex(ColIndexOp op, const Bundle &cache,
                                 ValueRange operands) {
  CacheTypeInterface type = op.getCache().getType();
  if (std::optional<int64_t> stride = getColumnStride(type))
    return {cache.mul(operands[0], *stride)};
  return {
      cache.mul(cache.getHeadOffset(operands[0]), type.getLanesPerStored())};
}

SmallVector<Value> lowerExtent(ExtentOp op, const Bundle &cache,
                               ValueRange operands) {
  switch (op.getExtent()) {
  case Extent::Batch:
    return {cache.getIndex(PartKind::Batch)};
  case Extent::Layers:
    return {cache.getIndex(PartKind::NumLayers)};
  case Extent::Pages:
    return {cache.getIndex(PartKind::NumPages)};
  case Extent::Tokens:
    return {cache.getTokens(operands.empty() ? Value() : operands[0])};
  case Extent::PageSize:
    return {cache.getPageSize()};
  case Extent::PageStride:
    return {cache.get(PartKind::PageStride)};
  }
  llvm_unreachable("covered switch");
}

template <typename OpTy>
void addQuery(const TypeConverter &converter, RewritePatternSet &patterns,
              SmallVector<Value> (*lower)(OpTy, const Bundle &, ValueRange)) {
  patterns.add<LowerQuery<OpTy>>(converter, patterns.getContext(), lower);
}

} // namespace

void kvcache::populateQueryPatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  addQuery(converter, patterns, lowerEmptyCache);
  addQuery(converter, patterns, lowerMaxPromptLength);
  addQuery(converter, patterns, lowerMaxContextLength);
  addQuery(converter, patterns, lowerNumKVRows);
  addQuery(converter, patterns, lowerNumScaleRows);
  addQuery(converter, patterns, lowerCacheLength);
  addQuery(converter, patterns, lowerPageId);
  addQuery(converter, patterns, lowerRowIndex);
  addQuery(converter, patterns, lowerScaleRowIndex);
  addQuery(converter, patterns, lowerTMACoords);
  addQuery(converter, patterns, lowerScaleTMACoords);
  addQuery(converter, patterns, lowerTMARow);
  addQuery(converter, patterns, lowerColIndex);
  addQuery(converter, patterns, lowerExtent);
}
