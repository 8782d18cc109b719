//===- HostPairs.h - Pairs of bf16 in the lanes of a CPU --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two neighbouring elements of 16 bits are the halves of an integer of 32 bits.
// A shift gives the even element as f32, a mask the odd one, so that no element
// moves to another lane.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_HOSTPAIRS_H
#define KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_HOSTPAIRS_H

#include "kvcache/Support/FloatBuilder.h"

namespace mlir::kvcache {

/// The numbers of groups of `granularity` elements in lanes, each of which has
/// `perLane` elements from `first` on.
Value spreadGroups(const FloatBuilder &b, Value groups, int64_t first,
                   int64_t granularity, int64_t perLane);

/// Joins what `convert` makes of each chunk, given its first element.
Value convertChunks(const FloatBuilder &b, int64_t elements, int64_t chunk,
                    function_ref<Value(int64_t)> convert);

/// Whether a vector on a CPU, whose lanes have some elements each, is whole
/// chunks of whole groups, or of parts of one. A chunk has `perLane` elements
/// in each of the lanes of a register.
bool hasChunks(Value value, int64_t perLaneOfValue, int64_t granularity,
               int64_t perLane);

/// The lanes of vectors that one register of 512 bits holds.
inline constexpr int64_t kHostLanes = 16;

/// The even and the odd elements of a chunk, in two vectors.
struct EvenOdd {
  Value even, odd;
};

/// Converts chunks of rows of bf16 on a CPU. A chunk is as long as registers
/// hold together with what it becomes.
class PairConverter {
public:
  /// Elements of a chunk.
  static constexpr int64_t kElements = 2 * kHostLanes;

  explicit PairConverter(const FloatBuilder &b) : b(b) {}

  /// Whether vectors like this one, with groups of `granularity` elements, are
  /// whole chunks of whole groups, or of parts of one.
  static bool canConvert(Value row, int64_t granularity);

  /// The integers of 32 bits of the pairs from element `first` of a row on.
  Value getPairs(Value row, int64_t first) const;
  /// The f32 of pairs of bf16.
  EvenOdd widen(Value pairs) const;
  /// Pairs of the low halves of integers.
  Value joinLowHalves(const EvenOdd &integers) const;
  /// Pairs of the high halves of integers.
  Value joinHighHalves(const EvenOdd &integers) const;
  /// The low bytes of the halves of pairs.
  Value getLowBytes(Value pairs) const;

  /// The low bytes of the halves of two chunks, or with an offset of 1 the high
  /// ones.
  Value joinBytes(Value front, Value back, int64_t offset) const;

  /// The numbers of the groups of a chunk, in the lanes of its pairs.
  Value spread(Value groups, int64_t first, int64_t granularity) const;

  Value getBits(Value floats) const;
  /// An integer in all lanes.
  Value constant(uint32_t bits) const;
  template <typename OpTy> Value op(Value lhs, Value rhs) const {
    return OpTy::create(b.builder, b.loc, lhs, rhs);
  }
  template <typename OpTy> Value op(Value lhs, uint32_t rhs) const {
    return op<OpTy>(lhs, constant(rhs));
  }

private:
  const FloatBuilder &b;
};

/// Quantizes rows of bf16 to `type`, of 8 bits, on a CPU. They share the scales
/// of their groups, which are f32. If these are bounded, no quotient rounds to
/// more than the largest number.
SmallVector<Value> quantizePairs(const FloatBuilder &b, ArrayRef<Value> rows,
                                 Value scales, int64_t granularity, Type type,
                                 bool areBounded);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_HOSTPAIRS_H
