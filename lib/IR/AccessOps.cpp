//===- AccessOps.cpp - Loads, stores and tiles of a cache -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"

#include "kvcache/IR/AccessOps.h"
#include "kvcache/IR/Formats.h"

using namespace mlir;
using namespace mlir::kvcache;

KVCACHE_DEFINE_INDICES(LoadOp)
KVCACHE_DEFINE_PAGE(LoadOp)
KVCACHE_DEFINE_INDICES(StoreOp)
KVCACHE_DEFINE_PAGE(StoreOp)
KVCACHE_DEFINE_INDICES(BlockTileOp)
KVCACHE_DEFINE_PAGE(BlockTileOp)

//===----------------------------------------------------------------------===//
// LoadOp
//===----------------------------------------------------------------------===//

int64_t LoadOp::getAccessedWidth() { return getNumLanes(getType()); }

bool LoadOp::accessesScales() { return getCache().getType().isQuantized(); }

std::optional<MutableOperandRange> LoadOp::getScalePageOperand() {
  if (!accessesScales())
    return std::nullopt;
  return getScalePageMutable();
}

LogicalResult LoadOp::verify() {
  CacheTypeInterface cache = getCache().getType();
  Type lane = getLaneType(getType());
  // (C1)
  bool isWide = hasUse(lane, FormatUse::Wide);
  bool dequantizes = cache.isQuantized() || getTensorScale();
  if (dequantizes && !isWide)
    return emitOpError("expects 'result' to be dequantized to ")
           << listFormats(FormatUse::Wide) << ", got " << lane;
  bool converts =
      isWide || (hasUse(lane, FormatUse::FP8) && !cache.needsStaticScale());
  if (!cache.isQuantized() && lane != cache.getElementType() &&
      !(converts && cache.convertsElements()))
    return emitOpError("expects 'result' to have the cache's element type (")
           << cache.getElementType() << ")"
           << (!cache.convertsElements() ? ""
               : cache.needsStaticScale()
                   ? ", or " + listFormats(FormatUse::Wide)
                   : ", or " + listFormats(FormatUse::Wide | FormatUse::FP8))
           << ", got " << lane;
  // (C2)
  if (failed(verifyWidth(*this, "result", getType(), cache)))
    return failure();
  // (C3)
  if (getScalePage() && !cache.isQuantized())
    return emitOpError("expects 'scale_page' only for a quantized cache, got ")
           << cache;
  return verifyTensorScale(*this, getTensorScale(), cache);
}

//===----------------------------------------------------------------------===//
// StoreOp
//===----------------------------------------------------------------------===//

int64_t StoreOp::getAccessedWidth() {
  return getNumLanes(getValue().getType());
}

LogicalResult StoreOp::verify() {
  CacheTypeInterface cache = getCache().getType();
  // (C1)
  Type lane = getLaneType(getValue().getType());
  if (lane != cache.getElementType())
    return emitOpError("expects 'value' to have the cache's element type (")
           << cache.getElementType() << "), got " << lane;
  // (C2)
  return verifyWidth(*this, "value", getValue().getType(), cache);
}

//===----------------------------------------------------------------------===//
// BlockTileOp
//===----------------------------------------------------------------------===//

int64_t BlockTileOp::getAccessedWidth() {
  CacheTypeInterface cache = getCache().getType();
  return getType().getDimSize(1) * cache.getLanesPerStored();
}

int64_t BlockTileOp::getAccessedTokens() { return getType().getDimSize(0); }

Speculation::Speculatability BlockTileOp::getSpeculatability() {
  return speculateIf(getPage() ||
                     areEntriesInRange(getCache(), getBatch(), getToken(),
                                       getAccessedTokens()));
}

LogicalResult BlockTileOp::verify() {
  return verifyTile(*this, getType(), getCache().getType());
}
