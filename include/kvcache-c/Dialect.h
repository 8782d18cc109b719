//===- Dialect.h - The kvcache dialect ----------------------------*- C -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_C_DIALECT_H
#define KVCACHE_C_DIALECT_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Declares mlirGetDialectHandle__kvcache__, the handle that registers or loads
/// only the dialect.
MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(KVCache, kvcache);

/// Registers the dialects that our pipelines need: kvcache, all upstream
/// dialects and extensions, and the translations to LLVM IR.
MLIR_CAPI_EXPORTED void
mlirKVCacheRegisterAllDialects(MlirDialectRegistry registry);

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_C_DIALECT_H
