//===- Quantization.h - Quantize and dequantize values ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_QUANTIZATION_H
#define KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_QUANTIZATION_H

#include "ElementAccess.h"
#include "kvcache/Support/FloatBuilder.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::kvcache {

class LoadOp;

/// `value`, a scalar or a vector of floats, with lanes of another float type:
/// rounded to nearest even where that holds fewer numbers.
Value convertFloat(OpBuilder &builder, Location loc, Value value, Type lane);
/// Converts elements of a cache, also integers of 8 bits, to `lane`.
Value convertElements(OpBuilder &builder, Location loc, Value value, Type lane);

/// Multiplies quantized values by their scales, the lanes of `scale` each for
/// `granularity` lanes of `quantized`, the last one perhaps for fewer; a scalar
/// scale for all. `tensorScale` may be null. The result has lanes of `lane`.
Value dequantize(OpBuilder &builder, Location loc, Value quantized, Value scale,
                 int64_t granularity, Value tensorScale, Type lane);

/// `value` times or divided by the scale of its tensor in f32, with lanes of
/// `lane`.
Value scaleByTensor(OpBuilder &builder, Location loc, Value value,
                    Value tensorScale, Type lane);
Value divideByTensor(OpBuilder &builder, Location loc, Value value,
                     Value tensorScale, Type lane);

/// Values of tokens that share scales, or of one token, and the scales of their
/// groups. Zero points are null for formats without.
struct Quantized {
  SmallVector<Value> rows;
  Value scales, zeroPoints;
};

/// How to quantize groups of `granularity` lanes, the last one perhaps shorter.
struct QuantizeOptions {
  int64_t granularity;
  /// May be null.
  Value tensorScale;
  bool powerOfTwo = false, leastAmax = false;
  /// The number of threads whose lanes share a scale.
  int64_t spread = 1;
};

/// Quantizes rows of values, which share the scales of their lanes, to the
/// types given.
Quantized quantize(OpBuilder &builder, Location loc, ValueRange rows,
                   const QuantizeOptions &options, Type quantizedType,
                   Type scaleType);

/// Quantizes such rows to numbers from 0 to 15, in pairs in bytes, of which the
/// first is low, with scales and zero points of one type. `spread` threads
/// share a group.
Quantized quantizeToPairs(OpBuilder &builder, Location loc, ValueRange rows,
                          int64_t granularity, FloatType scaleType,
                          int64_t spread = 1);

/// Turns such bytes into `q * scale + zeroPoint`, with lanes of `lane`.
Value dequantizePairs(OpBuilder &builder, Location loc, Value bytes,
                      Value scale, Value zeroPoint, int64_t granularity,
                      Type lane);

/// One of the numbers for each group of lanes of all rows, of floats in f32: a
/// scalar for one group. A NaN in the group makes it a NaN. `spread` threads
/// share a group.
Value reduceGroups(OpBuilder &builder, Location loc, ValueRange rows,
                   int64_t granularity, vector::CombiningKind kind,
                   int64_t spread = 1);

/// Integers with all bits inverted.
Value invertBits(OpBuilder &builder, Location loc, Value values);

/// Converts the smallest and the largest of the unsigned integers of each group
/// to floats, both at once where that is possible: `convert` keeps their order,
/// and inverted integers become floats of the other sign.
std::pair<Value, Value> reduceToRange(OpBuilder &builder, Location loc,
                                      ValueRange rows, int64_t granularity,
                                      function_ref<Value(Value)> convert);

/// The smallest positive and the largest number of a float type, which f32
/// holds.
float getSmallest(FloatType type);
float getLargest(FloatType type);

/// Rounds f32 numbers to the nearest integers, of two to the even one. Those
/// from -127 to 127 are the low byte.
Value roundToIntegers(OpBuilder &builder, Location loc, Value values);
/// Rounds f32 numbers from -2^22 to 2^22 to the nearest integers, of two to the
/// even one, as f32.
Value roundToFloats(const FloatBuilder &b, Value values);
/// Rounds f32 numbers, which become integers from 0 to 15, and joins those of a
/// lane of at most five vectors in the low bits of an f32: each has 4 bits, the
/// first one the lowest.
Value joinNibbles(const FloatBuilder &b, ArrayRef<Value> numbers);
/// Rounds them to integers of 8 bits.
Value roundToBytes(OpBuilder &builder, Location loc, Value values);

/// The elements that `op` loads from `indices` on, multiplied by their scales.
/// The indices of the scales differ in their page only.
Value loadDequantized(LoadOp op, const Bundle &cache,
                      const AccessIndices &indices,
                      const AccessIndices &scaleIndices, Value tensorScale);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_QUANTIZATION_H
