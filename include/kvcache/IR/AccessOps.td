//===- AccessOps.td - Loads, stores and tiles of a cache -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_ACCESSOPS_TD
#define KVCACHE_IR_ACCESSOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

/// The indices (b, h, t, d) that all accesses share.
defvar KVCache_AccessArguments = (ins
  Arg<KVCache_AnyCache, "the cache">:$cache,
  Arg<Index, "the sequence in the batch">:$batch,
  Arg<Index, "the head">:$head,
  Arg<Index, "the token in the sequence">:$token,
  Arg<Index, "the element of the head, a multiple of the access's width">
      :$element,
  Arg<Optional<Index>, "the token's page, if looked up already">:$page
);

defvar KVCache_FullAccess = KVCache_Access<[
  "getAccessedBatch", "getAccessedHead", "getAccessedToken",
  "getAccessedElement", "getAccessedWidth", "getAccessedTokens",
  "getPageOperand", "readsTable"]>;

def KVCache_LoadOp : KVCache_Op<"load", [
    KVCache_FullAccess, MemoryEffects<[MemRead]>]> {
  let summary = "Reads consecutive elements of a head";
  let description = [{
    Reads the element `(b, h, t, d)`, or as many consecutive ones from it on as
    the result vector has lanes. A result of another float type converts, to
    nearest even.

    The read is as wide as its alignment allows: the largest power of two that
    divides its width, a head's and a row's bytes, and the alignment of the
    blocks, which is 16 bytes.

    Constraints:
    - (C1) the result's element type is the cache's, or the cache holds floats
      and it is f64, f32, f16, bf16, f8E4M3FN or f8E5M2.
    - (C2) the result has at most `head_size` lanes.
    - (C3) the cache is not quantized: its values mean nothing without their
      scales.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @load(%k: !cache, %b: index, %h: index, %t: index, %d: index)
        -> vector<8xf32> {
      %v = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<8xf32>
      return %v : vector<8xf32>
    }
    ```
  }];
  let arguments = KVCache_AccessArguments;
  let results = (outs Res<KVCache_Elements, "the elements">:$result);
  let assemblyFormat = [{
    $cache `[` $batch `,` $head `,` $token `,` $element `]` (`page` $page^)?
    attr-dict `:` qualified(type($cache)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def KVCache_StoreOp : KVCache_Op<"store", [
    KVCache_FullAccess, MemoryEffects<[MemWrite]>]> {
  let summary = "Writes consecutive elements of a head";
  let description = [{
    Writes the element `(b, h, t, d)`, or as many consecutive ones from it on
    as the vector has lanes. The write is as wide as `load` reads.

    Constraints:
    - (C1) the value's element type is the cache's.
    - (C2) the value has at most `head_size` lanes, and an even number of 4-bit
      ones.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @store(%v: vector<8xbf16>, %k: !cache, %b: index, %h: index,
                     %t: index, %d: index) {
      kvcache.store %v, %k[%b, %h, %t, %d] : vector<8xbf16>, !cache
      return
    }
    ```
  }];
  let arguments = !con((ins Arg<KVCache_Elements, "the elements">:$value),
                       KVCache_AccessArguments);
  let assemblyFormat = [{
    $value `,` $cache `[` $batch `,` $head `,` $token `,` $element `]`
    (`page` $page^)? attr-dict `:` type($value) `,` qualified(type($cache))
  }];
  let hasVerifier = 1;
}

def KVCache_BlockTileOp : KVCache_Op<"block_tile", [
    KVCache_FullAccess, NoMemoryEffect,
    DeclareOpInterfaceMethods<ConditionallySpeculatable>]> {
  let summary = "A window of tokens of one head inside a page";
  let description = [{
    The memory of consecutive tokens of one head, from `(b, h, t, d)` on: a row
    per token, `H * E` elements apart. The window lies inside one page, so `t`
    is a multiple of its number of tokens.

    Constraints:
    - (C1) the tile is two-dimensional with static sizes of at least 1, the
      stored element type, strides `[H * E, 1]` and a dynamic offset.
    - (C2) the tile has at most `head_size` columns.
    - (C3) the page size is a multiple of the tile's tokens.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>
    !tile = memref<16x128xbf16, strided<[1024, 1], offset: ?>>

    func.func @tile(%k: !cache, %b: index, %h: index, %t: index, %d: index)
        -> !tile {
      %m = kvcache.block_tile %k[%b, %h, %t, %d] : !cache -> !tile
      return %m : !tile
    }
    ```
  }];
  let arguments = KVCache_AccessArguments;
  let results = (outs Res<MemRefRankOf<[AnyType], [2]>, "the tile">:$tile);
  let assemblyFormat = [{
    $cache `[` $batch `,` $head `,` $token `,` $element `]` (`page` $page^)?
    attr-dict `:` qualified(type($cache)) `->` type($tile)
  }];
  let hasVerifier = 1;
}

#endif // KVCACHE_IR_ACCESSOPS_TD
