//===- IndexBuilder.h - Index arithmetic and branches -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_INDEXBUILDER_H
#define KVCACHE_SUPPORT_INDEXBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace mlir::kvcache {

/// Two values of one branch.
using ValuePair = std::pair<Value, Value>;

/// Builds index arithmetic with a fixed builder and location.
class IndexBuilder {
public:
  /// `flags` are those of sums, differences and products.
  IndexBuilder(OpBuilder &builder, Location loc,
               arith::IntegerOverflowFlags flags = {})
      : builder(builder), loc(loc), flags(flags) {}

  Value index(int64_t value) const;
  Value i32(int64_t value) const;
  /// A constant of the type of `value`, which is an index or an i32.
  Value constantLike(Value value, int64_t constant) const;
  Value add(Value lhs, Value rhs) const;
  Value sub(Value lhs, Value rhs) const;
  Value mul(Value lhs, Value rhs) const;
  Value mul(Value lhs, int64_t rhs) const;
  /// Unsigned quotient and remainder. Powers of two become shifts and masks,
  /// other constants multiply-high, in LLVM.
  Value div(Value lhs, Value rhs) const;
  Value div(Value lhs, int64_t rhs) const;
  Value rem(Value lhs, Value rhs) const;
  Value rem(Value lhs, int64_t rhs) const;
  Value min(Value lhs, Value rhs) const;
  Value max(Value lhs, Value rhs) const;
  Value equal(Value lhs, Value rhs) const;
  /// `lhs < rhs`, unsigned.
  Value below(Value lhs, Value rhs) const;
  /// `lhs < rhs`, signed.
  Value less(Value lhs, Value rhs) const;
  /// The low 32 bits of an index.
  Value toI32(Value value) const;
  /// An unsigned 32-bit value as an index.
  Value fromI32(Value value) const;

  /// `then()` if the condition holds, else `otherwise()`. Both values, or pairs
  /// of values, have the same types.
  Value selectIf(Value condition, function_ref<Value()> then,
                 function_ref<Value()> otherwise) const;
  ValuePair selectPairIf(Value condition, function_ref<ValuePair()> then,
                         function_ref<ValuePair()> otherwise) const;
  /// Runs `body` if the condition holds, else `otherwise` if there is one.
  void runIf(Value condition, function_ref<void()> body,
             function_ref<void()> otherwise = nullptr) const;
  /// Runs `body` with `first, first + step, …` below `end`.
  void loop(Value first, Value end, Value step,
            function_ref<void(Value)> body) const;

  OpBuilder &builder;
  Location loc;

private:
  arith::IntegerOverflowFlags flags;
};

} // namespace mlir::kvcache

#endif // KVCACHE_SUPPORT_INDEXBUILDER_H
