//===- LowerGPUMath.h - Math without libdevice ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_PIPELINES_LOWERGPUMATH_H
#define KVCACHE_LIB_PIPELINES_LOWERGPUMATH_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::kvcache {

/// Adds the patterns of `kvcache-lower-gpu-math`.
void populateGPUMathPatterns(RewritePatternSet &patterns);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_PIPELINES_LOWERGPUMATH_H
