//===- ScalesOps.cpp - Scales of a quantized cache ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"

#include "kvcache/IR/ScalesOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Returns the type of the view of the scales of a cache, or of scales itself.
static ScalesType getScalesType(CacheTypeInterface cache) {
  if (auto scales = dyn_cast<ScalesType>(cache))
    return scales;
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

/// Emits the diagnostic of the verifier for an operand of another type.
template <typename OpTy>
static LogicalResult expectOperand(std::optional<Location> loc,
                                   StringRef expected, Type type) {
  return emitOptionalError(loc, "'", OpTy::getOperationName(),
                           "' op operand #0 must be ", expected, ", but got ",
                           type);
}

LogicalResult ScalesViewOp::inferReturnTypes(MLIRContext *,
                                             std::optional<Location> loc,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  Type cache = adaptor.getCache().getType();
  if (!isa<PagedCacheType, ContinuousCacheType>(cache))
    return expectOperand<ScalesViewOp>(
        loc, "view of a paged or continuous cache, not of scales", cache);
  types.push_back(getScalesType(cast<CacheTypeInterface>(cache)));
  return success();
}

LogicalResult ScalesBaseOp::inferReturnTypes(MLIRContext *context,
                                             std::optional<Location> loc,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  Type type = adaptor.getCache().getType();
  CacheTypeInterface scales;
  if (isa<PagedCacheType, ScalesType>(type))
    scales = getScalesType(cast<CacheTypeInterface>(type));
  if (!scales || !scales.hasMemory())
    return expectOperand<ScalesBaseOp>(
        loc, "view of a quantized cache or of its scales", type);
  int64_t dynamic = ShapedType::kDynamic;
  types.push_back(
      MemRefType::get({dynamic, scales.getRowsPerPage(), scales.getNumHeads(),
                       scales.getStoredHeadSize()},
                      scales.getElementType(),
                      StridedLayoutAttr::get(context, dynamic,
                                             {dynamic, scales.getTokenStride(),
                                              scales.getHeadStride(), 1})));
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
                                       /*isScales=*/true));
}

LogicalResult ScalesBlockTileOp::verify() {
  return verifyTile(*this, getType(), getScalesType(getCache().getType()));
}

//===----------------------------------------------------------------------===//
// LoadScaleOp and StoreScaleOp
//===----------------------------------------------------------------------===//

/// Checks (C1), (C2) and (C4) of `load_scale` and `store_scale`.
static LogicalResult verifyScale(Operation *op, Type scale, bool zeroPoint,
                                 CacheTypeInterface cache) {
  CacheTypeInterface scales = getScalesType(cache);
  if (zeroPoint && scales.getNumbersPerLane() == 1)
    return op->emitOpError("expects 'zero_point' only for a cache with zero "
                           "points, got ")
           << cache;
  if (getLaneType(scale) != scales.getElementType())
    return op->emitOpError("expects 'scale' to have the cache's scale type (")
           << scales.getElementType() << "), got " << getLaneType(scale);
  return verifyWidth(op, "scale", scale, scales);
}

int64_t LoadScaleOp::getAccessedWidth() { return getNumLanes(getType()); }

LogicalResult LoadScaleOp::verify() {
  return verifyScale(*this, getType(), getZeroPoint(), getCache().getType());
}

int64_t StoreScaleOp::getAccessedWidth() {
  return getNumLanes(getScale().getType());
}

LogicalResult StoreScaleOp::verify() {
  return verifyScale(*this, getScale().getType(), getZeroPoint(),
                     getCache().getType());
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
                                       /*isScales=*/true));
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
                                       /*isScales=*/true));
}

void ScaleTMACoordsOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                         SetIntRangeFn setResultRange) {
  setResultRange(getRow(), getRowInPageRange(getCache().getType()));
  setResultRange(getPage(), getEntryRange());
}
