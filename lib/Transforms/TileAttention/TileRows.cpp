//===- TileRows.cpp - The rows of a block, and their tokens ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileRows.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

TileRows::TileRows(const TileGrid &grid)
    : grid(grid), ranges(grid.frame, grid.op) {
  if (ranges.hasGaps())
    list.emplace(grid.frame);
  // Those of the tile in use, of those that copies are for, and of the next.
  if (getOp().getRows())
    ids.emplace(grid.frame, grid.op, *grid.config.keys,
                countAhead(grid.config) + 2, countThreads(grid.config));
}

void TileRows::begin(const TileWork &next) {
  work = next;
  first = getFrame().mul(work.number, grid.shape.perBlock);
  rows = loadRows(getFrame(), grid.op, work.sequence);
}

void TileRows::findRows() {
  const Frame &frame = getFrame();
  if (getOp().getRows()) {
    rows = getSparseRow(frame, grid.op, frame.add(rows.first, first),
                        work.columns);
    first = frame.index(0);
  } else {
    rows = loadRowsAndTokens(frame, grid.op, work.sequence);
  }
  count =
      frame.min(frame.sub(rows.count, first), frame.index(grid.shape.perBlock));
}

void TileRows::clampRows() {
  count = getFrame().max(count, getFrame().index(0));
}

std::pair<Value, Value> TileRows::getRow(Value rowOfBlock) const {
  const Frame &frame = getFrame();
  int64_t packed = grid.shape.packed;
  Value last = frame.sub(count, frame.index(1));
  Value i = frame.add(first, frame.min(frame.div(rowOfBlock, packed), last));
  return {i, frame.add(work.firstHead, frame.rem(rowOfBlock, packed))};
}

void TileRows::findTokens() {
  const Frame &frame = getFrame();
  int64_t perBlock = grid.shape.perBlock;
  // Few rows are looked at faster by each thread.
  constexpr int64_t few = 8;
  Value lane = perBlock > few ? frame.rem(work.thread, kWarp) : Value();
  SeenTokens seen = BlockTokens(frame, grid.op, *getConfig().keys, perBlock)
                        .find(rows, first, count, lane);
  seenByAll = seen.byAll;
  admittedForAll = seen.admitted;
  tokens = {rows.batch,     work.head,  seen.all,
            seen.alignment, seen.begin, ids ? &*ids : nullptr};
}

Value TileRows::findTiles(int64_t threads) {
  const Frame &frame = getFrame();
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  int64_t tileTokens = *getConfig().keys;
  Value tiles = frame.div(
      frame.add(countTokens(frame, tokens.all), frame.index(tileTokens - 1)),
      tileTokens);
  if (!list)
    return tiles;
  auto constant = [&](bool value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(value));
  };
  return list->make(
      work.thread, threads, tiles, [&](Value tile) -> AdmittedPairs {
        Value from = frame.add(tokens.all.from, frame.mul(tile, tileTokens));
        TokenRange all{from, frame.add(from, frame.index(tileTokens))};
        auto loop = scf::ForOp::create(
            builder, loc, frame.index(0), count, frame.index(1),
            ValueRange{constant(false), constant(true)},
            [&](OpBuilder &, Location, Value i, ValueRange before) {
              Value row = frame.add(rows.first, frame.add(first, i));
              AdmittedPairs seen = ranges.computePairs(row, all);
              Value any =
                  arith::OrIOp::create(builder, loc, before[0], seen.any);
              Value whole =
                  arith::AndIOp::create(builder, loc, before[1], seen.all);
              scf::YieldOp::create(builder, loc, ValueRange{any, whole});
            });
        return {loop.getResult(0), loop.getResult(1)};
      });
}

Value TileRows::getToken(Value tile) const {
  const Frame &frame = getFrame();
  if (list)
    tile = list->getTile(tile);
  return frame.add(tokens.all.from, frame.mul(tile, *getConfig().keys));
}

std::function<void()> TileRows::loadIds(Value tile) const {
  return ids->load(work.thread, rows.first, work.head, tile, tokens.all);
}
