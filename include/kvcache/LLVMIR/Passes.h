//===- Passes.h - Passes on the LLVM dialect --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LLVMIR_PASSES_H
#define KVCACHE_LLVMIR_PASSES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
namespace LLVM {
class LLVMDialect;
} // namespace LLVM
namespace NVVM {
class NVVMDialect;
} // namespace NVVM
} // namespace mlir

namespace mlir::kvcache {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "kvcache/LLVMIR/Passes.h.inc"

} // namespace mlir::kvcache

#endif // KVCACHE_LLVMIR_PASSES_H
