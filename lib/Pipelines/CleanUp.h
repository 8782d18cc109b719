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

/// Adds a pass that folds. A loop that keeps a view of a cache needs a second
/// iteration, which visits all ops again.
inline void addFolding(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass(getGreedyRewriteConfig()));
}

/// Adds a pass that folds code without views of caches. What a rewrite may
/// affect is visited again, so one iteration is enough.
inline void addFoldingWithoutViews(OpPassManager &pm) {
  pm.addPass(
      createCanonicalizerPass(getGreedyRewriteConfig().setMaxIterations(1)));
}

/// Adds the passes between two lowerings: CSE, then folding. In this order the
/// slower one has less to do.
inline void addCleanUp(OpPassManager &pm,
                       function_ref<void(OpPassManager &)> fold = addFolding) {
  pm.addPass(createCSEPass());
  fold(pm);
}

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_PIPELINES_CLEANUP_H
