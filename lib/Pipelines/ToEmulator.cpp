//===- ToEmulator.cpp - The pipeline kvcache-to-emulator ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "kvcache/Conversion/Passes.h"
#include "kvcache/Emulator/Passes.h"
#include "kvcache/Pipelines/Pipelines.h"

using namespace mlir;
using namespace mlir::kvcache;

void kvcache::buildToEmulatorPipeline(OpPassManager &pm,
                                      const ToEmulatorOptions &options) {
  if (options.tvmFFI) {
    EmitTVMFFIOptions emit;
    emit.device = "emulator";
    pm.addPass(createEmitTVMFFI(emit));
  }
  KernelLowering kernels;
  kernels.chips = options.chips;
  kernels.overlapLaunches = options.overlapLaunches;
  kernels.makeInlinePTX = false;
  addKernelLowering(pm, kernels);
  ConvertNVVMToEmulatorOptions convert;
  convert.sanitize = options.sanitize;
  convert.meter = options.meter;
  pm.addPass(createConvertNVVMToEmulator(convert));
  // Nobody else waits for an emulator.
  addLaunchLowering(pm, options.tvmFFI, /*callerWaits=*/false);
}
