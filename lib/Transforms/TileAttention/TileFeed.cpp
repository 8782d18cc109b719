//===- TileFeed.cpp - Tiles of keys and values in time --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileFeed.h"

#include "../PlanAttention/ThreadRegisters.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

TileFeed::TileFeed(TileRows &block, const FragmentBuilder &b,
                   const WorkItems &items, bool hasShared)
    : block(block), items(items), frame(block.getFrame()), b(b),
      keys(frame, block.getOp(), block.getOp().getKeyCache(),
           block.getSizes().keySize, block.getConfig()),
      values(frame, block.getOp(), block.getOp().getValues(),
             block.getSizes().valueSize, block.getConfig()),
      hasShared(hasShared) {}

SmallVector<const TiledCache *> TileFeed::getSides() const {
  if (areLatent())
    return {&keys};
  return {&keys, &values};
}

bool TileFeed::areCopied() const {
  return llvm::all_of(getSides(),
                      [](const auto *side) { return side->isCopied(); });
}

bool TileFeed::hasCopies() const {
  return llvm::any_of(getSides(),
                      [](const auto *side) { return side->hasCopies(); });
}

void TileFeed::allocate() {
  keys.allocate();
  if (!areLatent())
    values.allocate();
  ThreadRegisters registers =
      chooseRegisters(block.getOp(), block.getConfig(), frame.target);
  if (registers.consumer && keys.getPipe())
    keys.getPipe().getDefiningOp<PipeOp>().setConsumerRegisters(
        registers.consumer);
  if (block.ids)
    block.ids->allocate();
  if (block.list)
    block.list->allocate();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void TileFeed::produce(Value tile, IsWanted isWanted) const {
  SmallVector<const TiledCache *> sides = getSides();
  llvm::erase_if(sides, [&](const auto *side) { return !isWanted(*side); });
  if (sides.empty())
    return;
  frame.runIf(frame.below(tile, tiles), [&] {
    for (const TiledCache *side : sides)
      side->copy(items.getUse(tile), block.getTokens(tile));
  });
}

void TileFeed::produceNext(Value tile, bool isRaw) const {
  for (int64_t ahead = 1; ahead <= countAhead(block.getConfig()); ++ahead)
    produce(frame.add(tile, frame.index(ahead)), [=](const TiledCache &side) {
      return side.isRaw() == isRaw && side.countAhead() == ahead;
    });
}

void TileFeed::start(Value count) {
  tiles = count;
  int64_t ahead = countAhead(block.getConfig());
  if (block.ids) {
    SmallVector<std::function<void()>> stores;
    for (int64_t i = 0; i <= ahead; ++i)
      stores.push_back(block.loadIds(frame.index(i)));
    for (const auto &store : stores)
      store();
    // Threads that convert elements have one more barrier before they do.
    if (hasCopies())
      gpu::BarrierOp::create(frame.builder, frame.loc);
  }
  for (int64_t i = 0; i < ahead; ++i)
    produce(frame.index(i),
            [i](const TiledCache &side) { return i < side.countAhead(); });
  if (keys.hasGroupScales())
    frame.runIf(frame.below(frame.index(0), tiles), [&] {
      keys.loadGroupScales(block.rows.work.thread,
                           block.getTokens(frame.index(0)))();
    });
}

std::function<void()> TileFeed::loadNextIds(Value tile) const {
  if (!block.ids)
    return [] {};
  return block.loadIds(
      frame.add(tile, frame.index(countAhead(block.getConfig()) + 1)));
}

//===----------------------------------------------------------------------===//
// Use
//===----------------------------------------------------------------------===//

void TileFeed::copyMeanwhile(Value tile) const {
  for (bool isRaw : {false, true})
    if (copiesMeanwhile(isRaw))
      produceNext(tile, isRaw);
}

void TileFeed::begin(Value tile) {
  // All threads have used the tile before, and have stored the ids of the next
  // copies, and other numbers for this tile.
  if (block.ids || hasShared || !areCopied())
    gpu::BarrierOp::create(frame.builder, frame.loc);
  // The only tile is copied when all have used the one before.
  produce(tile, [](const TiledCache &side) {
    return side.hasCopies() && side.countAhead() == 0;
  });
  if (!copiesMeanwhile(/*isRaw=*/false))
    produceNext(tile, /*isRaw=*/false);
  std::function<void()> storeIds;
  // Keeping ids live across the products costs registers.
  if (*block.getConfig().rawStages)
    storeIds = loadNextIds(tile);
  if (!areCopied()) {
    convert(tile);
    if (storeIds)
      storeIds();
    if (readsTiles())
      emitAsyncFence(frame);
    gpu::BarrierOp::create(frame.builder, frame.loc);
    // Threads have converted the raw tile.
    if (!copiesMeanwhile(/*isRaw=*/true))
      produceNext(tile, /*isRaw=*/true);
  }
  // After the last tile, scales are those of its last token again.
  Value next = frame.add(tile, frame.index(1));
  if (keys.hasGroupScales())
    storeLoaded =
        keys.loadGroupScales(block.rows.work.thread, block.getTokens(next));
  else if (!*block.getConfig().rawStages)
    storeLoaded = loadNextIds(tile);
}

void TileFeed::convert(Value tile) const {
  for (const TiledCache *side : getSides())
    side->fill(block.rows.work.thread, items.getUse(tile),
               block.getTokens(tile));
}

void TileFeed::end() {
  if (storeLoaded)
    storeLoaded();
}

SmallVector<Value> TileFeed::useKeys(Value tile, TypeRange types,
                                     Body body) const {
  return keys.use(items.getUse(tile), types, [&](Value keyTile) {
    if (areLatent() && keys.isCopied())
      keys.clearUnseen(block.rows.work.thread, keyTile, block.getToken(tile),
                       block.tokens);
    return body(keyTile);
  });
}

SmallVector<Value> TileFeed::useValues(Value tile, TypeRange types,
                                       Body body) const {
  return values.use(items.getUse(tile), types, [&](Value valueTile) {
    if (values.isCopied())
      values.clearUnseen(block.rows.work.thread, valueTile,
                         block.getToken(tile), block.tokens);
    return body(valueTile);
  });
}

Value TileFeed::scale(const TiledCache &side, Value elements) const {
  if (!side.isUnscaled())
    return elements;
  Value zero = frame.index(0);
  return b.map(elements,
               [&](ValueRange place) {
                 return DeviceMath(frame).mul(place[0],
                                              side.getScale(place[2]));
               },
               {zero, zero});
}
