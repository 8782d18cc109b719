//===- GPUMath.h - Math without libdevice -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_TOLLVM_GPUMATH_H
#define KVCACHE_LIB_CONVERSION_TOLLVM_GPUMATH_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::kvcache {

/// Adds patterns for what a chip computes without libdevice: math ops become
/// LLVM intrinsics that NVPTX selects instructions for, and reductions of a
/// warp shuffles.
void populateGPUMathPatterns(RewritePatternSet &patterns);

/// Scales subnormal operands of logarithms in f32 and bf16 by 2^24, before the
/// patterns: upstream's polynomials take them for 2^-126. Returns whether there
/// are any logarithms.
bool scaleSubnormalsOfLogarithms(Operation *root);

/// Returns a constant of a float type, or of a vector of floats.
Value createFloatConstant(OpBuilder &builder, Location loc, Type type,
                          double number);

/// Adds patterns for `math.sin`, `cos`, `tan` and `sincos` in f32. Errors are
/// at most 2 units in the last place, of `tan` 4, for angles up to 2^48; beyond
/// it results are in range and have no meaning.
void populatePeriodicMathPatterns(RewritePatternSet &patterns);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_TOLLVM_GPUMATH_H
