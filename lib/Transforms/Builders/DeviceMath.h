//===- DeviceMath.h - Functions of f32 on a CPU or a GPU --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_BUILDERS_DEVICEMATH_H
#define KVCACHE_LIB_TRANSFORMS_BUILDERS_DEVICEMATH_H

#include "Frame.h"

#include "kvcache/Support/FloatBuilder.h"

namespace mlir::kvcache {

/// Builds arithmetic and functions as the device has them.
class DeviceMath : public FloatBuilder {
public:
  explicit DeviceMath(const Frame &frame)
      : FloatBuilder(frame.builder, frame.loc), isGPU(frame.isGPU) {}

  /// 2 to a power that is not large, below -126 at most 2^-126. On the CPU
  /// within two ulps; a GPU has an instruction for it, with an error of 2^-22.
  Value exp2(Value power) const;
  /// 2 to a power below 128, by arithmetic alone: within 2^-13 of the result,
  /// and below -126 within 2^-126.
  Value exp2Cubic(Value power) const;
  /// The logarithm of base 2 of a float.
  Value log2(Value value) const;
  /// The natural logarithm of a float.
  Value log(Value value) const;
  /// The hyperbolic tangent, within 2^-23; with `isSmallExact`, small ones are
  /// within four ulps.
  Value tanh(Value value, bool isSmallExact) const;

private:
  /// The factors of 2 to a power: that of the fraction by a polynomial, with
  /// the term of the highest degree first, and that of the whole number.
  std::pair<Value, Value> factorExp2(Value power,
                                     ArrayRef<float> polynomial) const;
  Value exp2Polynomial(Value power) const;
  Value tanhPolynomial(Value value) const;

  bool isGPU;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_BUILDERS_DEVICEMATH_H
