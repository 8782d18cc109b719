//===- Passes.h - Transforms on the kvcache dialect -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TRANSFORMS_PASSES_H
#define KVCACHE_TRANSFORMS_PASSES_H

#include "kvcache/Target/HostMma.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
namespace amx {
class AMXDialect;
} // namespace amx
namespace arith {
class ArithDialect;
} // namespace arith
namespace gpu {
class GPUDialect;
} // namespace gpu
namespace kvcache {
class KVCacheDialect;
} // namespace kvcache
namespace LLVM {
class LLVMDialect;
} // namespace LLVM
namespace math {
class MathDialect;
} // namespace math
namespace memref {
class MemRefDialect;
} // namespace memref
namespace nvgpu {
class NVGPUDialect;
} // namespace nvgpu
namespace NVVM {
class NVVMDialect;
} // namespace NVVM
namespace scf {
class SCFDialect;
} // namespace scf
namespace ub {
class UBDialect;
} // namespace ub
namespace vector {
class VectorDialect;
} // namespace vector
namespace x86vector {
class X86VectorDialect;
} // namespace x86vector
} // namespace mlir

namespace mlir::kvcache {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "kvcache/Transforms/Passes.h.inc"

} // namespace mlir::kvcache

#endif // KVCACHE_TRANSFORMS_PASSES_H
