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

namespace kvcache {

/// Adds the patterns that lower `arith.extf` from and `arith.truncf` to
/// f8E4M3FN and f8E5M2, on scalars and vectors, to integer arithmetic, and
/// conversions between bf16 and f64 to conversions through f32.
void populateNarrowFloatsPatterns(RewritePatternSet &patterns);

} // namespace kvcache
} // namespace mlir

#endif // KVCACHE_CONVERSION_NARROWFLOATS_H
