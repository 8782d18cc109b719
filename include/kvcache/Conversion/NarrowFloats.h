//===- NarrowFloats.h - Lower conversions of narrow floats -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_CONVERSION_NARROWFLOATS_H
#define KVCACHE_CONVERSION_NARROWFLOATS_H

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

} // namespace mlir::kvcache

#endif // KVCACHE_CONVERSION_NARROWFLOATS_H
