//===- Patterns.h - Families of conversions of narrow floats --*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_NARROWFLOATS_PATTERNS_H
#define KVCACHE_LIB_CONVERSION_NARROWFLOATS_PATTERNS_H

#include "Elementwise.h"
#include "kvcache/Target/Chip.h"

#include "mlir/IR/PatternMatch.h"

namespace mlir::kvcache::narrow {

/// Whether the op rounds to nearest even, explicitly or by default.
inline bool roundsToNearestEven(arith::TruncFOp op) {
  return op.getRoundingmode().value_or(arith::RoundingMode::to_nearest_even) ==
         arith::RoundingMode::to_nearest_even;
}

/// Adds patterns to integer arithmetic for every format, on scalars and vectors
/// of any rank. It needs no chip and no runtime library.
void populateIntegerPatterns(RewritePatternSet &patterns);

/// Adds those of them that truncate to f8E8M0FNU.
void populatePowerPatterns(RewritePatternSet &patterns);

/// Adds patterns for conversions that a chip does in fewer instructions, on
/// scalars and 1-D vectors. They have precedence over integer arithmetic.
///
/// The chip is that of the `gpu.module` of the op, or `fallback`, if not null,
/// for a module without one.
void populateChipPatterns(RewritePatternSet &patterns, const Chip *fallback);

/// Adds patterns for conversions between bf16 and f64 through f32, which round
/// once, and for prints of narrow floats and bf16.
void populateWidePatterns(RewritePatternSet &patterns);

/// Truncates f16, bf16, f32 or f64 to `type`, a narrow format with a sign, in
/// integer arithmetic: to nearest even, saturating.
Value truncateInIntegers(OpBuilder &builder, Location loc, Value value,
                         Type type);

/// Rounds f64 to f32, to odd: an inexact result gets a one as its last bit. A
/// second rounding, to a format with at least two bits less, then never sees a
/// false tie, and equals a rounding from f64 (Boldo and Melquiond, "When double
/// rounding is odd", 2005). Infinities and NaNs do not change.
Value roundToOddF32(OpBuilder &builder, Location loc, Value value);

} // namespace mlir::kvcache::narrow

#endif // KVCACHE_LIB_CONVERSION_NARROWFLOATS_PATTERNS_H
