//===- Passes.td - Transforms on the kvcache dialect -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TRANSFORMS_PASSES_TD
#define KVCACHE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def BoundsChecks : Pass<"kvcache-bounds-checks"> {
  let summary = "Check every index, page id and alignment at run time";
  let description = [{
    Puts a `kvcache.check` before every access for each thing that its author
    promised: a row of the lookup table for each sequence, pages as far apart as
    alignment asks, layer, sequence, head, token and element in range, an element
    that is a multiple of the access's width, a base that is as aligned as
    `populate` says, and a page id below the number of pages. Run it before any
    other pass, while every op still knows its source line.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::kvcache::KVCacheDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numChecks", "num-checks", "Number of checks inserted">
  ];
}

def HoistLookups : Pass<"kvcache-hoist-lookups"> {
  let summary = "Move table and length reads out of loops";
  let description = [{
    Looks a page up before the loop whenever neither its sequence nor its token
    changes in it, and moves other reads of the tables and lengths that do not
    change out as well. A loop that may run zero times must not read a table
    entry that need not exist, so the read then goes under a guard: that the
    loop runs at all. Parallel loops are left alone, because they may become
    kernels, and their lookups must not move to the host.

    `--remarks-filter=kvcache-hoist-lookups` shows each lookup that moved, and why
    the others stay in their loops.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::kvcache::KVCacheDialect",
    "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect"
  ];
  let statistics = [
    Statistic<"numHoisted", "num-hoisted", "Number of lookups hoisted">
  ];
}

def ExpandCopies : Pass<"kvcache-expand-copies", "::mlir::ModuleOp"> {
  let summary = "Lower copies into tiles, and pipes, to what the target does best";
  let description = [{
    Expands `async_load_tile`, `async_gather_tile` and their `wait`, and `pipe`,
    `produce` and `consume`. The target of the `gpu.module` decides how:

    - Tensor copies of boxes (sm_90 and newer): `async_load_tile`, where a box
      of rows lies in a page and fills a multiple of 128 bytes; at most 64
      copies.
    - gather4 (sm_100 and newer): `async_gather_tile`, where a row of a chunk is
      a multiple of 32 bytes; at most 256 copies.
    - Tensor copies of a row (sm_90): the same, of 128 bytes; at most 64 copies.
    - Bulk copies of a row (sm_90 and newer): other gathers into tiles without a
      swizzle.
    - cp.async (sm_80 and newer): rows of a multiple of 4 bytes. Threads whose
      number is known share a tile so that a thread's addresses are constants
      apart.
    - Loads and stores (any, and the CPU): what is left, and kernels without a
      target.

    The rows of a box divide those of the tile, those of a page, and what the
    first token is known to be a multiple of. Rows that are not valid are out of
    the bounds of a ragged descriptor: they arrive as zeros, and the number of
    bytes stays the same.

    Row ids are read as wide as a `memref.assume_alignment` of them allows. A row
    that does not exist is zero: out of bounds of a descriptor, filled by
    cp.async, or written by all lanes of the warp that copies others.

    Tensor copies need a descriptor, which the kernel takes as an additional,
    last argument. Launches in the module pass it; for others, the argument's
    attribute `kvcache.descriptor` says what it is of. This needs a view that
    the host can compute: one of the kernel's arguments and nothing else.

    A copy with a `wait` in its own block completes on an mbarrier that the
    kernel sets up at its start; others are `cp.async`, and waited for all
    together. Before a copy all threads meet, unless none can have used the tile.

    A slot of a pipe has a barrier that says when it is full, and one that says
    when it is empty; the slot and the parity of their phases follow from the
    index. One elected lane of the first warp issues tensor copies, and expects
    their bytes; the producer threads issue cp.async, and the hardware arrives
    for them. A warp that has used a slot frees it by one arrival.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::kvcache::KVCacheDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::nvgpu::NVGPUDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::ub::UBDialect", "::mlir::vector::VectorDialect"
  ];
}

def NameKernelArgs : Pass<"kvcache-name-kernel-args", "::mlir::ModuleOp"> {
  let summary = "Name the arguments of kernels after what launches pass";
  let description = [{
    Gives every kernel argument without a `kvcache.name` one: the name of the
    function argument that a launch in the module passes, or the role of the
    view that it passes.
  }];
}

def FlattenKernelArgs : Pass<"kvcache-flatten-kernel-args",
                             "::mlir::ModuleOp"> {
  let summary = "Pass one kernel parameter per pointer";
  let description = [{
    Replaces every memref argument of a kernel by a pointer to its first
    element, and those of its sizes and strides that its type leaves open, in
    this order. Launches in the module pass these. The kernel records its
    parameters' names in the attribute `kvcache.parameters`.

    Workgroup attributions without `llvm.align` get 16 bytes: LLVM assumes that
    much of large ones when it merges accesses.

    Distinct pointers of a kernel are assumed not to overlap where one of them
    is written to (`llvm.noalias`), as with `__restrict__`, unless a launch in
    the module passes the same buffer twice. `noalias=false` assumes nothing.
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
    A kernel can have 48 KB of static shared memory; more has to be dynamic, of
    a size that the launch gives. Where the variables of a kernel may take more,
    this moves its private, uninitialized `memref.global`s in the `workgroup`
    space, which tiles are, to offsets in dynamic shared memory: an external
    variable `kvcache_shared` of no size, aligned to 1024 bytes. What takes the
    largest alignment comes first, then what the kernel uses first. Other
    kernels stay as they are, and variables that none uses go.

    The kernel records the bytes of dynamic shared memory in the attribute
    `kvcache.dynamic_shared_memory`, and its launches in the module give them. A
    launch of a kernel that was cloned for several targets gives what the
    largest of them needs.

    Workgroup attributions, mbarriers and other variables stay static. It is an
    error if they alone take more than 48 KB, if all is more than the chip has,
    if the kernel takes dynamic shared memory by itself, which would begin at
    the same place, or if a function that the kernel calls uses a variable that
    moves: inline first.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"
  ];
  let statistics = [
    Statistic<"numPacked", "num-packed",
              "Number of kernels whose shared memory became dynamic">
  ];
}

def InlineIntoKernels : Pass<"kvcache-inline-into-kernels",
                             "::mlir::gpu::GPUModuleOp"> {
  let summary = "Inline the functions that a kernel calls in its body";
  let description = [{
    Upstream's inliner inlines calls in the regions of a `gpu.func`, but none
    that stand in its body itself, because the gpu dialect does not say that it
    may. Run `inline` first: calls in a function that is inlined here stay.
  }];
}

def NarrowIntegers : Pass<"kvcache-narrow-integers"> {
  let summary = "Compute in 32 bits what provably fits";
  let description = [{
    Does what upstream's `int-range-optimizations` and `arith-int-range-narrowing`
    do one after the other, with one analysis of the ranges: values that can be
    but one constant are replaced by it, remainders of what is less than the
    divisor go away, and arithmetic and comparisons whose operands and results
    fit are done in 32 bits. Signed ops on what is not negative become unsigned
    ones before, so that numbers of 2^31 and more keep their order when they are
    narrowed; upstream's do not. Ranges come from block and grid sizes that are
    known, and from the bounds of the ops that read a cache.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [
    Statistic<"numReplaced", "num-replaced", "Number of operations replaced">
  ];
}

def HoistUniform : Pass<"kvcache-hoist-uniform"> {
  let summary = "Compute what all threads share once, at a kernel's start";
  let description = [{
    Moves the pure LLVM ops of a kernel that depend on nothing but parameters,
    constants and block ids to its entry block. Sibling branches otherwise
    repeat the same address arithmetic, and grow too long for ptxas to
    predicate, which keeps their loads from being in flight together. Such
    values live in uniform registers and cost a thread nothing.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"
  ];
  let statistics = [
    Statistic<"numHoisted", "num-hoisted", "Number of operations hoisted">
  ];
}

def SplitAddresses : Pass<"kvcache-split-addresses"> {
  let summary = "Compute addresses from parts that several accesses share";
  let description = [{
    Takes the index of every `llvm.getelementptr` apart, through additions,
    multiplications by constants, extensions, and divisions that split it, such
    as those of a token by the page size. Then it adds the terms to the base one
    after the other: first those of 64 bits, then the sum of those that fit into
    32 bits together, and the constant last. Accesses that are a constant apart
    then share all but an immediate of the instruction, which LLVM finds only
    where the distance is no part of a product or an extension. Factors become
    sizes of elements: an instruction that extends an offset multiplies it, too.

    What a thread knows from the start is computed there, and comes before what
    it does not, such as the offset of a page: it does not wait for page ids,
    and LLVM moves it out of loops.

    What fits into 32 bits follows from the flags of the arithmetic, the ranges
    of special registers, and comparisons that guard an access. Addresses of
    shared memory, which have 32 bits, stay as they are. What is left of sums that
    are truncated, such as a token and a constant, is added after truncation.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
  let statistics = [
    Statistic<"numSplit", "num-split", "Number of addresses split">
  ];
}

def CacheOperators : Pass<"kvcache-cache-operators"> {
  let summary = "Give nontemporal accesses a cache operator of PTX";
  let description = [{
    NVPTX ignores `nontemporal` on the loads and stores of LLVM. This writes
    those of global memory as `ld.global.cs`, with `.nc` where nobody writes the
    memory, and `st.global.cs`: the line is the first to be evicted from L1 and
    L2. They are as wide as alignment and chip allow, 16 bytes or 32.

    It leaves alone what does not fill 32-bit registers, what is atomic or
    volatile, and addresses that do not lead back to a kernel's parameter or to
    a pointer in the global address space. A remark
    (`--remarks-filter=kvcache-cache-operators`) gives the reason.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
  let statistics = [
    Statistic<"numRewritten", "num-rewritten", "Number of accesses rewritten">
  ];
}

#endif // KVCACHE_TRANSFORMS_PASSES_TD
