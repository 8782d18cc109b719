//===- WorkItems.cpp - The work items of a block --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WorkItems.h"

#include "TilePipe.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

void WorkItems::emit(int64_t threads, const WorkItemCode &code) {
  grid.forTiles(threads, code.allocate, [&](const TileWork &work) {
    grid.getScheduler() ? attendScheduled(work, code) : attendRows(work, code);
  });
}

void WorkItems::storeQueries(const QueryStage &queries, Value tiles,
                             bool isAsyncRead) const {
  // The copies take longer than the next work item.
  const PersistentScheduler *scheduler = grid.getScheduler();
  Value taken = scheduler ? scheduler->take() : Value();
  queries.store(/*count=*/Value());
  if (isAsyncRead)
    emitAsyncFence(frame);
  gpu::BarrierOp::create(frame.builder, frame.loc);
  if (scheduler)
    scheduler->store(taken, frame.toI32(getUse(tiles)));
}

void WorkItems::attendRows(const TileWork &work,
                           const WorkItemCode &code) const {
  bool isSplit = grid.op.getWorkspace() != nullptr;
  block.begin(work);
  Value hasRows = frame.below(block.first, block.rows.count);
  if (isSplit)
    hasRows = arith::AndIOp::create(
        frame.builder, frame.loc, hasRows,
        grid.splits.hasRows(work.isWhole, block.rows.count));
  auto storeOutputs = [](const FragmentResults &results,
                         const RowStates &states) {
    results.storeOutputs(states);
  };
  frame.runIf(hasRows, [&] {
    block.findRows();
    code.allocate(work.thread);
    block.findTokens();
    if (!isSplit)
      return code.forResults(code.attend(), storeOutputs);
    TokenSplit split = TokenSplit::find(block);
    frame.runIf(frame.below(split.number, split.count), [&] {
      split.take(block);
      storeResults(split, code.attend(), code);
    });
  });
}

// The scheduler has only work that is there. What the end of a work item needs
// is computed again after the loop, so that it is not live across it.
void WorkItems::attendScheduled(const TileWork &work,
                                const WorkItemCode &code) {
  placeWork(work);
  // As many uses of pipes have the same slots and phases.
  const AttentionConfig &config = block.getConfig();
  firstUse =
      frame.rem(frame.fromI32(work.carried),
                2 * *config.stages * std::max<int64_t>(*config.rawStages, 1));
  RowStates states = code.attend();
  storeResults(placeWork(grid.findWorkAgain()), states, code);
}

TokenSplit WorkItems::placeWork(const TileWork &work) const {
  block.begin(work);
  block.findRows();
  block.findTokens();
  TokenSplit split = TokenSplit::find(block);
  split.take(block);
  return split;
}

void WorkItems::storeResults(const TokenSplit &split, const RowStates &states,
                             const WorkItemCode &code) const {
  Value isWhole = frame.equal(split.count, frame.index(1));
  code.forResults(states,
                  [&](const FragmentResults &results, const RowStates &some) {
                    frame.runIf(
                        isWhole, [&] { results.storeOutputs(some); },
                        [&] { results.storeSplit(some, split.number); });
                  });
}
