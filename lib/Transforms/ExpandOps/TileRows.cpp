//===- TileRows.cpp - The rows of a block, and their tokens ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileRows.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

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

std::pair<Value, Value> TileRows::getRow(Value ofBlock) {
  Value last = frame.sub(count, frame.index(1));
  Value i = frame.add(first, frame.min(frame.div(ofBlock, packed), last));
  return {i, frame.add(firstHead, frame.rem(ofBlock, packed))};
}

Value TileRows::getRowOfBlock(const LaneLayout &layout, Value first,
                              int64_t row) {
  int64_t distance = layout.getRow(row);
  return distance ? frame.add(first, frame.index(distance)) : first;
}

TileLane TileRows::makeLane(const LaneLayout &layout, Value firstRow,
                            Value first, int64_t size) {
  TileLane lane{layout, {}, first, size};
  for (int64_t r = 0; r < layout.countRows(); ++r)
    lane.rows.push_back(makeRow(getRowOfBlock(layout, firstRow, r)));
  return lane;
}

void TileRows::makeFactors() {
  factors.clear();
  Value factor = getFactor();
  for (int64_t r = 0; r < layout.countRows(); ++r)
    factors.push_back(getFactor(
        factor, getRow(getRowOfBlock(layout, firstOfLane, r)).second));
}

TileRow TileRows::makeRow(Value ofBlock) {
  TileRow row;
  std::tie(row.i, row.queryHead) = getRow(ofBlock);
  row.row = frame.add(rows.first, row.i);
  row.isReal = frame.below(ofBlock, frame.mul(count, packed));
  row.seen = getSeen(rows, row.i);
  return row;
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

TileState TileRows::maskIds(TileState scores, Value tile) {
  Value none = f.constant(-std::numeric_limits<float>::infinity());
  int64_t size = layout.getRunSize();
  for (int64_t run = 0; run < layout.countRuns(plan.tokens); ++run) {
    Value first = frame.add(column, frame.index(layout.getColumn(run)));
    Value all = ids->get(tile, first, size);
    for (int64_t e = 0; e < size; ++e) {
      Value id = all;
      if (size > 1)
        id = vector::ExtractOp::create(builder, loc, all, e);
      Value isSeen = ids->isRow(id);
      for (int64_t r = 0; r < layout.countRows(); ++r) {
        Value &score = scores[layout.getElement(r, run, e)];
        score = f.select(isSeen, score, none);
      }
    }
  }
  return scores;
}

TileState TileRows::modify(TileState scores, Value tile) {
  if (op.getScoreRegion())
    scores = applyEach(scores, tile, &ScoreRegions::applyScore);
  if (!op.getMaskRegion())
    return scores;
  auto branch = scf::IfOp::create(
      builder, loc, needsMaskRegion(tile),
      [&](OpBuilder &, Location) {
        scf::YieldOp::create(builder, loc,
                             applyEach(scores, tile, &ScoreRegions::applyMask));
      },
      [&](OpBuilder &, Location) {
        scf::YieldOp::create(builder, loc, scores);
      });
  return TileState(branch.getResults());
}

TileState TileRows::applyEach(TileState scores, Value tile, Apply apply) {
  ScoreRegions regions(frame, op, rows);
  for (int64_t r = 0; r < layout.countRows(); ++r) {
    Value ofBlock = getRowOfBlock(layout, firstOfLane, r);
    regions.addRow(getRow(ofBlock).second, ofLane.rows[r].i);
  }
  Value token = frame.add(getToken(tile), column);
  int64_t size = layout.getRunSize();
  for (int64_t run = 0; run < layout.countRuns(plan.tokens); ++run)
    for (int64_t e = 0; e < size; ++e) {
      regions.addColumn(
          frame.add(token, frame.index(layout.getColumn(run) + e)));
      for (int64_t r = 0; r < layout.countRows(); ++r) {
        Value &score = scores[layout.getElement(r, run, e)];
        score = (regions.*apply)(score, r, run * size + e);
      }
    }
  return scores;
}

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

TileState TileRows::mask(const TileState &scores, Value tile) {
  if (ids)
    return maskIds(scores, tile);
  Value token = getToken(tile);
  auto branch = scf::IfOp::create(
      builder, loc, needsMask(tile),
      [&](OpBuilder &, Location) {
        scf::YieldOp::create(builder, loc, maskEach(scores, token));
      },
      [&](OpBuilder &, Location) {
        scf::YieldOp::create(builder, loc, scores);
      });
  return TileState(branch.getResults());
}

bool TileRows::hasBegin() {
  return op.getWindow() || op.getChunk() || op.getRanges();
}

Value TileRows::getBound(Value bound, Value token) {
  bound = frame.sub(bound, frame.add(token, column));
  Value least = frame.index(-plan.tokens);
  return frame.toI32(
      frame.max(frame.min(bound, frame.index(plan.tokens)), least));
}

TileState TileRows::maskGaps(const TileState &scores, Value token) {
  Value none = f.constant(-std::numeric_limits<float>::infinity());
  auto maskGap = [&](Value number, ValueRange carried) {
    TileState masked(carried);
    for (int64_t r = 0; r < layout.countRows(); ++r) {
      TokenRange gap =
          ranges.getGap(frame.add(rows.first, ofLane.rows[r].i), number);
      Value from = getBound(gap.from, token), to = getBound(gap.to, token);
      for (int64_t run = 0; run < layout.countRuns(plan.tokens); ++run)
        for (int64_t e = 0; e < layout.getRunSize(); ++e) {
          Value offset = frame.i32(layout.getColumn(run) + e);
          Value isBefore = frame.less(offset, from);
          Value isSeen = arith::OrIOp::create(
              builder, loc, isBefore,
              arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge,
                                    offset, to));
          Value &score = masked[layout.getElement(r, run, e)];
          score = f.select(isSeen, score, none);
        }
    }
    return masked;
  };
  return TileState(ranges.forGaps(scores, maskGap));
}

TileState TileRows::maskEach(const TileState &scores, Value token) {
  Value none = f.constant(-std::numeric_limits<float>::infinity());
  TileState masked(scores);
  for (int64_t r = 0; r < layout.countRows(); ++r) {
    const TileRow &row = ofLane.rows[r];
    Value to = getBound(row.seen.to, token);
    Value from = hasBegin() ? getBound(row.seen.from, token) : Value();
    for (int64_t run = 0; run < layout.countRuns(plan.tokens); ++run)
      for (int64_t e = 0; e < layout.getRunSize(); ++e) {
        int64_t offset = layout.getColumn(run) + e;
        Value number = frame.i32(offset);
        Value isSeen = frame.less(number, to);
        auto andIf = [&](Value condition) {
          isSeen = arith::AndIOp::create(builder, loc, isSeen, condition);
        };
        if (from)
          andIf(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge,
                                      number, from));
        if (op.getMask())
          andIf(isUnmasked(
              rows, row.i,
              frame.add(frame.add(token, column), frame.index(offset))));
        Value &score = masked[layout.getElement(r, run, e)];
        score = f.select(isSeen, score, none);
      }
  }
  return list ? maskGaps(masked, token) : masked;
}
