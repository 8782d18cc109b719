//===- WarpRow.h - Attention of a row by a warp -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_WARPATTENTION_WARPROW_H
#define KVCACHE_LIB_TRANSFORMS_WARPATTENTION_WARPROW_H

#include "../Attention/RowNormalizer.h"
#include "../Attention/Workspace.h"
#include "WarpTokens.h"

namespace mlir::kvcache {

/// Computes a row for some query heads of a group in a warp. Softmax is online,
/// and in base 2.
class WarpRow {
public:
  WarpRow(const Frame &frame, AttentionOp op, const WarpLanes &lanes)
      : frame(frame), op(op), f(frame), lanes(lanes), tokens(frame, op, lanes) {
  }

  /// The softmax of the lane: `rowMax` of each query head, then `rowSum` of
  /// each, then pieces of `acc`.
  using State = SmallVector<Value>;

  /// Loads the queries of row `first + i` of some rows.
  void begin(const QueryRows &rows, Value i, Value row);
  /// Returns the state of a range of tokens; all lanes have the same maxima.
  State addRange(const TokenRange &range);
  /// Stores the results of the row.
  void storeOutputs(const State &state) const;
  /// Stores the state as a split of a slot of the workspace.
  void storeSplit(const State &state, const Workspace &workspace, Value slot,
                  Value split) const;

private:
  MutableArrayRef<Value> getPieces(State &state, int64_t g) const;
  State getInitialState() const;
  Value computeScore(const WarpToken &token, int64_t g) const;
  /// Adds the tokens of a step to a state.
  State addTokens(Value first, Value end, ValueRange state);
  void addRow(int64_t g, ArrayRef<WarpToken> some, ArrayRef<Value> scores,
              Value shrink, State &next) const;
  /// Combines the states of a query head in all lanes of an element. Returns
  /// also the pieces of its accumulator.
  std::pair<RowState, SmallVector<Value>> reduceRow(const State &state,
                                                    int64_t g) const;

  const Frame &frame;
  /// Mutable because accessors of ops are not const.
  mutable AttentionOp op;
  DeviceMath f;
  const WarpLanes &lanes;
  WarpTokens tokens;
  QueryRows rows;
  /// The row among those of a sequence, and of the batch.
  Value i, row;
  /// Pieces of the query of each head of the warp.
  SmallVector<Value> queries;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_WARPATTENTION_WARPROW_H
