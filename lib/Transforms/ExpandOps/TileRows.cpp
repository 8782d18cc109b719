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
    : TileGrid(op, frame, plan) {
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

std::pair<Value, Value> TileRows::getRow(Value ofBlock) {
  Value last = frame.sub(count, frame.index(1));
  Value i = frame.add(first, frame.min(frame.div(ofBlock, packed), last));
  return {i, frame.add(firstHead, frame.rem(ofBlock, packed))};
}

TileRow TileRows::makeRow(Value ofBlock, Value factor) {
  TileRow row;
  std::tie(row.i, row.queryHead) = getRow(ofBlock);
  row.row = frame.add(rows.first, row.i);
  row.isReal = frame.below(ofBlock, frame.mul(count, packed));
  row.seen = getSeen(rows, row.i);
  row.factor = getFactor(factor, row.queryHead);
  return row;
}

void TileRows::findTokens() {
  SeenTokens seen = findSeen(rows, first, count);
  seenByAll = seen.byAll;
  tokens = {rows.batch, head, seen.all, seen.alignment, ids ? &*ids : nullptr};
}

Value TileRows::getToken(Value tile) {
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
  for (int64_t t = 0; t < plan.tokens / 8; ++t) {
    Value pair = ids->get(tile, frame.add(column, frame.index(8 * t)), 2);
    for (int64_t e = 0; e < 2; ++e) {
      Value isSeen =
          ids->isRow(vector::ExtractOp::create(builder, loc, pair, e));
      for (int64_t r = 0; r < 2; ++r) {
        Value &score = scores[4 * t + 2 * r + e];
        score = f.select(isSeen, score, none);
      }
    }
  }
  return scores;
}

TileState TileRows::mask(const TileState &scores, Value tile) {
  if (ids)
    return maskIds(scores, tile);
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
  auto branch = scf::IfOp::create(
      builder, loc, isPart,
      [&](OpBuilder &, Location) {
        scf::YieldOp::create(builder, loc, maskEach(scores, token));
      },
      [&](OpBuilder &, Location) {
        scf::YieldOp::create(builder, loc, scores);
      });
  return TileState(branch.getResults());
}

bool TileRows::hasBegin() { return op.getWindow() || op.getChunk(); }

TileState TileRows::maskEach(const TileState &scores, Value token) {
  // Bounds relative to the first column of the lane, from 0 on.
  auto getBound = [&](Value bound) {
    bound = frame.sub(bound, frame.add(token, column));
    Value least = frame.index(-plan.tokens);
    return frame.toI32(
        frame.max(frame.min(bound, frame.index(plan.tokens)), least));
  };
  Value none = f.constant(-std::numeric_limits<float>::infinity());
  TileState masked(scores);
  for (auto [r, row] : llvm::enumerate(ofLane.rows)) {
    Value to = getBound(row.seen.to);
    Value from = hasBegin() ? getBound(row.seen.from) : Value();
    for (int64_t t = 0; t < plan.tokens / 8; ++t)
      for (int64_t e = 0; e < 2; ++e) {
        Value number = frame.i32(8 * t + e);
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
              frame.add(frame.add(token, column), frame.index(8 * t + e))));
        Value &score = masked[4 * t + 2 * r + e];
        score = f.select(isSeen, score, none);
      }
  }
  return masked;
}
