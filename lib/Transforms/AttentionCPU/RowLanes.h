//===- RowLanes.h - Rows of attention in lanes of vectors -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_ROWLANES_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_ROWLANES_H

#include "SeenBits.h"
#include "TokenTile.h"

namespace mlir::kvcache {

/// Vectors of rows in a whole panel, and their rows.
constexpr int64_t kPanelVectors = 4, kPanelRows = kPanelVectors * kLanes;
/// The tokens of scores are a multiple of these.
constexpr int64_t kTokenSteps = 4;

/// Memory of the rows of a block, which are lanes: row `r` has number `r` in
/// the last dimension.
struct RowLanes {
  /// Rows of the block.
  int64_t rows;
  /// The queries times the factor, [size, rows], and the accumulators of
  /// values, [size, rows].
  Value queries, acc;
  /// [rows] each.
  Value rowMax, rowSum;
  /// The first token that a row sees, and how many it sees from there on, by
  /// position; [rows] of i32.
  Value from, length;
  /// Query heads and positions in the sequence, [rows] of i32; null without
  /// regions.
  Value heads, positions;
  /// A bit for each token of the tile that a row sees by mask, ranges and ids:
  /// [tokens / 32, rows] of i32; null if it sees all.
  Value seenBits;
  /// Scores of a panel, and then probs: [tokens, rows of a panel].
  Value scores;
};

/// Rows [first, first + count) of a block: at most those of a whole panel, and
/// a multiple of those of a vector.
struct Panel {
  Value first, count;
};

/// Loads and stores of vectors of rows.
class LaneBuilder {
public:
  explicit LaneBuilder(const Frame &frame) : frame(frame) {}

  /// The lanes from `indices` on, of the element type of the memory.
  Value load(Value memory, ValueRange indices) const;
  void store(Value vector, Value memory, ValueRange indices) const;
  /// A float of memory in all lanes.
  Value broadcast(Value memory, ValueRange indices) const;
  Value splat(Value scalar) const;

private:
  const Frame &frame;
};

/// Computes scores of tokens [begin, end) of a tile for the rows of a panel.
/// Both are multiples of `kTokenSteps`.
void multiplyKeys(const Frame &frame, const RowLanes &lanes, const Panel &panel,
                  const TokenTile &tile, Value begin, Value end);

/// Adds the values of tokens [begin, end) of a tile times the probs of a
/// panel. If `isOdd`, probs of -0 add nothing, whatever the value is.
void addValues(const Frame &frame, const RowLanes &lanes, const Panel &panel,
               const TokenTile &tile, Value begin, Value end, Value isOdd);

/// Transposes vectors of floats: lane `i` of result `j` is lane `j` of vector
/// `i`.
SmallVector<Value> transpose(const Frame &frame, ArrayRef<Value> vectors);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_ROWLANES_H
