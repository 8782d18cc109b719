//===- TileGrid.h - Which rows a block of tiles computes --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEGRID_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEGRID_H

#include "../PlanAttention/AttentionSizes.h"
#include "../PlanAttention/BlockShape.h"
#include "../PlanAttention/TileSizes.h"
#include "PersistentScheduler.h"

namespace mlir::kvcache {

/// The rows of a block: its tile of those of a sequence, and, where they are
/// split, its split of the tokens.
struct TileWork {
  Value sequence, number;
  /// Null without a workspace.
  Value isWhole, split;
  /// If they are split, the slot of the sequence's row 0, or of the sparse row:
  /// without a schedule a function of the block's number, which costs no
  /// register.
  Value slot;
  /// With a schedule, what the block's work before has left, and the columns of
  /// sparse rows; otherwise null.
  Value carried, columns;
  /// The thread, the head of the caches, and the first query head.
  Value thread, head, firstHead;
};

/// The grid of attention on tensor cores: a block takes some tokens of a
/// sequence, for some heads of a group each.
class TileGrid {
public:
  TileGrid(AttentionOp op, const Frame &frame, const AttentionConfig &config);

  /// Runs `body` in the threads of each block, in a persistent kernel
  /// for each work item that it takes. `allocate` then runs once before these.
  void forTiles(int64_t threads, function_ref<void(Value thread)> allocate,
                function_ref<void(const TileWork &)> body);

  /// In a persistent kernel, the work of the item that runs, as memory has it.
  TileWork findWorkAgain();

  /// The scheduler of a persistent kernel; null for others.
  const PersistentScheduler *getScheduler() const {
    return scheduler ? &*scheduler : nullptr;
  }

  AttentionOp op;
  const Frame frame;
  const AttentionConfig config;
  const AttentionSizes sizes;
  const BlockShape shape;
  KeySplits splits;

private:
  void forScheduledTiles(int64_t threads,
                         function_ref<void(Value thread)> allocate,
                         function_ref<void(const TileWork &)> body);
  /// Sets the head of the caches, and the first query head, of a share of the
  /// heads.
  void setHeads(TileWork &work, Value share) const;
  /// The blocks of a layer of the grid, for each share of the heads.
  Value countBlocks();
  Value getFirstBlock(Value sequence);
  /// Sets the rows of a block without splits.
  void setWholeRows(TileWork &work, Value block);
  /// Sets the rows and the split of a block. The first layer of the grid has
  /// whole rows, and the next ones have splits.
  void setWork(TileWork &work, Value number, Value layer, Value block);

  TileWork getScheduledWork(const ScheduledItem &item);
  /// Sets the rows of an entry of the schedule: the whole rows of a sequence,
  /// which take longest and come first, or the splits of a tile of its rows.
  void setEntry(TileWork &work, Value entry);
  /// The work items of an entry: tiles, or splits.
  Value countItems(Value entry);

  /// Sequences, blocks of whole rows, and blocks of a layer that have splits.
  Value batch, wholeBlocks, splitBlocks;
  std::optional<PersistentScheduler> scheduler;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEGRID_H
