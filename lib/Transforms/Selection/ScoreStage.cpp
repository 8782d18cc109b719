//===- ScoreStage.cpp - Keys and queries in shared memory -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreStage.h"

#include "../Builders/Heads.h"
#include "../TileAttention/PairedRuns.h"
#include "../TileAttention/TileShape.h"

#include "kvcache/IR/CopyOps.h"
#include "kvcache/IR/PipeOps.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The registers of a thread, at most: they leave room for two blocks.
constexpr int64_t kRegisters = 232;

void ScoreStage::allocate() {
  auto allocateTile = [&](TileType type) {
    return AllocTileOp::create(frame.builder, frame.loc, type, IntegerAttr());
  };
  if (tiles.hasConvertedKeys) {
    keys = allocateTile(tiles.key);
  } else {
    auto type = PipeType::get(op.getContext(), KeyTiles::kStages,
                              Type(tiles.key), /*producers=*/0);
    auto pipeOp = PipeOp::create(frame.builder, frame.loc, type);
    pipeOp.setConsumerRegisters(kRegisters);
    pipe = pipeOp;
  }
  int64_t most = tiles.countRows();
  queries =
      allocateTile(getMatrixTile(tiles.lane, most * tiles.heads, tiles.size));
  auto allocateFactors = [&](int64_t perRow) {
    return allocateTile(TileType::get(op.getContext(), most * perRow,
                                      tiles.heads, frame.builder.getF32Type(),
                                      Swizzle::None));
  };
  if (op.getWeights())
    weights = allocateFactors(1);
  if (rows.hasScales())
    scales = allocateFactors(tiles.groups);
}

void ScoreStage::copyTile(const ScoreWork &work, Value number, Value count) {
  frame.runIf(frame.below(number, count), [&] {
    auto produce = ProduceOp::create(frame.builder, frame.loc, pipe, number);
    OpBuilder::InsertionGuard guard(frame.builder);
    Block *body = frame.builder.createBlock(&produce.getBody(), {}, tiles.key,
                                            {frame.loc});
    Value first = frame.add(work.begin, frame.mul(number, tiles.countKeys()));
    Value zero = frame.index(0);
    AsyncLoadTileOp::create(
        frame.builder, frame.loc, op.getCache(), work.sequence, zero, first,
        zero, frame.sub(work.end, first), body->getArgument(0),
        /*descriptor=*/Value(), /*zeros=*/Value(),
        frame.builder.getI64IntegerAttr(tiles.countKeys()), CopyKindAttr(),
        /*multicast=*/false, EvictionAttr());
    YieldOp::create(frame.builder, frame.loc);
  });
}

void ScoreStage::storeRows(const ScoreWork &work) {
  storeQueries(work);
  if (weights)
    storeWeights(work);
  if (scales)
    storeScales(work);
}

void ScoreStage::storeQueries(const ScoreWork &work) {
  int64_t runs = tiles.size / kRun;
  Value all = frame.mul(work.count, tiles.heads * runs);
  frame.loop(work.thread, all, frame.index(KeyTiles::kThreads), [&](Value i) {
    Value query = frame.div(i, runs);
    Value d = frame.mul(frame.rem(i, runs), kRun);
    Value row = frame.add(work.row, frame.div(query, tiles.heads));
    Value elements =
        rows.load(row, frame.rem(query, tiles.heads), d, kRun, tiles.lane);
    if (tiles.dequantizes())
      storePairedRun(frame, elements, queries, query, d);
    else
      TileStoreOp::create(frame.builder, frame.loc, elements, queries, query,
                          d);
  });
}

void ScoreStage::storeWeights(const ScoreWork &work) {
  Value all = frame.mul(work.count, tiles.heads);
  frame.loop(work.thread, all, frame.index(KeyTiles::kThreads), [&](Value i) {
    Value row = frame.div(i, tiles.heads), head = frame.rem(i, tiles.heads);
    Value weight =
        memref::LoadOp::create(frame.builder, frame.loc, op.getWeights(),
                               ValueRange{frame.add(work.row, row), head});
    TileStoreOp::create(frame.builder, frame.loc, weight, weights, row, head);
  });
}

void ScoreStage::storeScales(const ScoreWork &work) {
  Value all = frame.mul(work.count, tiles.heads * tiles.groups);
  frame.loop(work.thread, all, frame.index(KeyTiles::kThreads), [&](Value i) {
    // Groups of a head lie beside each other.
    Value group = frame.rem(i, tiles.groups),
          query = frame.div(i, tiles.groups);
    Value row = frame.div(query, tiles.heads);
    Value head = frame.rem(query, tiles.heads);
    Value scale = rows.loadScale(frame.add(work.row, row), head, group);
    TileStoreOp::create(frame.builder, frame.loc, scale, scales,
                        frame.add(frame.mul(row, tiles.groups), group), head);
  });
}
