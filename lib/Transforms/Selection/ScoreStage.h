//===- ScoreStage.h - Keys and queries in shared memory ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SELECTION_SCORESTAGE_H
#define KVCACHE_LIB_TRANSFORMS_SELECTION_SCORESTAGE_H

#include "IndexQueries.h"
#include "KeyTiles.h"

namespace mlir::kvcache {

/// Some rows of a sequence, and the entries that a block scores for them.
struct ScoreWork {
  Value thread, sequence;
  /// The first row, their number, and the tokens that the first one sees.
  Value row, count, visible;
  /// The entries.
  Value begin, end;
};

/// The shared memory of a block that scores tiles of keys: a pipe of tiles or a
/// tile that is converted, and the queries and weights of its rows.
class ScoreStage {
public:
  ScoreStage(IndexScoresOp op, const Frame &frame, const KeyTiles &tiles)
      : op(op), frame(frame), tiles(tiles), rows(op, frame) {}

  void allocate();
  Value getPipe() const { return pipe; }
  /// The tile that warps convert; null with a pipe.
  Value getKeys() const { return keys; }
  /// The tile of queries: a row for each head of each row of the block.
  Value getQueries() const { return queries; }
  /// The tile of weights: a row for each row of the block. Null without
  /// weights.
  Value getWeights() const { return weights; }
  /// The tile of scales: a row for each group of each row of the block. Null
  /// without scales.
  Value getScales() const { return scales; }

  /// Starts the copy of tile `number` of `count`, if there is one.
  void copyTile(const ScoreWork &work, Value number, Value count);
  /// Stores queries and weights. The barrier after it is the caller's.
  void storeRows(const ScoreWork &work);

private:
  void storeQueries(const ScoreWork &work);
  void storeWeights(const ScoreWork &work);
  void storeScales(const ScoreWork &work);

  IndexScoresOp op;
  const Frame &frame;
  KeyTiles tiles;
  IndexQueries rows;
  Value pipe, keys, queries, weights, scales;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_SELECTION_SCORESTAGE_H
