//===- ScheduledTiles.h - Work items of a persistent kernel -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SCHEDULEDTILES_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SCHEDULEDTILES_H

#include "PersistentScheduler.h"
#include "TileGrid.h"

namespace mlir::kvcache {

/// A work item of a persistent kernel.
struct ScheduledTile {
  TileWork work;
  const RunningItem &item;
  /// The number of sequences.
  Value batch;

  /// The work again, as shared memory has it.
  TileWork reloadWork(const KernelContext &kernel) const;
};

/// Runs `allocate` in the threads of each block of a persistent kernel, and
/// then `body` for each work item that it takes.
void forScheduledTiles(const KernelContext &kernel, int64_t threads,
                       function_ref<void(Value thread)> allocate,
                       function_ref<void(const ScheduledTile &)> body);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SCHEDULEDTILES_H
