//===- KeyTiles.cpp - Tiles of index keys for tensor cores ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KeyTiles.h"

#include "../Builders/Heads.h"
#include "../TileAttention/TileShape.h"
#include "kvcache/IR/Formats.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The bytes of a row of elements up to which a warp keeps its keys in
/// registers, and those of a tile.
constexpr int64_t kMostElements = 128, kTileBytes = 16384;
/// The keys of a tile of 8-bit elements, at most.
constexpr int64_t kMostKeys = 128;
/// The queries of a block, of all heads.
constexpr int64_t kQueries = 128;

/// Whether keys are MXFP4.
static bool isMXFP4(CacheTypeInterface cache) {
  return isa<Float4E2M1FNType>(cache.getElementType()) &&
         cache.getGranularity() == IndexScoresOp::kElements;
}

/// The elements of products of keys and queries, or null: both are exact in it.
static FloatType getLane(Type key, Type query) {
  Type f16 = Float16Type::get(key.getContext());
  bool isByte = hasUse(key, FormatUse::FP8) || isa<Float4E2M1FNType>(key);
  if (!isByte && !key.isF16() && !key.isBF16())
    return {};
  Type lane = isByte ? f16 : key;
  bool isPair = query.isInteger();
  bool isExact = query == lane || hasUse(query, FormatUse::FP8) || isPair;
  return isExact ? cast<FloatType>(lane) : FloatType();
}

std::optional<KeyTiles> KeyTiles::choose(IndexScoresOp op) {
  auto cache = cast<CacheTypeInterface>(op.getCache().getType());
  auto queries = cast<MemRefType>(op.getQ().getType());
  Type element = cache.getElementType();
  FloatType lane = getLane(element, queries.getElementType());
  int64_t heads = queries.getDimSize(1), size = cache.getHeadSize();
  bool hasConvertedKeys = isMXFP4(cache);
  bool hasOtherScales =
      cache.isQuantized() && !hasTokenScales(cache) && !hasConvertedKeys;
  if (!lane || hasOtherScales || cache.getLayout() || !op.getSumHeads() ||
      op.getBlockSize() > 1 || heads % kHeads != 0 || size > kMostElements)
    return std::nullopt;
  int64_t groups = std::max<int64_t>(op.countQScales(), 1);
  if (hasConvertedKeys) {
    TileType type = getMatrixTile(lane, kMostKeys / 2, size);
    return KeyTiles{type,
                    lane,
                    heads,
                    size,
                    size / IndexScoresOp::kElements,
                    hasConvertedKeys};
  }
  constexpr int64_t bytesOfLane = 2;
  int64_t bytes = size * element.getIntOrFloatBitWidth() / 8;
  int64_t keys = bytes == bytesOfLane * size ? kMostKeys / 2 : kMostKeys;
  auto type = TileType::get(op.getContext(), keys, size, element,
                            getMatrixSwizzle(bytes / bytesOfLane));
  return KeyTiles{type, lane, heads, size, groups, hasConvertedKeys};
}

int64_t KeyTiles::countRows() const {
  return std::max<int64_t>(kQueries / heads, 1);
}
