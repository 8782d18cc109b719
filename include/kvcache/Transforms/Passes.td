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

def PlanAttention : Pass<"kvcache-plan-attention"> {
  let summary = "Choose the fields of the config of attention for chips";
  let description = [{
    Sets the fields of `config` of each `kvcache.attention` that its kernel has, by
    tables, for kernels that all of the chips can run. Without chips, kernels are
    for any chip. Fields that are set are kept; an error says which of them the
    chips can't have. A config from one run of the pass stays as it is in
    the next. `kvcache-expand-ops` makes the same choice for ops without this pass.

    With `tuning`, an op whose shape is in that file of `kvcache.tune` gets the
    config that was measured there. One that the chip can't have, or that has
    other bits than the choice of tables, is not used, and a warning says why.
  }];
  let options = [
    ListOption<"chips", "chip", "std::string",
               "The chips that the kernels are for, such as sm_90a">,
    Option<"tuning", "tuning", "std::string", "",
           "A tuning file for the only chip; none by default">
  ];
}

def ScheduleAttention : Pass<"kvcache-schedule-attention"> {
  let summary = "Overlap the products and exponentials of loops over tiles";
  let description = [{
    Rotates each `scf.for` with the attribute `kvcache.schedule` by one. The loop
    consumes a tile of keys for the product QK, computes masks and a softmax, and
    consumes a tile of values for the product PV. The rotated one starts QK of
    tile j, then PV of tile j - 1, and computes everything else of tile j while
    PV is in flight, as FlashAttention-3 does. Before it waits for PV, a
    `schedule_fence` keeps ptxas from moving the wait.

    With `ping_pong`, two warpgroups take turns by two named barriers that the
    kernel does not use.

    A loop stays as it is, with a remark, unless

    - it is from 0 by steps of 1, which is also the index of both pipes; each
      pipe has at least two stages;
    - each of the two regions has one product, its wait and its yield;
    - only PV, and pure ops that scale it, use the accumulator;
    - its body has no block barrier, and copies are in another branch.

    `ping_pong` needs two warpgroups of consumers, and a bound that surely is the
    same in all threads: a number that pure ops, loads and structured control
    flow compute from arguments of the kernel and numbers of blocks. Otherwise
    the loop is `pipelined`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::kvcache::KVCacheDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numScheduled", "num-scheduled", "Number of loops rotated">
  ];
}

def SplitAttention : Pass<"kvcache-split-attention"> {
  let summary = "Separate attention and the merge of its splits";
  let description = [{
    Adds `partial` to each `attention` with a `workspace`, and a `merge_splits`
    after it. A kernel of a split then leaves its accumulator, an exponent and the
    sum of its probabilities in the workspace, and another kernel merges the splits of each
    row.

    The region of `merge_splits` counts the splits of a row, from the tokens that
    the query rows of its thread block see. The `config` says which rows these
    are, and with which exponents a kernel computes. So the op needs one that has
    an `mma`, and `rows`, `keys` and `dequant` unless that is `none`: run
    `kvcache-plan-attention` before.

    `kvcache-to-ptx` runs the pass. On the CPU, rows are not split:
    `kvcache-expand-ops` joins the two ops again.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::kvcache::KVCacheDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numSplit", "num-split", "Number of ops split">
  ];
}

def TileAttention : Pass<"kvcache-tile-attention"> {
  let summary = "Expand attention to loops over fragments";
  let description = [{
    Replaces each `attention` on tensor cores by the parallel loops of a kernel
    on fragments. `kvcache-expand-ops` does the same with these ops, and replaces
    the others. The config, or the tables where it is open, choose for an op:
    - the MMA `wgmma`, also with `swap_ab`, or `tcgen05`;
    - the MMA `mma_sync`. Copies bring elements of 16 bits as they are, and
      threads convert others, or warps do so in registers where `dequant` is
      `registers`.
    An op with a `workspace` has to be `partial`, as `kvcache-split-attention`
    leaves it.

    A thread block stages its query rows in a tile. It has a loop over tiles of
    keys and values: scores by `fragment_mma`, masks and softmax by `map` and
    `reduce`, `acc` by `fragment_mma`. `store_rows` stores the results, and
    `store_split` those of a split into the workspace. With `wgmma`, a warpgroup
    copies tiles and others multiply. The loop has its schedule as
    `kvcache.schedule`, by which `kvcache-schedule-attention` rotates it. Without
    such a schedule, all threads copy the next tiles, and the loop stays as it is.
    With `seesaw`, two warpgroups have every second tile of latent rows each,
    and give each other their probabilities. With `roles`, `warp_roles` has a
    warp that copies, one that starts products of two query tiles into tensor
    memory, and a warpgroup for the softmax of each. With `pair`, two thread
    blocks of a cluster multiply latent rows together in tensor memory.

    The chips and the checks are those of `kvcache-expand-ops`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::kvcache::KVCacheDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
  let options = [
    Option<"checks", "checks", "bool", /*default=*/"false",
           "Check rules that the bounds of accesses do not cover">,
    ListOption<"chips", "chip", "std::string",
               "The chips that the kernels are for, such as sm_90a">
  ];
  let statistics = [
    Statistic<"numTiled", "num-tiled", "Number of ops expanded">
  ];
}

def ExpandOps : Pass<"kvcache-expand-ops"> {
  let summary = "Expand ops on whole caches to parallel loops of accesses";
  let description = [{
    Replaces `append`, `gather`, `copy`, `copy_pages`, `attention`,
    `merge_states`, `remap_rows`, `pool`, `index_scores` and `top_rows` by parallel loops: an outer one, which
    becomes the grid of a kernel, and with `for-gpu` an inner one, which becomes
    its block. Without, the inner loops are sequential, and their vectors wider.
    A block begins with `nvvm.griddepcontrol wait` and `launch_dependents`, which
    `kvcache-overlap-launches` keeps or erases.
    `workspace_size` becomes a product. Operands are memrefs;
    `one-shot-bufferize` makes them of tensors before this pass. `checks` inserts
    a `kvcache.check` of rules that `kvcache-bounds-checks` cannot check: that
    dense operands have the rows, positions and sequences that they are read
    for, that no two rows of `append` have one slot, which compares each row
    with all before it, that the workspace of `attention` is large enough, and
    with `for-gpu`, in host code, that dense operands are as aligned as wide
    accesses require.

    With `chip`, kernels may have instructions that all of these chips have, such
    as those of tensor cores for attention. Without `for-gpu`, `vector-bits` are
    those of the CPU's vector registers, 128, 256 or 512. Loops keep as many sums
    in registers as such a CPU has. With `threads` above 1, a thread computes
    fewer heads of few rows together, so that there is work for the others.

    `mma` is by which instructions a CPU multiplies matrices of attention: `fma`
    by multiply-adds of f32, `dot` by dot products of pairs of bf16
    (AVX512-BF16), `amx` by products of tiles of bf16 (AMX-BF16). Few rows have
    `dot` if queries and caches are of bf16 and heads multiples of 32, but never
    `amx`. The latter two require `vector-bits=512`. They are for operands that are exact in bf16:
    queries and caches of bf16, f8 and i8 whose scales, if any, are of tokens,
    tensors or heads. `amx` also requires keys of a multiple of 32 elements, and
    values of a multiple of 16. Other ops are computed by `fma`. With bf16, each
    probability is rounded to nearest, so an output differs from that of exact
    probabilities p by at most `2^-8 sum(p |v|) / sum(p)`. Both instructions
    round to nearest and flush denormals to 0, elements too, whatever the
    floating-point environment is. Maxima, sums and `lse` are of f32.
  }];
  let dependentDialects = [
    "::mlir::amx::AMXDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect",
    "::mlir::kvcache::KVCacheDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect", "::mlir::x86vector::X86VectorDialect"
  ];
  let options = [
    Option<"forGPU", "for-gpu", "bool", /*default=*/"false",
           "Expand for kernels on a GPU">,
    Option<"checks", "checks", "bool", /*default=*/"false",
           "Check rules that the bounds of accesses do not cover">,
    ListOption<"chips", "chip", "std::string",
               "The chips that the kernels are for, such as sm_90a">,
    Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"128",
           "Bits of the CPU's vector registers: 128, 256 or 512">,
    Option<"threads", "threads", "int64_t", /*default=*/"1",
           "Threads of the CPU that share the loops">,
    Option<"mma", "mma", "::mlir::kvcache::HostMma",
           /*default=*/"::mlir::kvcache::HostMma::FMA",
           "The CPU's matrix instructions",
           [{::llvm::cl::values(
             clEnumValN(::mlir::kvcache::HostMma::FMA, "fma",
                        "Multiply-adds of f32"),
             clEnumValN(::mlir::kvcache::HostMma::Dot, "dot",
                        "Dot products of pairs of bf16"),
             clEnumValN(::mlir::kvcache::HostMma::AMX, "amx",
                        "Products of tiles of bf16"))}]>
  ];
  let statistics = [
    Statistic<"numExpanded", "num-expanded", "Number of ops expanded">
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

def ChooseCopies : Pass<"kvcache-choose-copies", "::mlir::ModuleOp"> {
  let summary = "Choose how each copy into a tile is done";
  let description = [{
    Sets the attribute `copy` of `async_load_tile` and `async_gather_tile` to
    the best kind that is possible for the target of the `gpu.module`:

    - `tensor_boxes` (sm_90 and newer): `async_load_tile`, if a box of rows lies
      in a page and fills a multiple of 128 bytes; at most 64 copies.
    - `tensor_rows`: `async_gather_tile`, if four rows of a chunk fill a
      multiple of 128 bytes; at most 256 copies (sm_100 and newer: gather4). On
      sm_90, one row must fill a multiple of 128 bytes; at most 64 copies.
    - `bulk_rows` (sm_90 and newer): other gathers into tiles without a swizzle.
    - `cp_async` (sm_80 and newer): rows of a multiple of 4 bytes.
    - `plain`: other copies, code without a target, and the CPU.

    The rows of a box divide those of the tile, those of a page, and the number
    of which the first token is known to be a multiple. Tensor copies need a
    view that the host can compute from the arguments of the kernel. Copies by
    units of the hardware complete on a barrier, so they need a kernel, and a
    `wait` in the block of the copy or a pipe.

    The pass keeps a kind that the author has set. If that kind is not possible,
    it is an error that gives the reason.

    `--remarks-filter=kvcache-choose-copies` reports the kind of each copy, and
    for each better kind the reason why the pass did not choose it.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::kvcache::KVCacheDialect",
    "::mlir::memref::MemRefDialect"
  ];
  let statistics = [
    Statistic<"numPlain", "num-plain", "Number of copies by loads and stores">,
    Statistic<"numCpAsync", "num-cp-async", "Number of copies by cp.async">,
    Statistic<"numTensorBoxes", "num-tensor-boxes",
              "Number of copies by tensor copies of boxes">,
    Statistic<"numTensorRows", "num-tensor-rows",
              "Number of copies by tensor copies of rows">,
    Statistic<"numBulkRows", "num-bulk-rows",
              "Number of copies by bulk copies of rows">
  ];
}

def MaterializeDescriptors : Pass<"kvcache-materialize-descriptors",
                                  "::mlir::ModuleOp"> {
  let summary = "Pass the descriptors of copies to kernels";
  let description = [{
    Adds the operand `descriptor` to the copies of the kinds `tensor_boxes` and
    `tensor_rows`. The kernel takes the descriptors as additional, last
    arguments, one for each view and geometry. All clones of a kernel for other
    chips take the same arguments.

    Each launch in the module creates the descriptors and passes them. For other
    launches, the attribute `kvcache.descriptor` of the argument describes the
    view and the geometry.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::kvcache::KVCacheDialect", "::mlir::memref::MemRefDialect"
  ];
  let statistics = [
    Statistic<"numDescriptors", "num-descriptors",
              "Number of descriptors that kernels take">
  ];
}

defvar dialectsOfCopies = [
  "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
  "::mlir::kvcache::KVCacheDialect", "::mlir::LLVM::LLVMDialect",
  "::mlir::memref::MemRefDialect", "::mlir::nvgpu::NVGPUDialect",
  "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
  "::mlir::ub::UBDialect", "::mlir::vector::VectorDialect"
];

def LowerPipes : Pass<"kvcache-lower-pipes"> {
  let summary = "Lower pipes, with the copies in them, and roles of warps";
  let description = [{
    Lowers `pipe`, `produce` and `consume`, and the copies in `produce`. Each
    copy has the kind that `kvcache-choose-copies` sets, and the descriptor that
    `kvcache-materialize-descriptors` adds.

    A slot has a barrier for the full state and one for the empty state. The
    slot and the parity of their phases follow from the index. One elected lane
    of the first warp issues tensor copies, and expects their bytes. The lanes
    of this warp issue bulk copies. All producer threads issue `cp.async`, and
    the hardware arrives for them; consumers with `mma` then execute a proxy
    fence. A warp that has used a slot frees it by one
    arrival; with `commit`, its products do when they are done. One thread
    initializes the barriers at the start of the kernel.

    Roles become branches on the number of the warp, which a shuffle makes
    uniform for ptxas. Those of a warpgroup begin with one `setmaxnreg`.
  }];
  let dependentDialects = dialectsOfCopies;
  let statistics = [
    Statistic<"numPipes", "num-pipes", "Number of pipes lowered">,
    Statistic<"numCopies", "num-copies", "Number of copies lowered">
  ];
}

def LowerCopies : Pass<"kvcache-lower-copies"> {
  let summary = "Lower copies into tiles that are not in pipes";
  let description = [{
    Lowers `async_load_tile`, `async_gather_tile` and their `wait`. Each copy
    has the kind that `kvcache-choose-copies` sets, and the descriptor that
    `kvcache-materialize-descriptors` adds.

    A copy by a unit of the hardware completes on a barrier that the kernel
    initializes at its start. A `wait` for `cp_async` waits for all copies of
    the thread, and in a function with `mma` it has a proxy fence. Before a copy all threads synchronize, unless none of them can have
    used the tile.

    Rows that are not valid are out of the bounds of a ragged descriptor: they
    arrive as zeros, and the number of bytes stays the same. A row id is read
    with others, as wide as a `memref.assume_alignment` of the ids allows. A row
    that does not exist is zero: out of the bounds of a descriptor, filled by
    `cp.async`, or stored by the warp that issues bulk copies. Threads whose
    number is known share a tile so that the addresses of a thread differ by
    constants.
  }];
  let dependentDialects = dialectsOfCopies;
  let statistics = [
    Statistic<"numCopies", "num-copies", "Number of copies lowered">
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

def CheckInput : Pass<"kvcache-check-input"> {
  let summary = "Report what verifiers accept and upstream's passes can't take";
  let description = [{
    Upstream's verifiers accept the following, and its passes read memory that
    is not theirs for it. The pipelines run this pass first, and it reports each
    as an error:

    - `memref.dim` and `tensor.dim` with a constant that is no dimension of the
      shape, since an op that never runs may have a wrong one;
    - `llvm.invoke` without a function;
    - an attribute of a function or a call that `llvm.func` or `llvm.call` has
      with another type;
    - an op in a module that belongs into a function.
  }];
}

def VerifyIR : Pass<"kvcache-verify"> {
  let summary = "Verify all ops";
  let description = [{
    Verification after each pass takes up to half of the time of all passes, so
    `kvcache.compile`, `kvcache.jit` and `kvcache-opt --emit-ptx` disable it. The
    pipelines run this pass instead, once after the lowering of the ops that
    users write, and once before the translation to LLVM IR.
  }];
}

#endif // KVCACHE_TRANSFORMS_PASSES_TD
