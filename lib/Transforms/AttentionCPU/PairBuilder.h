//===- PairBuilder.h - Pairs of bf16 in 32 bits -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_PAIRBUILDER_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_PAIRBUILDER_H

#include "../Builders/DeviceMath.h"

namespace mlir::kvcache {

/// Pairs of bf16 as i32, of which the low half is the first element. They are
/// built by integer ops, since an f32 has the bits of a bf16 as its high half.
class PairBuilder {
public:
  explicit PairBuilder(const Frame &frame) : frame(frame) {}

  /// The bf16 of a vector of pairs.
  Value getElements(Value pairs) const;
  /// Joins neighbouring elements of a vector of f32 that are exact in bf16.
  Value joinElements(Value floats) const;
  /// Joins neighbouring elements of a vector of f32, rounded as by `round`.
  Value roundElements(Value floats) const;
  /// Joins lanes of f32 that are exact in bf16.
  Value join(Value low, Value high) const;
  /// Joins lanes of f32 rounded to nearest, ties away from zero. The NaN whose
  /// payload is all ones may become -0.
  Value round(Value low, Value high) const;

  /// The f32 of the halves of a pair, or of lanes of pairs.
  Value getLow(Value pair) const;
  Value getHigh(Value pair) const;

  /// The bits of each half that is infinite or not a number; those of 0 in
  /// place of others.
  Value getNonFinite(Value pair) const;

private:
  /// The bits of floats plus half of the last bit of a bf16.
  Value getRoundedBits(Value floats) const;
  /// Joins the high halves of lanes of 32 bits.
  Value joinHighHalves(Value low, Value high) const;
  Value getBits(Value floats) const;
  Value getFloats(Value bits) const;
  /// A constant of a type of i32.
  Value constant(Type type, uint32_t bits) const;

  const Frame &frame;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_PAIRBUILDER_H
