//===- HostQuads.h - Four elements in a lane of a CPU -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Four neighbouring elements of 8 or 4 bits are an integer of 32 bits, which
// shifts take apart. As bf16, they are two pairs, so that the elements of one
// chunk change lanes only once.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_HOSTQUADS_H
#define KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_HOSTQUADS_H

#include "HostPairs.h"

namespace mlir::kvcache {

/// Converts chunks of quantized rows to bf16 on a CPU.
class QuadConverter {
public:
  /// Elements of a chunk.
  static constexpr int64_t kElements = 4 * kHostLanes;

  explicit QuadConverter(const FloatBuilder &b) : b(b), pairs(b) {}

  /// Whether bytes like these, of `perByte` elements, are whole chunks of whole
  /// groups of `granularity` elements, or of parts of one.
  static bool canConvert(Value bytes, int64_t perByte, int64_t granularity);

  /// Converts the chunk from element `first` on: `widen` makes a number of f32
  /// of each lane's element 0, 1, 2 or 3.
  Value convert(function_ref<Value(int64_t)> widen) const;

private:
  const FloatBuilder &b;
  PairConverter pairs;
};

/// Whether elements of 8 bits of this type are dequantized so: floats without
/// infinities. A CPU has an instruction that widens integers.
bool haveQuads(Type quantized);

/// Multiplies such elements by the scales of their groups, of f32, and rounds
/// to bf16.
Value dequantizeQuads(const FloatBuilder &b, Value quantized, Value scales,
                      int64_t granularity);

/// Turns pairs in bytes into `q * scale + zeroPoint` of bf16.
Value dequantizeNibbles(const FloatBuilder &b, Value bytes, Value scale,
                        Value zeroPoint, int64_t granularity);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_HOSTQUADS_H
