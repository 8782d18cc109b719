//===- SeesawTiles.cpp - Latent tiles in parts ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SeesawTiles.h"

#include "kvcache/IR/CopyOps.h"
#include "kvcache/IR/PipeOps.h"

using namespace mlir;
using namespace mlir::kvcache;

SeesawTiles::SeesawTiles(const TileRows &block, const WorkItems &items)
    : block(block), items(items), frame(block.getFrame()),
      shape(block.getOp(), block.getOp().getKeyCache(),
            block.getSizes().keySize, block.getConfig()) {}

Value SeesawTiles::getFirstColumn(Value half) const {
  return frame.mul(half, getHalfSize());
}

void SeesawTiles::allocate() {
  auto create = [&](int64_t stages, int64_t columns) -> Value {
    Type tile = getMatrixTile(shape.lane, shape.tokens, columns);
    return PipeOp::create(frame.builder, frame.loc,
                          PipeType::get(frame.builder.getContext(), stages,
                                        tile, /*producers=*/0));
  };
  const AttentionSizes &sizes = block.getSizes();
  int64_t stages = *block.getConfig().stages;
  halves = create(2 * stages, getHalfSize());
  ropes = create(stages, sizes.keySize - sizes.valueSize);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

Value SeesawTiles::getHalfUse(Value tile, Value half) const {
  return frame.add(frame.mul(items.getUse(tile), 2), half);
}

void SeesawTiles::copy(Value pipe, Value use, Value tile, Value column) const {
  OpBuilder &builder = frame.builder;
  frame.runIf(frame.below(tile, tiles), [&] {
    auto produce = ProduceOp::create(builder, frame.loc, pipe, use);
    OpBuilder::InsertionGuard guard(builder);
    Type type = cast<PipeType>(pipe.getType()).getTiles().front();
    Block *body =
        builder.createBlock(&produce.getBody(), {}, type, {frame.loc});
    TileTokens tokens = block.getTokens(tile);
    AsyncLoadTileOp::create(
        builder, frame.loc, shape.cache, tokens.tokens.batch,
        tokens.tokens.head, tokens.first, column,
        frame.sub(tokens.tokens.all.to, tokens.first), body->getArgument(0),
        /*descriptor=*/Value(), /*zeros=*/Value(),
        builder.getI64IntegerAttr(tokens.tokens.alignment), CopyKindAttr(),
        /*multicast=*/false, shape.hint);
    YieldOp::create(builder, frame.loc);
  });
}

void SeesawTiles::copyHalf(Value tile, Value half) const {
  copy(halves, getHalfUse(tile, half), tile, getFirstColumn(half));
}

void SeesawTiles::copyRope(Value tile) const {
  copy(ropes, items.getUse(tile), tile,
       frame.index(block.getSizes().valueSize));
}

void SeesawTiles::copyAll(Value tile) const {
  // The halves of a tile that its warpgroup frees first are copied first.
  Value first = frame.rem(tile, 2);
  copyHalf(tile, first);
  copyRope(tile);
  copyHalf(tile, frame.sub(frame.index(1), first));
}

void SeesawTiles::start(Value count) {
  tiles = count;
  for (int64_t tile = 0; tile < *block.getConfig().stages; ++tile)
    copyAll(frame.index(tile));
}

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

SmallVector<Value> SeesawTiles::useHalf(const FragmentBuilder &b, Value tile,
                                        Value half, TypeRange types,
                                        Body body) const {
  return b.consumeAll(halves, getHalfUse(tile, half), types, body);
}

SmallVector<Value> SeesawTiles::useRope(const FragmentBuilder &b, Value tile,
                                        TypeRange types, Body body) const {
  return b.consumeAll(ropes, items.getUse(tile), types, body);
}
