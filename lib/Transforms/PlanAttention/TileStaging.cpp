//===- TileStaging.cpp - How elements of caches become tiles --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileStaging.h"

#include "../Builders/Heads.h"
#include "kvcache/IR/Formats.h"

using namespace mlir;
using namespace mlir::kvcache;

static CacheTypeInterface getCacheType(Value cache) {
  return cast<CacheTypeInterface>(cache.getType());
}

bool kvcache::areTilesCopied(AttentionOp op, Value cache) {
  CacheTypeInterface type = getCacheType(cache);
  return type.getElementType() == op.getTileElement(cache) &&
         !type.isQuantized() && !type.getLayout() && !op.getRopeCache();
}

bool kvcache::isAnyCopied(AttentionOp op) {
  return areTilesCopied(op, op.getKeyCache()) ||
         areTilesCopied(op, op.getValues());
}

bool kvcache::areAllCopied(AttentionOp op) {
  return areTilesCopied(op, op.getKeyCache()) &&
         areTilesCopied(op, op.getValues());
}

/// Whether threads can convert the elements of rows in two caches from raw
/// tiles: those of a granule have one scale.
static bool canStagePair(AttentionOp op) {
  CacheTypeInterface type = getCacheType(op.getKeyCache());
  int64_t size = op.getKeySize() - op.getRopeSize();
  if (!type.isQuantized())
    return true;
  return type.getElementType().getIntOrFloatBitWidth() == 8 &&
         (!type.hasZeroPoints() && type.getTokenGranularity() == 1 &&
          multipliesInF32(type) && type.getGranularity() % kGranule == 0 &&
          size % type.getGranularity() == 0);
}

bool kvcache::canStageRaw(AttentionOp op, Value cache) {
  if (op.getRopeCache())
    return canStagePair(op);
  CacheTypeInterface type = getCacheType(cache);
  return type.getElementType().getIntOrFloatBitWidth() == 8 &&
         !type.getLayout() &&
         (!type.isQuantized() || areTilesUnscaled(op, cache));
}

bool kvcache::areTilesUnscaled(AttentionOp op, Value cache) {
  // Scales may make probs of f16 infinite.
  bool hasValues = !op.getValueCache() || cache == op.getValueCache();
  return !op.getRopeCache() && hasTokenScales(getCacheType(cache)) &&
         !(hasValues && op.getTileElement(cache).isF16());
}

bool kvcache::isPacked(Value cache) {
  return getCacheType(cache).getElementType().getIntOrFloatBitWidth() == 4;
}

// Scales of 8 bits with a mantissa leave products exact in f16, which powers of
// two may exceed.
bool kvcache::areElementsScaled(Value cache) {
  return isPacked(cache) &&
         isa_and_present<Float8E4M3FNType>(getCacheType(cache).getScale());
}

int64_t kvcache::countProductGroups(Value cache, int64_t size) {
  return areElementsScaled(cache) ? 0 : countScaleGroups(cache, size);
}

/// Whether products with so many elements of a row have whole groups. Those of
/// many groups would take more registers than there are. Two warps may share
/// the accumulator of a larger row.
static bool hasWholeGroups(Value cache, int64_t size) {
  constexpr int64_t small = 128;
  int64_t productSize = isPacked(cache) ? 32 : 16,
          mostGroups = size <= small ? 4 : 1;
  int64_t groups = countScaleGroups(cache, size);
  int64_t granularity = getCacheType(cache).getGranularity();
  return groups <= 1 || (granularity % productSize == 0 &&
                         size % granularity == 0 && groups <= mostGroups);
}

bool kvcache::canDequantizeInRegisters(Value cache, int64_t size) {
  constexpr int64_t small = 128;
  CacheTypeInterface type = getCacheType(cache);
  if (type.getLayout() || type.getTokenGranularity() != 1)
    return false;
  // The loads of scales of NVFP4 are of 2, 4 or 8 pairs of groups.
  if (areElementsScaled(cache))
    return size == 64 || size == 128 || size == 256;
  Type element = type.getElementType();
  bool isInteger = element.isSignlessInteger(8) || element.isSignlessInteger(4);
  int64_t loadSize = size <= small ? 32 : 64;
  return (isInteger || isPacked(cache) || hasUse(element, FormatUse::FP8)) &&
         (type.hasZeroPoints() || multipliesInF32(type)) &&
         size % loadSize == 0 && hasWholeGroups(cache, size);
}
