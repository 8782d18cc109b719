//===- CleanUp.h - Passes that go together ----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_PIPELINES_CLEANUP_H
#define KVCACHE_LIB_PIPELINES_CLEANUP_H

#include "kvcache/Support/GreedyRewrite.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::kvcache {

/// Adds the passes between two lowerings: CSE, then folding. In this order the
/// slower one has less to do.
inline void addCleanUp(OpPassManager &pm) {
  pm.addPass(createCSEPass());
  pm.addPass(createCanonicalizerPass(getGreedyRewriteConfig()));
}

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_PIPELINES_CLEANUP_H
