//===- CleanUp.h - Passes that go together ----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_PIPELINES_CLEANUP_H
#define KVCACHE_LIB_PIPELINES_CLEANUP_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::kvcache {

/// What goes between two lowerings: folding, and one of what is there twice.
/// Blocks stay as they are: LLVM looks after them, and to ask each time which
/// of their arguments live takes a quarter of the time of folding.
inline void addCleanUp(OpPassManager &pm) {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  pm.addPass(createCanonicalizerPass(config));
  pm.addPass(createCSEPass());
}

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_PIPELINES_CLEANUP_H
