//===- PipeOps.td - Pipes of tiles -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_PIPEOPS_TD
#define KVCACHE_IR_PIPEOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

/// PTX ISA, "setmaxnreg".
def KVCache_NumRegisters : ConfinedAttr<I64Attr, [
    AttrConstraint<CPred<"::llvm::cast<::mlir::IntegerAttr>($_self).getInt()"
                         " % 8 == 0">,
                   "whose value is a multiple of 8">,
    IntMinValue<24>, IntMaxValue<256>]>;

def KVCache_PipeOp : KVCache_Op<"pipe", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Allocates a pipe of tiles";
  let description = [{
    Allocates shared memory for the tiles of all stages, and their barriers. All
    threads of the block execute the op. The description of
    `kvcache-lower-pipes` lists the generated instructions.

    Constraints:
    - (C1) the op is not in a loop of its kernel: a kernel initializes its
      barriers once. Launches, and parallel loops, which become launches, may be
      in loops.
    - (C2) only `produce` and `consume` take the pipe: no loop carries it, and no
      call passes it on. The lowering checks it.
    - (C3) `producer_registers` and `consumer_registers` are given both or
      neither if the pipe has `producers`, which are then a multiple of 4 warps.
      Other pipes have at most `consumer_registers`.
    - (C4) all `produce` and `consume` of a pipe are in `warp_roles`, or none.

    With `producer_registers` and `consumer_registers`, producers give registers
    to consumers, which need more of them for products. Each thread of a
    producer has so many registers from the beginning of the branch that
    contains `produce`, and each thread of a consumer from the beginning of the
    branch that contains `consume`. This is for code for one architecture or
    family from sm_90a on; the CPU and other chips ignore it. There, the lowering
    checks:
    - The block size is known, and a multiple of 128.
    - All `produce` are in one branch of an `scf.if`, all `consume` in another
      one, and neither is in a loop. ptxas compiles code after the branches for
      the smaller number.
    - The sum is at most the number of registers with which the threads begin.
      The kernel has it in `nvvm.maxnreg`, or it follows from `nvvm.minctasm`;
      otherwise the kernel gets `nvvm.maxnreg`, for one block on a
      multiprocessor.
    - Nothing else in the kernel sets the number of registers.

    Without `producers`, `consumer_registers` bounds the registers of all
    threads, on all chips: the kernel gets `nvvm.maxnreg`, unless it has a bound.

    For example, each of 384 threads begins with 168 registers. With four
    producer warps they become 24 and 240 registers, or 40 and 232.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>

    func.func @sum(%k: !cache, %b: index, %h: index, %n: index) -> bf16 {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      %zero = arith.constant 0.0 : bf16
      %ring = kvcache.pipe : !kvcache.pipe<2, !kt>
      %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (bf16) {
        %t = arith.muli %i, %c64 : index
        kvcache.produce %ring[%i] : !kvcache.pipe<2, !kt> {
        ^bb0(%ks: !kt):
          kvcache.async_load_tile %k[%b, %h, %t, %c0] to %ks : !cache, !kt
        }
        %next = kvcache.consume %ring[%i] : !kvcache.pipe<2, !kt> -> (bf16) {
        ^bb0(%ks: !kt):
          %x = kvcache.tile_load %ks[%c0, %c0] : !kt -> bf16
          %y = arith.addf %s, %x : bf16
          kvcache.yield %y : bf16
        }
        scf.yield %next : bf16
      }
      return %sum : bf16
    }
    ```
  }];
  let arguments = (ins OptionalAttr<KVCache_NumRegisters>:$producer_registers,
                       OptionalAttr<KVCache_NumRegisters>:$consumer_registers);
  let results = (outs Res<KVCache_PipeType, "the pipe">:$pipe);
  let builders = [OpBuilder<(ins "::mlir::kvcache::PipeType":$pipe), [{
    build($_builder, $_state, pipe, ::mlir::IntegerAttr(),
          ::mlir::IntegerAttr());
  }]>];
  let assemblyFormat = "attr-dict `:` qualified(type($pipe))";
  let hasVerifier = 1;
}

class KVCache_PipeRegionOp<string mnemonic, list<Trait> traits>
    : KVCache_Op<mnemonic, !listconcat([
        SingleBlockImplicitTerminator<"::mlir::kvcache::YieldOp">,
        RecursivelySpeculatable], traits)> {
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def KVCache_ProduceOp : KVCache_PipeRegionOp<"produce", []> {
  let summary = "Fills a slot of a pipe";
  let description = [{
    Waits until the slot `index mod stages` is free, then starts the copies of
    its region into the tiles of the slot. The indices of the executions of
    `produce` for a slot are the slot's number and then `stages` more each time,
    without gaps; the same holds for `consume`. Slots may be filled and used in
    any order.

    All producer threads of the pipe must execute the op, and no other threads.
    With `producers = n`, these are the threads of the first n warps, and the
    kernel must branch on the warp. Otherwise these are all threads of the
    block. In `warp_roles`, these are the threads of the first role. A thread
    that both produces and consumes may fill at most `stages` slots ahead.

    The region contains copies and the computation of their addresses. It may
    run in all producer threads or in only one of them.

    Constraints:
    - (C1) the arguments of the region are the tiles of the pipe, and the region
      yields no values.
    - (C2) the ops of the region are copies into these tiles, or do not write
      memory.
    - (C3) the pipe is the result of `pipe` in the same function.
    - (C4) in `warp_roles`, the op is in the first role, which has as many warps
      as the pipe has `producers`.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>

    func.func @fill(%k: !cache, %v: !cache, %b: index, %h: index, %n: index) {
      %c0 = arith.constant 0 : index
      %ring = kvcache.pipe : !kvcache.pipe<3, !kt, !kt>
      kvcache.produce %ring[%c0] : !kvcache.pipe<3, !kt, !kt> {
      ^bb0(%ks: !kt, %vs: !kt):
        kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %ks : !cache, !kt
        kvcache.async_load_tile %v[%b, %h, %c0, %c0] valid %n to %vs
          : !cache, !kt
      }
      return
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_PipeType, "the pipe">:$pipe,
                       Arg<Index, "the index of this production">:$index);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $pipe `[` $index `]` `:` qualified(type($pipe)) $body attr-dict
  }];
}

def KVCache_ConsumeOp : KVCache_PipeRegionOp<"consume", []> {
  let summary = "Uses a slot of a pipe";
  let description = [{
    Waits until the slot `index mod stages` is full, runs the region on its
    tiles, and frees the slot. All consumer threads of the pipe must execute the
    op. With `producers = n`, these are the threads of all warps but the first
    n; otherwise these are all threads of the block. In `warp_roles`, these are
    the threads of all roles that consume from the pipe.

    With `commit`, the slot is free when products into tensor memory are done:
    all that the lane of a consuming warp that `nvvm.elect.sync` elects has
    started before the end of the region. So the region need not wait for them.
    Only these products read the tiles. What threads write there needs a proxy
    fence and a synchronization of the warp, as before any product.

    Constraints:
    - (C1) the arguments of the region are the tiles of the pipe, and the region
      yields the results of the op.
    - (C2) the pipe is the result of `pipe` in the same function.
    - (C3) with `commit`, the region has a `tmem_mma`. Copies of other blocks do
      not fill the pipe, and the block has whole warps; the lowering checks
      these.
    - (C4) with `commit`, no `tmem_mma` of the region has `pair`.

    Example:

    ```mlir
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>

    func.func @use(%row: index) -> vector<8xbf16> {
      %c0 = arith.constant 0 : index
      %ring = kvcache.pipe : !kvcache.pipe<3, !kt>
      %v = kvcache.consume %ring[%c0] : !kvcache.pipe<3, !kt> -> (vector<8xbf16>) {
      ^bb0(%ks: !kt):
        %w = kvcache.tile_load %ks[%row, %c0] : !kt -> vector<8xbf16>
        kvcache.yield %w : vector<8xbf16>
      }
      return %v : vector<8xbf16>
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_PipeType, "the pipe">:$pipe,
                       Arg<Index, "the index of this consumption">:$index,
                       UnitAttr:$commit);
  let results = (outs Res<Variadic<AnyType>, "the values that the region yields">:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $pipe `[` $index `]` (`commit` $commit^)? `:` qualified(type($pipe))
    custom<ResultTypes>(type($results)) $body attr-dict
  }];
}

def KVCache_WarpRolesOp : KVCache_Op<"warp_roles", [
    NoRegionArguments, RecursiveMemoryEffects,
    SingleBlockImplicitTerminator<"::mlir::kvcache::YieldOp">]> {
  let summary = "Gives warps of a block different work";
  let description = [{
    Runs a region in the warps of a role: the first one in the first `warps[0]`
    warps of the block, the next one in the next `warps[1]` warps, and so on.
    The op ends in a thread when its region ends; it synchronizes nothing. In a
    region, ops that all threads of a block execute would wait forever, such as
    `gpu.barrier`.

    With `registers`, each thread of role i has `registers[i]` registers from its
    beginning on. This is for code for one architecture or family from sm_90a on;
    other chips ignore it. After the op, threads still have these numbers.

    On the CPU, one thread runs all regions in their order.

    Constraints:
    - (C1) `warps` has a positive number for each role.
    - (C2) `registers`, if given, has a multiple of 8 from 24 to 256 for each
      role, and roles with warps of a warpgroup have the same number.
    - (C3) a kernel has one `warp_roles`, and not in a loop or a branch. Its
      blocks have as many warps as the roles together; where the block size is
      unknown, that is the caller's. With `registers`, all threads together have
      at most the registers with which they begin, and nothing else in the
      kernel sets their number. The lowering checks it.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>
    !ring = !kvcache.pipe<2, !kt, producers = 1>

    func.func @first(%k: !cache, %b: index, %h: index, %out: memref<4xbf16>) {
      %c0 = arith.constant 0 : index
      %ring = kvcache.pipe : !ring
      kvcache.warp_roles warps [1, 4] {
        kvcache.produce %ring[%c0] : !ring {
        ^bb0(%ks: !kt):
          kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %ks : !cache, !kt
        }
      }, {
        kvcache.consume %ring[%c0] : !ring {
        ^bb0(%ks: !kt):
          %x = kvcache.tile_load %ks[%c0, %c0] : !kt -> bf16
          memref.store %x, %out[%c0] : memref<4xbf16>
        }
      }
      return
    }
    ```
  }];
  let arguments = (ins DenseI64ArrayAttr:$warps,
                       OptionalAttr<DenseI64ArrayAttr>:$registers);
  let regions = (region VariadicRegion<SizedRegion<1>>:$roles);
  let assemblyFormat =
      "`warps` $warps (`registers` $registers^)? $roles attr-dict";
  let hasVerifier = 1;
}

def KVCache_YieldOp : KVCache_Op<"yield", [
    Pure, Terminator,
    ParentOneOf<["::mlir::kvcache::ProduceOp", "::mlir::kvcache::ConsumeOp",
                 "::mlir::kvcache::AttentionOp",
                 "::mlir::kvcache::MergeSplitsOp", "::mlir::kvcache::MapOp",
                 "::mlir::kvcache::StoreRowsOp",
                 "::mlir::kvcache::StoreSplitOp",
                 "::mlir::kvcache::WarpRolesOp"]>]> {
  let summary = "Ends a region of the dialect";
  let description = [{
    The operands become the results of `consume`, the score or condition that a
    region of `attention` computes, the number of splits of `merge_splits`, the
    element of `map`, or the place of a row of `store_rows` and `store_split`.
    Without operands, the op is optional in the text.

    Example:

    ```mlir
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>

    func.func @skip() -> i32 {
      %c0 = arith.constant 0 : index
      %ring = kvcache.pipe : !kvcache.pipe<3, !kt>
      %one = kvcache.consume %ring[%c0] : !kvcache.pipe<3, !kt> -> (i32) {
      ^bb0(%ks: !kt):
        %c1 = arith.constant 1 : i32
        kvcache.yield %c1 : i32
      }
      return %one : i32
    }
    ```
  }];
  let arguments = (ins Arg<Variadic<AnyType>, "the results">:$results);
  let assemblyFormat = "attr-dict ($results^ `:` type($results))?";
  let builders = [OpBuilder<(ins), [{
    build($_builder, $_state, ::mlir::ValueRange());
  }]>];
}

#endif // KVCACHE_IR_PIPEOPS_TD
