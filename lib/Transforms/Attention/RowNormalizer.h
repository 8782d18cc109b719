//===- RowNormalizer.h - Normalization of a row's results -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_ROWNORMALIZER_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_ROWNORMALIZER_H

#include "../Builders/DeviceMath.h"
#include "kvcache/IR/AttentionOps.h"
#include "kvcache/IR/SplitOps.h"

#include <limits>

namespace mlir::kvcache {

/// The maximum of no scores. Relative to it, the probability of a score of -inf
/// is 0.
constexpr float kLowest = std::numeric_limits<float>::lowest();

/// The sum of exponentials of a row is `rowSum` times 2^`rowMax`. `factor` is
/// one more factor of its accumulator.
struct RowState {
  Value rowMax, rowSum, factor;
};

/// The outputs of rows, and the operands that they are computed with. All but
/// `out` may be null.
struct RowOperands {
  Value out, lse, maxLogits, sinks, valueScale, outScale;
  bool hasSinklessLse;

  static RowOperands get(AttentionOp op);
  static RowOperands get(MergeSplitsOp op);
};

/// The end of the softmax of a row: its sink, the quotient that its values are
/// multiplied by, and its statistics.
class RowNormalizer {
public:
  RowNormalizer(const Frame &frame, const RowOperands &operands)
      : frame(frame), operands(operands), f(frame) {}

  /// Adds the sink of a head, if there are sinks.
  RowState addSink(const RowState &state, Value queryHead) const;
  /// The factor of the accumulator of a row, with the static scale of values of
  /// a head of the cache; 0 without tokens.
  Value getQuotient(const RowState &state, Value head, Value queryHead) const;
  /// The natural logarithm of a row's sum of exponentials, -inf without tokens.
  Value getLogarithm(const RowState &state) const;
  /// The largest score of a row, from a state without the sink whose maximum is
  /// lower by `bias`; -inf without tokens.
  Value getLargestScore(const RowState &scores, float bias) const;
  /// The state that `lse` is the logarithm of: `scores`, or `all` with the
  /// sink.
  const RowState &getLseState(const RowState &scores,
                              const RowState &all) const;
  /// Stores the logarithm and the largest score of a row, if they are wanted
  /// and there is room for them.
  void storeStatistics(const RowState &scores, const RowState &all, float bias,
                       Value row, Value queryHead) const;

private:
  const Frame &frame;
  RowOperands operands;
  DeviceMath f;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_ROWNORMALIZER_H
