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
    are aligned on a GPU, and accesses of 32 bytes on chips that have them,
    where distances between pages are known to be multiples of 32 bytes.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def ConvertKVCacheToNVVM : Pass<"convert-kvcache-to-nvvm"> {
  let summary = "Lower tensor copies to NVVM";
  let description = [{
    Lowers the ops that stand for instructions of sm_90 and newer, in a
    `gpu.module` with one target: `tma_prefetch`, `tma_expect`, `tma_load`,
    `tma_load_rows`, `tma_gather4`, `tma_gather_tile`, `tma_store` and the waits
    for stores. An op that the chip doesn't have gets an error that says which
    chips do. It runs before or after `convert-kvcache-to-memref`.

    gather4 is one instruction for four rows on sm_100 and newer, in the form
    for the block's own shared memory; in a kernel with clusters, on chips that
    have it, in that for the cluster's. On sm_90 it is four copies of one row.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect"
  ];
}

def ConvertKVCacheChecks : Pass<"convert-kvcache-checks"> {
  let summary = "Lower kvcache.check to a runtime call, or to a GPU assertion";
  let description = [{
    On the CPU a failed check calls the function `kvcacheCheckFailed` of
    `kvcache/Runtime/Host.h`. In GPU code it prints its message with the value
    and the bound, and asserts. The message holds the op's source location.
    `cf.assert` on the CPU calls the same function. A check of the same values
    as one that dominates it is dropped.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def LowerLaunches : Pass<"kvcache-lower-launches", "::mlir::ModuleOp"> {
  let summary = "Lower launches and descriptors to calls of the runtime";
  let description = [{
    Host code calls the functions of `kvcache/Runtime/Device.h`. A call that
    fails ends the program by `kvcacheDeviceFailed`, with the op's source
    location, such as `gather.mlir:12:3: launch of @kernels::@gather`.

    - A `gpu.binary` becomes a constant `KVCacheBinary` of the same name.
    - `gpu.launch_func`, whose operands are the kernel's parameters one by one:
      numbers, pointers and descriptors. Clusters are the kernel's own.
    - `kvcache.encode_tensor_map`: a descriptor is a value of 128 bytes, also as
      an argument or result of a function and through control flow.
    - `gpu.alloc`, `gpu.dealloc`, `gpu.memcpy` and `gpu.memset` of memory without
      gaps; `host_shared` memory is managed.
    - `gpu.wait`: all work is on the default stream, whose order fulfils every
      dependency. What is not `async` waits for the stream, so that its errors
      are reported where it is.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

def ConvertNVVMToEmulator : Pass<"convert-nvvm-to-emulator",
                                 "::mlir::ModuleOp"> {
  let summary = "Lower kernels to functions that the emulator runs";
  let description = [{
    Takes every `gpu.module` at the level of NVVM and LLVM, as it is before
    inline PTX is made, and turns its kernels into functions of the host. Each
    instruction of the chip becomes a call of a function in `kvcache/Emulator`,
    with the thread that executes it and its place in the source. An op that the
    emulator doesn't know, or that the chip of the module doesn't have, is an
    error at its location.

    A `gpu.binary` of the same name is left, whose objects name the constants
    that describe the kernels: `kvcache-lower-launches` makes of them what
    libkvcache_emulator.so launches.

    bf16 is computed by f32 and rounded. Loads and stores are announced before
    they happen, unless both options are off.
  }];
  let dependentDialects = [
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect"
  ];
  let options = [
    Option<"sanitize", "sanitize", "bool", /*default=*/"true",
           "Check accesses: bounds, order, and what is written">,
    Option<"meter", "meter", "bool", /*default=*/"false",
           "Count what kernels ask of memory">
  ];
}

def NarrowFloats : Pass<"kvcache-narrow-floats"> {
  let summary = "Lower conversions from and to narrow floats";
  let description = [{
    Lowers `arith.extf` from and `arith.truncf` to f8E4M3FN, f8E5M2, f6E2M3FN,
    f6E3M2FN, f4E2M1FN and f8E8M0FNU, on scalars and vectors, where the other
    type is f16, bf16, f32 or f64. Conversions between bf16 and f64 go through
    f32, rounding once. Usable on any module.

    In a `gpu.module` with one `#nvvm.target`, scalars and vectors of one
    dimension are converted by the instructions of its chip: two lanes at a time
    by `cvt` where the chip has it, and by moves of bytes and arithmetic on
    pairs where that is shorter than integer arithmetic. Everything else is
    integer arithmetic, which runs everywhere. Vectors of bf16 extend to f32 in
    the registers that hold pairs of them.

    Extension is exact. Truncation rounds to nearest even and saturates, as
    `cvt.satfinite` does: a finite input or an infinity gives a finite number. A
    NaN stays one, and becomes the largest positive number of the formats of 4
    and 6 bits, which have none. Constants may be folded before, which keeps an
    infinity in f8E5M2 and makes a zero of infinities and NaNs in these formats.

    f8E8M0FNU has powers of two from 2^-127 to 2^127: what is less, zeros
    included, becomes the first, and what is larger the last. Negative numbers
    become NaN. The default takes the upper one of two that are equally near;
    `upward` and `toward_zero` are rounding modes of this format only.

    ```mlir
    %x = arith.extf %a : vector<16xf8E4M3FN> to vector<16xf16>
    %s = arith.truncf %b upward : f32 to f8E8M0FNU
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"",
           "Chip of the ops that are in no module with a target, such as sm_90a">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::vector::VectorDialect"
  ];
}

def FloatsAsBits : Pass<"kvcache-floats-as-bits"> {
  let summary = "Move floats that the target can't compute on as integers";
  let description = [{
    Replaces the types that are only moved, once their arithmetic is lowered, by
    integers of their width, everywhere: f8E4M3FN, f8E5M2, f8E8M0FNU, f6E2M3FN,
    f6E3M2FN and f4E2M1FN, and with `bf16` also bf16. A move of bf16 on an x86 CPU without
    bf16 instructions may pass through f32, and then changes NaNs.
  }];
  let options = [
    Option<"bf16", "bf16", "bool", /*default=*/"false", "Also replace bf16">
  ];
}

#endif // KVCACHE_CONVERSION_PASSES_TD
