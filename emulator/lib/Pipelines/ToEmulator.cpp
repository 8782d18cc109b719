//===- ToEmulator.cpp - The pipelines of the emulator ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/Passes.h"
#include "kvcache/Emulator/Passes.h"
#include "kvcache/Emulator/Pipelines.h"
#include "kvcache/GPU/Passes.h"
#include "kvcache/Import/Passes.h"
#include "kvcache/Pipelines/KernelLowering.h"
#include "kvcache/Target/Passes.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Transforms/Passes.h"

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
  pm.nest<gpu::GPUModuleOp>().addPass(createExpandInlinePTX());
  ConvertNVVMToEmulatorOptions convert;
  convert.sanitize = options.sanitize;
  convert.meter = options.meter;
  pm.addPass(createConvertNVVMToEmulator(convert));
  // The emulator has no stream on which a caller could wait.
  addLaunchLowering(pm, options.tvmFFI, /*callerWaits=*/false);
}

void kvcache::buildKernelsToEmulatorPipeline(
    OpPassManager &pm, const KernelsToEmulatorOptions &options) {
  pm.addPass(createWrapKernels());
  AttachTargetsOptions targets;
  if (!options.chip.empty())
    targets.chips = {options.chip};
  pm.addPass(createAttachTargets(targets));
  // Functions that no kernel calls may have unsupported instructions.
  pm.addPass(createSymbolDCEPass());
  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>();
  kernels.addPass(createExpandInlinePTX());
  if (options.assumeFences)
    kernels.addPass(createAssumeFences());
  kernels.addPass(createCheckInstructions());
  kernels.addPass(createVerifyIR());
  ConvertNVVMToEmulatorOptions convert;
  convert.sanitize = options.sanitize;
  convert.meter = options.meter;
  // Others let lanes with the same element store it all.
  convert.rewrites = true;
  pm.addPass(createConvertNVVMToEmulator(convert));
  addLaunchLowering(pm, /*tvmFFI=*/false, /*callerWaits=*/false);
}
