//===- Register.cpp - The emulator by name --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Compile/SourceFormats.h"
#include "kvcache/Emulator/Passes.h"
#include "kvcache/Emulator/Pipelines.h"
#include "kvcache/Import/Import.h"
#include "kvcache/Import/Passes.h"

#include "mlir/Pass/PassRegistry.h"

#include <mutex>

using namespace mlir;
using namespace mlir::kvcache;

void kvcache::registerEmulatorPipelines() {
  static std::once_flag registered;
  std::call_once(registered, [] {
    PassPipelineRegistration<ToEmulatorOptions>(
        "kvcache-to-emulator",
        "Compile cache ops for NVIDIA chips as kvcache-to-ptx does, and the "
        "kernels to LLVM that libkvcache_emulator.so runs on the CPU",
        buildToEmulatorPipeline);
    PassPipelineRegistration<KernelsToEmulatorOptions>(
        "kvcache-kernels-to-emulator",
        "Compile kernels of other compilers, in the NVVM and LLVM dialects, to "
        "LLVM that libkvcache_emulator.so runs on the CPU",
        buildKernelsToEmulatorPipeline);
  });
}

void kvcache::registerEmulator() {
  static std::once_flag registered;
  std::call_once(registered, [] {
    registerKVCacheImportPasses();
    registerKVCacheEmulatorPasses();
    registerEmulatorPipelines();
    registerSourceFormat({isLLVMIR, importLLVMIR});
  });
}
