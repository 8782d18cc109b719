//===- KernelLaunches.cpp - Launches of a kernel --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/GPU/KernelLaunches.h"
#include "kvcache/Support/FindOps.h"

#include "kvcache/IR/KVCacheDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

KernelLaunches::KernelLaunches(ModuleOp module) {
  for (auto launch : findOps<gpu::LaunchFuncOp, gpu::GPUModuleOp>(module))
    launches[{launch.getKernelModuleName(), launch.getKernelName()}].push_back(
        launch);
}

ArrayRef<gpu::LaunchFuncOp>
KernelLaunches::lookup(gpu::GPUFuncOp kernel) const {
  auto module = kernel->getParentOfType<gpu::GPUModuleOp>();
  auto original =
      module->getAttrOfType<FlatSymbolRefAttr>(KVCacheDialect::kCloneOfAttr);
  auto found =
      launches.find({original ? original.getAttr() : module.getNameAttr(),
                     kernel.getNameAttr()});
  if (found == launches.end())
    return {};
  return found->second;
}
