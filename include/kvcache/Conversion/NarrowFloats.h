//===- NarrowFloats.h - Lower conversions of narrow floats -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_CONVERSION_NARROWFLOATS_H
#define KVCACHE_CONVERSION_NARROWFLOATS_H

#include "mlir/IR/Builders.h"

namespace mlir {
class RewritePatternSet;
} // namespace mlir

namespace mlir::kvcache {

struct Chip;

/// Adds the patterns that lower `arith.extf` from and `arith.truncf` to
/// f8E4M3FN, f8E5M2, f6E2M3FN, f6E3M2FN, f4E2M1FN and f8E8M0FNU, on scalars and
/// vectors, and the patterns that split conversions between bf16 and f64 at
/// f32.
///
/// An op in a `gpu.module` with one chip uses the instructions of that chip,
/// other ops those of `fallback`. Ops without a chip, and ops on
/// multi-dimensional vectors, use integer arithmetic.
void populateNarrowFloatsPatterns(RewritePatternSet &patterns,
                                  const Chip *fallback = nullptr);

/// Extends narrow floats with a sign, of the highest bits of integers of 32
/// bits, to f32. Other bits are any. Infinities and NaNs become the numbers
/// that would follow the largest one.
Value extendHighBits(OpBuilder &builder, Location loc, Value integers,
                     FloatType type);

/// Rounds f32 magnitudes to nearest even encodings of a narrow format with a
/// sign, in the low bytes of integers of 32 bits; other bits are any. Larger
/// ones saturate unless they are bounded: below the number that would follow
/// the largest one.
Value roundMagnitudes(OpBuilder &builder, Location loc, Value magnitudes,
                      FloatType type, bool areBounded);

} // namespace mlir::kvcache

#endif // KVCACHE_CONVERSION_NARROWFLOATS_H
