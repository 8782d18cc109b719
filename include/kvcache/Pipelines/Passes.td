//===- Passes.td - Passes of the pipelines -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PIPELINES_PASSES_TD
#define KVCACHE_PIPELINES_PASSES_TD

include "mlir/Pass/PassBase.td"

def WrapParallelBodies : Pass<"kvcache-wrap-parallel-bodies"> {
  let summary = "Wrap the body of every innermost parallel loop in a region";
  let description = [{
    Upstream's conversion of parallel loops to launches mistakes side effects in
    the body of the innermost loop for side effects between two nested loops,
    unless they are in a nested region. Canonicalization inlines the region
    afterwards.

    The pass warns about a parallel loop that is neither nested nor contains
    another one, because it becomes a kernel with blocks of one thread.
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

def AttachTargets : Pass<"kvcache-attach-targets", "::mlir::ModuleOp"> {
  let summary = "Give every gpu.module one target from the table of chips";
  let description = [{
    A `gpu.module` keeps its `#nvvm.target`s; a module without targets gets
    those of the option `chip`. The pass sets the PTX version of each target
    from the table of chips. It clones a module with several targets, one clone
    per chip. `kvcache-serialize-kernels` combines the objects of the clones.
  }];
  let dependentDialects = [
    "::mlir::gpu::GPUDialect", "::mlir::NVVM::NVVMDialect"
  ];
  let options = [
    ListOption<"chips", "chip", "std::string",
               "The chips to compile for, such as sm_90a">,
    Option<"optLevel", "opt-level", "int", /*default=*/"3",
           "LLVM's optimization level, 0 to 3">
  ];
}

def BoundRegisters : Pass<"kvcache-bound-registers",
                          "::mlir::gpu::GPUModuleOp"> {
  let summary = "Give reads of special registers a nonnegative range";
  let description = [{
    Sets `range` on every read of a special register that supports it and has
    none: from 0 to the maximum of its type. Without a range, upstream's integer
    range analysis considers the read unreachable and folds the ops that depend
    on it.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
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

    With `gpu-math`, the pass also expands math that a chip computes without
    libdevice. It rewrites `math.exp` to base 2, ops that have NVPTX
    instructions to LLVM intrinsics, and `gpu.all_reduce` and
    `gpu.subgroup_reduce` to shuffles. Other math needs libdevice. With `afn`,
    two f32 ops become a single instruction: `arith.divf` with numerator 1,
    which treats subnormal denominators as zero, and `math.exp` and `math.exp2`,
    which flush results below 2^-126 to zero.
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

def PrepareHost : Pass<"kvcache-prepare-host", "::mlir::ModuleOp"> {
  let summary = "Remove ops and attributes without a lowering for the CPU";
  let description = [{
    Drops argument names, which only kernels use, and rejects unregistered ops.
    Without a device, the pass drops kernels and rejects launches.
  }];
  let options = [
    Option<"hasDevice", "has-device", "bool", /*default=*/"false",
           "Keep kernels and launches">
  ];
}

def ShareWithHost : Pass<"kvcache-share-with-host", "::mlir::ModuleOp"> {
  let summary = "Move the memory of host functions to the default memory space";
  let description = [{
    On the CPU, a block is one thread, so its shared memory is private memory.
    Pointers to global memory are the same on host and device.
  }];
}

def MarkDescriptors : Pass<"kvcache-mark-descriptors",
                           "::mlir::gpu::GPUModuleOp"> {
  let summary = "Pass descriptors to kernels by value";
  let description = [{
    Sets `llvm.byval` and `nvvm.grid_constant` on descriptor arguments, which
    `gpu.func` cannot have. A descriptor is a parameter of 128 bytes, and tensor
    copies read it from the parameter space.
  }];
}

def AnnotateLoops : Pass<"kvcache-annotate-loops"> {
  let summary = "Preserve loop annotations for LLVM";
  let description = [{
    An `scf.for` may have an annotation for LLVM:

    ```mlir
    scf.for %i = %c0 to %c8 step %c1 {
      ...
    } {llvm.loop_annotation = #llvm.loop_annotation<unroll = <full = true>>}
    ```

    The lowering to branches keeps it as a discardable attribute, which the
    translation to LLVM IR ignores. This pass makes it the `loop_annotation`
    property of the branch.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def DropHints : Pass<"kvcache-drop-hints"> {
  let summary = "Drop 'nontemporal' where it does not help a CPU";
  let description = [{
    Stores of whole, aligned vector registers keep the hint: they go past the
    caches. Other stores would write parts of cache lines, and loads from
    ordinary memory go through the caches in any case: x86's code generator even
    crashes on a load of two bytes with the hint.
  }];
}

def VerifyIR : Pass<"kvcache-verify"> {
  let summary = "Verify all ops";
  let description = [{
    Verification after each pass takes a fifth of the compile time of a kernel,
    so `kvcache.compile` and `kvcache-opt --emit-ptx` disable it. The pipelines
    run this pass instead, once after the lowering of the ops that users write,
    and once before the translation to LLVM IR.
  }];
}

def CheckInstructions : Pass<"kvcache-check-instructions",
                             "::mlir::gpu::GPUModuleOp"> {
  let summary = "Reject instructions that the chip of a module lacks";
  let description = [{
    LLVM's back end ends the process on such an instruction. Here, an op of the
    NVVM or LLVM dialect that the chip has no instruction for gets an error that
    says which chips have one.
  }];
}

def CheckLowered : Pass<"kvcache-check-lowered"> {
  let summary = "Reject ops that no pass has lowered to LLVM";
  let description = [{
    Runs before the translation to LLVM IR, and reports each remaining op as an
    error at its location.
  }];
}

def SerializeKernels : Pass<"kvcache-serialize-kernels", "::mlir::ModuleOp"> {
  let summary = "Compile every gpu.module to PTX, a cubin or a fat binary";
  let description = [{
    Replaces every `gpu.module` by a `gpu.binary` with one object per target.
    The property `kvcache.kernels` of an object describes each kernel: its
    `parameters`, in order with name and type, and its `block_size`, if known.
  }];
  let options = [
    Option<"format", "format", "std::string", /*default=*/"\"ptx\"",
           "ptx, cubin or fatbin">,
    Option<"toolkit", "toolkit", "std::string", /*default=*/"\"\"",
           "The folder of the CUDA toolkit, with bin/ptxas">
  ];
}

#endif // KVCACHE_PIPELINES_PASSES_TD
