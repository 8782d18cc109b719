//===- Dialect.cpp - The kvcache dialect ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache-c/Dialect.h"

#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/InitAll.h"

#include "mlir/CAPI/Registration.h"

using namespace mlir::kvcache;

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(KVCache, kvcache, KVCacheDialect)

void mlirKVCacheRegisterAllDialects(MlirDialectRegistry registry) {
  registerAllDialects(*unwrap(registry));
}
