//===- TileResults.h - Parts and outputs of a block -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILERESULTS_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILERESULTS_H

#include "TileRows.h"
#include "TokenSplit.h"

namespace mlir::kvcache {

/// The part of the tokens that a block takes, and what becomes of its sums:
/// they are outputs, or another launch merges them with those of other blocks.
class TileResults : protected TileRows {
protected:
  TileResults(AttentionOp op, const Frame &frame, const TilePlan &plan);

  /// Stores the outputs of the lane's rows from their state.
  void endRows(const TileState &state);
  /// The same, or with other parts stores the part.
  void endPart(const TileWork &work, const TileState &state);

  /// The difference of a row's largest score and the exponent that its weights
  /// are relative to.
  float getWeightBias();
  TokenSplit split;
  /// The number of tiles.
  Value tiles;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILERESULTS_H
