//===- Emulator.h - The emulator's passes -------------------------*- C -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each pass has a function that creates it with default options, and a function
// that registers it. In builds with KVCACHE_ENABLE_EMULATOR, which is the
// default.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_C_EMULATOR_H
#define KVCACHE_C_EMULATOR_H

#include "kvcache/Emulator/Passes.capi.h.inc"
#include "kvcache/Import/Passes.capi.h.inc"

#ifdef __cplusplus
extern "C" {
#endif

/// Registers the emulator's passes, the pipelines kvcache-to-emulator and
/// kvcache-kernels-to-emulator, and LLVM IR as a format of sources. May be
/// called several times.
MLIR_CAPI_EXPORTED void mlirKVCacheRegisterEmulator(void);

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_C_EMULATOR_H
