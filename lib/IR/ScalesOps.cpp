//===- ScalesOps.cpp - Scales of a quantized cache ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Returns the type of the view of the scales of a cache.
static ScalesType getScalesType(PagedCacheType cache) {
  return ScalesType::get(cache.getContext(), cache);
}

#define KVCACHE_DEFINE_SCALES(OpTy)                                            \
  KVCACHE_DEFINE_SCALE_PAGE(OpTy)                                              \
  bool OpTy::accessesElements() { return false; }

KVCACHE_DEFINE_INDICES(LoadScaleOp)
KVCACHE_DEFINE_SCALES(LoadScaleOp)
KVCACHE_DEFINE_INDICES(StoreScaleOp)
KVCACHE_DEFINE_SCALES(StoreScaleOp)
KVCACHE_DEFINE_INDICES(ScalesBlockTileOp)
KVCACHE_DEFINE_SCALES(ScalesBlockTileOp)
KVCACHE_DEFINE_SCALES(ScaleRowIndexOp)

#undef KVCACHE_DEFINE_SCALES

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// Returns the type of the operand, which must be a quantized cache. Otherwise
/// returns null and emits the diagnostic of the verifier.
template <typename OpTy>
static PagedCacheType getQuantized(Type type, std::optional<Location> loc) {
  auto cache = dyn_cast<PagedCacheType>(type);
  if (cache && cache.isQuantized())
    return cache;
  (void)emitOptionalError(
      loc, "'", OpTy::getOperationName(),
      "' op operand #0 must be view of a quantized cache, but got ", type);
  return {};
}

LogicalResult ScalesViewOp::inferReturnTypes(MLIRContext *,
                                             std::optional<Location> loc,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  PagedCacheType cache =
      getQuantized<ScalesViewOp>(adaptor.getCache().getType(), loc);
  if (!cache)
    return failure();
  types.push_back(getScalesType(cache));
  return success();
}

LogicalResult ScalesBaseOp::inferReturnTypes(MLIRContext *context,
                                             std::optional<Location> loc,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  PagedCacheType cache =
      getQuantized<ScalesBaseOp>(adaptor.getCache().getType(), loc);
  if (!cache)
    return failure();
  int64_t dynamic = ShapedType::kDynamic;
  CacheTypeInterface scales = getScalesType(cache);
  types.push_back(MemRefType::get(
      {dynamic, cache.getPageSize(), cache.getNumHeads(), cache.getNumGroups()},
      cache.getScale(),
      StridedLayoutAttr::get(
          context, dynamic,
          {dynamic, scales.getTokenStride(), scales.getHeadStride(), 1})));
  return success();
}

//===----------------------------------------------------------------------===//
// ScalesBlockTileOp
//===----------------------------------------------------------------------===//

int64_t ScalesBlockTileOp::getAccessedWidth() {
  return getType().getDimSize(1);
}

int64_t ScalesBlockTileOp::getAccessedTokens() {
  return getType().getDimSize(0);
}

Speculation::Speculatability ScalesBlockTileOp::getSpeculatability() {
  return speculateIf(getScalePage() ||
                     areEntriesInRange(getCache(), getBatch(), getToken(),
                                       getAccessedTokens(),
                                       /*ofScales=*/true));
}

LogicalResult ScalesBlockTileOp::verify() {
  return verifyTile(*this, getType(), getScalesType(getCache().getType()));
}

//===----------------------------------------------------------------------===//
// LoadScaleOp and StoreScaleOp
//===----------------------------------------------------------------------===//

/// Checks (C1) and (C2) of `load_scale` and `store_scale`.
static LogicalResult verifyScale(Operation *op, Type scale,
                                 PagedCacheType cache) {
  if (getLaneType(scale) != cache.getScale())
    return op->emitOpError("expects 'scale' to have the cache's scale type (")
           << cache.getScale() << "), got " << getLaneType(scale);
  return verifyWidth(op, "scale", scale, getScalesType(cache));
}

int64_t LoadScaleOp::getAccessedWidth() { return getNumLanes(getType()); }

LogicalResult LoadScaleOp::verify() {
  return verifyScale(*this, getType(), getCache().getType());
}

int64_t StoreScaleOp::getAccessedWidth() {
  return getNumLanes(getScale().getType());
}

LogicalResult StoreScaleOp::verify() {
  return verifyScale(*this, getScale().getType(), getCache().getType());
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

TypedValue<CacheTypeInterface> ScaleRowIndexOp::getAccessedCache() {
  return asCache(getCache());
}
Value ScaleRowIndexOp::getAccessedBatch() { return getBatch(); }
Value ScaleRowIndexOp::getAccessedToken() { return getToken(); }

Speculation::Speculatability ScaleRowIndexOp::getSpeculatability() {
  return speculateIf(getScalePage() ||
                     areEntriesInRange(getCache(), getBatch(), getToken(), 1,
                                       /*ofScales=*/true));
}

void ScaleRowIndexOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                        SetIntRangeFn setResultRange) {
  setResultRange(getRow(), getRowRange());
}

TypedValue<CacheTypeInterface> ScaleTMACoordsOp::getAccessedCache() {
  return asCache(getCache());
}
Value ScaleTMACoordsOp::getAccessedBatch() { return getBatch(); }
Value ScaleTMACoordsOp::getAccessedToken() { return getToken(); }
bool ScaleTMACoordsOp::accessesScales() { return true; }
bool ScaleTMACoordsOp::accessesElements() { return false; }

Speculation::Speculatability ScaleTMACoordsOp::getSpeculatability() {
  return speculateIf(areEntriesInRange(getCache(), getBatch(), getToken(), 1,
                                       /*ofScales=*/true));
}

void ScaleTMACoordsOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                         SetIntRangeFn setResultRange) {
  setResultRange(getRow(), getRowInPageRange(getCache().getType()));
  setResultRange(getPage(), getEntryRange());
}
