//===- TiledCache.cpp - Tiles of the tokens of a cache --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TiledCache.h"

#include "../PlanAttention/TileStaging.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

TiledCache::TiledCache(const Frame &frame, AttentionOp op, Value cache,
                       int64_t size, const AttentionConfig &config)
    : frame(frame), shape(op, cache, size, config),
      copied(areTilesCopied(op, cache) || dequantizesInRegisters(config)),
      raw(*config.rawStages && canStageRaw(op, cache)),
      pipe(frame, shape, raw ? *config.rawStages : *config.stages,
           countProducerWarps(config)),
      converter(frame, shape, config.convertLoads.value_or(0), raw) {}

int64_t TiledCache::countAhead() const {
  if (raw)
    return pipe.countStages();
  return copied ? pipe.countStages() - 1 : 0;
}

void TiledCache::allocate() {
  if (copied)
    return pipe.allocate(Type(shape.multipliesRaw
                                  ? shape.getCopiedRawTile(frame.target)
                                  : shape.getTile()));
  if (raw)
    pipe.allocate(converter.getRawTiles());
  if (converter.hasGroupScales())
    converter.allocateGroupScales();
  converter.allocate();
}

void TiledCache::fill(Value thread, Value use, const TileTokens &tokens) const {
  if (copied)
    return;
  std::function<void()> storeScales;
  if (shape.unscaled)
    storeScales = converter.loadScales(thread, tokens);
  // Ids take the registers in which scales would wait.
  if (storeScales && tokens.tokens.ids && !raw) {
    storeScales();
    storeScales = nullptr;
  }
  if (raw) {
    pipe.use(use, {}, [&](ValueRange rawTiles) {
      clearUnseen(thread, rawTiles, tokens.first, tokens.tokens);
      converter.fillFromRaw(thread, rawTiles, tokens.tile);
      return SmallVector<Value>();
    });
  } else {
    converter.fillFromCaches(thread, tokens);
  }
  if (storeScales)
    storeScales();
}

void TiledCache::clearUnseen(Value thread, ValueRange copiedTiles,
                             Value firstToken, const TiledTokens &tokens,
                             std::optional<int64_t> barrier) const {
  if (!tokens.begin || !hasCopies())
    return;
  pipe.clearUnseen(thread, shape.threads, copiedTiles, firstToken, tokens, [&] {
    if (barrier)
      NVVM::BarrierOp::create(frame.builder, frame.loc, TypeRange(),
                              frame.i32(*barrier), frame.i32(shape.threads),
                              /*reductionOp=*/{},
                              /*reductionPredicate=*/Value());
    else
      gpu::BarrierOp::create(frame.builder, frame.loc);
  });
}

void TiledCache::clearUnseenInWarp(Value lane, Value copiedTile,
                                   Value firstToken,
                                   const TiledTokens &tokens) const {
  if (tokens.begin)
    pipe.clearUnseen(lane, kWarp, copiedTile, firstToken, tokens, [&] {
      NVVM::SyncWarpOp::create(frame.builder, frame.loc, frame.i32(-1));
    });
}

std::function<void()>
TiledCache::loadGroupScales(Value thread, const TileTokens &tokens) const {
  return converter.getGroupScales().load(
      thread, tokens.tokens.head, tokens.tile,
      [&](Value row) { return tokens.getPlace(frame, shape, row); });
}

SmallVector<Value>
TiledCache::use(Value number, TypeRange types,
                function_ref<SmallVector<Value>(Value)> body) const {
  if (Value tile = converter.getTile())
    return body(tile);
  return pipe.use(number, types,
                  [&](ValueRange tiles) { return body(tiles[0]); });
}
