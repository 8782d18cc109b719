//===- TileResults.cpp - Parts and outputs of a block ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileResults.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

TileResults::TileResults(AttentionOp op, const Frame &frame,
                         const TilePlan &plan)
    : TileRows(op, frame, plan),
      inTensorMemory(plan.unit == TileUnit::TensorMemory),
      sums(frame, plan.rows, plan.tokens, valueSize,
           op.getTileElement(op.getValues())) {}

Value TileResults::findPart(const TileWork &work) {
  Value zero = frame.index(0);
  Value count = countTokens(tokens.all);
  Value size = getPartSize(work.isWhole, count, plan.tokens);
  parts = getPartCount(count, size);
  part = arith::SelectOp::create(builder, loc, work.isWhole, zero, work.part);
  return size;
}

void TileResults::takePart(Value size) {
  TokenRange &all = tokens.all;
  all.from = frame.add(all.from, frame.mul(part, size));
  all.to = frame.min(all.to, frame.add(all.from, size));
}

void TileResults::endPart(const TileWork &work, const TileState &state) {
  Value one = frame.index(1), isAlone = frame.equal(parts, one);
  if (inTensorMemory || plan.isSwapped) {
    frame.runIf(isAlone, [&] { endColumns(state); });
    return frame.runIf(frame.below(one, parts),
                       [&] { publishColumns(work.slot, state); });
  }
  TileParts merged = getParts(work.slot, ofLane);
  auto ended = runOrKeep(isAlone, state,
                         [&] { return merged.publish(part, parts, state); });
  frame.runIf(ended.first, [&] { endRows(ofLane, ended.second); });
}

TileParts TileResults::getParts(Value slot, const TileLane &lane) {
  return TileParts(frame, *workspace, lane, thread, slot, first, firstHead,
                   counted);
}

void TileResults::forColumns(
    const TileState &state,
    function_ref<void(const TileLane &lane, const TileState &state)> body) {
  sums.forColumns(hasSums(tiles), [&](Value first, ValueRange columns) {
    TileState all(state);
    llvm::append_range(all, columns);
    body(getLane(first), all);
  });
}

TileLane TileResults::getLane(Value firstColumn) {
  return {layout, ofLane.rows, frame.add(firstColumn, column),
          sums.getColumns()};
}

void TileResults::endColumns(const TileState &state) {
  if (!inTensorMemory)
    return endRows(ofLane, state);
  forColumns(state, [&](const TileLane &lane, const TileState &all) {
    endRows(lane, all);
  });
}

std::pair<TileLane, int64_t> TileResults::getLaneOfMerge() {
  if (!plan.isSwapped)
    return {getLane(frame.index(0)), valueSize};
  Value lane = frame.rem(thread, kWarp), warp = frame.div(thread, kWarp);
  int64_t groups = plan.rows / kRowsOfWarp;
  int64_t size = valueSize * groups * kWarp / plan.countThreads();
  Value firstRow = frame.add(frame.mul(frame.rem(warp, groups), kRowsOfWarp),
                             frame.div(lane, 4));
  Value first = frame.add(frame.mul(frame.div(warp, groups), size),
                          frame.mul(frame.rem(lane, 4), 2));
  return {makeLane(LaneLayout(), firstRow, first,
                   std::gcd(size, sums.getColumns())),
          size};
}

void TileResults::publishColumns(Value slot, const TileState &state) {
  if (plan.isSwapped)
    getParts(slot, ofLane).store(part, state);
  else
    forColumns(state, [&](const TileLane &lane, const TileState &all) {
      getParts(slot, lane).store(part, all);
    });
  auto [ofMerge, size] = getLaneOfMerge();
  TileParts merged = getParts(slot, ofMerge);
  frame.runIf(merged.isLast(parts), [&, &ofMerge = ofMerge, &size = size] {
    TileState maxima = merged.findMaxima(parts);
    auto forLanes = [&](function_ref<void(const TileLane &)> body) {
      frame.loop(frame.index(0), frame.index(size), frame.index(ofMerge.size),
                 [&](Value first) {
                   TileLane lane = ofMerge;
                   lane.first = frame.add(first, ofMerge.first);
                   body(lane);
                 });
    };
    forLanes([&](const TileLane &lane) {
      endRows(lane, getParts(slot, lane).merge(parts, maxima));
    });
    gpu::BarrierOp::create(builder, loc);
    forLanes([&](const TileLane &lane) { getParts(slot, lane).clear(parts); });
    merged.clearCounter();
  });
}

void TileResults::endRows(const TileLane &lane, const TileState &state) {
  for (auto [r, row] : llvm::enumerate(lane.rows)) {
    frame.runIf(row.isReal, [&, r = r, &row = row] {
      TileState scaled(state);
      RowSum sum =
          addSink({state[r], state[lane.rows.size() + r], f.constant(1)},
                  row.queryHead);
      Value quotient = getQuotient(sum, row.queryHead);
      forRuns(frame, lane, r, [&](Value d, ArrayRef<int64_t> run) {
        for (int64_t i : run)
          scaled[i] = f.mul(scaled[i], quotient);
        storeDense(frame, joinRun(frame, scaled, run), op.getOut(),
                   {row.row, row.queryHead}, d);
      });
      frame.runIf(frame.equal(lane.first, frame.index(0)),
                  [&] { storeLogarithm(sum, row.row, row.queryHead); });
    });
  }
}
