//===- CommonMath.h - Math of the CPU and of GPUs ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_TOLLVM_COMMONMATH_H
#define KVCACHE_LIB_CONVERSION_TOLLVM_COMMONMATH_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::kvcache {

/// Adds patterns of math that no target has instructions or functions of.
void populateCommonMathPatterns(RewritePatternSet &patterns);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_TOLLVM_COMMONMATH_H
