//===- TileShape.cpp - The tiles of a cache, and their tokens -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileShape.h"

#include "../PlanAttention/TileStaging.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::kvcache;

Swizzle kvcache::getMatrixSwizzle(int64_t columns) {
  // Spans of 64, 32 and 16 elements.
  if (columns % 64 == 0)
    return Swizzle::Span128;
  return columns % 32 == 0 ? Swizzle::Span64 : Swizzle::Span32;
}

TileType kvcache::getMatrixTile(Type lane, int64_t rows, int64_t columns) {
  return TileType::get(lane.getContext(), rows, columns, lane,
                       getMatrixSwizzle(columns));
}

TileShape::TileShape(AttentionOp op, Value cache, int64_t size,
                     const AttentionConfig &config)
    : cache(cache), rope(size == op.getKeySize() ? op.getRopeCache() : Value()),
      lane(dequantizesInRegisters(config)
               ? FloatType(Float16Type::get(op.getContext()))
               : op.getTileElement(cache)),
      size(size), tokens(*config.keys), threads(countThreads(config)),
      unscaled(areTilesUnscaled(op, cache) && !dequantizesInRegisters(config)),
      gathered(op.getRows()), multipliesRaw(dequantizesInRegisters(config)),
      hint(getHint(op.getContext(), config)) {}

SmallVector<TileField> TileShape::getFields() const {
  if (!rope)
    return {{cache, 0, size}};
  int64_t ropeSize = cast<CacheTypeInterface>(rope.getType()).getHeadSize();
  return {{cache, 0, size - ropeSize}, {rope, size - ropeSize, ropeSize}};
}

TileType TileShape::getRawTile(Swizzle swizzle) const {
  auto type = cast<CacheTypeInterface>(cache.getType());
  int64_t packed = type.getLanesPerStored();
  return TileType::get(
      cache.getContext(), tokens, size / packed,
      packed > 1 ? type.getStorageType() : type.getElementType(), swizzle);
}

Swizzle TileShape::getRawSwizzle() const {
  constexpr int64_t bitsOfLane = 16;
  int64_t bits = cast<CacheTypeInterface>(cache.getType())
                     .getElementType()
                     .getIntOrFloatBitWidth();
  return getMatrixSwizzle(size * bits / bitsOfLane);
}

// Without a swizzle, a box or the copy of a row by id has whole rows. Threads
// that copy rows of tokens take fewer instructions with one.
TileType TileShape::getCopiedRawTile(const Target &target) const {
  constexpr int64_t widest = 256;
  bool hasBoxes = target.has(Feature::TMA);
  bool isPlain = !multipliesRaw && (size <= widest || gathered || hasBoxes);
  return getRawTile(isPlain ? Swizzle::None : getRawSwizzle());
}

std::pair<Place, Value> TileTokens::getPlace(const Frame &frame,
                                             const TileShape &shape,
                                             Value row) const {
  if (!tokens.ids) {
    Value last = frame.sub(tokens.all.to, frame.index(1));
    Value token = frame.min(frame.add(first, row), last);
    if (tokens.begin)
      token = frame.max(token, tokens.begin);
    return {{tokens.batch, token, Value()}, Value()};
  }
  // Some threads have rows after the last.
  row = frame.min(row, frame.index(shape.tokens - 1));
  Value id = tokens.ids->get(tile, row, 1);
  Value safe = frame.fromI32(frame.max(id, frame.i32(0)));
  return {getPlaceOfRow(frame, shape.cache, safe), tokens.ids->isRow(id)};
}
