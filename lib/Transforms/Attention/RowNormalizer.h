//===- RowNormalizer.h - Results of the sums of a row -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_ROWNORMALIZER_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_ROWNORMALIZER_H

#include "../ExpandOps/DeviceMath.h"
#include "kvcache/IR/AttentionOps.h"
#include "kvcache/IR/SplitOps.h"

#include <limits>

namespace mlir::kvcache {

/// The maximum of no scores: a score of -inf has no weight beside it.
constexpr float kLowest = std::numeric_limits<float>::lowest();

/// The sum of exponentials of a row: `total` times 2^max. Its weighted values
/// are to be multiplied by `factor` as well.
struct RowSum {
  Value max, total, factor;
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
  RowSum addSink(const RowSum &sum, Value queryHead) const;
  /// The factor of the weighted values of a row, with the static scale of
  /// values of a head of the cache; 0 without tokens.
  Value getQuotient(const RowSum &sum, Value head, Value queryHead) const;
  /// The natural logarithm of a row's sum, -inf without tokens.
  Value getLogarithm(const RowSum &sum) const;
  /// The largest score of a row, from a sum without the sink whose maximum is
  /// lower by `bias`; -inf without tokens.
  Value getLargestScore(const RowSum &scores, float bias) const;
  /// The sum that `lse` is the logarithm of: `scores`, or `all` with the sink.
  const RowSum &getLseSum(const RowSum &scores, const RowSum &all) const;
  /// Stores the logarithm and the largest score of a row, if they are wanted
  /// and there is room for them.
  void storeStatistics(const RowSum &scores, const RowSum &all, float bias,
                       Value row, Value queryHead) const;

private:
  const Frame &frame;
  RowOperands operands;
  DeviceMath f;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_ROWNORMALIZER_H
