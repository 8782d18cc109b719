//===- SeenRanges.h - The ranges of tokens that rows see --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_SEENRANGES_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_SEENRANGES_H

#include "../Builders/Frame.h"
#include "../PlanAttention/AttentionSizes.h"
#include "TokenRange.h"
#include "kvcache/IR/AttentionOps.h"

namespace mlir::kvcache {

/// The operand `ranges` of attention. Rows are those of the whole batch.
class SeenRanges {
public:
  SeenRanges(const Frame &frame, AttentionOp op)
      : frame(frame), ranges(op.getRanges()) {}

  bool hasGaps() const { return kvcache::hasGaps(ranges); }
  /// With checks, the ranges of a row are sorted.
  void check(Value row) const;

  /// The tokens from the first begin to the last end of a row; none of a row
  /// that the operand does not have. Bounds may be beyond the sequence.
  TokenRange getHull(Value row) const;
  /// The least range with all hulls of some rows, and the tokens that are in
  /// all hulls. With `lane`, the lanes of a warp share the work.
  AdmittedTokens computeHulls(Value firstRow, Value count, Value lane) const;

  /// Whether a row sees any and all of some tokens: `any` may also be true for
  /// a row with empty ranges, and `all` false for ranges side by side.
  AdmittedPairs computePairs(Value row, const TokenRange &tokens) const;

  /// Runs `body` for each gap between two ranges, with its number, and with
  /// values that it changes.
  using GapBody = function_ref<SmallVector<Value>(Value number, ValueRange)>;
  ValueRange forGaps(ValueRange values, GapBody body) const;
  /// The tokens of a gap of a row.
  TokenRange getGap(Value row, Value number) const;

private:
  Value load(Value row, Value number, int64_t side) const;

  const Frame &frame;
  Value ranges;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_SEENRANGES_H
