//===- TiledCache.cpp - Tiles of the tokens of a cache --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TiledCache.h"
#include "TensorCores.h"
#include "kvcache/IR/CopyOps.h"
#include "kvcache/IR/PipeOps.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::kvcache;

/// Elements of 16 bits that a thread stores into a tile at once.
constexpr int64_t kUnit = 8;
TiledCache::TiledCache(const Frame &frame, Value cache, FloatType lane,
                       int64_t size, int64_t tokens, int64_t stages,
                       int64_t threads, int64_t loads, bool unscaled)
    : frame(frame), builder(frame.builder), loc(frame.loc), cache(cache),
      lane(lane), size(size), tokensOfTile(tokens), stages(stages),
      threads(threads), mostLoads(loads), unscaled(unscaled) {}

CacheTypeInterface TiledCache::getType() const {
  return cast<CacheTypeInterface>(cache.getType());
}

bool TiledCache::isCopied(CacheTypeInterface cache, FloatType lane) {
  return cache.getElementType() == lane && !cache.isQuantized() &&
         !cache.getLayout();
}

void TiledCache::allocate() {
  TileType type = TensorCores::getTile(lane, tokensOfTile, size);
  if (isCopied()) {
    pipe = PipeOp::create(
        builder, loc, PipeType::get(builder.getContext(), stages, {type}, 0));
    return;
  }
  auto allocateTile = [&](TileType type) {
    return AllocTileOp::create(builder, loc, type, IntegerAttr());
  };
  tile = allocateTile(type);
  if (unscaled)
    scales = allocateTile(TileType::get(builder.getContext(), 1, tokensOfTile,
                                        builder.getF32Type(), Swizzle::None));
}

void TiledCache::copy(Value use, Value tile, Value token,
                      const TiledTokens &tokens) const {
  if (!pipe)
    return;
  auto produce = ProduceOp::create(builder, loc, pipe, use);
  OpBuilder::InsertionGuard guard(builder);
  Type type = cast<PipeType>(pipe.getType()).getTiles()[0];
  Block *body = builder.createBlock(&produce.getBody(), {}, type, {loc});
  if (tokens.ids)
    AsyncGatherTileOp::create(builder, loc, cache, tokens.head, frame.index(0),
                              tokens.ids->getMemory(tile), body->getArgument(0),
                              /*descriptor=*/Value(), CopyKindAttr());
  else
    AsyncLoadTileOp::create(
        builder, loc, cache, tokens.batch, tokens.head, token, frame.index(0),
        frame.sub(tokens.all.to, token), body->getArgument(0),
        /*descriptor=*/Value(), builder.getI64IntegerAttr(tokens.alignment),
        CopyKindAttr(), /*multicast=*/false);
  YieldOp::create(builder, loc);
}

void TiledCache::fill(Value thread, Value tile, Value token,
                      const TiledTokens &tokens) const {
  if (pipe)
    return;
  Source source{tile, token, tokens};
  int64_t bits = getType().getElementType().getIntOrFloatBitWidth();
  int64_t width =
      getLanes(cache, size, std::min<int64_t>(2 * kUnit, 128 / bits));
  int64_t all = tokensOfTile * (size / width);
  int64_t loads = std::clamp<int64_t>(all / threads, 1, mostLoads);
  int64_t step = loads * threads;
  std::function<void()> storeScales;
  // Ids take the registers in which scales would wait.
  if (scales && tokens.ids)
    loadScales(thread, source)();
  else if (scales)
    storeScales = loadScales(thread, source);
  frame.loop(
      frame.index(0), frame.index(all), frame.index(step), [&](Value base) {
        SmallVector<Unit> loaded;
        for (int64_t i = 0; i < loads; ++i) {
          Value ofStep = frame.add(thread, frame.index(i * threads));
          loaded.push_back(loadUnit(source, width, frame.add(base, ofStep)));
        }
        for (const Unit &unit : loaded) {
          Value isInTile;
          if (all % step)
            isInTile = frame.below(unit.row, frame.index(tokensOfTile));
          runIfGiven(frame, isInTile, [&] { storeUnit(unit); });
        }
      });
  if (storeScales)
    storeScales();
}

std::pair<Place, Value> TiledCache::getPlace(const Source &source,
                                             Value row) const {
  const TiledTokens &tokens = source.tokens;
  if (!tokens.ids) {
    Value last = frame.sub(tokens.all.to, frame.index(1));
    Value token = frame.min(frame.add(source.first, row), last);
    return {{tokens.batch, token, Value()}, Value()};
  }
  // Some threads have rows behind the last.
  row = frame.min(row, frame.index(tokensOfTile - 1));
  Value id = tokens.ids->get(source.tile, row, 1);
  Value safe = frame.fromI32(frame.max(id, frame.i32(0)));
  return {getPlaceOfRow(frame, cache, safe), tokens.ids->isRow(id)};
}

/// Zeros unless the condition is null or holds.
static Value selectIfGiven(const Frame &frame, Value condition, Value value) {
  if (!condition)
    return value;
  Value zero = arith::ConstantOp::create(
      frame.builder, frame.loc, frame.builder.getZeroAttr(value.getType()));
  return arith::SelectOp::create(frame.builder, frame.loc, condition, value,
                                 zero);
}

TiledCache::Unit TiledCache::loadUnit(const Source &source, int64_t width,
                                      Value number) const {
  int64_t units = size / width;
  Value row = frame.div(number, units);
  Value d = frame.mul(frame.rem(number, units), width);
  auto [place, isRow] = getPlace(source, row);
  Value head = source.tokens.head;
  Value elements =
      unscaled ? loadUnscaled(frame, cache, place, head, d, width, lane)
               : loadElements(frame, cache, place, head, d, width, lane);
  return {row, d, selectIfGiven(frame, isRow, elements)};
}

void TiledCache::storeUnit(const Unit &unit) const {
  int64_t width = cast<VectorType>(unit.elements.getType()).getNumElements();
  for (int64_t i = 0; i < width; i += kUnit) {
    Value elements = unit.elements;
    if (width > kUnit)
      elements = vector::ExtractStridedSliceOp::create(
          builder, loc, elements, ArrayRef<int64_t>{i},
          ArrayRef<int64_t>{kUnit}, ArrayRef<int64_t>{1});
    TileStoreOp::create(builder, loc, elements, tile, unit.row,
                        frame.add(unit.d, frame.index(i)));
  }
}

std::function<void()> TiledCache::loadScales(Value thread,
                                             const Source &source) const {
  SmallVector<std::pair<Value, Value>> loaded;
  for (int64_t i = 0; i < tokensOfTile; i += threads) {
    Value row = frame.add(thread, frame.index(i));
    auto [place, isRow] = getPlace(source, row);
    Value scale = loadTokenScale(frame, cache, place, source.tokens.head);
    loaded.emplace_back(row, selectIfGiven(frame, isRow, scale));
  }
  return [this, loaded] {
    for (auto [row, scale] : loaded) {
      Value isInTile;
      if (tokensOfTile % threads)
        isInTile = frame.below(row, frame.index(tokensOfTile));
      runIfGiven(frame, isInTile, [&, row = row, scale = scale] {
        TileStoreOp::create(builder, loc, scale, scales, frame.index(0), row);
      });
    }
  };
}

SmallVector<Value>
TiledCache::use(Value number, size_t numResults,
                function_ref<SmallVector<Value>(Value)> body) const {
  if (!pipe)
    return body(tile);
  SmallVector<Type> types(numResults, builder.getF32Type());
  auto consume = ConsumeOp::create(builder, loc, types, pipe, number);
  OpBuilder::InsertionGuard guard(builder);
  Type type = cast<PipeType>(pipe.getType()).getTiles()[0];
  Block *block = builder.createBlock(&consume.getBody(), {}, type, {loc});
  YieldOp::create(builder, loc, body(block->getArgument(0)));
  return SmallVector<Value>(consume.getResults());
}

void TiledCache::scale(MutableArrayRef<Value> scores, Value column) const {
  DeviceMath f(frame);
  for (size_t i = 0; i < scores.size(); i += 4) {
    Value pair =
        TileLoadOp::create(builder, loc, f.vectorOf(2), scales, frame.index(0),
                           frame.add(column, frame.index(2 * i)));
    for (int64_t e = 0; e < 2; ++e) {
      Value scale = vector::ExtractOp::create(builder, loc, pair, e);
      for (int64_t r = 0; r < 2; ++r)
        scores[i + 2 * r + e] = f.mul(scores[i + 2 * r + e], scale);
    }
  }
}
