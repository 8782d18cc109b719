//===- VectorRows.h - Loads and stores row by row ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_TOLLVM_VECTORROWS_H
#define KVCACHE_LIB_CONVERSION_TOLLVM_VECTORROWS_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::kvcache {

/// Adds patterns that load and store vectors of several dimensions row by row.
/// Upstream has them for transfers only.
void populateVectorRowPatterns(RewritePatternSet &patterns);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_TOLLVM_VECTORROWS_H
