//===- WorkItems.h - The work items of a block ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_WORKITEMS_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_WORKITEMS_H

#include "FragmentResults.h"
#include "QueryStage.h"
#include "ScheduledTiles.h"
#include "TokenSplit.h"

namespace mlir::kvcache {

/// The code of a kernel for each work item.
struct WorkItemCode {
  /// Allocates tiles. A persistent kernel has them for all work items.
  std::function<void(Value thread)> allocate;
  /// Computes the sums of the block's rows over its tokens.
  std::function<RowStates()> attend;
  /// Runs a function with the sums of some elements of values, all in turn, and
  /// with what stores them.
  using Store = function_ref<void(const FragmentResults &, const RowStates &)>;
  std::function<void(const RowStates &, Store)> forResults;
};

/// The work items of a block: the rows that it computes, and the split of their
/// tokens. A persistent kernel has several work items.
class WorkItems {
public:
  WorkItems(const KernelContext &kernel, TileRows &block)
      : kernel(kernel), block(block), frame(kernel.frame) {}

  /// Emits the kernel, of `threads` threads a block.
  void emit(int64_t threads, const WorkItemCode &code);

  /// The number of a tile among all uses of a pipe, or one with the same slot
  /// and phase: the block's work items before have used the pipe.
  Value getUse(Value tile) const {
    return firstUse ? frame.add(tile, firstUse) : tile;
  }

  /// Stores the queries of a work item of so many tiles, whose copies have
  /// started, for products that read them by the async proxy or not. A
  /// persistent kernel takes the next work item meanwhile.
  void storeQueries(const QueryStage &queries, Value tiles,
                    bool isAsyncRead) const;

private:
  void attendRows(const TileWork &work, const WorkItemCode &code) const;
  /// Computes a split of rows that see `seen`, which the cluster merges.
  void attendInCluster(const BlockRows &rows, const SeenTokens &seen,
                       const WorkItemCode &code) const;
  void attendScheduled(const ScheduledTile &tile, const WorkItemCode &code);
  /// Finds the rows of a work item, and the split of their tokens.
  TokenSplit placeWork(const TileWork &work) const;
  void storeResults(const TokenSplit &split, const RowStates &states,
                    const WorkItemCode &code) const;

  const KernelContext &kernel;
  TileRows &block;
  const Frame &frame;
  /// The uses of pipes before the first tile; null unless the kernel is
  /// persistent.
  Value firstUse;
  /// The item that runs in a persistent kernel; otherwise null.
  const RunningItem *running = nullptr;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_WORKITEMS_H
