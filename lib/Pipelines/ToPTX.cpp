//===- ToPTX.cpp - The pipeline kvcache-to-ptx ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/Passes.h"
#include "kvcache/GPU/Passes.h"
#include "kvcache/Pipelines/KernelLowering.h"
#include "kvcache/Pipelines/Pipelines.h"
#include "kvcache/Target/Passes.h"

using namespace mlir;
using namespace mlir::kvcache;

void kvcache::buildToPTXPipeline(OpPassManager &pm,
                                 const ToPTXOptions &options) {
  if (options.host && options.tvmFFI) {
    EmitTVMFFIOptions emit;
    emit.device = "cuda";
    pm.addPass(createEmitTVMFFI(emit));
  }
  KernelLowering kernels;
  kernels.chips = options.chips;
  kernels.overlapLaunches = options.overlapLaunches;
  kernels.optLevel = options.optLevel;
  kernels.noAlias = options.noAlias;
  addKernelLowering(pm, kernels);
  if (options.host && options.tvmFFI) {
    CheckHostCodeOptions check;
    check.capturable = options.capturable;
    pm.addPass(createCheckHostCode(check));
  }
  SerializeKernelsOptions serialize;
  serialize.format = options.format;
  serialize.toolkit = options.toolkit;
  pm.addPass(createSerializeKernels(serialize));
  if (options.host)
    addLaunchLowering(pm, options.tvmFFI, /*callerWaits=*/options.tvmFFI);
}
