//===- FloatBuilder.h - Arithmetic of f32 -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDOPS_FLOATBUILDER_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDOPS_FLOATBUILDER_H

#include "Frame.h"

namespace mlir::kvcache {

/// Builds arithmetic of f32, and of vectors of f32.
class FloatBuilder {
public:
  explicit FloatBuilder(const Frame &frame)
      : isGPU(frame.isGPU), builder(frame.builder), loc(frame.loc) {}

  VectorType vectorOf(int64_t lanes) const;
  Value constant(Type type, float value) const;
  Value constant(float value) const;
  /// A vector of a float.
  Value splat(Value value, int64_t lanes) const;

  Value add(Value lhs, Value rhs) const;
  Value sub(Value lhs, Value rhs) const;
  Value mul(Value lhs, Value rhs) const;
  Value div(Value lhs, Value rhs) const;
  /// `lhs * rhs + sum`, rounded once.
  Value fma(Value lhs, Value rhs, Value sum) const;
  /// The larger number; a NaN loses.
  Value max(Value lhs, Value rhs) const;
  Value select(Value condition, Value then, Value otherwise) const;
  /// Whether a float is 0.
  Value isZero(Value value) const;

  /// The sum and the largest number of a vector.
  Value sumOf(Value vector) const;
  Value maxOf(Value vector) const;

  /// 2 to a power that is not positive, below -126 at most 2^-126. On the CPU
  /// within an ulp; a GPU has an instruction for it.
  Value exp2(Value power) const;
  /// The logarithm of base 2 of a float.
  Value log2(Value value) const;
  /// The natural logarithm of a float.
  Value log(Value value) const;
  Value tanh(Value value) const;

private:
  Value exp2Polynomial(Value power) const;

  bool isGPU;
  OpBuilder &builder;
  Location loc;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_FLOATBUILDER_H
