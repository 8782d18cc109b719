//===- Passes.cpp - Passes of the kvcache dialect -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache-c/Passes.h"

#include "kvcache/Conversion/Passes.h"
#include "kvcache/GPU/Passes.h"
#include "kvcache/InitAll.h"
#include "kvcache/LLVMIR/Passes.h"
#include "kvcache/Pipelines/Pipelines.h"
#include "kvcache/Target/Passes.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/CAPI/Pass.h"

using namespace mlir::kvcache;

#include "kvcache/Conversion/Passes.capi.cpp.inc"
#include "kvcache/GPU/Passes.capi.cpp.inc"
#include "kvcache/LLVMIR/Passes.capi.cpp.inc"
#include "kvcache/Target/Passes.capi.cpp.inc"
#include "kvcache/Transforms/Passes.capi.cpp.inc"

void mlirKVCacheRegisterAllPasses() { registerAllPasses(); }

void mlirKVCacheRegisterPipelines() { registerPipelines(); }
