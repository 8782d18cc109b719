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

namespace mlir::kvcache {

/// `value`, a scalar or a vector of floats, with lanes of another float type:
/// rounded to nearest even where that holds fewer numbers.
Value convertFloat(OpBuilder &builder, Location loc, Value value, Type lane);

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

/// Quantized values and the scales of their groups.
struct Quantized {
  Value values, scales;
};

/// How to quantize groups of `granularity` lanes, the last one perhaps shorter.
struct QuantizeOptions {
  int64_t granularity;
  /// May be null.
  Value tensorScale;
  bool powerOfTwo = false;
  /// The number of threads whose lanes share a scale.
  int64_t spread = 1;
};

/// Quantizes `value` to the types given.
Quantized quantize(OpBuilder &builder, Location loc, Value value,
                   const QuantizeOptions &options, Type quantizedType,
                   Type scaleType);

/// The elements that `op` loads from `indices` on, multiplied by their scales.
/// The indices of the scales differ in their page only.
Value loadDequantized(LoadOp op, const Bundle &cache,
                      const AccessIndices &indices,
                      const AccessIndices &ofScales, Value tensorScale);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_QUANTIZATION_H
