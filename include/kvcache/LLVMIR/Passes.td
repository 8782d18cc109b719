//===- Passes.td - Passes on the LLVM dialect -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LLVMIR_PASSES_TD
#define KVCACHE_LLVMIR_PASSES_TD

include "mlir/Pass/PassBase.td"

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

def ExpandFMA : Pass<"kvcache-expand-fma", "::mlir::ModuleOp"> {
  let summary = "Compute fused multiply-adds of f32 in f64";
  let description = [{
    Replaces `llvm.intr.fma` on f32 and its vectors by calls of functions that
    compute in f64, for processors without the instruction. Results have the
    same bits. LLVM would call `fmaf` of the C library for each element.

    The product is exact in f64. The sum is rounded to odd, so that rounding it
    to f32 gives the result of one rounding. Other types remain unchanged.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def CacheOperators : Pass<"kvcache-cache-operators"> {
  let summary = "Give accesses and copies the PTX cache operator of their hint";
  let description = [{
    NVPTX ignores `nontemporal` on LLVM loads and stores. This pass rewrites
    nontemporal accesses to global memory to `ld.global.cs`, with `.nc` for
    read-only memory, and `st.global.cs`. The L1 and L2 caches evict such lines
    first. An access has up to 16 or 32 bytes, as alignment and chip allow.

    The pass does not rewrite accesses that do not fill 32-bit registers, atomic
    and volatile accesses, and addresses that derive neither from a kernel
    parameter nor from a pointer in the global address space. A remark
    (`--remarks-filter=kvcache-cache-operators`) gives the reason.

    An `nvvm.cp.async.shared.global` with the attribute `kvcache.l2_hint`, which
    copies into tiles leave there, becomes the instruction with
    `.L2::cache_hint`: upstream's op has no operand for a cache policy.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
  let statistics = [
    Statistic<"numRewritten", "num-rewritten", "Number of accesses rewritten">
  ];
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

def TrackHostMemory : Pass<"kvcache-track-host-memory", "::mlir::ModuleOp"> {
  let summary = "Let failed calls free the memory that host code allocates";
  let description = [{
    A failed check leaves compiled code without its deallocations. In a module
    with wrappers for TVM-FFI, calls of `malloc` and `free` become calls of
    `kvcacheHostAlloc` and `kvcacheHostFree` of `kvcache/Runtime/Host.h`, so that
    the call that fails frees what it has allocated. Allocations of device memory
    are noted by `kvcacheHostNoteDeviceAlloc`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def InlineChecks : Pass<"kvcache-inline-checks", "::mlir::ModuleOp"> {
  let summary = "Inline internal functions with 'always_inline'";
  let description = [{
    A run-time check of host code is a call until here, because passes over many
    branches are slow. LLVM's inliner begins with the first call of a block and
    moves the rest of the block at each, in quadratic time. This pass begins with
    the last one.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def CheckLowered : Pass<"kvcache-check-lowered"> {
  let summary = "Reject ops that no pass has lowered to LLVM";
  let description = [{
    Runs before the translation to LLVM IR, and reports each remaining op, and
    each element type of an op that is not LLVM's, as an error at its location.
  }];
}

#endif // KVCACHE_LLVMIR_PASSES_TD
