//===- WorkItems.cpp - The work items of a block --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WorkItems.h"

#include "../PlanAttention/ExponentBias.h"
#include "ClusterMerge.h"
#include "TilePipe.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

void WorkItems::emit(int64_t threads, const WorkItemCode &code) {
  if (isPersistent(kernel.config))
    return forScheduledTiles(
        kernel, threads, code.allocate,
        [&](const ScheduledTile &tile) { attendScheduled(tile, code); });
  forGridTiles(kernel, threads,
               [&](const TileWork &work) { attendRows(work, code); });
}

void WorkItems::storeQueries(const QueryStage &queries, Value tiles,
                             bool isAsyncRead) const {
  // The copies take longer than the next work item.
  Value taken = running ? running->take() : Value();
  queries.store(/*count=*/Value());
  if (isAsyncRead)
    emitAsyncFence(frame);
  gpu::BarrierOp::create(frame.builder, frame.loc);
  if (running)
    running->store(taken, frame.toI32(getUse(tiles)));
}

void WorkItems::attendRows(const TileWork &work,
                           const WorkItemCode &code) const {
  bool isSplit = work.isWhole != nullptr;
  RowsPlace place = RowsPlace::find(kernel, work);
  Value hasRows = frame.below(place.first, place.sequence.count);
  if (isSplit)
    hasRows = arith::AndIOp::create(
        frame.builder, frame.loc, hasRows,
        kernel.splits.hasRows(work.isWhole, place.sequence.count));
  auto storeOutputs = [](const FragmentResults &results,
                         const RowStates &states) {
    results.storeOutputs(states);
  };
  frame.runIf(hasRows, [&] {
    BlockRows rows = BlockRows::load(kernel, work, place);
    code.allocate(work.thread);
    SeenTokens seen = rows.findTokens(kernel);
    if (!isSplit) {
      block.place(rows, seen);
      return code.forResults(code.attend(), storeOutputs);
    }
    if (mergesInCluster(kernel.config))
      return attendInCluster(rows, seen, code);
    TokenSplit split = TokenSplit::find(kernel, work, seen);
    frame.runIf(frame.below(split.number, split.count), [&] {
      block.place(rows, split.restrict(frame, seen));
      storeResults(split, code.attend(), code);
    });
  });
}

// All blocks of a cluster have the same rows, and so the same number of splits,
// unless they have whole rows, which have one split each.
void WorkItems::attendInCluster(const BlockRows &rows, const SeenTokens &seen,
                                const WorkItemCode &code) const {
  ClusterMerge cluster(block);
  cluster.allocate();
  TokenSplit split = TokenSplit::find(kernel, rows.work, seen);
  Value isWhole = frame.equal(split.count, frame.index(1));
  frame.runIf(frame.below(split.number, split.count), [&] {
    block.place(rows, split.restrict(frame, seen));
    code.forResults(code.attend(), [&](const FragmentResults &results,
                                       const RowStates &states) {
      frame.runIf(
          isWhole, [&] { results.storeOutputs(states); },
          [&] { results.storeSplitTile(states, cluster.getTile()); });
    });
  });
  frame.runIf(frame.below(frame.index(1), split.count), [&] {
    block.place(rows, seen);
    cluster.merge(split.count, getExponentBias(block.getOp(), kernel.config));
  });
}

// The scheduler has only work that is there. What the end of a work item needs
// is computed again after the loop, so that it is not live across it.
void WorkItems::attendScheduled(const ScheduledTile &tile,
                                const WorkItemCode &code) {
  placeWork(tile.work);
  running = &tile.item;
  // As many uses of pipes have the same slots and phases.
  const AttentionConfig &config = block.getConfig();
  firstUse =
      frame.rem(frame.fromI32(tile.work.carried),
                2 * *config.stages * std::max<int64_t>(*config.rawStages, 1));
  RowStates states = code.attend();
  storeResults(placeWork(tile.reloadWork(kernel)), states, code);
}

TokenSplit WorkItems::placeWork(const TileWork &work) const {
  BlockRows rows = BlockRows::load(kernel, work, RowsPlace::find(kernel, work));
  SeenTokens seen = rows.findTokens(kernel);
  TokenSplit split = TokenSplit::find(kernel, work, seen);
  block.place(rows, split.restrict(frame, seen));
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
