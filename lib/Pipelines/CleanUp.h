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
inline void addCleanUp(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_PIPELINES_CLEANUP_H
