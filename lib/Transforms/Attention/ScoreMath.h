//===- ScoreMath.h - From products to scores --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_SCOREMATH_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_SCOREMATH_H

#include "../Builders/DeviceMath.h"
#include "kvcache/IR/AttentionOps.h"

namespace mlir::kvcache {

/// Scores of products of queries and keys, in base 2.
class ScoreMath {
public:
  ScoreMath(const Frame &frame, AttentionOp op)
      : frame(frame), op(op), f(frame) {}

  /// The factor of queries, with which scores are in base 2, in natural units
  /// for a region `score`, or with a soft cap arguments of the tanh.
  Value getFactor() const;
  /// The factor, with the static scales of the keys of a head and the queries
  /// of a query head.
  Value getFactor(Value factor, Value head, Value queryHead) const;
  /// Scores of products that have the factor, in base 2, or natural units for a
  /// region `score`.
  Value applySoftCap(Value products) const;

  /// Whether tokens that rows see by position have scores, which regions may
  /// make -inf.
  Value isAdmitted(Value isSeen, Value scores) const;

private:
  const Frame &frame;
  /// Mutable because accessors of ops are not const.
  mutable AttentionOp op;
  DeviceMath f;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_SCOREMATH_H
