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

namespace mlir::kvcache {

/// Vectors of rows in a whole panel, and their rows.
constexpr int64_t kPanelVectors = 4, kPanelRows = kPanelVectors * kLanes;
/// The tokens that the softmax has in a step.
constexpr int64_t kTokenSteps = 4;
/// The tokens of scores are a multiple of these.
inline int64_t getTokenSteps(HostMma mma) {
  return mma == HostMma::AMX ? 2 * kLanes : 2 * kTokenSteps;
}

/// Memory of the rows of a block, which are lanes: row `r` is lane
/// `r mod kLanes` of vector `r / kLanes`. Where products are of pairs of bf16,
/// two elements of a query are one, and two probabilities.
struct RowLanes {
  /// Rows of the block.
  int64_t rows;
  /// The queries, times the factor unless they are pairs, and the accumulators:
  /// [vectors, size, lanes].
  Value queries, acc;
  /// The factors of scores of pairs, [rows]; null for others.
  Value factors;
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
  /// Scores of a panel, and then probabilities from row 0 on:
  /// [vectors, tokens, lanes] of f32, or with the bits of pairs.
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

  /// The indices of row `row` of a matrix for the vector with lane `lane`.
  SmallVector<Value> at(Value lane, Value row) const {
    return {frame.div(lane, kLanes), row, frame.index(0)};
  }
  /// The lanes from `indices` on, of the element type of the memory.
  Value load(Value memory, ValueRange indices) const;
  void store(Value vector, Value memory, ValueRange indices) const;
  /// A float of memory in all lanes.
  Value broadcast(Value memory, ValueRange indices) const;
  Value splat(Value scalar) const;

private:
  const Frame &frame;
};

/// The indices of an element of a matrix of 32 bits whose tiles are contiguous:
/// [rows / lanes, columns / lanes, lanes, lanes].
SmallVector<Value> getTiledIndices(const Frame &frame, Value row, Value column);

/// The lanes whose probabilities are those of tokens that rows do not see.
Value isUnseen(const Frame &frame, Value probs);

/// Transposes vectors of floats: lane `i` of result `j` is lane `j` of vector
/// `i`.
SmallVector<Value> transpose(const Frame &frame, ArrayRef<Value> vectors);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_ROWLANES_H
