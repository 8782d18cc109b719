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

// The instructions themselves, on sm_90 and newer. They run in the calling
// thread: electing one is the author's business. A load completes on a barrier,
// which must expect its bytes: those of the tile, with the padding that
// swizzled tiles have, also where the load zeroes some.

defvar KVCache_BarrierArguments = (ins
  Arg<KVCache_Barriers, "the barriers">:$barriers,
  Arg<Index, "which of them">:$barrier
);
defvar KVCache_L2Hint = (ins OptionalAttr<KVCache_EvictionAttr>:$l2_hint);

def KVCache_TMAPrefetchOp : KVCache_Op<"tma_prefetch", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Fetches a descriptor ahead of its first use";
  let description = [{
    A copy then need not wait for its descriptor.

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
  let summary = "Tells a barrier how many bytes will come";
  let description = [{
    Adds the bytes to those that the current phase waits for, and arrives once.

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
  let arguments = !con(KVCache_BarrierArguments,
                       (ins Arg<Index, "the bytes, below 2^20">:$bytes));
  let assemblyFormat = [{
    $barriers `[` $barrier `]` `bytes` $bytes attr-dict `:` type($barriers)
  }];
}

def KVCache_TMALoadOp : KVCache_Op<"tma_load", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Loads a tile at coordinates";
  let description = [{
    A copy for each chunk of the tile: chunk j at j times the box's inner side
    after the first coordinate. What lies outside of the tensor is zero. A box
    of fewer rows than the tile goes to its rows from `row` on, a multiple of
    the box's.

    Constraints:
    - (C1) there is a coordinate for each side of the box.
    - (C2) the descriptor and the tile have the same swizzle, and the inner side
      of the box the bytes of a chunk's row.
    - (C3) the box has the rows of the tile, or with `at` rows that divide them
      and fill a multiple of 128 bytes.

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
    KVCache_L2Hint);
  let assemblyFormat = [{
    $descriptor `[` $coordinates `]` `,` $barriers `[` $barrier `]` `to` $tile
    (`at` $row^)? attr-dict `:` qualified(type($descriptor)) `,` type($barriers) `->`
    qualified(type($tile))
  }];
  let hasVerifier = 1;
}

def KVCache_TMALoadRowsOp : KVCache_Op<"tma_load_rows", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Loads a tile page by page";
  let description = [{
    The rows of `populate`, in boxes of the descriptor: the coordinates given,
    and as last one the row of each box.

    With `valid n` and a ragged descriptor only the first n rows are read, and
    the others are zero; the barrier counts the same bytes.

    With `pair_cta` two blocks share the rows, and each loads half of them into
    a tile of its own: the leader the first half, the peer the second.

    Constraints:
    - (C1) there is a coordinate for each side of the box but the last, which
      has the rows; with `valid` one less than that, for a ragged box (span,
      rows, 1, 1).
    - (C2) the descriptor and the tile have the same swizzle, and the inner side
      of the box the bytes of a chunk's row.
    - (C3) the tile has as many rows as there are indices, or half of them with
      `pair_cta`.
    - (C4) the rows of the box divide those of the tile and of a page.
    - (C5) the boxes of a page are a multiple of 128 bytes in the tile.
    - (C6) `pair_cta` and `leader` come together.

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
    Arg<Variadic<Index>, "the coordinates but that of the row">:$coordinates,
    Arg<KVCache_RowIndicesType, "the rows">:$rows,
    Arg<Optional<Index>, "the rows that are read; all if absent">:$valid),
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
  let summary = "Loads four rows of any place into a tile";
  let description = [{
    Rows `r0` to `r3` of the view, from a column on, become rows `row` to
    `row + 3` of the tile; the column counts the descriptor's elements. A row
    that the view does not have, such as -1, is zero, and counts its bytes.

    One instruction for each chunk of the tile on sm_100 and newer. On sm_90
    four copies of one row, where a row of a chunk is a multiple of 128 bytes.

    Constraints:
    - (C1) the box is one row, as of `create_gather4_tma_tile`.
    - (C2) the descriptor and the tile have the same swizzle, and the inner side
      of the box the bytes of a chunk's row.
    - (C3) the tile has a multiple of 4 rows.
    - (C4) a row of a chunk is a multiple of 32 bytes: four of them lie at 128.

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
  let summary = "Loads rows of any place into a tile";
  let description = [{
    A `tma_gather4` for each four rows of the tile, with the rows of the view
    that the memref holds, as from `tma_row`, from a column on, 0 if absent.

    Constraints:
    - (C1) to (C4) are those of `tma_gather4`.
    - (C5) there is a row id for each row of the tile.

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
    Fences first, so that the copy sees what the block wrote to the tile before
    a barrier that the calling thread passed. What lies outside of the tensor
    is dropped. After `wait`, in the same thread, the tile may be written again.

    Constraints:
    - (C1) there is a coordinate for each side of the box.
    - (C2) the descriptor and the tile have the same swizzle, and the inner side
      of the box the bytes of a chunk's row.
    - (C3) the box has the rows of the tile.
    - (C4) the tile has no columns but those of whole chunks: others would be
      stored, too.

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
    Res<KVCache_TokenType, "what to wait for">:$token_of_copy);
  let assemblyFormat = [{
    $tile `to` $descriptor `[` $coordinates `]` attr-dict `:`
    qualified(type($tile)) `,` qualified(type($descriptor))
  }];
  let hasVerifier = 1;
}

#endif // KVCACHE_IR_TMAOPS_TD
