//===- TileResults.cpp - Parts and outputs of a block ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileResults.h"

using namespace mlir;
using namespace mlir::kvcache;

TileResults::TileResults(AttentionOp op, const Frame &frame,
                         const TilePlan &plan)
    : TileRows(op, frame, plan) {}

float TileResults::getWeightBias() {
  return op.getTileElement(op.getValues()).isF16() ? kHalfBias : 0;
}

void TileResults::endPart(const TileWork &work, const TileState &state) {
  Value one = frame.index(1);
  frame.runIf(frame.equal(split.count, one), [&] { endRows(state); });
  frame.runIf(frame.below(one, split.count), [&] {
    storePart(frame, *workspace, ofLane, work.slot, split.number, state);
  });
}

void TileResults::endRows(const TileState &state) {
  for (auto [r, row] : llvm::enumerate(ofLane.rows)) {
    frame.runIf(row.isReal, [&, r = r, &row = row] {
      TileState scaled(state);
      RowSum scores{state[r], state[ofLane.rows.size() + r], f.constant(1)};
      RowSum sum = addSink(scores, row.queryHead);
      Value quotient = getQuotient(sum, row.queryHead);
      forRuns(frame, ofLane, r, [&](Value d, ArrayRef<int64_t> run) {
        for (int64_t i : run)
          scaled[i] = f.mul(scaled[i], quotient);
        storeDense(frame, joinRun(frame, scaled, run), op.getOut(),
                   {row.row, row.queryHead}, d);
      });
      frame.runIf(frame.equal(ofLane.first, frame.index(0)), [&] {
        storeStatistics(scores, sum, getWeightBias(), row.row, row.queryHead);
      });
    });
  }
}
