//===- SchedulerState.h - Numbers of a persistent scheduler -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SCHEDULERSTATE_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SCHEDULERSTATE_H

#include "../Builders/Frame.h"

namespace mlir::kvcache {

/// The numbers that threads of a persistent kernel share: rows of a tile in
/// shared memory, of i32.
class SchedulerState {
public:
  enum Row : int64_t {
    /// The next item, the base of the group of the last one, the items before
    /// that group, and the number that an item leaves for the next.
    Next,
    /// The entry, number and share of the item that runs.
    Running,
    /// The slots of the workspace.
    Slots,
  };

  /// Allocates the tile.
  explicit SchedulerState(const Frame &frame);

  SmallVector<Value> load(Row row) const;
  void store(Row row, ValueRange numbers) const;

private:
  Frame frame;
  Value tile;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SCHEDULERSTATE_H
