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
    Inserts a `kvcache.check` before every access for each precondition: the
    lookup table has a row for each sequence, the page stride keeps the
    alignment of the blocks, the layer, sequence, head, token and element are in
    range, the element is a multiple of the access width, the base has the
    alignment that `populate` states, and the page id is below the number of
    pages. Run the pass before any other pass, while every op still has its
    source line.
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
  let summary = "Hoist reads of lookup tables and lengths out of loops";
  let description = [{
    Looks a page up before a loop if the loop changes neither the sequence nor
    the token, and hoists other loop-invariant reads of tables and lengths. If a
    loop may run zero times, the table entry may not exist; the pass then guards
    the read by the condition that the loop runs. The pass does not hoist out of
    parallel loops, because these may become kernels, and a lookup must not move
    to the host.

    `--remarks-filter=kvcache-hoist-lookups` reports each hoisted lookup, and
    for each other lookup the reason.
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

    Row ids are read as wide as a `memref.assume_alignment` of them allows. A
    row that does not exist is zero: out of bounds of a descriptor, filled by
    cp.async, or written by all lanes of the warp that copies others.

    Tensor copies need a descriptor, which the kernel takes as an additional,
    last argument. Launches in the module pass it; for others, the argument's
    attribute `kvcache.descriptor` says what it is of. This needs a view that
    the host can compute: one of the kernel's arguments and nothing else.

    A copy with a `wait` in its own block completes on an mbarrier that the
    kernel sets up at its start; others are `cp.async`, and waited for all
    together. Before a copy all threads meet, unless none can have used the
    tile.

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
  let summary = "Name kernel arguments after the operands of their launches";
  let description = [{
    Sets `kvcache.name` on every kernel argument that has none. The name is that
    of the function argument, or the role of the view, that a launch in the
    module passes.
  }];
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
    this assumption.
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
    clones for several targets passes the maximum of the clones.

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

def NarrowIntegers : Pass<"kvcache-narrow-integers"> {
  let summary = "Narrow integer arithmetic that provably fits to 32 bits";
  let description = [{
    Combines upstream's `int-range-optimizations` and
    `arith-int-range-narrowing` with a single range analysis. The pass replaces
    values whose range is one constant, removes remainders whose dividend is
    below the divisor, and narrows arithmetic and comparisons to 32 bits if
    operands and results fit. Before, it converts signed ops on nonnegative
    operands to unsigned ops, so that values from 2^31 on keep their order,
    which upstream does not do. Ranges come from known block and grid sizes, and
    from the bounds of the ops that read a cache.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [
    Statistic<"numReplaced", "num-replaced", "Number of operations replaced">
  ];
}

def HoistUniform : Pass<"kvcache-hoist-uniform"> {
  let summary = "Hoist uniform computations to the entry of a kernel";
  let description = [{
    Moves pure LLVM ops of a kernel that depend only on parameters, constants
    and block ids to its entry block. Otherwise, sibling branches repeat the
    same address arithmetic and become too long for ptxas to predicate, so that
    their loads cannot overlap. The values are uniform, and live in uniform
    registers.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"
  ];
  let statistics = [
    Statistic<"numHoisted", "num-hoisted", "Number of operations hoisted">
  ];
}

def SplitAddresses : Pass<"kvcache-split-addresses"> {
  let summary = "Split addresses into terms that several accesses share";
  let description = [{
    Splits the index of every `llvm.getelementptr` into terms, through
    additions, multiplications by constants, extensions, and divisions such as
    those of a token by the page size. Then the pass adds the terms to the base:
    first the 64-bit terms, then the sum of the terms that fit into 32 bits
    together, and the constant last. Accesses at a constant distance then differ
    only in the immediate of the instruction. LLVM finds such a distance only
    outside of products and extensions. Factors become element sizes, because
    one instruction extends and multiplies an offset.

    The pass computes terms that are known at the start of a thread there, and
    adds them before the others, such as the offset of a page. So they do not
    wait for page ids, and LLVM hoists them out of loops.

    The pass proves that terms fit into 32 bits from the flags of the
    arithmetic, the ranges of special registers, and comparisons that guard an
    access. It does not change addresses of shared memory, which have 32 bits.
    It adds the remaining terms of truncated sums, such as a token plus a
    constant, after the truncation.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
  let statistics = [
    Statistic<"numSplit", "num-split", "Number of addresses split">
  ];
}

def CacheOperators : Pass<"kvcache-cache-operators"> {
  let summary = "Give nontemporal accesses a PTX cache operator";
  let description = [{
    NVPTX ignores `nontemporal` on LLVM loads and stores. This pass rewrites
    nontemporal accesses to global memory to `ld.global.cs`, with `.nc` for
    read-only memory, and `st.global.cs`. The L1 and L2 caches evict such lines
    first. An access has up to 16 or 32 bytes, as alignment and chip allow.

    The pass does not rewrite accesses that do not fill 32-bit registers, atomic
    and volatile accesses, and addresses that derive neither from a kernel
    parameter nor from a pointer in the global address space. A remark
    (`--remarks-filter=kvcache-cache-operators`) gives the reason.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
  let statistics = [
    Statistic<"numRewritten", "num-rewritten", "Number of accesses rewritten">
  ];
}

#endif // KVCACHE_TRANSFORMS_PASSES_TD
