//===- TileGrid.h - The grid of attention on tensor cores -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEGRID_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEGRID_H

#include "KernelContext.h"

#include <memory>

namespace mlir::kvcache {

/// The rows of a block: its tile of those of a sequence, and, where they are
/// split, its split of the tokens.
struct TileWork {
  Value sequence, number;
  /// Null if no rows are split.
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
  /// The workspace; null without one, or if clusters merge splits.
  std::shared_ptr<const Workspace> workspace;
};

/// Query heads of a block: the head of the caches, and the first query head.
struct HeadShare {
  Value head, firstHead;

  /// Finds the heads of a share of all.
  static HeadShare find(const KernelContext &kernel, Value share);
};

/// Runs `body` in the threads of each block of a grid: a block takes some
/// tokens of a sequence, for some heads of a group each.
void forGridTiles(const KernelContext &kernel, int64_t threads,
                  function_ref<void(const TileWork &)> body);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEGRID_H
