//===- Passes.h - Passes of the kvcache dialect -------------------*- C -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each pass has a function that creates it with default options, such as
// mlirCreateKVCacheTransformsHoistLookups, and a function that registers it.
// Add passes with other options, and pipelines, by name:
// mlirOpPassManagerAddPipeline(manager, "kvcache-to-ptx{chip=sm_90a}", …).
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_C_PASSES_H
#define KVCACHE_C_PASSES_H

#include "kvcache/Conversion/Passes.capi.h.inc"
#include "kvcache/GPU/Passes.capi.h.inc"
#include "kvcache/LLVMIR/Passes.capi.h.inc"
#include "kvcache/Target/Passes.capi.h.inc"
#include "kvcache/Transforms/Passes.capi.h.inc"

#ifdef __cplusplus
extern "C" {
#endif

/// Registers our passes and pipelines, and all upstream passes, in the
/// process-wide registry. May be called several times.
MLIR_CAPI_EXPORTED void mlirKVCacheRegisterAllPasses(void);

/// Registers only the pipelines kvcache-to-ptx, kvcache-to-cpu and
/// kvcache-expand-copies. kvcache-c/Emulator.h has those of the emulator.
MLIR_CAPI_EXPORTED void mlirKVCacheRegisterPipelines(void);

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_C_PASSES_H
