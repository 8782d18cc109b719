//===- Passes.td - Conversions out of the kvcache dialect -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_CONVERSION_PASSES_TD
#define KVCACHE_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertKVCacheToMemRef : Pass<"convert-kvcache-to-memref"> {
  let summary = "Lower the kvcache dialect to memref, vector, arith and scf";
  let description = [{
    Replaces every value of a cache type by its parts, also across functions,
    calls, kernels, launches, structured and branching control flow, and lowers
    the ops on caches. No cache value is left. The result is the same for the
    CPU and for GPUs, but for what a chip allows: wide reads of lookup tables
    are aligned on a GPU, and accesses of 32 bytes on chips that have them.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def ConvertKVCacheChecks : Pass<"convert-kvcache-checks"> {
  let summary = "Lower kvcache.check to a runtime call, or to a GPU assertion";
  let description = [{
    On the CPU a failed check calls the function `kvcacheCheckFailed` of
    `kvcache/Runtime/Host.h`. In GPU code it prints its message with the value
    and the bound, and asserts. The message holds the op's source location.
    `cf.assert` on the CPU calls the same function.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def NarrowFloats : Pass<"kvcache-narrow-floats"> {
  let summary = "Lower conversions from and to narrow floats";
  let description = [{
    Lowers `arith.extf` and `arith.truncf`, on scalars and vectors, from and to
    f8E4M3FN and f8E5M2 to integer arithmetic. Truncation rounds to nearest
    even and saturates: a finite input never gives NaN or infinity, and a NaN
    stays NaN. Conversions between bf16 and f64 go through f32, rounding once.
    Usable on any module.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def FloatsAsBits : Pass<"kvcache-floats-as-bits"> {
  let summary = "Move floats that the target can't compute on as integers";
  let description = [{
    Replaces the types that are only moved, once their arithmetic is lowered, by
    integers of their width, everywhere: f8E4M3FN, f8E5M2, f8E8M0FNU and
    f4E2M1FN, and with `bf16` also bf16. A move of bf16 on an x86 CPU without
    bf16 instructions may pass through f32, and then changes NaNs.
  }];
  let options = [
    Option<"bf16", "bf16", "bool", /*default=*/"false", "Also replace bf16">
  ];
}

#endif // KVCACHE_CONVERSION_PASSES_TD
