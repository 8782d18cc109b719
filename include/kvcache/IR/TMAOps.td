//===- TMAOps.td - Tensor copies -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_TMAOPS_TD
#define KVCACHE_IR_TMAOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

// These ops are single TMA instructions of sm_90 and newer. The calling thread
// executes the instruction; the kernel must elect this thread. A load completes
// on a barrier, which must expect all bytes of the tile, including the padding
// of a swizzled tile and the bytes that the load fills with zeros. No load
// contains a proxy fence.

defvar KVCache_BarrierArguments = (ins
  Arg<KVCache_Barriers, "the barriers">:$barriers,
  Arg<Index, "the index of the barrier">:$barrier
);
def KVCache_TMAPrefetchOp : KVCache_Op<"tma_prefetch", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Prefetches a descriptor";
  let description = [{
    Fetches the descriptor before its first use, so that a copy does not wait
    for it.

    Example:

    ```mlir
    func.func @prefetch(%desc: !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>) {
      kvcache.tma_prefetch %desc : !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_TMATileType, "the descriptor">:$descriptor);
  let assemblyFormat =
      "$descriptor attr-dict `:` qualified(type($descriptor))";
}

def KVCache_TMAExpectOp : KVCache_Op<"tma_expect", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Announces the bytes of a phase to a barrier, and arrives";
  let description = [{
    Adds the bytes to the transaction count of the current phase, and arrives
    once at the barrier.

    Example:

    ```mlir
    !barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

    func.func @expect(%barrier: !barrier) {
      %c0 = arith.constant 0 : index
      %bytes = arith.constant 16384 : index
      kvcache.tma_expect %barrier[%c0] bytes %bytes : !barrier
      return
    }
    ```
  }];
  let arguments = !con(KVCache_BarrierArguments, (ins
    Arg<Index, "the number of bytes, below 2^20">:$bytes));
  let assemblyFormat = [{
    $barriers `[` $barrier `]` `bytes` $bytes attr-dict `:` type($barriers)
  }];
}

def KVCache_TMALoadOp : KVCache_Op<"tma_load", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Loads a tile at coordinates";
  let description = [{
    Starts one copy for each chunk of the tile. The first coordinate of chunk j
    is the given one plus j times the inner side of the box. The copy fills
    elements outside of the tensor with zeros. A box with fewer rows than the
    tile goes to the rows from `row` on, which must be a multiple of the rows of
    the box.

    With `multicast`, all blocks of a cluster execute the op together, and each
    issues a share of the copies to all of them. The copies of a tile count from
    0 on, box by box and chunk by chunk. The block whose rank in the cluster is
    the number of a copy modulo the number of blocks issues it; the data go to
    the same place of each block, and the bytes to its barrier, which expects
    those of the whole tile. The kernel states its clusters by
    `known_cluster_size`.

    Constraints:
    - (C1) the number of coordinates is the number of sides of the box.
    - (C2) the descriptor and the tile have the same swizzle, and the inner side
      of the box has the bytes of a row of a chunk.
    - (C3) the box has the rows of the tile; with `at`, the rows of the box
      divide those of the tile, and the box has a multiple of 128 bytes.
    - (C4) if the kernel stores to the cache before, other than by `tma_store`,
      the calling thread executes `nvvm.fence.proxy` for `async.global` between
      the stores and the op: the op reads by the async proxy (PTX ISA, "Async
      proxy"). The same holds for stores to the tile, whose writers execute a
      fence for `async.shared`. The emulator checks both.
    - (C5) with `multicast`, the kernel states clusters of several blocks. All
      blocks of the cluster execute the op with the same coordinates and row,
      and with barriers and tiles at the same places. Before that, each has
      initialized its barrier, and no thread of any block still uses the tile.

    Example:

    ```mlir
    !desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>
    !barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

    func.func @load(%desc: !desc, %barrier: !barrier, %tile: !kt, %d: index,
                    %h: index, %row: index) {
      %c0 = arith.constant 0 : index
      kvcache.tma_load %desc[%d, %h, %row], %barrier[%c0] to %tile
        {l2_hint = #kvcache.eviction<evict_first>} : !desc, !barrier -> !kt
      return
    }
    ```
  }];
  let arguments = !con((ins
    Arg<KVCache_TMATileType, "the descriptor">:$descriptor,
    Arg<Variadic<Index>, "the coordinates, innermost first">:$coordinates),
    KVCache_BarrierArguments, (ins
    Arg<KVCache_TileType, "the tile">:$tile,
    Arg<Optional<Index>, "the first row of the tile, 0 if absent">:$row),
    KVCache_L2Hint, (ins UnitAttr:$multicast));
  let assemblyFormat = [{
    $descriptor `[` $coordinates `]` `,` $barriers `[` $barrier `]` `to` $tile
    (`at` $row^)? attr-dict `:` qualified(type($descriptor)) `,` type($barriers) `->`
    qualified(type($tile))
  }];
  let hasVerifier = 1;
}

def KVCache_TMALoadRowsOp : KVCache_Op<"tma_load_rows", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Loads populated rows into a tile";
  let description = [{
    Loads the rows of a `populate` op, in boxes of the descriptor. The row of
    each box is the last coordinate; the operands give the others.

    With `valid n` and a ragged descriptor, the op reads only the first n rows
    and fills the others with zeros. The number of bytes for the barrier stays
    the same.

    With `pair_cta`, two blocks share the rows. The leader loads the first half
    into its own tile, the peer the second half.

    Constraints:
    - (C1) the number of coordinates is the number of sides of the box minus
      one, and the last side has the rows; with `valid`, it is the number of
      sides minus two, and the box is ragged: (span, rows, 1, 1).
    - (C2) the descriptor and the tile have the same swizzle, and the inner side
      of the box has the bytes of a row of a chunk.
    - (C3) the tile has all rows of `rows`, or half of them with `pair_cta`.
    - (C4) the rows of the box divide those of the tile and of a page.
    - (C5) the boxes of a page have a multiple of 128 bytes in the tile.
    - (C6) `pair_cta` and `leader` are given together.
    - (C7) stores before the op are fenced, as (C4) of `tma_load` says.

    Example:

    ```mlir
    !desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
    !kt = !kvcache.tile<128x128xbf16, swizzle_128b>
    !rows = !kvcache.row_indices<rows = 128, page_size = 64>
    !barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

    func.func @load(%desc: !desc, %rows: !rows, %barrier: !barrier,
                    %tile: !kt, %d: index, %h: index) {
      %c0 = arith.constant 0 : index
      kvcache.tma_load_rows %desc[%d, %h] rows %rows, %barrier[%c0] to %tile
        : !desc, !rows, !barrier -> !kt
      return
    }
    ```
  }];
  let arguments = !con((ins
    Arg<KVCache_TMATileType, "the descriptor">:$descriptor,
    Arg<Variadic<Index>, "the coordinates except for the row">:$coordinates,
    Arg<KVCache_RowIndicesType, "the rows">:$rows,
    Arg<Optional<Index>, "the number of rows to read; all if absent">:$valid),
    KVCache_BarrierArguments, (ins
    Arg<KVCache_TileType, "the tile">:$tile,
    Arg<Optional<I1>, "whether this block leads the pair">:$leader,
    UnitAttr:$pair_cta), KVCache_L2Hint);
  let assemblyFormat = [{
    $descriptor `[` $coordinates `]` `rows` $rows (`valid` $valid^)? `,`
    $barriers `[` $barrier `]` `to` $tile
    (`pair_cta` $pair_cta^ `leader` $leader)?
    attr-dict `:` qualified(type($descriptor)) `,` qualified(type($rows)) `,`
    type($barriers) `->` qualified(type($tile))
  }];
  let hasVerifier = 1;
}

def KVCache_TMAGather4Op : KVCache_Op<"tma_gather4", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Loads four arbitrary rows into a tile";
  let description = [{
    Loads the rows `r0` to `r3` of the view, from a column on, to the rows `row`
    to `row + 3` of the tile. The column counts elements of the descriptor. If a
    row is out of bounds, such as -1, the copy fills it with zeros; the barrier
    must expect its bytes, too.

    On sm_100 and newer, the op is one instruction for each chunk of the tile.
    On sm_90, it is four copies of one row, if a row of a chunk has a multiple
    of 128 bytes.

    Constraints:
    - (C1) the box has one row, as from `create_gather4_tma_tile`.
    - (C2) the descriptor and the tile have the same swizzle, and the inner side
      of the box has the bytes of a row of a chunk.
    - (C3) the tile has a multiple of 4 rows.
    - (C4) a row of a chunk has a multiple of 32 bytes, so that four rows start
      at a multiple of 128 bytes.
    - (C5) stores before the op are fenced, as (C4) of `tma_load` says.

    Example:

    ```mlir
    !desc = !kvcache.tma_tile<72x1xi64>
    !kt = !kvcache.tile<64x576xf8E4M3FN>
    !barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

    func.func @gather(%desc: !desc, %barrier: !barrier, %tile: !kt, %r0: index,
                      %r1: index, %r2: index, %r3: index) {
      %c0 = arith.constant 0 : index
      kvcache.tma_gather4 %desc[%c0, %r0, %r1, %r2, %r3], %barrier[%c0]
        to %tile at %c0 : !desc, !barrier -> !kt
      return
    }
    ```
  }];
  let arguments = !con((ins
    Arg<KVCache_TMATileType, "the descriptor">:$descriptor,
    Arg<Index, "the first column">:$column,
    Arg<Index, "the first row">:$row0, Arg<Index, "the second row">:$row1,
    Arg<Index, "the third row">:$row2, Arg<Index, "the fourth row">:$row3),
    KVCache_BarrierArguments, (ins
    Arg<KVCache_TileType, "the tile">:$tile,
    Arg<Index, "the row of the tile, a multiple of 4">:$row), KVCache_L2Hint);
  let assemblyFormat = [{
    $descriptor `[` $column `,` $row0 `,` $row1 `,` $row2 `,` $row3 `]` `,`
    $barriers `[` $barrier `]` `to` $tile `at` $row attr-dict `:`
    qualified(type($descriptor)) `,` type($barriers) `->`
    qualified(type($tile))
  }];
  let hasVerifier = 1;
}

def KVCache_TMAGatherTileOp : KVCache_Op<"tma_gather_tile", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Loads arbitrary rows into a tile";
  let description = [{
    Executes a `tma_gather4` for every four rows of the tile. The memref has the
    rows of the view, as from `tma_row`. The first column is 0 if absent.

    Constraints:
    - (C1) to (C4) are those of `tma_gather4`.
    - (C5) the number of row ids is the number of rows of the tile.
    - (C6) stores before the op are fenced, as (C4) of `tma_load` says.

    Example:

    ```mlir
    !desc = !kvcache.tma_tile<72x1xi64>
    !kt = !kvcache.tile<64x576xf8E4M3FN>
    !barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

    func.func @gather(%desc: !desc, %ids: memref<64xi32>, %barrier: !barrier,
                      %tile: !kt) {
      %c0 = arith.constant 0 : index
      kvcache.tma_gather_tile %desc rows %ids, %barrier[%c0] to %tile
        : !desc, memref<64xi32>, !barrier -> !kt
      return
    }
    ```
  }];
  let arguments = !con((ins
    Arg<KVCache_TMATileType, "the descriptor">:$descriptor,
    Arg<Optional<Index>, "the first column">:$column,
    Arg<MemRefRankOf<[I32, I64], [1]>, "the rows, signed">:$rows),
    KVCache_BarrierArguments, (ins
    Arg<KVCache_TileType, "the tile">:$tile), KVCache_L2Hint);
  let assemblyFormat = [{
    $descriptor (`[` $column^ `]`)? `rows` $rows `,` $barriers `[` $barrier `]`
    `to` $tile attr-dict `:` qualified(type($descriptor)) `,` type($rows) `,`
    type($barriers) `->` qualified(type($tile))
  }];
  let hasVerifier = 1;
}

def KVCache_TMAStoreOp : KVCache_Op<"tma_store", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Stores a tile at coordinates";
  let description = [{
    Executes a proxy fence, then starts the copy. The copy sees the writes of
    the block to the tile before the last barrier that the calling thread
    passed. The copy drops elements outside of the tensor. After `wait` in the
    same thread, threads may write the tile again.

    Constraints:
    - (C1) the number of coordinates is the number of sides of the box.
    - (C2) the descriptor and the tile have the same swizzle, and the inner side
      of the box has the bytes of a row of a chunk.
    - (C3) the box has the rows of the tile.
    - (C4) the columns of the tile are whole chunks, because the copy stores
      whole chunks.

    Example:

    ```mlir
    !desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>

    func.func @store(%desc: !desc, %tile: !kt, %d: index, %h: index,
                     %row: index) {
      %tok = kvcache.tma_store %tile to %desc[%d, %h, %row] : !kt, !desc
      kvcache.wait %tok
      return
    }
    ```
  }];
  let arguments = !con((ins
    Arg<KVCache_TileType, "the tile">:$tile,
    Arg<KVCache_TMATileType, "the descriptor">:$descriptor,
    Arg<Variadic<Index>, "the coordinates, innermost first">:$coordinates),
    KVCache_L2Hint);
  let results = (outs
    Res<KVCache_TokenType, "the token to wait for">:$token_of_copy);
  let assemblyFormat = [{
    $tile `to` $descriptor `[` $coordinates `]` attr-dict `:`
    qualified(type($tile)) `,` qualified(type($descriptor))
  }];
  let hasVerifier = 1;
}

#endif // KVCACHE_IR_TMAOPS_TD
