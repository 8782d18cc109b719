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
    Reads the element `(b, h, t, d)`. If the result is a vector of n lanes, the
    op reads n consecutive elements from there, and `d` must be a multiple of n.
    If the result has another float type than the cache, the op converts the
    elements with rounding to nearest even, also integers of 8 bits without
    scales.

    On a quantized cache, the op dequantizes as `dequantize` does: it multiplies
    each element by the scale of its quantization group. The elements may span
    several groups. On a view of scales, the lanes are consecutive scales from
    group `d div granularity` on, and this group must be a multiple of n.

    With `tensor_scale`, the op multiplies by this factor as well, in f32: also
    on a cache without scales, whose elements are scaled by a static factor.

    The access width is the largest power of two that divides the bytes of the
    vector, of a head, and of the strides of tokens and heads, and the alignment
    of the pages. This
    alignment is 16 bytes. On sm_100 and newer, it is 32 bytes if the same
    function creates the collection, from a tensor whose type proves that the
    strides are multiples of 32 bytes: it has static strides or no layout.

    `nontemporal` is a hint that no thread reads these elements again soon, so
    that they need not stay in the caches of the chip. It does not apply to
    scales.

    Constraints:
    - (C1) the element type of the result is that of the cache, or, for a cache
      of floats of at most 32 bits, f64, f32, f16, bf16, f8E4M3FN or f8E5M2; for
      a quantized cache it is f64, f32, f16 or bf16, and for one of i8 without
      scales also i8.
    - (C2) the number of lanes is at most the number of elements, or scales, of
      a head, and even for 4-bit elements.
    - (C3) `scale_page` is given only for a quantized cache, and `tensor_scale`
      only for a cache whose elements are floats of at most 8 bits or i8, or
      have scales, not for its scales.
    - (C4) `d` is a multiple of the number of lanes; on a view of scales, its
      group is. The lowering checks constants, the bounds checks other values.

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
    Writes the element `(b, h, t, d)`. If the value is a vector of n lanes, the
    op writes n consecutive elements from there, and `d` must be a multiple of
    n. On a view of scales, the lanes are scales, as in `load`. The access width
    and `nontemporal` are those of `load`. On a quantized cache, the op writes
    quantized elements and no scales; use `store_quantized` to write both.

    Constraints:
    - (C1) the element type of the value is that of the cache.
    - (C2) the number of lanes is at most the number of elements, or scales, of
      a head, and even for 4-bit elements.
    - (C3) `d` is a multiple of the number of lanes; on a view of scales, its
      group is. The lowering checks constants, the bounds checks other values.

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
    Gives the memory of consecutive tokens of one head, from `(b, h, t, d)` on:
    one row per token, with the row stride of the layout: `H * E` elements in
    packed rows. The window lies
    inside one page: `t` must be a multiple of its number of tokens, and `d` of
    its number of elements per token. On a view of scales, the columns are
    quantization groups from `d div granularity` on, and this group must be a
    multiple of the number of columns.

    Constraints:
    - (C1) the tile is two-dimensional with static sizes of at least 1, the
      stored element type, strides `[S, 1]` and a dynamic offset, where E is the
      number of stored elements, or scales, of a head, and S the stride of
      tokens: `H * E` in packed rows.
    - (C2) the tile has at most E columns.
    - (C3) the page size is a multiple of the number of rows of the tile.
    - (C4) `d` is a multiple of the number of elements per token; on a view of
      scales, its group is. The lowering checks constants, the bounds checks
      other values.

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
  let arguments = !con((ins Arg<KVCache_AnyViewWithRows, "the cache">:$cache),
                       KVCache_IndexArguments, KVCache_PageArgument);
  let results = (outs Res<MemRefRankOf<[AnyType], [2]>, "the tile">:$tile);
  let assemblyFormat = [{
    $cache `[` $batch `,` $head `,` $token `,` $element `]` (`page` $page^)?
    attr-dict `:` qualified(type($cache)) `->` type($tile)
  }];
  let hasVerifier = 1;
}

#endif // KVCACHE_IR_ACCESSOPS_TD
