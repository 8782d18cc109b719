//===- MaskIntervals.h - Intervals of a mask's integers ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_MASKINTERVALS_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_MASKINTERVALS_H

#include "kvcache/Support/IndexBuilder.h"

#include <limits>
#include <optional>

namespace mlir::kvcache {

/// The largest position: numbers of tokens have 32 bits.
constexpr int64_t kMostPosition = std::numeric_limits<int32_t>::max();

/// Integers of a region `mask`: `token * t + r`, with a token t and r from `lo`
/// to `hi`, or `t / divisor`. They are numbers, without wrapping.
struct MaskInterval {
  int64_t token = 0;
  Value lo, hi;
  /// The least and the largest number that is known at compile time.
  int64_t min, max;
  Value divisor;
  int64_t mostDivisor = 0;

  bool isFree() const { return token == 0 && !divisor; }
  bool isExact() const { return isFree() && lo == hi; }
};

/// Builds intervals of ops without wrapping, from those of operands.
class IntervalMath {
public:
  /// `zero` is a constant.
  IntervalMath(const IndexBuilder &builder, Value zero)
      : b(builder), none(zero) {}

  /// Whether values of a type have intervals.
  static bool isInteger(Type type);
  static int64_t getWidth(Type type);
  /// The interval of a value outside of the region, or of a clone.
  std::optional<MaskInterval> makeExact(Value value) const;
  /// The interval of an op with one or two operands, or none.
  std::optional<MaskInterval> compute(Operation *op,
                                      ArrayRef<MaskInterval> operands) const;
  /// The interval of a choice. The condition holds for some or for all pairs;
  /// null values are unknown.
  std::optional<MaskInterval> choose(Value any, Value all,
                                     const MaskInterval &then,
                                     const MaskInterval &otherwise) const;
  /// Moves numbers that are far from all positions nearer, so that differences
  /// do not wrap. Fails if other numbers are not near.
  bool bringNear(MaskInterval &lhs, MaskInterval &rhs) const;

  Value select(Value condition, Value then, Value otherwise) const;

private:
  using Result = std::optional<MaskInterval>;
  Result computeCast(Operation *op, const MaskInterval &in) const;
  Result computeBinary(Operation *op, const MaskInterval &lhs,
                       const MaskInterval &rhs) const;
  Result add(const MaskInterval &lhs, const MaskInterval &rhs) const;
  Result subtract(const MaskInterval &lhs, const MaskInterval &rhs) const;
  /// Multiplies by one number, whose sign is known at compile time.
  Result multiply(const MaskInterval &lhs, const MaskInterval &rhs) const;
  /// Divides by one positive number. `t / c` stays as it is.
  template <typename OpTy>
  Result divide(const MaskInterval &lhs, const MaskInterval &rhs) const;
  /// Divides numbers that are not negative by one positive number.
  Result findRemainder(const MaskInterval &lhs, const MaskInterval &rhs) const;
  /// The lesser or the larger of two numbers.
  Result findExtremum(const MaskInterval &lhs, const MaskInterval &rhs,
                      bool isLarger) const;

  const IndexBuilder &b;
  Value none;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_MASKINTERVALS_H
