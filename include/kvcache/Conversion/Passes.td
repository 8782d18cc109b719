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
    all ops on caches. The result is the same for the CPU and for GPUs with two
    exceptions: on a GPU, wide reads of lookup tables are aligned, and chips
    with 32-byte accesses use them if the strides between pages are known to be
    multiples of 32 bytes.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def LowerFragments : Pass<"kvcache-lower-fragments"> {
  let summary = "Lower fragments to the registers of threads";
  let description = [{
    Replaces every value of a fragment type by the registers of a thread, also
    across calls, branches, regions and pipes, and lowers all ops on fragments.
    The result has the number of the thread, arithmetic on scalars and shuffles.

    - `fragment_mma` of a warpgroup becomes `mma`, on vectors.
    - `fragment_mma` of a warp becomes `ldmatrix` and `mma.sync`, at most 16 rows
      and 16 columns of B at a time.
    - `map` emits what depends on neither row nor column once for a thread, and
      what depends on one of them once for each row or column of the thread.
    - `reduce` combines the elements of a thread, then exchanges by
      `gpu.shuffle` between the lanes that share a row.

    Each thread of a team runs the code, so it must be GPU code.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::kvcache::KVCacheDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def ConvertKVCacheToNVVM : Pass<"convert-kvcache-to-nvvm"> {
  let summary = "Lower instructions of new chips to NVVM";
  let description = [{
    Lowers, in a `gpu.module` with one target, the ops for instructions of sm_90
    and newer: `tma_prefetch`, `tma_expect`, `tma_load`, `tma_load_rows`,
    `tma_gather4`, `tma_gather_tile`, `tma_store` and waits for stores; `mma` and
    `mma_wait`, only of sm_90a; `tmem_alloc`, `tmem_mma`, `tmem_commit`,
    `tmem_load` and `tmem_store`, of chips with tensor memory; `cluster_barrier`
    and `cluster_load`. If the chip does not support an op, the pass reports an error that names the required chips. It
    runs before or after `convert-kvcache-to-memref`.

    A `cluster_barrier` becomes `nvvm.cluster.arrive` and `nvvm.cluster.wait`, and
    its kernel gets a `known_cluster_size`. A `cluster_load` becomes `nvvm.mapa`
    and a load of distributed shared memory.

    On sm_100 and newer, gather4 is one instruction for four rows. Its
    destination is the shared memory of the block; in a kernel with clusters, on
    chips that support it, the shared memory of the cluster. On sm_90, gather4
    becomes four copies of one row.

    An `mma` becomes `wgmma.fence`, one `wgmma.mma_async` for each 32 bytes of
    k, and `wgmma.commit_group`. The descriptors of its tiles are constants plus
    an address. With A in registers, which the NVVM dialect does not have, the
    instruction is inline assembly, which the emulator runs too. A `mma_wait`
    becomes `wgmma.wait_group`, and empty inline assembly that takes and gives
    its values, so that LLVM moves no use of them before the wait.

    A tile in tensor memory becomes its address, an `i32`. The first warp
    allocates it by `tcgen05.alloc`, and gives up the permit. Its kernel gets
    `nvvm.minctasm` of 1, unless it has a bound of registers: ptxas then spills
    none to make room for blocks that tensor memory has no columns for. A `tmem_mma` becomes
    one `tcgen05.mma` for each 32 bytes of k and 256 columns of D. Fragments of 32
    bits have the shape 16x256b, smaller ones 16x128b.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def ConvertKVCacheChecks : Pass<"convert-kvcache-checks"> {
  let summary = "Lower kvcache.check to a runtime call or a GPU assertion";
  let description = [{
    On the CPU, a failed check calls `kvcacheCheckFailed` of
    `kvcache/Runtime/Host.h`, and so does a failed `cf.assert`. In GPU code, it
    prints its message with the value and the bound, and asserts. The message
    has the source location of the op. The pass drops a check if a check of the
    same values dominates it.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def LowerPrints : Pass<"kvcache-lower-prints", "::mlir::ModuleOp"> {
  let summary = "Lower gpu.printf in host code to calls of the runtime";
  let description = [{
    Replaces each `gpu.printf` outside of GPU code by a call of `kvcachePrint`.
    Integers are extended to 64 bits, as signed for `%d` and `%i`, and floats
    to f64, whatever lengths the format has. A format whose conversions don't
    fit the operands is an error.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect"
  ];
}

def LowerLaunches : Pass<"kvcache-lower-launches", "::mlir::ModuleOp"> {
  let summary = "Lower launches and descriptors to calls of the runtime";
  let description = [{
    Host code calls the functions of `kvcache/Runtime/Device.h`. If a call
    fails, `kvcacheDeviceFailed` ends the program and prints the source location
    of the op, such as `gather.mlir:12:3: launch of @kernels::@gather`. The pass
    lowers:

    - `gpu.binary` to a constant `KVCacheBinary` of the same name.
    - `gpu.launch_func` whose operands are the parameters of the kernel:
      numbers, pointers and descriptors. The launch or the kernel sets the
      size of clusters. The attribute `kvcache.programmatic` of a launch lets
      its blocks start before earlier kernels of the stream have ended.
    - `kvcache.encode_tensor_map`. A descriptor becomes a value of 128 bytes,
      also as an argument or result of a function and through control flow.
    - `gpu.alloc`, `gpu.dealloc`, `gpu.memcpy` and `gpu.memset` of contiguous
      memory. `host_shared` memory becomes managed memory.
    - `gpu.wait`. All work is on the stream that the caller has chosen with
      `kvcacheScopeEnter`, the default stream otherwise. Its order fulfils every
      dependency. An op that is not `async` waits for the stream, so that errors
      appear at its location, unless a programmatic launch comes next. With
      `caller-waits`, only `gpu.wait` does, and the caller can capture the
      function in a CUDA graph.

    The constant `kvcache_launched_kernels` lists the kernels that the functions
    launch, for `kvcacheKernelLoad`.
  }];
  let options = [
    Option<"callerWaits", "caller-waits", "bool", "false",
           "Leave it to the caller to wait for the stream">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

def LowerParallelLoops : Pass<"kvcache-lower-parallel-loops", "::mlir::ModuleOp"> {
  let summary = "Run parallel loops of the host on several threads";
  let description = [{
    Makes a function of the body of each outermost `scf.parallel` of a host
    function, and a call of `kvcacheParallelFor` of `kvcache/Runtime/Host.h` of
    the loop. Memory of the function's frame that only the loop uses is of the
    body, so that each thread has its own.

    A loop stays as it is if it has results, contains ops of GPUs, or has memory
    of the heap that no other code uses. With one thread, all do.
  }];
  let options = [
    Option<"threads", "threads", "int32_t", "1", "The most threads of a loop">
  ];
  let statistics = [
    Statistic<"numOutlined", "loops-on-threads", "Loops that threads share">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect"
  ];
}

def EmitTVMFFI : Pass<"kvcache-emit-tvm-ffi", "::mlir::ModuleOp"> {
  let summary = "Create a TVM-FFI wrapper for each public function";
  let description = [{
    For each public function `f` of the host that takes memrefs and numbers, and
    returns numbers, creates the C function

    ```c
    int __tvm_ffi_f(void *handle, const TVMFFIAny *args, int32_t numArgs,
                    TVMFFIAny *result);
    ```

    which callers of [TVM-FFI](https://tvm.apache.org/ffi/) find under the name
    `f`. It takes a tensor for a memref, checks the arguments, and calls the
    function. An argument that does not match its type is an error with the name
    of the argument, the expected and the given value. The checks concern the
    number and kinds of arguments, the range of integers, and the element type,
    rank, static sizes, static strides, alignment and device of tensors. The
    blocks and scales of a cache are aligned to 16 bytes, and so are the
    distances of their pages.

    The result is nothing, a number, or an array of numbers. The wrapper of any
    other function raises a TypeError with the reason.

    A wrapper is a call of `kvcacheCallTVMFFI` of `kvcache/Runtime/TVMFFI.h`
    with constants that describe the function. The pass runs before the lowering
    of caches, because it looks for the memrefs that hold them.

    `device` says whose memory is passed: `cpu`, `cuda`, or `emulator` for
    memory of the CPU that kernels on the emulator may access during the call.
  }];
  let options = [
    Option<"device", "device", "std::string", /*default=*/"\"cpu\"",
           "cpu, emulator or cuda">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect"
  ];
}

def WorkaroundE8M0Folding : Pass<"kvcache-workaround-e8m0-folding"> {
  let summary = "Prevent wrong folds of conversions of f8E8M0FNU";
  let description = [{
    MLIR 22 folds an extension of the constant NaN of f8E8M0FNU to infinity, and
    the truncation of a negative power of two to one without a sign. The pass
    makes the operand of each extension opaque, and lowers each truncation to
    integer arithmetic. The pipelines run it before any pass that folds; a pass
    that runs before a pipeline may fold.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def NarrowFloats : Pass<"kvcache-narrow-floats"> {
  let summary = "Lower conversions from and to narrow floats";
  let description = [{
    Lowers `arith.extf` from and `arith.truncf` to f8E4M3FN, f8E5M2, f6E2M3FN,
    f6E3M2FN, f4E2M1FN and f8E8M0FNU, on scalars and vectors, if the other type
    is f16, bf16, f32 or f64. Conversions between bf16 and f64 go through f32
    and round once. The pass works on any module.

    In a `gpu.module` with one `#nvvm.target`, scalars and 1-D vectors use the
    instructions of the chip: `cvt` on pairs of lanes, if the chip has it, or
    byte moves and packed arithmetic where these are shorter than integer
    arithmetic. All other conversions use integer arithmetic, which works on
    every target. Vectors of bf16 extend to f32 directly in the registers of
    their pairs. `vector.print` prints all of these and bf16 as f32.

    Extension is exact. Truncation rounds to nearest even and saturates, as
    `cvt.satfinite` does: finite inputs and infinities give finite numbers. A
    NaN stays a NaN; in the 4-bit and 6-bit formats, which have no NaN, it
    becomes the largest positive number. Constant folding before this pass
    differs: it keeps infinities in f8E5M2, and folds infinities and NaNs to
    zero in the 4-bit and 6-bit formats.

    f8E8M0FNU represents the powers of two from 2^-127 to 2^127. Truncation to
    it clamps smaller numbers, including zeros, and larger ones to this range.
    Negative numbers become NaN. The default mode rounds to nearest, ties up.
    `upward` and `toward_zero` are rounding modes of this format only.

    ```mlir
    %x = arith.extf %a : vector<16xf8E4M3FN> to vector<16xf16>
    %s = arith.truncf %b upward : f32 to f8E8M0FNU
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"",
           "Chip of ops outside of modules with a target, such as sm_90a">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::vector::VectorDialect"
  ];
}

def FloatsAsBits : Pass<"kvcache-floats-as-bits"> {
  let summary = "Represent floats that the target only moves as integers";
  let description = [{
    Replaces float types by integer types of the same width: f8E4M3FN, f8E5M2,
    f8E8M0FNU, f6E2M3FN, f6E3M2FN and f4E2M1FN, and with `bf16` also bf16. After
    the lowering of their arithmetic, programs only move values of these types;
    an op that computes on them is an error, also `kvcache.mma`,
    `kvcache.quantize` and `kvcache.dequantize`, which are lowered before.
    On an x86 CPU without bf16 instructions, a move of bf16 may go through f32
    and change NaNs. Ops of the x86vector dialect keep their types, with casts
    around them, and so do AMX tiles.
  }];
  let options = [
    Option<"bf16", "bf16", "bool", /*default=*/"false", "Also replace bf16">
  ];
}

def ExpandClamps : Pass<"kvcache-expand-clamps"> {
  let summary = "Expand maxima and minima with constants";
  let description = [{
    Replaces `arith.maxnumf` and `arith.minnumf` of a value and a constant by a
    comparison and a selection, which are one instruction of x86. A NaN becomes
    the constant, as before.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def OverlapScales : Pass<"kvcache-overlap-scales"> {
  let summary = "Compute scales one iteration before they are used";
  let description = [{
    The elements of a group wait for its scale: its largest magnitude, and a
    division. In a loop over heads, this pass computes the scales of the next
    iteration before the elements of this one, so that a CPU runs both at the
    same time. `append` marks loops whose iterations read nothing that others
    write, by `independent_iterations`. Quantization marks the values to compute
    early, by `early_values`. Rows are loaded again for the elements.

    A loop is changed if its bounds and its step are constant, it has several
    iterations and no results, and none of its ops before the last early one may
    write to memory. The pass removes both attributes.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def ExpandBF16Truncations : Pass<"kvcache-expand-bf16-truncations"> {
  let summary = "Expand truncations of vectors of f32 to bf16";
  let description = [{
    Rounds vectors of f32 to nearest even in integer arithmetic, and takes the
    odd words, which x86 permutes from two registers at once. A NaN becomes the
    quiet one, as with `arith-expand`, which expands truncations of scalars.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::vector::VectorDialect"];
}

def ExpandForLLVM : Pass<"kvcache-expand-for-llvm"> {
  let summary = "Expand ops that have no LLVM lowering";
  let description = [{
    Applies, in one greedy rewrite, the expansion patterns of upstream's
    `expand-strided-metadata`, `lower-affine`, `convert-vector-to-scf` and
    `convert-vector-to-llvm`. Subviews become sizes, offsets and strides; affine
    ops become arithmetic; multi-dimensional vectors become 1-D vectors. The
    pass also lowers `vector.multi_reduction` and `vector.scan`, and splits
    multi-dimensional `vector.load` and `vector.store` into rows.
    `math.clampf`, `ipowi`, `isinf` and `isnormal` become other ops. The bounds of
    `clampf` are those of CUDA and SPIR-V, of which LLVM 22 exchanges the two.

    With `gpu-math`, the pass also expands math that a chip computes without
    libdevice. It rewrites `math.exp` to base 2, ops that have NVPTX
    instructions to LLVM intrinsics, other functions in f32 to polynomials, and
    `gpu.subgroup_reduce` to shuffles. Functions in f16 and
    bf16 are computed in f32. Other math, such as `math.sinh` or `math.sin` in
    f64, needs libdevice. With `afn`, f32 ops become a single instruction, with
    a product for `exp` and `log`: `math.cos`, `exp`, `exp2`, `log`, `log2`,
    `sin`, `tanh`, and `arith.divf` with numerator 1. `exp` and `exp2` flush
    results below 2^-126 to zero, and `arith.divf` treats subnormal
    denominators as zero.
  }];
  let options = [
    Option<"gpuMath", "gpu-math", "bool", /*default=*/"true",
           "Expand math and reductions for GPUs">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def LowerControlFlow : Pass<"kvcache-lower-control-flow"> {
  let summary = "Convert structured control flow to branches, the last op first";
  let description = [{
    Applies the patterns of upstream's `convert-scf-to-cf`. Each splits the block
    of an op and moves all that follows. Lowering the last op first moves every
    op once; the first one first, as upstream does, takes time and memory that
    grow with the square of their number.
  }];
  let dependentDialects = ["::mlir::cf::ControlFlowDialect"];
}

def LowerMath : Pass<"kvcache-lower-math", "::mlir::ModuleOp"> {
  let summary = "Lower math to functions, LLVM's intrinsics and the math library";
  let description = [{
    Runs upstream's `convert-math-to-funcs`, `convert-math-to-llvm` and
    `convert-math-to-libm` on a module that has ops of `math`. Without this pass,
    each of them would visit all ops of a module that has none. `expm1` and
    `log1p` are the math library's, which are exact near 0.
  }];
}

def LowerX86Vectors : Pass<"kvcache-lower-x86-vectors", "::mlir::ModuleOp"> {
  let summary = "Lower instructions of x86 vectors to LLVM's intrinsics";
  let description = [{
    Applies upstream's patterns for the x86vector dialect, which
    `convert-to-llvm` does not.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def EmulateTiles : Pass<"kvcache-emulate-tiles", "::mlir::ModuleOp"> {
  let summary = "Compute products of AMX tiles by vectors";
  let description = [{
    Replaces tiles of 16 rows of 64 bytes by vectors, and products of bf16 by
    loops of multiply-adds of f32. Tiles must be in matrices of 32-bit elements
    without an own stride. It is for tests on CPUs without AMX: a product takes
    thousands of instructions, rounds each sum, and keeps denormals.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def KernelsToNVVM : Pass<"kvcache-kernels-to-nvvm",
                         "::mlir::gpu::GPUModuleOp"> {
  let summary = "Convert a module of kernels to NVVM";
  let description = [{
    Converts ops as upstream's `convert-gpu-to-nvvm` does, and expects that
    `kvcache-expand-for-llvm` has run. It converts one function after the other.
    A dialect conversion keeps replaced ops until it ends, and those of a large
    module do not fit into the cache of the CPU.
  }];
  let dependentDialects = [
    "::mlir::cf::ControlFlowDialect", "::mlir::memref::MemRefDialect",
    "::mlir::NVVM::NVVMDialect"
  ];
}

#endif // KVCACHE_CONVERSION_PASSES_TD
