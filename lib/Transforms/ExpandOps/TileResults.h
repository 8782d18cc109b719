//===- TileResults.h - Parts and outputs of a block -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILERESULTS_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILERESULTS_H

#include "TensorSums.h"
#include "TileRows.h"
#include "TokenSplit.h"

namespace mlir::kvcache {

/// The part of the tokens that a block takes, and what becomes of its sums:
/// they are outputs, or another launch merges them with those of other blocks.
class TileResults : protected TileRows {
protected:
  TileResults(AttentionOp op, const Frame &frame, const TilePlan &plan);

  /// Stores the outputs of the lane's rows from their state, which has the sums
  /// unless they are in tensor memory.
  void endColumns(const TileState &state);
  /// The same, or with other parts stores the part.
  void endPart(const TileWork &work, const TileState &state);

  /// Whether tiles before this one have sums.
  Value hasSums(Value tile) { return frame.below(frame.index(0), tile); }

  /// The difference of a row's largest score and the exponent that its weights
  /// are relative to.
  float getWeightBias();
  /// The growth of a maximum up to which sums in tensor memory are not scaled.
  /// `max_logits` needs exact maxima.
  float getSlack() { return op.getMaxLogits() ? 0 : kSlack; }
  /// Whether sums are in tensor memory.
  bool inTensorMemory;
  TensorSums sums;
  TokenSplit split;
  /// The number of tiles.
  Value tiles;

private:
  /// Runs `body` with a lane of some of the elements, and its sums after the
  /// state of its rows; in registers, it has all.
  void forColumns(
      const TileState &state,
      function_ref<void(const TileLane &lane, const TileState &state)> body);
  TileLane getLane(Value firstColumn);
  /// Ends the rows of a lane, and stores its elements.
  void endRows(const TileLane &lane, const TileState &state);
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILERESULTS_H
