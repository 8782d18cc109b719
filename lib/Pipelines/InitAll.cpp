//===- InitAll.cpp - Register everything ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/InitAll.h"

#include "kvcache/Conversion/KVCacheToLLVM.h"
#include "kvcache/Conversion/Passes.h"
#include "kvcache/GPU/Passes.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/IR/ValueBounds.h"
#include "kvcache/LLVMIR/Passes.h"
#include "kvcache/Pipelines/Pipelines.h"
#include "kvcache/Target/Passes.h"
#include "kvcache/Transforms/BufferizableOps.h"
#include "kvcache/Transforms/Passes.h"
#include "kvcache/Transforms/RuntimeVerification.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Target/LLVM/NVVM/Target.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"

#include <mutex>

using namespace mlir;

void kvcache::registerDialect(DialectRegistry &registry) {
  registry.insert<KVCacheDialect>();
  registerValueBoundsOpInterfaceExternalModels(registry);
  registerBufferizableOpInterfaceExternalModels(registry);
  registerConvertKVCacheToLLVMInterface(registry);
  registerRuntimeVerifiableOpInterfaceExternalModels(registry);
  registerAllToLLVMIRTranslations(registry);
  NVVM::registerNVVMTargetInterfaceExternalModels(registry);
}

void kvcache::registerPasses() {
  registerKVCacheTransformsPasses();
  registerKVCacheConversionPasses();
  registerKVCacheGPUPasses();
  registerKVCacheLLVMIRPasses();
  registerKVCacheTargetPasses();
  registerPipelines();
}

void kvcache::registerAllDialects(DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registerDialect(registry);
}

void kvcache::registerAllPasses() {
  static std::once_flag registered;
  std::call_once(registered, [] {
    mlir::registerAllPasses();
    registerPasses();
  });
}
