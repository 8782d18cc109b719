//===- TileGrid.cpp - Which rows a block of tiles computes ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileGrid.h"

#include "../Attention/SeenRanges.h"

#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

TileGrid::TileGrid(AttentionOp op, const Frame &frame, const TilePlan &plan)
    : AttentionBase(op, frame), plan(plan),
      packed(getDivisorUpTo(group, plan.rows)),
      // A sparse row sees tokens of its own.
      perBlock(op.getRows() ? 1 : plan.rows / packed), shares(group / packed),
      across(heads * shares),
      splitTiles(llvm::divideCeil(op.getSplitOrDefault().getRows(), perBlock)) {
}

Value TileGrid::countBlocks() {
  batch = frame.sub(frame.dim(op.getRowOffsets(), 0), frame.index(1));
  // The tiles of a sequence begin at `first row / perBlock + its number`.
  Value whole = frame.div(frame.dim(op.getQ(), 0), perBlock);
  units = frame.add(frame.mul(whole, frame.min(batch, frame.index(1))), batch);
  if (!op.getWorkspace())
    return units;
  makeWorkspace();
  splitUnits = frame.mul(batch, splitTiles * countPartsOfLayer());
  return frame.max(units, splitUnits);
}

void TileGrid::setHeads(Value share) {
  head = frame.div(share, shares);
  firstHead = frame.add(frame.mul(head, group),
                        frame.mul(frame.rem(share, shares), packed));
}

void TileGrid::forTiles(int64_t threads, function_ref<void()> allocate,
                        function_ref<void(const TileWork &)> body) {
  if (plan.blocks)
    return forScheduledTiles(threads, allocate, body);
  Value blocks = countBlocks();
  Value layers = frame.index(workspace ? 1 + countLayersOfParts() : 1);
  frame.forBlocks(
      {frame.mul(blocks, across), layers}, {1, 1},
      [&](ValueRange block) {
        frame.forThreads({threads}, [&](ValueRange ids) {
          thread = ids[0];
          setHeads(frame.rem(block[0], across));
          Value number = frame.div(block[0], across);
          // The last rows of a causal prompt see most, and begin first.
          Value unit = frame.sub(frame.sub(units, frame.index(1)), number);
          body(workspace ? getWork(number, block[1], unit)
                         : getWholeRows(unit));
        });
      },
      /*alongX=*/0);
}

Value TileGrid::getFirstUnit(Value sequence) {
  Value first = frame.loadNumber(op.getRowOffsets(), sequence);
  return frame.add(frame.div(first, perBlock), sequence);
}

TileWork TileGrid::getWholeRows(Value unit) {
  Value sequence = frame.findLast(batch, [&](Value candidate) {
    return frame.below(unit, getFirstUnit(candidate));
  });
  return {sequence, frame.sub(unit, getFirstUnit(sequence)), Value(), Value(),
          Value()};
}

TileWork TileGrid::getWork(Value number, Value layer, Value unit) {
  TileWork work;
  work.isWhole = frame.equal(layer, frame.index(0));
  int64_t parts = countPartsOfLayer();
  work.part = frame.add(frame.mul(frame.sub(layer, frame.index(1)), parts),
                        frame.rem(number, parts));
  Value isReal =
      frame.below(number, arith::SelectOp::create(builder, loc, work.isWhole,
                                                  units, splitUnits));
  Value tile = frame.div(number, parts);
  Value sequence = frame.div(tile, splitTiles);
  work.slot =
      op.getRows()
          ? tile
          : frame.mul(sequence, int64_t(op.getSplitOrDefault().getRows()));
  auto findWhole = [&]() -> Pair {
    TileWork whole = getWholeRows(unit);
    return {whole.sequence, whole.number};
  };
  auto findSplit = [&]() -> Pair {
    return {sequence, frame.rem(tile, splitTiles)};
  };
  std::tie(work.sequence, work.number) = selectPair(
      isReal, [&] { return selectPair(work.isWhole, findWhole, findSplit); },
      // No sequence has as many rows.
      [&]() -> Pair { return {frame.index(0), frame.index(1u << 31)}; });
  return work;
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

/// The tokens that the region `mask` admits for rows of a sequence. A block of
/// one row may be after the last one, which has no position that loads by the
/// query may be at.
static std::optional<AdmittedTokens> findAdmitted(const Frame &frame,
                                                  AttentionOp op,
                                                  const QueryRows &rows,
                                                  Value first, Value last) {
  if (first != last || !op.getMaskRegion())
    return computeTokens(frame, op, rows, first, last);
  SmallVector<Type> types(4, frame.builder.getIndexType());
  auto branch = scf::IfOp::create(frame.builder, frame.loc, types,
                                  frame.below(first, rows.count),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(frame.builder);
  auto yield = [&](const AdmittedTokens &tokens) {
    scf::YieldOp::create(frame.builder, frame.loc,
                         ValueRange{tokens.any.from, tokens.any.to,
                                    tokens.all.from, tokens.all.to});
  };
  frame.builder.setInsertionPointToStart(branch.thenBlock());
  yield(*computeTokens(frame, op, rows, first, first));
  frame.builder.setInsertionPointToStart(branch.elseBlock());
  TokenRange none{frame.index(0), frame.index(0)};
  yield({none, none});
  return AdmittedTokens{{branch.getResult(0), branch.getResult(1)},
                        {branch.getResult(2), branch.getResult(3)}};
}

SeenTokens TileGrid::findSeen(const QueryRows &rows, Value first, Value count,
                              Value lane) {
  Value last = frame.sub(frame.add(first, count), frame.index(1));
  TokenRange firstSeen = getSeenByPosition(rows, first),
             lastSeen = getSeenByPosition(rows, last);
  SeenTokens seen{{firstSeen.from, lastSeen.to},
                  {lastSeen.from, firstSeen.to},
                  plan.tokens};
  bool mayBegin = op.getWindow() || op.getChunk() || op.getRanges();
  if (op.getRanges()) {
    AdmittedTokens hulls = SeenRanges(frame, op).computeHulls(
        frame.add(rows.first, first), count, lane);
    auto intersect = [&](TokenRange &seen, const TokenRange &hull) {
      seen = {frame.max(seen.from, hull.from), frame.min(seen.to, hull.to)};
    };
    intersect(seen.all, hulls.any);
    intersect(seen.byAll, hulls.all);
  }
  if (auto admitted =
          findAdmitted(frame, op, rows, first, perBlock == 1 ? first : last)) {
    seen.all = {frame.max(seen.all.from, admitted->any.from),
                frame.min(seen.all.to, admitted->any.to)};
    seen.admitted = admitted->all;
    mayBegin = !matchPattern(seen.all.from, m_Zero());
  }
  if (!mayBegin)
    return seen;
  // A tile may begin before what rows see, but not in another page.
  seen.alignment = getTileAlignment(op, plan.tokens);
  Value &from = seen.all.from;
  if (seen.alignment == 1)
    return seen;
  seen.begin = from;
  from = frame.sub(from, frame.rem(from, seen.alignment));
  return seen;
}

Value TileGrid::countTokens(const TokenRange &tokens) {
  return frame.max(frame.sub(tokens.to, tokens.from), frame.index(0));
}

Value TileGrid::countParts(const QueryRows &rows, Value first) {
  QueryRows seen = op.getRows() ? getSparseRow(frame.add(rows.first, first))
                                : getRowsOfSequence(rows.batch);
  Value blockRows =
      frame.min(frame.sub(rows.count, first), frame.index(perBlock));
  TokenRange all = op.getRows() ? getSeen(seen, frame.index(0))
                                : findSeen(seen, first, blockRows).all;
  Value count = countTokens(all);
  Value isWhole =
      arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false));
  return getPartCount(count, getPartSize(isWhole, count, plan.tokens));
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

void TileGrid::forScheduledTiles(int64_t threads, function_ref<void()> allocate,
                                 function_ref<void(const TileWork &)> body) {
  countBlocks();
  Value entries = frame.mul(batch, 1 + splitTiles);
  frame.forBlocks({frame.index(plan.blocks)}, {1}, [&](ValueRange) {
    frame.forThreads({threads}, [&](ValueRange ids) {
      thread = ids[0];
      allocate();
      schedule.emplace(frame, op.getWorkspace(), slots, shape, plan.blocks,
                       across, thread);
      schedule->run(
          entries, [&](Value entry) { return countUnits(entry); },
          [&](const ScheduledUnit &unit) { body(getScheduledWork(unit)); });
    });
  });
}

TileWork TileGrid::findWorkAgain() {
  return getScheduledWork(schedule->getUnit());
}

TileWork TileGrid::getScheduledWork(const ScheduledUnit &unit) {
  thread = unit.thread;
  if (op.getRows())
    columns =
        frame.fromI32(schedule->unify(frame.toI32(frame.dim(op.getRows(), 1))));
  workspace.emplace(frame, op.getWorkspace(), unit.slots, shape);
  setHeads(unit.share);
  TileWork work = getEntry(unit.entry);
  work.part = arith::SelectOp::create(builder, loc, work.isWhole,
                                      frame.index(0), unit.number);
  // The last rows of a causal prompt see most, and begin first.
  QueryRows rows = getRows(work.sequence);
  Value last = frame.div(frame.sub(rows.count, frame.index(1)), perBlock);
  work.number = arith::SelectOp::create(
      builder, loc, work.isWhole, frame.sub(last, unit.number), work.number);
  work.carried = unit.carried;
  return work;
}

TileWork TileGrid::getEntry(Value entry) {
  TileWork work;
  work.isWhole = frame.below(entry, batch);
  Value split = frame.sub(entry, batch);
  work.sequence = arith::SelectOp::create(builder, loc, work.isWhole, entry,
                                          frame.div(split, splitTiles));
  work.number = arith::SelectOp::create(
      builder, loc, work.isWhole, frame.index(0), frame.rem(split, splitTiles));
  work.slot =
      frame.mul(work.sequence, int64_t(op.getSplitOrDefault().getRows()));
  if (op.getRows())
    work.slot = frame.add(work.slot, work.number);
  return work;
}

Value TileGrid::countUnits(Value entry) {
  TileWork work = getEntry(entry);
  QueryRows rows = getRows(work.sequence);
  Value first = frame.mul(work.number, perBlock);
  auto countTiles = [&] {
    return frame.div(frame.add(rows.count, frame.index(perBlock - 1)),
                     perBlock);
  };
  Value isThere =
      arith::AndIOp::create(builder, loc, frame.below(first, rows.count),
                            hasRows(work.isWhole, rows.count));
  auto count = [&]() -> Value {
    return frame.selectIf(work.isWhole, countTiles,
                          [&] { return countParts(rows, first); });
  };
  return frame.selectIf(isThere, count, [&] { return frame.index(0); });
}
