//===- ExpandCopies.cpp - The pipeline kvcache-expand-copies --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Pipelines/Pipelines.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::kvcache;

void kvcache::buildExpandCopiesPipeline(OpPassManager &pm) {
  pm.addPass(createChooseCopies());
  pm.addPass(createMaterializeDescriptors());
  pm.addPass(createLowerPipes());
  pm.addPass(createLowerCopies());
}
