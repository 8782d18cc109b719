//===- IndexBuilder.h - Index arithmetic and branches -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_INDEXBUILDER_H
#define KVCACHE_SUPPORT_INDEXBUILDER_H

#include "mlir/IR/Builders.h"

namespace mlir::kvcache {

/// Builds index arithmetic with a fixed builder and location.
class IndexBuilder {
public:
  IndexBuilder(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value index(int64_t value) const;
  Value i32(int64_t value) const;
  Value add(Value lhs, Value rhs) const;
  Value sub(Value lhs, Value rhs) const;
  Value mul(Value lhs, Value rhs) const;
  Value div(Value lhs, Value rhs) const;
  Value rem(Value lhs, Value rhs) const;
  Value min(Value lhs, Value rhs) const;
  Value max(Value lhs, Value rhs) const;
  Value equal(Value lhs, Value rhs) const;
  /// `lhs < rhs`, unsigned.
  Value below(Value lhs, Value rhs) const;
  /// `lhs < rhs`, signed.
  Value less(Value lhs, Value rhs) const;
  Value toI32(Value value) const;
  /// Casts an unsigned 32-bit value to an index.
  Value fromI32(Value value) const;

  /// `then()` if the condition holds, else `otherwise()`. Both values have the
  /// same type.
  Value selectIf(Value condition, function_ref<Value()> then,
                 function_ref<Value()> otherwise) const;
  /// Runs `body` if the condition holds.
  void runIf(Value condition, function_ref<void()> body) const;
  /// Runs `body` with `first, first + step, …` below `end`.
  void loop(Value first, Value end, Value step,
            function_ref<void(Value)> body) const;

  OpBuilder &builder;
  Location loc;
};

} // namespace mlir::kvcache

#endif // KVCACHE_SUPPORT_INDEXBUILDER_H
