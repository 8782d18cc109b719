//===- Passes.h - Passes that use the table of chips ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TARGET_PASSES_H
#define KVCACHE_TARGET_PASSES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::kvcache {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "kvcache/Target/Passes.h.inc"

} // namespace mlir::kvcache

#endif // KVCACHE_TARGET_PASSES_H
