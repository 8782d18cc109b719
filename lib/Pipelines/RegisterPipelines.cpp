//===- RegisterPipelines.cpp - The pipelines by name ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Pipelines/Pipelines.h"

#include "mlir/Pass/PassRegistry.h"

#include <mutex>

using namespace mlir;
using namespace mlir::kvcache;

static void registerOnce() {
  PassPipelineRegistration<ToPTXOptions>(
      "kvcache-to-ptx",
      "Compile cache ops for NVIDIA chips: parallel loops become kernels, and "
      "kernels PTX, cubins or fat binaries",
      buildToPTXPipeline);
  PassPipelineRegistration<ToCPUOptions>(
      "kvcache-to-cpu",
      "Compile cache ops of host functions to LLVM for the CPU",
      buildToCPUPipeline);
  PassPipelineRegistration<>(
      "kvcache-expand-copies",
      "Lower copies into tiles, and pipes: choose how each copy is done, pass "
      "descriptors to kernels, lower pipes, and lower copies",
      buildExpandCopiesPipeline);
}

void kvcache::registerPipelines() {
  static std::once_flag registered;
  std::call_once(registered, registerOnce);
}
