//===- CheckBuilder.h - Build checks of an op at run time -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_RUNTIMEVERIFICATION_CHECKBUILDER_H
#define KVCACHE_LIB_TRANSFORMS_RUNTIMEVERIFICATION_CHECKBUILDER_H

#include "kvcache/IR/KVCacheDialect.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::kvcache {

/// Inserts checks of the numbers of one op, and computes these numbers.
class CheckBuilder {
public:
  CheckBuilder(OpBuilder &builder, Location loc, Operation *op)
      : b(loc, builder), name(op->getName().getStringRef()) {}

  Value index(int64_t value);

  /// Returns a size of a cache.
  Value extent(Extent kind, Value cache);

  /// Returns the number of tokens for which a sequence has entries in the
  /// table.
  Value countTokens(Value batch, TypedValue<CacheTypeInterface> cache);

  /// Returns the tokens in a page: a constant if the type says so.
  Value getPageSize(Value cache);

  Value getSize(Value memref, int64_t dim);

  /// Returns the view of the scales of a cache, which may be the operand
  /// itself.
  TypedValue<CacheTypeInterface>
  getScales(TypedValue<CacheTypeInterface> cache);

  /// Checks that a number is at least 0, and below a bound.
  void checkBelow(Value value, Value bound, StringRef what);

  void checkEqual(Value value, int64_t expected, StringRef what);

  void checkMultiple(Value value, int64_t factor, StringRef what);

  ImplicitLocOpBuilder b;
  unsigned numChecks = 0;

private:
  StringRef name;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_RUNTIMEVERIFICATION_CHECKBUILDER_H
