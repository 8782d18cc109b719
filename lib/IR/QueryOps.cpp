//===- QueryOps.cpp - Queries of a cache ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"

#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/QueryOps.h"
#include "kvcache/IR/ScalesOps.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Integer ranges
//===----------------------------------------------------------------------===//

void MaxPromptLengthOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                          SetIntRangeFn setResultRange) {
  setResultRange(getResult(), getEntryRange());
}

void MaxContextLengthOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                           SetIntRangeFn setResultRange) {
  setResultRange(getResult(), getEntryRange());
}

void CacheLengthOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                      SetIntRangeFn setResultRange) {
  setResultRange(getResult(), getEntryRange());
}

void PageIdOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                 SetIntRangeFn setResultRange) {
  setResultRange(getPage(), getEntryRange());
}

void RowIndexOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                   SetIntRangeFn setResultRange) {
  setResultRange(getRow(), getRowRange());
}

void TMACoordsOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                    SetIntRangeFn setResultRange) {
  setResultRange(getRow(), getRowInPageRange(getCache().getType()));
  setResultRange(getPage(), getEntryRange());
}

void ColIndexOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                   SetIntRangeFn setResultRange) {
  CacheTypeInterface cache = getCache().getType();
  std::optional<int64_t> stride = getColumnStride(cache);
  setResultRange(getColumn(),
                 stride ? getRangeUpTo((cache.getNumHeads() - 1) * *stride)
                        : getRowRange());
}

void ExtentOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                 SetIntRangeFn setResultRange) {
  // A row of the table holds up to 2^32 entries of P tokens each. Strides may
  // be those of other layers, and negative where there is but one page.
  if (getExtent() == Extent::PageStride)
    return;
  setResultRange(getResult(), getExtent() == Extent::Tokens ? getRowRange()
                                                            : getEntryRange());
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

TypedValue<CacheTypeInterface> CacheLengthOp::getAccessedCache() {
  return getCache();
}
Value CacheLengthOp::getAccessedBatch() { return getBatch(); }
Speculation::Speculatability CacheLengthOp::getSpeculatability() {
  return speculateIf(isLengthInRange(getCache(), getBatch()));
}

TypedValue<CacheTypeInterface> PageIdOp::getAccessedCache() {
  return getCache();
}
Value PageIdOp::getAccessedBatch() { return getBatch(); }
Value PageIdOp::getAccessedToken() { return getToken(); }
Speculation::Speculatability PageIdOp::getSpeculatability() {
  return speculateIf(areEntriesInRange(getCache(), getBatch(), getToken(), 1));
}

TypedValue<CacheTypeInterface> RowIndexOp::getAccessedCache() {
  return getCache();
}
Value RowIndexOp::getAccessedBatch() { return getBatch(); }
Value RowIndexOp::getAccessedToken() { return getToken(); }
std::optional<MutableOperandRange> RowIndexOp::getPageOperand() {
  return getPageMutable();
}
Speculation::Speculatability RowIndexOp::getSpeculatability() {
  return speculateIf(getPage() ||
                     areEntriesInRange(getCache(), getBatch(), getToken(), 1));
}

TypedValue<CacheTypeInterface> TMACoordsOp::getAccessedCache() {
  return getCache();
}
Value TMACoordsOp::getAccessedBatch() { return getBatch(); }
Value TMACoordsOp::getAccessedToken() { return getToken(); }
Speculation::Speculatability TMACoordsOp::getSpeculatability() {
  return speculateIf(areEntriesInRange(getCache(), getBatch(), getToken(), 1));
}

//===----------------------------------------------------------------------===//
// Folders and canonicalizations
//===----------------------------------------------------------------------===//

OpFoldResult TMARowOp::fold(FoldAdaptor adaptor) {
  if (!getCache().getType().isPaged())
    return getEncoded();
  auto encoded = dyn_cast_if_present<IntegerAttr>(adaptor.getEncoded());
  if (encoded && encoded.getInt() < 0)
    return getEncoded();
  return {};
}

OpFoldResult ColIndexOp::fold(FoldAdaptor adaptor) {
  CacheTypeInterface cache = getCache().getType();
  auto head = dyn_cast_if_present<IntegerAttr>(adaptor.getHead());
  std::optional<int64_t> stride = getColumnStride(cache);
  if (!head || !stride || head.getInt() < 0 ||
      head.getInt() >= cache.getNumHeads())
    return {};
  return IntegerAttr::get(getType(), head.getInt() * *stride);
}

namespace {

/// Replaces a query of a view by the query of its collection.
template <typename OpTy> struct FactOfView : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    auto view = op.getCache().template getDefiningOp<LayerViewOpInterface>();
    if (!view)
      return rewriter.notifyMatchFailure(op, "no view op defines the operand");
    rewriter.replaceOpWithNewOp<OpTy>(op, view.getCollection());
    return success();
  }
};

/// Replaces the query of a view of scales by the query of its cache.
struct FactOfScales : OpRewritePattern<MaxContextLengthOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MaxContextLengthOp op,
                                PatternRewriter &rewriter) const override {
    auto view = op.getCache().getDefiningOp<ScalesViewOp>();
    if (!view)
      return rewriter.notifyMatchFailure(
          op, "no 'scales_view' defines the operand");
    rewriter.replaceOpWithNewOp<MaxContextLengthOp>(op, view.getCache());
    return success();
  }
};

/// Returns the maximum that `op` queries, or null if no op that bundles it
/// defines its operand.
template <typename OpTy> Value getMaxLength(OpTy op) {
  auto bundle = op.getCache().template getDefiningOp<BundleOpInterface>();
  if (!bundle)
    return {};
  return std::is_same_v<OpTy, MaxPromptLengthOp> ? bundle.getMaxSeqLength()
                                                 : bundle.getMaxCacheLength();
}

template <typename OpTy> struct MaxOfCollection : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    Value max = getMaxLength(op);
    if (!max)
      return rewriter.notifyMatchFailure(
          op, "no op that bundles a cache defines the operand");
    if constexpr (std::is_same_v<OpTy, EmptyCacheOp>) {
      Value zero = arith::ConstantIntOp::create(rewriter, op.getLoc(), 0, 32);
      rewriter.replaceOpWithNewOp<arith::CmpIOp>(op, arith::CmpIPredicate::eq,
                                                 max, zero);
    } else {
      rewriter.replaceOpWithNewOp<arith::IndexCastUIOp>(op, op.getType(), max);
    }
    return success();
  }
};

template <typename OpTy> void addFactPatterns(RewritePatternSet &patterns) {
  patterns.add<FactOfView<OpTy>, MaxOfCollection<OpTy>>(patterns.getContext());
}

} // namespace

void EmptyCacheOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                               MLIRContext *) {
  addFactPatterns<EmptyCacheOp>(patterns);
}

void MaxPromptLengthOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                    MLIRContext *) {
  addFactPatterns<MaxPromptLengthOp>(patterns);
}

void MaxContextLengthOp::getCanonicalizationPatterns(
    RewritePatternSet &patterns, MLIRContext *) {
  addFactPatterns<MaxContextLengthOp>(patterns);
  patterns.add<FactOfScales>(patterns.getContext());
}

//===----------------------------------------------------------------------===//
// ExtentOp
//===----------------------------------------------------------------------===//

OpFoldResult ExtentOp::fold(FoldAdaptor) {
  CacheTypeInterface cache = getCache().getType();
  if (getExtent() != Extent::PageSize || !cache.hasStaticPageSize())
    return {};
  return IntegerAttr::get(getType(), cache.getPageSize());
}

LogicalResult ExtentOp::verify() {
  // (C1)
  bool collection = getCache().getType().isCollection();
  if (getExtent() == Extent::Layers && !collection)
    return emitOpError("expects 'cache' to be a collection for the extent "
                       "'layers', got a view");
  bool needsView = llvm::is_contained(
      {Extent::Pages, Extent::Tokens, Extent::PageSize, Extent::PageStride},
      getExtent());
  if (needsView && collection)
    return emitOpError("expects 'cache' to be a view for the extent '")
           << stringifyExtent(getExtent()) << "', got a collection";
  // (C2)
  if (getBatch() && getExtent() != Extent::Tokens)
    return emitOpError("expects a sequence only for the extent 'tokens', got '")
           << stringifyExtent(getExtent()) << "'";
  // (C3)
  CacheTypeInterface type = getCache().getType();
  bool isOfCache = getExtent() == Extent::Batch ||
                   (getExtent() == Extent::PageSize && type.isPaged());
  if (!type.hasMemory() && !isOfCache)
    return emitOpError("expects existing scales for the extent '")
           << stringifyExtent(getExtent()) << "', got " << type;
  return success();
}
