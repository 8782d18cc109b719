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

TileRows::TileRows(AttentionOp op, const Frame &frame, const TilePlan &plan)
    : TileGrid(op, frame, plan), ranges(this->frame, op) {
  if (ranges.hasGaps())
    list.emplace(this->frame);
  // Those of the tile in use, of those that copies are for, and of the next.
  if (op.getRows())
    ids.emplace(frame, op, plan.tokens, plan.countAhead() + 2,
                plan.countThreads());
}

void TileRows::findSequence(const TileWork &work) {
  first = frame.mul(work.number, perBlock);
  rows = getRows(work.sequence);
}

void TileRows::findRows(const TileWork &work) {
  if (op.getRows()) {
    rows = getSparseRow(frame.add(rows.first, first));
    first = frame.index(0);
  } else {
    rows = getRowsOfSequence(work.sequence);
  }
  count = frame.min(frame.sub(rows.count, first), frame.index(perBlock));
}

void TileRows::clampRows() { count = frame.max(count, frame.index(0)); }

std::pair<Value, Value> TileRows::getRow(Value rowOfBlock) {
  Value last = frame.sub(count, frame.index(1));
  Value i = frame.add(first, frame.min(frame.div(rowOfBlock, packed), last));
  return {i, frame.add(firstHead, frame.rem(rowOfBlock, packed))};
}

void TileRows::findTokens() {
  // Few rows are looked at faster by each thread.
  constexpr int64_t few = 8;
  Value lane = perBlock > few ? frame.rem(thread, kWarp) : Value();
  SeenTokens seen = findSeen(rows, first, count, lane);
  seenByAll = seen.byAll;
  admittedForAll = seen.admitted;
  tokens = {rows.batch,     head,       seen.all,
            seen.alignment, seen.begin, ids ? &*ids : nullptr};
}

Value TileRows::findTiles(int64_t threads) {
  Value tiles = frame.div(
      frame.add(countTokens(tokens.all), frame.index(plan.tokens - 1)),
      plan.tokens);
  if (!list)
    return tiles;
  auto constant = [&](bool value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(value));
  };
  return list->make(thread, threads, tiles, [&](Value tile) -> AdmittedPairs {
    Value from = frame.add(tokens.all.from, frame.mul(tile, plan.tokens));
    TokenRange all{from, frame.add(from, frame.index(plan.tokens))};
    auto loop = scf::ForOp::create(
        builder, loc, frame.index(0), count, frame.index(1),
        ValueRange{constant(false), constant(true)},
        [&](OpBuilder &, Location, Value i, ValueRange before) {
          Value row = frame.add(rows.first, frame.add(first, i));
          AdmittedPairs seen = ranges.computePairs(row, all);
          Value any = arith::OrIOp::create(builder, loc, before[0], seen.any);
          Value whole =
              arith::AndIOp::create(builder, loc, before[1], seen.all);
          scf::YieldOp::create(builder, loc, ValueRange{any, whole});
        });
    return {loop.getResult(0), loop.getResult(1)};
  });
}

TokenRange TileRows::getWholeTokens() {
  TokenRange whole = seenByAll;
  if (op.getMask())
    whole.to = frame.min(whole.to, rows.own);
  return whole;
}

TokenRange TileRows::findTilesWithin(const TokenRange &range) {
  auto count = [&](Value end, int64_t more) {
    Value within = frame.max(frame.sub(end, tokens.all.from), frame.index(0));
    return frame.div(frame.add(within, frame.index(more)), plan.tokens);
  };
  return {count(range.from, plan.tokens - 1), count(range.to, 0)};
}

Value TileRows::getToken(Value tile) {
  if (list)
    tile = list->getTile(tile);
  return frame.add(tokens.all.from, frame.mul(tile, plan.tokens));
}

std::function<void()> TileRows::loadIds(Value tile) {
  return ids->load(thread, rows.first, tile, tokens.all);
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

Value TileRows::needsMaskRegion(Value tile) {
  Value token = getToken(tile);
  Value end = frame.add(token, frame.index(plan.tokens));
  return arith::OrIOp::create(builder, loc,
                              frame.less(token, admittedForAll.from),
                              frame.less(admittedForAll.to, end));
}

Value TileRows::needsMask(Value tile) {
  if (op.getWholeMask())
    return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
  Value token = getToken(tile);
  Value end = frame.add(token, frame.index(plan.tokens));
  Value isPart = frame.less(seenByAll.to, end);
  auto orIf = [&](Value condition) {
    isPart = arith::OrIOp::create(builder, loc, isPart, condition);
  };
  if (hasBegin())
    orIf(frame.less(token, seenByAll.from));
  if (op.getMask())
    orIf(frame.less(rows.own, end));
  if (list)
    orIf(list->isPart(tile));
  return isPart;
}

bool TileRows::hasBegin() {
  return op.getWindow() || op.getChunk() || op.getRanges();
}
