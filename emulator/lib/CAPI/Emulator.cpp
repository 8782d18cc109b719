//===- Emulator.cpp - The emulator's passes in C --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache-c/Emulator.h"

#include "kvcache/Emulator/Passes.h"
#include "kvcache/Emulator/Pipelines.h"
#include "kvcache/Import/Passes.h"

#include "mlir/CAPI/Pass.h"

using namespace mlir::kvcache;

#include "kvcache/Emulator/Passes.capi.cpp.inc"
#include "kvcache/Import/Passes.capi.cpp.inc"

void mlirKVCacheRegisterEmulator() { registerEmulator(); }
