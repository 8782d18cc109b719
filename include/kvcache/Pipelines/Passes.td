//===- Passes.td - Passes that only pipelines use -*- tablegen -*-===//
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
  let summary = "Put the body of every innermost parallel loop in one region";
  let description = [{
    Upstream's conversion of parallel loops to launches takes writes in the body
    for something between two loops, unless they are in a region of their own.
    The clean-up afterwards inlines it.

    Warns of a loop with none inside and none around it, because it becomes a
    kernel with blocks of one thread.
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

def AttachTargets : Pass<"kvcache-attach-targets", "::mlir::ModuleOp"> {
  let summary = "Give every gpu.module one target from the table of chips";
  let description = [{
    A `gpu.module` with `#nvvm.target`s keeps these; one without gets those of
    `chip`. Each target gets the PTX version that the table of chips asks for. A
    module with several targets is cloned, so that each clone can be lowered for
    its chip; `kvcache-serialize-kernels` puts the clones' objects together.
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
  let summary = "Say that numbers of threads and the like are not negative";
  let description = [{
    Gives every read of a special register that can have a `range`, and has
    none, that of its type's numbers from 0. Without one, upstream's analysis of
    integer ranges takes it for unreachable and folds what depends on it.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def ExpandForLLVM : Pass<"kvcache-expand-for-llvm"> {
  let summary = "Expand what no conversion to LLVM takes as it is";
  let description = [{
    Applies in one go the patterns of upstream's `expand-strided-metadata`,
    `lower-affine`, `convert-vector-to-scf` and `convert-vector-to-llvm`, except
    for the conversion: subviews become sizes, offsets and strides, affine ops
    arithmetic, and vectors of several dimensions vectors of one.
    `vector.multi_reduction` and `vector.scan` are lowered as well, and
    `vector.load` and `vector.store` of several dimensions row by row.

    With `gpu-math`, math that a chip computes without libdevice: `math.exp` is
    rewritten by base 2, the ops that NVPTX has instructions for become LLVM
    intrinsics, and `gpu.all_reduce` and `gpu.subgroup_reduce` shuffles. What is
    left needs libdevice. Two are one instruction of f32 where `afn` allows it:
    `arith.divf` of 1, which takes numbers that are not normal for zeros, and
    `math.exp` and `math.exp2`, whose results below 2^-126 become zero.
  }];
  let options = [
    Option<"gpuMath", "gpu-math", "bool", /*default=*/"true",
           "Expand math and reductions as a GPU computes them">
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
    Converts as upstream's `convert-gpu-to-nvvm` does, after
    `kvcache-expand-for-llvm` has expanded what that expands first, and one
    function after another: a conversion keeps what it replaces until it ends,
    and a large module does not fit into the processor's cache.
  }];
  let dependentDialects = [
    "::mlir::cf::ControlFlowDialect", "::mlir::memref::MemRefDialect",
    "::mlir::NVVM::NVVMDialect"
  ];
}

def PrepareHost : Pass<"kvcache-prepare-host", "::mlir::ModuleOp"> {
  let summary = "Leave in host code what has a lowering for the CPU";
  let description = [{
    Drops argument names, which only kernels have use for, and rejects
    unregistered ops. Drops kernels and rejects launches, unless there is a
    device.
  }];
  let options = [
    Option<"hasDevice", "has-device", "bool", /*default=*/"false",
           "Keep kernels and launches">
  ];
}

def ShareWithHost : Pass<"kvcache-share-with-host", "::mlir::ModuleOp"> {
  let summary = "Put the memory of host functions in the default space";
  let description = [{
    On the CPU a block is one thread, and the memory that it shares is its own.
    Pointers to global memory are the same on the host as on the device.
  }];
}

def MarkDescriptors : Pass<"kvcache-mark-descriptors",
                           "::mlir::gpu::GPUModuleOp"> {
  let summary = "Pass descriptors to kernels by value";
  let description = [{
    A descriptor is a parameter of 128 bytes that tensor copies read where it
    is: `llvm.byval` and `nvvm.grid_constant`, which `gpu.func` can't carry.
  }];
}

def AnnotateLoops : Pass<"kvcache-annotate-loops"> {
  let summary = "Tell LLVM what authors say of loops";
  let description = [{
    An `scf.for` may say how LLVM shall treat it:

    ```mlir
    scf.for %i = %c0 to %c8 step %c1 {
      ...
    } {llvm.loop_annotation = #llvm.loop_annotation<unroll = <full = true>>}
    ```

    Lowering leaves this as an attribute on a branch that LLVM never sees. This
    gives it to the branch as its own `loop_annotation`.
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
  let summary = "Verify all ops, whether or not the pass manager does";
  let description = [{
    To verify after each pass takes a fifth of the time that a kernel takes.
    `kvcache.compile` and `kvcache-opt --emit-ptx` switch that off; the pipelines
    have this pass where ops as users know them have been lowered, and where
    LLVM comes next.
  }];
}

def CheckLowered : Pass<"kvcache-check-lowered"> {
  let summary = "Reject what no pass has lowered to LLVM";
  let description = [{
    The last look before translation: an op that is left over gets an error at
    its own location.
  }];
}

def SerializeKernels : Pass<"kvcache-serialize-kernels", "::mlir::ModuleOp"> {
  let summary = "Compile every gpu.module to PTX, a cubin or a fat binary";
  let description = [{
    Replaces every `gpu.module` by a `gpu.binary` with an object for each of its
    targets. The property `kvcache.kernels` of an object describes its kernels:
    for each its `parameters`, in order with name and type, and its `block_size`
    where it is known.
  }];
  let options = [
    Option<"format", "format", "std::string", /*default=*/"\"ptx\"",
           "ptx, cubin or fatbin">,
    Option<"toolkit", "toolkit", "std::string", /*default=*/"\"\"",
           "The folder of the CUDA toolkit, with bin/ptxas">
  ];
}

#endif // KVCACHE_PIPELINES_PASSES_TD
