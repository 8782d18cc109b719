//===- PanelSoftmax.h - Softmax with rows in lanes --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_PANELSOFTMAX_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_PANELSOFTMAX_H

#include "../Attention/ScoreRegions.h"
#include "RowLanes.h"
#include "TokenTile.h"

namespace mlir::kvcache {

/// The scores of a panel for tokens [begin, end) of a tile, whose first token
/// is `token`.
struct PanelScores {
  Panel panel;
  Value token, begin, end;
  /// Whether each row of the panel sees all of these tokens.
  bool areAllSeen;
};

/// Turns the scores of a panel into probabilities. Maxima, sums and the
/// accumulators of its rows follow.
class PanelSoftmax {
public:
  PanelSoftmax(const HostAttention &attention, const QueryRows &rows,
               const RowLanes &memory, const TokenTile &tile);

  void run(const PanelScores &scores) const;

private:
  /// One vector of rows of a panel: its lanes in the block, and in the panel.
  struct Rows {
    Value inBlock, inPanel;
  };
  void runRows(const PanelScores &scores, const Rows &rows) const;
  /// Stores scores in base 2, and returns the largest of each row. Products
  /// that only have a factor stay as they are.
  Value storeScores(const PanelScores &scores, const Rows &rows) const;
  /// Stores probabilities relative to `max`, and returns the sum of each row.
  /// The probability of a token that the row does not see is -0.
  Value storeProbs(const PanelScores &scores, const Rows &rows,
                   Value max) const;
  /// The probability of a token, and that times the scale of its value.
  struct Prob {
    Value unscaled, scaled;
  };
  Prob getProb(const PanelScores &scores, const Rows &rows, Value max,
               Value j) const;
  /// The larger maxima of rows, which stay as they are until they grow by much.
  Value growMax(Value oldMax, Value largest) const;
  /// Stores the probabilities of tokens from `first` on.
  void storeSteps(ArrayRef<Value> probs, const Rows &rows, Value first) const;
  /// Multiplies the accumulators of rows, unless each factor is 1.
  void rescale(const Rows &rows, Value factors) const;
  /// Whether rows see a token of the tile by position, mask, ranges and ids.
  Value isSeen(const PanelScores &scores, const Rows &rows, Value j) const;

  const HostAttention &attention;
  const QueryRows &rows;
  const RowLanes &memory;
  const TokenTile &tile;
  LaneBuilder lanes;
  /// Whether scores are products times a factor of their row.
  bool areProducts;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_PANELSOFTMAX_H
