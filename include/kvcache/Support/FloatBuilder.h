//===- FloatBuilder.h - Arithmetic of f32 -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_FLOATBUILDER_H
#define KVCACHE_SUPPORT_FLOATBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace mlir::kvcache {

/// Builds arithmetic of f32, and of vectors of f32, with a fixed builder and
/// location.
class FloatBuilder {
public:
  FloatBuilder(OpBuilder &builder, Location loc)
      : builder(builder), loc(loc), f32(builder.getF32Type()) {}

  VectorType vectorOf(int64_t lanes) const;
  /// A constant of f32, or of as many as `type` or `like` has.
  Value constant(float number) const;
  Value constant(Type type, const llvm::APFloat &number) const;
  Value constant(Type type, float number) const;
  Value constant(Value like, float number) const;

  Value add(Value lhs, Value rhs) const;
  Value add(Value lhs, float rhs) const;
  Value sub(Value lhs, Value rhs) const;
  Value mul(Value lhs, Value rhs) const;
  Value div(Value lhs, Value rhs) const;
  Value div(Value lhs, float rhs) const;
  /// `lhs * rhs + sum`, rounded once.
  Value fma(Value lhs, Value rhs, Value sum) const;
  /// The larger and the smaller number; a NaN loses.
  Value max(Value lhs, Value rhs) const;
  Value max(Value lhs, float rhs) const;
  Value min(Value lhs, float rhs) const;
  /// The larger number; the second of two of which one is a NaN. On a CPU, one
  /// instruction.
  Value larger(Value lhs, Value rhs) const;
  Value abs(Value value) const;
  Value negate(Value value) const;

  Value select(Value condition, Value then, Value otherwise) const;
  /// `then` where the comparison of `lhs` with a constant holds.
  Value select(arith::CmpFPredicate predicate, Value lhs, float rhs, Value then,
               Value otherwise) const;
  /// Whether a float is 0.
  Value isZero(Value value) const;

  /// A vector of a float.
  Value splat(Value value, int64_t lanes) const;
  /// A scalar in all lanes of a value like `like`.
  Value broadcast(Value scalar, Value like) const;
  /// One of `scales` for every `granularity` lanes of a value like `like`.
  Value spread(Value scales, Value like, int64_t granularity) const;

  /// Joins vectors of one element type by halves. An insertion of each into a
  /// vector of all takes LLVM a time that grows with the fourth power of its
  /// size.
  Value join(ArrayRef<Value> vectors) const;

  /// The sum and the largest number of a vector.
  Value sumOf(Value vector) const;
  Value maxOf(Value vector) const;
  /// The sums and the largest numbers of several vectors of one type, as one
  /// vector. For the largest ones, NaNs are as `larger` has them, lanes and
  /// vectors are powers of 2, and there are no more vectors than lanes.
  Value sumsOf(ArrayRef<Value> vectors) const;
  Value maximaOf(ArrayRef<Value> vectors) const;
  /// Combines the lanes of each of the `groups` of each vector of one type, and
  /// makes one vector of the results, those of a vector after each other. All
  /// these numbers are powers of 2, and there are no more vectors than lanes of
  /// a group.
  Value combineLanes(ArrayRef<Value> vectors,
                     function_ref<Value(Value, Value)> combine,
                     int64_t groups = 1) const;

  OpBuilder &builder;
  Location loc;
  FloatType f32;
};

} // namespace mlir::kvcache

#endif // KVCACHE_SUPPORT_FLOATBUILDER_H
