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

/// Merges the parts of the rows of a block in the workspace.
class TileParts {
public:
  /// The parts of rows from `first` on of a sequence, each of which has
  /// `split_rows` slots. `counted` is a tile for a number.
  TileParts(const Frame &frame, const Workspace &workspace,
            const TileLane &lane, Value thread, Value firstSlot, Value first,
            Value firstHead, Value counted);

  /// Allocates the tile for the number of parts that are stored.
  static Value allocate(const Frame &frame);

  /// Stores a part, whose totals are those of whole rows. Returns whether all
  /// other parts of the rows are stored, and their sums if they are: the block
  /// that is the last leaves zeros in the workspace.
  std::pair<Value, TileState> publish(Value part, Value parts,
                                      const TileState &state) const;

  // The steps of `publish`, for lanes that have their elements one range after
  // the other.

  /// Stores the sums, and with the first element the state of the rows.
  void store(Value part, const TileState &state) const;
  /// Whether all other parts of the rows are stored.
  Value isLast(Value parts) const;
  /// The maxima of the rows in all parts.
  TileState findMaxima(Value parts) const;
  /// The state and the sums of all parts.
  TileState merge(Value parts, const TileState &maxima) const;
  /// Sets the sums to 0, and with the first element the state of the rows.
  void clear(Value parts) const;
  void clearCounter() const;

private:
  Value getPart(const TileRow &row, Value part) const;
  void addPart(int64_t r, Value part, TileState &sums) const;

  Frame frame;
  OpBuilder &builder;
  Location loc;
  DeviceMath f;
  Workspace workspace;
  TileLane lane;
  Value thread, firstSlot, first, firstHead, counted;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILEPARTS_H
