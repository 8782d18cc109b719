//===- CopyOps.td - Copies into tiles -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_COPYOPS_TD
#define KVCACHE_IR_COPYOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

// Chip-neutral: `kvcache-expand-copies` chooses how a chip does it. All threads
// of a block take part, in the copy and in the wait.

def KVCache_AsyncLoadTileOp : KVCache_Op<"async_load_tile", [
    KVCache_Access<["getAccessedBatch", "getAccessedHead", "getAccessedToken",
                    "getAccessedElement", "getAccessedWidth"]>,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Copies consecutive tokens of a head into a tile";
  let description = [{
    Starts to copy the tokens `t, t + 1, …` of a head, from element `d` on, into
    the rows of a tile, through the lookup table: the rows need not lie in one
    page. With `valid n` only the first n rows are read, and the others are
    zero. The tile may be read after `wait`.

    With `base_alignment` the first token is promised to be a multiple of it,
    as by an author who knows it while the compiler does not: tensor copies take
    whole parts of pages.

    A quantized cache is copied as it is stored.

    Constraints:
    - (C1) the tile's element type is the cache's: i8, which holds two
      elements, for a 4-bit cache.
    - (C2) the tile has at most as many columns as a head has stored elements.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>

    func.func @load(%k: !cache, %b: index, %h: index, %t: index, %n: index)
        -> vector<8xbf16> {
      %c0 = arith.constant 0 : index
      %kt = kvcache.alloc_tile : !kt
      %tok = kvcache.async_load_tile %k[%b, %h, %t, %c0] valid %n to %kt
               {base_alignment = 64} : !cache, !kt
      kvcache.wait %tok
      %v = kvcache.tile_load %kt[%c0, %c0] : !kt -> vector<8xbf16>
      return %v : vector<8xbf16>
    }
    ```
  }];
  let arguments = !con((ins Arg<KVCache_AnyCache, "the cache">:$cache),
                       KVCache_IndexArguments, (ins
    Arg<Optional<Index>, "the rows that are read; all if absent">:$valid,
    Arg<KVCache_TileType, "the tile">:$tile,
    OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$base_alignment));
  let results = (outs Res<KVCache_TokenType, "what to wait for">:$token_of_copy);
  let assemblyFormat = [{
    $cache `[` $batch `,` $head `,` $token `,` $element `]` (`valid` $valid^)?
    `to` $tile attr-dict `:` qualified(type($cache)) `,` qualified(type($tile))
  }];
  let hasVerifier = 1;
}

def KVCache_AsyncGatherTileOp : KVCache_Op<"async_gather_tile", [
    KVCache_Access<["getAccessedHead", "getAccessedElement",
                    "getAccessedWidth"]>,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Copies any rows of a head into a tile";
  let description = [{
    Starts to copy a row of the cache for each row of the tile, from element `d`
    of a head on. A row id is encoded as for `tma_row`: `page * P + offset`, and
    the row itself in a continuous cache. A row that the cache does not have,
    such as -1, is zero. The tile may be read after `wait`.

    Constraints:
    - (C1) the tile's element type is the cache's: i8, which holds two
      elements, for a 4-bit cache.
    - (C2) the tile has at most as many columns as a head has stored elements.
    - (C3) there is an id for each row of the tile.

    Example:

    ```mlir
    #mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
    !cache = !kvcache.paged<bf16, #mla, page_size = 64>
    !kt = !kvcache.tile<64x576xbf16>

    func.func @gather(%k: !cache, %ids: memref<64xi32>) -> vector<8xbf16> {
      %c0 = arith.constant 0 : index
      %kt = kvcache.alloc_tile : !kt
      %tok = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %kt
               : !cache, memref<64xi32>, !kt
      kvcache.wait %tok
      %v = kvcache.tile_load %kt[%c0, %c0] : !kt -> vector<8xbf16>
      return %v : vector<8xbf16>
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_AnyCache, "the cache">:$cache,
    Arg<Index, "the head">:$head,
    Arg<Index, "the first element of the head">:$element,
    Arg<MemRefRankOf<[I32], [1]>, "the encoded row ids, signed">:$rows,
    Arg<KVCache_TileType, "the tile">:$tile);
  let results = (outs Res<KVCache_TokenType, "what to wait for">:$token_of_copy);
  let assemblyFormat = [{
    $cache `[` $head `,` $element `]` `rows` $rows `to` $tile attr-dict `:`
    qualified(type($cache)) `,` type($rows) `,` qualified(type($tile))
  }];
  let hasVerifier = 1;
}

def KVCache_WaitOp : KVCache_Op<"wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits for a copy into a tile";
  let description = [{
    Afterwards every thread of the block sees what was copied.

    Example:

    ```mlir
    func.func @wait(%tok: !kvcache.token) {
      kvcache.wait %tok
      return
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_TokenType, "the copy">:$token);
  let assemblyFormat = "$token attr-dict";
}

#endif // KVCACHE_IR_COPYOPS_TD
