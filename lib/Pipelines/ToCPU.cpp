//===- ToCPU.cpp - The pipeline kvcache-to-cpu ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostLowering.h"
#include "kvcache/Conversion/Passes.h"
#include "kvcache/GPU/Passes.h"
#include "kvcache/LLVMIR/Passes.h"
#include "kvcache/Pipelines/Pipelines.h"
#include "kvcache/Support/UpstreamDefects.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::kvcache;

void kvcache::buildToCPUPipeline(OpPassManager &pm,
                                 const ToCPUOptions &options) {
  if (options.tvmFFI)
    pm.addPass(createEmitTVMFFI());
  pm.addPass(createCheckInput());
  if (upstream::foldsE8M0Wrongly)
    pm.addPass(createWorkaroundE8M0Folding());
  PrepareHostOptions prepare;
  prepare.cWrappers = !options.tvmFFI;
  pm.addPass(createPrepareHost(prepare));
  ExpandOpsOptions expand;
  expand.vectorBits = options.vectorBits;
  expand.mma = options.mma;
  expand.threads = options.threads;
  pm.addPass(createExpandOps(expand));
  if (options.emulateTiles)
    pm.addPass(createEmulateTiles());
  pm.addPass(createHoistLookups());
  buildExpandCopiesPipeline(pm);
  // Equal checks are then of equal values.
  pm.addPass(createCSEPass());
  pm.addPass(createConvertKVCacheChecks());
  pm.addPass(createConvertKVCacheToMemRef());
  pm.addPass(createVerifyIR());
  pm.addPass(createHostMemorySpaces());
  addHostLowering(pm, options.threads);
  if (!options.fma)
    pm.addPass(createExpandFMA());
}
