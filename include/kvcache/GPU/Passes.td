//===- Passes.td - Passes on kernels and their launches -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_GPU_PASSES_TD
#define KVCACHE_GPU_PASSES_TD

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

def FuseBlockLoops : Pass<"kvcache-fuse-block-loops"> {
  let summary = "Make one loop over the threads of a block that reduces";
  let description = [{
    Rewrites the body of each outer `scf.parallel` whose inner loops reduce
    (`init`). All inner loops become one loop, and each reduction a
    `gpu.all_reduce`, whose result is combined with the initial value. The
    inner loops must have equal constant bounds and steps.

    Ops beside the inner loops that write memory are executed by the first
    thread, and have no used results. Other ops are executed by all threads.
    Barriers separate conflicting accesses.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def ExpandAllReduce : Pass<"kvcache-expand-all-reduce",
                           "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lower reductions over a block to shuffles and shared memory";
  let description = [{
    Replaces each `gpu.all_reduce`. Each warp reduces by shuffles and stores its
    result in a workgroup attribution of 32 elements, and every thread combines
    these in the same order. The block may have any number of threads. Without
    `uniform`, the op must be in the first block of the kernel, which all
    threads execute. A `gpu.subgroup_reduce` is only checked here: its cluster
    must be in one warp.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def InlineIntoKernels : Pass<"kvcache-inline-into-kernels",
                             "::mlir::gpu::GPUModuleOp"> {
  let summary = "Inline the functions that a kernel calls in its body";
  let description = [{
    Upstream's inliner inlines calls in nested regions of a `gpu.func`, but no
    calls directly in its body, because the gpu dialect does not declare this
    legal. Run `inline` first: this pass does not inline the calls of a function
    that it inlines.
  }];
}

def InlineCalls : Pass<"kvcache-inline-calls", "::mlir::ModuleOp"> {
  let summary = "Inline all calls, and drop the functions that have no use left";
  let description = [{
    Runs `inline`, without simplification of the functions,
    `kvcache-inline-into-kernels` and `symbol-dce`. These read each attribute of
    each op, so this pass skips them in modules without calls or private symbols.
  }];
}

def NameKernelArgs : Pass<"kvcache-name-kernel-args", "::mlir::ModuleOp"> {
  let summary = "Name kernel arguments after the operands of their launches";
  let description = [{
    Sets `kvcache.name` on every kernel argument that has none. The name is that
    of the function argument, or the role of the view, that a launch in the
    module passes.
  }];
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

def OverlapLaunches : Pass<"kvcache-overlap-launches", "::mlir::ModuleOp"> {
  let summary = "Let the kernels of expanded ops begin before earlier launches end";
  let description = [{
    `kvcache-expand-ops` begins each kernel with `nvvm.griddepcontrol wait` and
    `launch_dependents`, both with the attribute `kvcache.programmatic`. If all
    chips of the kernel are sm_90 or newer, this pass makes its launches
    programmatic: blocks start while earlier launches of the stream end, and
    wait for them before their first access of memory. Otherwise, or with
    `enable=false`, it erases these ops. Other kernels and launches stay as they
    are.

    Run it after `kvcache-attach-targets`.
  }];
  let options = [
    Option<"enable", "enable", "bool", /*default=*/"true",
           "Make the launches programmatic where all chips can">
  ];
  let statistics = [
    Statistic<"numOverlapped", "num-overlapped",
              "Number of launches that are programmatic">
  ];
}

def FlattenKernelArgs : Pass<"kvcache-flatten-kernel-args",
                             "::mlir::ModuleOp"> {
  let summary = "Flatten memref arguments of kernels to pointers and sizes";
  let description = [{
    Replaces every memref argument of a kernel by a pointer to its first
    element, its dynamic sizes and its dynamic strides, in this order. Launches
    in the module pass these values. The attribute `kvcache.parameters` of the
    kernel records the names of the parameters.

    The pass sets `llvm.align` of workgroup attributions that have none to 16
    bytes, because LLVM assumes this alignment of large ones when it merges
    accesses.

    The pass assumes that a pointer that the kernel writes through does not
    overlap another pointer (`llvm.noalias`, like `__restrict__`), unless a
    launch in the module passes the same buffer twice. `noalias=false` disables
    this assumption. Memory that a kernel only reads is `llvm.readonly` as well,
    and loaded by `ld.global.nc`, unless the kernel executes `griddepcontrol
    wait`: an earlier launch may write it until then.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect"
  ];
  let options = [
    Option<"noAlias", "noalias", "bool", /*default=*/"true",
           "Assume that distinct pointers of a kernel do not overlap">
  ];
}

def PackSharedMemory : Pass<"kvcache-pack-shared-memory", "::mlir::ModuleOp"> {
  let summary = "Move shared memory beyond 48 KB to dynamic shared memory";
  let description = [{
    A kernel can have 48 KB of static shared memory. Larger shared memory must
    be dynamic, and the launch gives its size. If the variables of a kernel may
    exceed 48 KB, the pass moves its private, uninitialized `memref.global`s in
    the `workgroup` space, such as tiles, to offsets in dynamic shared memory.
    Dynamic shared memory is an external variable `kvcache_shared` of size zero,
    aligned to 1024 bytes. The pass orders variables by alignment, largest
    first, then by first use. It does not change other kernels, and deletes
    unused variables.

    The attribute `kvcache.dynamic_shared_memory` of the kernel records the size
    in bytes, and launches in the module pass it. A launch of a kernel with
    clones for several targets passes the maximum of the clones. If a
    multiprocessor of the kernel's chip has room for one block only, the kernel
    gets `nvvm.minctasm` of 1, unless it has a bound of registers: ptxas then
    takes the registers that other blocks can't have.

    Workgroup attributions, mbarriers and other variables stay static. The pass
    reports an error if these alone exceed 48 KB, if the total exceeds the
    shared memory of the chip, if the kernel already uses dynamic shared memory,
    which would overlap, or if a function that the kernel calls uses a variable
    that moves. Inline such functions first.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"
  ];
  let statistics = [
    Statistic<"numPacked", "num-packed",
              "Number of kernels whose shared memory became dynamic">
  ];
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

def CheckHostCode : Pass<"kvcache-check-host-code", "::mlir::ModuleOp"> {
  let summary = "Check host code for functions that take memory of a GPU";
  let description = [{
    Reports ops of public functions that access memory of an argument on the
    host: it is memory of the device. With `capturable`, also reports ops that a
    call under capture in a CUDA graph must not execute: allocation and release
    of memory, `gpu.wait` for a token, and calls of functions that are not
    known.

    The pass runs when caches are lowered and kernels are outlined.
  }];
  let options = [
    Option<"capturable", "capturable", "bool", /*default=*/"false",
           "Report what can't be captured in a CUDA graph">
  ];
}

def PrepareHost : Pass<"kvcache-prepare-host", "::mlir::ModuleOp"> {
  let summary = "Remove ops and attributes without a lowering for the CPU";
  let description = [{
    Drops argument names, which only kernels use, and rejects unregistered ops.
    Without a device, the pass drops kernels and rejects launches.

    Functions that are declared are called by the C wrappers of MLIR's execution
    engine.
  }];
  let options = [
    Option<"hasDevice", "has-device", "bool", /*default=*/"false",
           "Keep kernels and launches">,
    Option<"cWrappers", "c-wrappers", "bool", /*default=*/"true",
           "Create C wrappers for public functions too">
  ];
}

def HostMemorySpaces : Pass<"kvcache-host-memory-spaces", "::mlir::ModuleOp"> {
  let summary = "Move the memory of host functions to the default memory space";
  let description = [{
    On the CPU, a block is one thread, so its shared memory is private memory.
    Pointers to global memory are the same on host and device.
  }];
}

#endif // KVCACHE_GPU_PASSES_TD
