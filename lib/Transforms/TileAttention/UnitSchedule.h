//===- UnitSchedule.h - Units of work that blocks take ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_UNITSCHEDULE_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_UNITSCHEDULE_H

#include "../Attention/KeySplits.h"

namespace mlir::kvcache {

/// A unit of work: the entry of the schedule that it is of, its number there,
/// and its share. Indices.
struct ScheduledUnit {
  Value entry, number, share;
  /// The thread of the block, and the slots of the workspace: as other values,
  /// so that what is computed with them in a unit takes no register in others.
  Value thread, slots;
  /// The number that the block's unit before has left, an i32: at first 0.
  Value carried;
};

/// A schedule that each block of a grid computes for itself. Units are those of
/// entry 0, then of entry 1 and so on, and each has shares. A block takes the
/// next unit that no block has taken, by a counter in the workspace, which the
/// last block leaves zero. There are less than 2^31 units.
class UnitSchedule {
public:
  /// For a grid of `blocks` blocks. `thread` is the thread in its block.
  UnitSchedule(const Frame &frame, const KeySplits &splits, int64_t blocks,
               int64_t shares, Value thread);

  /// Runs `body` in all threads of a block for each unit that it takes, with a
  /// barrier before it. `countUnits` gives the units of an entry below
  /// `entries`; each lane of a warp counts those of another.
  void run(Value entries, function_ref<Value(Value entry)> countUnits,
           function_ref<void(const ScheduledUnit &)> body);

  /// In `body`, once: takes the next unit. `store` is called after a barrier
  /// that follows the beginning of the body. `carried` is left for that unit.
  Value take() const;
  void store(Value taken, Value carried) const;
  /// In `body`, after that barrier: the unit, as shared memory has it.
  ScheduledUnit getUnit() const;
  /// An i32 that all lanes have, as another value: what is computed with it in
  /// a unit takes no register in others. For whole warps.
  Value unify(Value number) const;

private:
  /// Entries from `base` on, which the lanes of a warp count; the units before
  /// them, and of all of them; those of the lane and the lanes before it, and
  /// of the lane alone. Numbers are i32.
  struct Group {
    Value base, before, total, inclusive, own;
  };
  Group count(Value base, Value before) const;
  /// The group that has a unit, or the last one.
  Group find(Value unit, Value base, Value before) const;
  /// Returns an opaque copy of the thread's number.
  Value copyThread() const;
  Value shuffle(Value value, Value lane) const;
  Workspace getWorkspace(Value slots) const;
  Value isFirstThread() const;
  /// The numbers in a row of the tile.
  SmallVector<Value> load(int64_t row) const;
  void store(int64_t row, ValueRange numbers) const;

  Frame frame;
  OpBuilder &builder;
  Location loc;
  const KeySplits &splits;
  Value slots;
  int64_t blocks, shares;
  Value thread, entries;
  function_ref<Value(Value)> countUnits;
  /// The numbers that threads share.
  Value tile;
  /// The numbers of the group of the unit that runs; the thread, its lane and
  /// the slots, as other values.
  Value base, before, sameThread, lane, sameSlots;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_UNITSCHEDULE_H
