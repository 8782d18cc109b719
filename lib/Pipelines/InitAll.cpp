//===- InitAll.cpp - Register everything ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/InitAll.h"

#include "kvcache/Conversion/Passes.h"
#include "kvcache/IR/KVCache.h"
#include "kvcache/Pipelines/Pipelines.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Target/LLVM/NVVM/Target.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"

void mlir::kvcache::registerAllDialects(DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registerAllToLLVMIRTranslations(registry);
  NVVM::registerNVVMTargetInterfaceExternalModels(registry);
  registry.insert<KVCacheDialect>();
}

void mlir::kvcache::registerAllPasses() {
  mlir::registerAllPasses();
  registerKVCacheConversionPasses();
  registerKVCacheTransformsPasses();
  registerKVCachePipelinesPasses();
  registerPipelines();
}
