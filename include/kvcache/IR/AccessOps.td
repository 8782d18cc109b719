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

def KVCache_LoadOp : KVCache_Op<"load", [
    KVCache_IndexedAccess<["accessesScales", "getScalePageOperand"]>,
    AttrSizedOperandSegments, MemoryEffects<[MemRead]>]> {
  let summary = "Reads consecutive elements of a head";
  let description = [{
    Reads the element `(b, h, t, d)`, or as many consecutive ones from it on as
    the result vector has lanes; `d` is a multiple of their number. A result of
    another float type converts, to nearest even.

    On a quantized cache it dequantizes: elements are multiplied by the scale
    of their own group as in `dequantize`, also where they span several groups.
    In a view of scales the lanes are consecutive scales, from that of group
    `d div granularity` on, which is a multiple of their number.

    The read is as wide as its alignment allows: the largest power of two that
    divides its width, a head's and a row's bytes, and the alignment of pages.
    This is 16 bytes, and 32 on sm_100 and newer where the collection is made in
    the same function of a tensor whose type says distances that are multiples
    of 32 bytes: by static strides, or by no layout at all.

    `nontemporal` says that nothing reads these elements again soon, so that
    they should not take the place of others in the chip's caches. It is a hint,
    and does not extend to scales.

    Constraints:
    - (C1) the result's element type is the cache's, or the cache holds floats
      and it is f64, f32, f16, bf16, f8E4M3FN or f8E5M2; that of a quantized
      cache is f64, f32, f16 or bf16.
    - (C2) the result has at most as many lanes as a head has elements, or
      scales, and an even number of 4-bit ones.
    - (C3) `scale_page` is given only for a quantized cache, and `tensor_scale`
      only for one with scales of f8E4M3FN.

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
  let arguments = !con((ins Arg<KVCache_AnyView, "the cache">:$cache),
                       KVCache_IndexArguments, KVCache_PageArgument,
                       KVCache_ScalePageArgument, KVCache_TensorScaleArgument,
                       KVCache_NontemporalArgument);
  let results = (outs Res<KVCache_Elements, "the elements">:$result);
  let assemblyFormat = [{
    $cache `[` $batch `,` $head `,` $token `,` $element `]` (`page` $page^)?
    (`scale_page` $scale_page^)? (`tensor_scale` $tensor_scale^)? attr-dict `:`
    qualified(type($cache)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def KVCache_StoreOp : KVCache_Op<"store", [
    KVCache_IndexedAccess<>, MemoryEffects<[MemWrite]>]> {
  let summary = "Writes consecutive elements of a head";
  let description = [{
    Writes the element `(b, h, t, d)`, or as many consecutive ones from it on
    as the vector has lanes; `d` is a multiple of their number. In a view of
    scales the lanes are scales, as in `load`. The write is as wide as `load`
    reads, and `nontemporal` means the same. Elements of a quantized cache are
    written as they are: `store_quantized` writes their scales as well.

    Constraints:
    - (C1) the value's element type is the cache's.
    - (C2) the value has at most as many lanes as a head has elements, or
      scales, and an even number of 4-bit ones.

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
  let arguments = !con((ins Arg<KVCache_Elements, "the elements">:$value,
                            Arg<KVCache_AnyView, "the cache">:$cache),
                       KVCache_IndexArguments, KVCache_PageArgument,
                       KVCache_NontemporalArgument);
  let assemblyFormat = [{
    $value `,` $cache `[` $batch `,` $head `,` $token `,` $element `]`
    (`page` $page^)? attr-dict `:` type($value) `,` qualified(type($cache))
  }];
  let hasVerifier = 1;
}

def KVCache_BlockTileOp : KVCache_Op<"block_tile", [
    KVCache_IndexedAccess<["getAccessedTokens"]>, NoMemoryEffect,
    DeclareOpInterfaceMethods<ConditionallySpeculatable>]> {
  let summary = "A window of tokens of one head inside a page";
  let description = [{
    The memory of consecutive tokens of one head, from `(b, h, t, d)` on: a row
    per token, `H * E` elements apart. The window lies inside one page, so `t`
    is a multiple of its number of tokens, and `d` of its number of elements per
    token. In a view of scales its columns are those of the groups from
    `d div granularity` on, which is a multiple of their number.

    Constraints:
    - (C1) the tile is two-dimensional with static sizes of at least 1, the
      stored element type, strides `[H * E, 1]` and a dynamic offset, where E
      counts a head's stored elements, or scales.
    - (C2) the tile has at most E columns.
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
  let arguments = !con((ins Arg<KVCache_AnyView, "the cache">:$cache),
                       KVCache_IndexArguments, KVCache_PageArgument);
  let results = (outs Res<MemRefRankOf<[AnyType], [2]>, "the tile">:$tile);
  let assemblyFormat = [{
    $cache `[` $batch `,` $head `,` $token `,` $element `]` (`page` $page^)?
    attr-dict `:` qualified(type($cache)) `->` type($tile)
  }];
  let hasVerifier = 1;
}

#endif // KVCACHE_IR_ACCESSOPS_TD
