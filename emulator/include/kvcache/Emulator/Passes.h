//===- Passes.h - The conversion for the emulator ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_PASSES_H
#define KVCACHE_EMULATOR_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
namespace gpu {
class GPUDialect;
} // namespace gpu
namespace LLVM {
class LLVMDialect;
} // namespace LLVM
} // namespace mlir

namespace mlir::kvcache {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "kvcache/Emulator/Passes.h.inc"

} // namespace mlir::kvcache

#endif // KVCACHE_EMULATOR_PASSES_H
