//===- Passes.h - Passes on kernels and their launches ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_GPU_PASSES_H
#define KVCACHE_GPU_PASSES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
namespace arith {
class ArithDialect;
} // namespace arith
namespace LLVM {
class LLVMDialect;
} // namespace LLVM
namespace memref {
class MemRefDialect;
} // namespace memref
namespace NVVM {
class NVVMDialect;
} // namespace NVVM
namespace scf {
class SCFDialect;
} // namespace scf
} // namespace mlir

namespace mlir::kvcache {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "kvcache/GPU/Passes.h.inc"

} // namespace mlir::kvcache

#endif // KVCACHE_GPU_PASSES_H
