//===- ScoreKeys.h - Scores as numbers that sort as they do -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SELECTION_SCOREKEYS_H
#define KVCACHE_LIB_TRANSFORMS_SELECTION_SCOREKEYS_H

#include "../Builders/Frame.h"
#include "kvcache/IR/SelectionOps.h"

namespace mlir::kvcache {

/// The scores of a row as keys: unsigned numbers of 32 bits that are in the
/// order of the scores. A NaN has the key 1, candidates that are always
/// selected have the largest one, and places from the end on have 0.
class ScoreKeys {
public:
  /// The keys of the first `end` scores of a row, which has so many candidates
  /// or more; `row` is its index without the column.
  ScoreKeys(const Frame &frame, TopRowsOp op, ValueRange row, Value candidates,
            Value end)
      : frame(frame), scores(op.getScores()), row(row),
        candidates(frame.toI32(candidates)), end(frame.toI32(end)),
        first(op.getFirst()), last(op.getLast()) {}

  /// Loads the score of a candidate, an i32, and returns its key.
  Value load(Value candidate) const;

private:
  Value select(Value condition, Value then, Value otherwise) const;
  /// The key of the bits of a score.
  Value getKey(Value bits) const;
  /// Whether a candidate is one of the first or the last.
  Value isForced(Value candidate) const;

  const Frame &frame;
  Value scores;
  ValueRange row;
  Value candidates, end;
  int64_t first, last;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_SELECTION_SCOREKEYS_H
