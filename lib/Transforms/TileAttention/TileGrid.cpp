//===- TileGrid.cpp - Which rows a block of tiles computes ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileGrid.h"

#include "../Attention/BlockTokens.h"

using namespace mlir;
using namespace mlir::kvcache;

TileGrid::TileGrid(AttentionOp op, const Frame &frame,
                   const AttentionConfig &config)
    : op(op), frame(frame), config(config), sizes(op), shape(op, *config.rows),
      splits(this->frame, op) {}

Value TileGrid::countBlocks() {
  batch = frame.sub(frame.dim(op.getRowOffsets(), 0), frame.index(1));
  // The tiles of a sequence begin at `first row / perBlock + its number`.
  Value whole = frame.div(frame.dim(op.getQ(), 0), shape.perBlock);
  wholeBlocks =
      frame.add(frame.mul(whole, frame.min(batch, frame.index(1))), batch);
  if (!op.getWorkspace())
    return wholeBlocks;
  splits.makeWorkspace();
  splitBlocks = frame.mul(batch, shape.splitTiles * splits.countPerLayer());
  return frame.max(wholeBlocks, splitBlocks);
}

void TileGrid::setHeads(TileWork &work, Value share) const {
  work.head = frame.div(share, shape.shares);
  work.firstHead =
      frame.add(frame.mul(work.head, sizes.group),
                frame.mul(frame.rem(share, shape.shares), shape.packed));
}

void TileGrid::forTiles(int64_t threads, function_ref<void(Value)> allocate,
                        function_ref<void(const TileWork &)> body) {
  if (*config.persistent)
    return forScheduledTiles(threads, allocate, body);
  Value blocks = countBlocks();
  bool isSplit = op.getWorkspace() != nullptr;
  Value layers = frame.index(isSplit ? 1 + splits.countLayers() : 1);
  frame.forBlocks(
      {frame.mul(blocks, shape.across), layers}, {1, 1},
      [&](ValueRange block) {
        frame.forThreads({threads}, [&](ValueRange ids) {
          TileWork work;
          work.thread = ids[0];
          setHeads(work, frame.rem(block[0], shape.across));
          Value number = frame.div(block[0], shape.across);
          // The last rows of a causal prompt see most, and begin first.
          Value wholeBlock =
              frame.sub(frame.sub(wholeBlocks, frame.index(1)), number);
          isSplit ? setWork(work, number, block[1], wholeBlock)
                  : setWholeRows(work, wholeBlock);
          body(work);
        });
      },
      /*alongX=*/0);
}

Value TileGrid::getFirstBlock(Value sequence) {
  Value first = frame.loadNumber(op.getRowOffsets(), sequence);
  return frame.add(frame.div(first, shape.perBlock), sequence);
}

void TileGrid::setWholeRows(TileWork &work, Value block) {
  Value sequence = frame.findLast(batch, [&](Value candidate) {
    return frame.below(block, getFirstBlock(candidate));
  });
  work.sequence = sequence;
  work.number = frame.sub(block, getFirstBlock(sequence));
}

void TileGrid::setWork(TileWork &work, Value number, Value layer, Value block) {
  work.isWhole = frame.equal(layer, frame.index(0));
  int64_t perLayer = splits.countPerLayer();
  work.split = frame.add(frame.mul(frame.sub(layer, frame.index(1)), perLayer),
                         frame.rem(number, perLayer));
  Value isReal = frame.below(
      number, arith::SelectOp::create(frame.builder, frame.loc, work.isWhole,
                                      wholeBlocks, splitBlocks));
  Value tile = frame.div(number, perLayer);
  Value sequence = frame.div(tile, shape.splitTiles);
  work.slot = op.getRows() ? tile : frame.mul(sequence, splits.getRows());
  auto findWhole = [&]() -> ValuePair {
    TileWork whole;
    setWholeRows(whole, block);
    return {whole.sequence, whole.number};
  };
  auto findSplit = [&]() -> ValuePair {
    return {sequence, frame.rem(tile, shape.splitTiles)};
  };
  std::tie(work.sequence, work.number) = frame.selectPairIf(
      isReal,
      [&] { return frame.selectPairIf(work.isWhole, findWhole, findSplit); },
      // No sequence has as many rows.
      [&]() -> ValuePair { return {frame.index(0), frame.index(1u << 31)}; });
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

void TileGrid::forScheduledTiles(int64_t threads,
                                 function_ref<void(Value)> allocate,
                                 function_ref<void(const TileWork &)> body) {
  countBlocks();
  Value entries = frame.mul(batch, 1 + shape.splitTiles);
  frame.forBlocks({frame.index(*config.persistent)}, {1}, [&](ValueRange) {
    frame.forThreads({threads}, [&](ValueRange ids) {
      allocate(ids[0]);
      scheduler.emplace(frame, splits, *config.persistent, shape.across,
                        ids[0]);
      scheduler->run(
          entries, [&](Value entry) { return countItems(entry); },
          [&](const ScheduledItem &item) { body(getScheduledWork(item)); });
    });
  });
}

TileWork TileGrid::findWorkAgain() {
  return getScheduledWork(scheduler->getItem());
}

TileWork TileGrid::getScheduledWork(const ScheduledItem &item) {
  TileWork work;
  work.thread = item.thread;
  work.carried = item.carried;
  if (op.getRows())
    work.columns = frame.fromI32(
        scheduler->unify(frame.toI32(countIds(frame, op.getRows()))));
  splits.makeWorkspace(item.slots);
  setHeads(work, item.share);
  setEntry(work, item.entry);
  work.split = arith::SelectOp::create(frame.builder, frame.loc, work.isWhole,
                                       frame.index(0), item.number);
  // The last rows of a causal prompt see most, and begin first.
  QueryRows rows = loadRows(frame, op, work.sequence);
  Value last = frame.div(frame.sub(rows.count, frame.index(1)), shape.perBlock);
  work.number =
      arith::SelectOp::create(frame.builder, frame.loc, work.isWhole,
                              frame.sub(last, item.number), work.number);
  return work;
}

void TileGrid::setEntry(TileWork &work, Value entry) {
  work.isWhole = frame.below(entry, batch);
  Value split = frame.sub(entry, batch);
  work.sequence =
      arith::SelectOp::create(frame.builder, frame.loc, work.isWhole, entry,
                              frame.div(split, shape.splitTiles));
  work.number = arith::SelectOp::create(frame.builder, frame.loc, work.isWhole,
                                        frame.index(0),
                                        frame.rem(split, shape.splitTiles));
  work.slot = frame.mul(work.sequence, splits.getRows());
  if (op.getRows())
    work.slot = frame.add(work.slot, work.number);
}

Value TileGrid::countItems(Value entry) {
  TileWork work;
  setEntry(work, entry);
  QueryRows rows = loadRows(frame, op, work.sequence);
  Value first = frame.mul(work.number, shape.perBlock);
  BlockTokens tokens(frame, op, *config.keys, shape.perBlock);
  auto countTiles = [&] {
    return frame.div(frame.add(rows.count, frame.index(shape.perBlock - 1)),
                     shape.perBlock);
  };
  Value isThere = arith::AndIOp::create(
      frame.builder, frame.loc, frame.below(first, rows.count),
      splits.hasRows(work.isWhole, rows.count));
  auto count = [&]() -> Value {
    return frame.selectIf(work.isWhole, countTiles, [&] {
      return tokens.countSplits(splits, rows, first);
    });
  };
  return frame.selectIf(isThere, count, [&] { return frame.index(0); });
}
