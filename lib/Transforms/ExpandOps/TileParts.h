//===- TileParts.h - Parts of rows that tiles compute -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILEPARTS_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILEPARTS_H

#include "Attention.h"
#include "LaneLayout.h"

namespace mlir::kvcache {

/// A query row of a lane.
struct TileRow {
  /// Among those of the sequence, and among all.
  Value i, row;
  Value queryHead, isReal;
  TokenRange seen;
};

/// What a lane has of the sums of a warp on tensor cores.
struct TileLane {
  LaneLayout layout;
  SmallVector<TileRow> rows;
  /// The first element, and the number of those of the warp.
  Value first;
  int64_t size;
};

/// For each row of a lane the maximum and the total, then the sums.
using TileState = SmallVector<Value>;

/// Runs `body` with the first element of each run of row `r` of a lane, and
/// where its sums are in a state.
void forRuns(const Frame &frame, const TileLane &lane, int64_t r,
             function_ref<void(Value d, ArrayRef<int64_t> sums)> body);
/// The sums of a run, as a vector.
Value joinRun(const Frame &frame, const TileState &state,
              ArrayRef<int64_t> sums);

/// Stores a lane's share of a part of rows of a sequence, whose slots begin at
/// `firstSlot`: its sums, and with the first element the state of the rows.
void storePart(const Frame &frame, const Workspace &workspace,
               const TileLane &lane, Value firstSlot, Value part,
               const TileState &state);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILEPARTS_H
