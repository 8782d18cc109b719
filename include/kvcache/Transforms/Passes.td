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

def VerifyIR : Pass<"kvcache-verify"> {
  let summary = "Verify all ops";
  let description = [{
    Verification after each pass takes a fifth of the compile time of a kernel,
    so `kvcache.compile` and `kvcache-opt --emit-ptx` disable it. The pipelines
    run this pass instead, once after the lowering of the ops that users write,
    and once before the translation to LLVM IR.
  }];
}

#endif // KVCACHE_TRANSFORMS_PASSES_TD
