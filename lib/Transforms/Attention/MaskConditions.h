//===- MaskConditions.h - Bounds of a mask's conditions ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_MASKCONDITIONS_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_MASKCONDITIONS_H

#include "MaskBounds.h"
#include "MaskIntervals.h"

namespace mlir::kvcache {

/// Conditions of a region `mask`: `any` and `all` if they do not depend on the
/// token, else the tokens for which they hold.
struct MaskCondition {
  Value any, all;
  AdmittedTokens tokens;
};

/// Builds conditions from intervals and other conditions.
class ConditionMath {
public:
  /// For a sequence of `tokens` tokens. If tokens are searched, what is unknown
  /// holds for some of all tokens, and otherwise for some pairs.
  ConditionMath(const IntervalMath &intervals, const IndexBuilder &builder,
                Value zero, Value tokens, bool searchesTokens)
      : intervals(intervals), b(builder), none(zero), tokens(tokens),
        searchesTokens(searchesTokens) {}

  MaskCondition getUnknown() const;
  /// The tokens for which a condition holds.
  AdmittedTokens getTokens(const MaskCondition &condition) const;

  MaskCondition compare(arith::CmpIPredicate predicate, const MaskInterval &lhs,
                        const MaskInterval &rhs) const;
  MaskCondition conjoin(const MaskCondition &lhs,
                        const MaskCondition &rhs) const;
  /// The tokens that all rows see are those of the longer range.
  MaskCondition disjoin(const MaskCondition &lhs,
                        const MaskCondition &rhs) const;
  MaskCondition invert(const MaskCondition &condition) const;

private:
  /// `lhs < rhs`, or `lhs <= rhs`.
  MaskCondition computeLess(MaskInterval lhs, MaskInterval rhs,
                            bool orEqual) const;
  MaskCondition computeEqual(MaskInterval lhs, MaskInterval rhs) const;
  /// The tokens `t / c` that are equal to numbers.
  MaskCondition equalQuotient(const MaskInterval &quotient,
                              const MaskInterval &numbers) const;

  Value constant(bool value) const;
  Value compare(Value lhs, Value rhs, bool orEqual) const;
  Value both(Value lhs, Value rhs) const;
  Value either(Value lhs, Value rhs) const;
  Value negate(Value value) const;

  const IntervalMath &intervals;
  const IndexBuilder &b;
  Value none, tokens;
  bool searchesTokens;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_MASKCONDITIONS_H
