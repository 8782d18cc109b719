//===- PersistentScheduler.h - Work items of a persistent kernel *- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_PERSISTENTSCHEDULER_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_PERSISTENTSCHEDULER_H

#include "../Attention/KeySplits.h"
#include "SchedulerState.h"

namespace mlir::kvcache {

/// Returns an opaque copy of an i32 that all lanes of the warp have.
Value unifyLanes(const Frame &frame, Value number);

/// A work item: the entry that has it, its number there, and its share.
/// Indices.
struct ScheduledItem {
  Value entry, number, share;
  /// The thread of the block, and the slots of the workspace: opaque copies, so
  /// that results computed from them are not live in other items.
  Value thread, slots;
  /// The number that the block's item before has left, an i32: at first 0.
  Value carried;
};

/// The item that the threads of a block of a persistent kernel compute.
class RunningItem {
public:
  /// `item` has a base group of entries, which begins at entry `base` with so
  /// many items before it.
  RunningItem(const Frame &frame, const KeySplits &splits,
              const SchedulerState &state, const ScheduledItem &item,
              Value base, Value before)
      : frame(frame), splits(splits), state(state), item(item), base(base),
        before(before) {}

  const ScheduledItem &get() const { return item; }
  /// After a barrier that follows the beginning of the item: the item, as
  /// shared memory has it.
  ScheduledItem reload() const;
  /// Takes the next item, once. `store` is called after such a barrier.
  /// `carried` is left for that item.
  Value take() const;
  void store(Value taken, Value carried) const;
  /// An opaque copy of an i32 that all lanes have, so that results computed
  /// from it are not live in other items. For whole warps.
  Value unify(Value number) const;

private:
  Value isFirstThread() const;

  const Frame &frame;
  const KeySplits &splits;
  const SchedulerState &state;
  ScheduledItem item;
  Value base, before;
};

/// The scheduler of a persistent kernel, which each block computes for itself.
/// Items are those of entry 0, then of entry 1 and so on, and each has shares.
/// A block takes the next item that no block has taken, by a counter in the
/// workspace, which the last block leaves zero. There are less than 2^31 items.
class PersistentScheduler {
public:
  /// For a grid of `blocks` blocks and a workspace of `slots` slots. `thread`
  /// is the thread in its block.
  PersistentScheduler(const Frame &frame, const KeySplits &splits, Value slots,
                      int64_t blocks, int64_t shares, Value thread);

  /// Runs `body` in all threads of a block for each item that it takes, with a
  /// barrier before it. `countItems` gives the items of an entry below
  /// `entries`; each lane of a warp counts those of another.
  void run(Value entries, function_ref<Value(Value entry)> countItems,
           function_ref<void(const RunningItem &)> body) const;

private:
  const Frame &frame;
  const KeySplits &splits;
  Value slots;
  int64_t blocks, shares;
  Value thread;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_PERSISTENTSCHEDULER_H
