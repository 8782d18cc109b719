//===- ScalesOps.td - Scales of a quantized cache -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_SCALESOPS_TD
#define KVCACHE_IR_SCALESOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

// Notation: SLUT is the lookup table of the scales, S their page stride in rows
// of H * hg scales, and hg the number of quantization groups of a head,
// ceildiv(head_size, granularity).

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

def KVCache_ScalesViewOp : KVCache_Op<"scales_view", [
    Pure, InferTypeOpAdaptor]> {
  let summary = "A view of the scales of a cache";
  let description = [{
    Gives a view of the scales of a cache, for kernels that read scales and
    elements separately. The op copies no data. The view of a cache without
    scales has lengths, but no memory.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64,
                            scale = f32, granularity = 128>
    !scales = !kvcache.scales<!cache>

    func.func @scales(%k: !cache) -> !scales {
      %s = kvcache.scales_view %k : !cache
      return %s : !scales
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_AnyCache, "the cache">:$cache);
  let results = (outs
    Res<KVCache_ScalesType, "the view of its scales">:$scales);
  let assemblyFormat = "$cache attr-dict `:` qualified(type($cache))";
}

def KVCache_ScalesBaseOp : KVCache_Op<"scales_base", [
    Pure, InferTypeOpAdaptor]> {
  let summary = "The memory of the scales of a cache";
  let description = [{
    Gives the scales of a view of one layer's keys or values as a memref
    `[pages, page_size, num_heads, groups]`, for code that computes its own
    addresses. Over a view of scales, it is the memory of that view. With zero
    points, which follow the scales of a head, the last size is twice the groups.
    Tokens that share their scales are one in the second.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64,
                            scale = f32, granularity = 128>

    !window = memref<?x64x8x1xf32, strided<[?, 8, 1, 1], offset: ?>>

    func.func @base(%k: !cache) -> !window {
      %s = kvcache.scales_base %k : !cache
      return %s : !window
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_AnyWithScales, "the cache">:$cache);
  let results = (outs Res<MemRefRankOf<[AnyType], [4]>,
                          "the scales, [NB, P, H, hg]">:$base);
  let assemblyFormat = "$cache attr-dict `:` qualified(type($cache))";
}

def KVCache_ScalesBlockTileOp : KVCache_Op<"scales_block_tile", [
    KVCache_ScalesAccess<["getAccessedTokens"]>, NoMemoryEffect,
    DeclareOpInterfaceMethods<ConditionallySpeculatable>]> {
  let summary = "A window of the scales of one head inside a page";
  let description = [{
    Gives the memory of the scales of consecutive tokens of one head, from the
    scale of `(b, h, t, d)` on: one row per token, with a row stride of `H * hg`
    scales, and one column per quantization group. The window lies inside one
    page: `t` must be a multiple of its number of tokens, and the first group of
    its number of columns. Over a view of scales, the op is the same as
    `block_tile`.

    Constraints:
    - (C1) the tile is two-dimensional with static sizes of at least 1, the
      scale type, strides `[H * hg, 1]` and a dynamic offset.
    - (C2) the tile has at most hg columns.
    - (C3) the page size is a multiple of the number of rows of the tile.
    - (C4) the group of `d` is a multiple of the number of scales per token. The
      lowering checks constants, the bounds checks other values.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64,
                            scale = f32, granularity = 32>

    !tile = memref<16x4xf32, strided<[32, 1], offset: ?>>

    func.func @tile(%k: !cache, %b: index, %h: index, %t: index, %d: index)
        -> !tile {
      %m = kvcache.scales_block_tile %k[%b, %h, %t, %d] : !cache -> !tile
      return %m : !tile
    }
    ```
  }];
  let arguments = !con((ins Arg<KVCache_AnyWithScaleRows, "the cache">:$cache),
                       KVCache_IndexArguments, KVCache_ScalePageArgument);
  let results = (outs Res<MemRefRankOf<[AnyType], [2]>, "the tile">:$tile);
  let assemblyFormat = [{
    $cache `[` $batch `,` $head `,` $token `,` $element `]`
    (`scale_page` $scale_page^)? attr-dict `:` qualified(type($cache)) `->`
    type($tile)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

def KVCache_LoadScaleOp : KVCache_Op<"load_scale", [
    KVCache_ScalesAccess<>, MemoryEffects<[MemRead]>]> {
  let summary = "Reads scales";
  let description = [{
    Reads the scale of the element `(b, h, t, d)`, which is that of quantization
    group `d div granularity`. If the result is a vector of n lanes, the op
    reads n consecutive scales from there, and the group must be a multiple of
    n. With `zero_point`, the op reads the zero points of these groups instead.
    The operand is the cache or a view of its scales.

    Constraints:
    - (C1) the element type of the result is the scale type of the cache.
    - (C2) the number of lanes is at most the number of groups of a head.
    - (C3) the group of `d` is a multiple of the number of scales per token. The
      lowering checks constants, the bounds checks other values.
    - (C4) with `zero_point`, the cache has zero points.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64,
                            scale = f32, granularity = 32>

    func.func @load(%k: !cache, %b: index, %h: index, %t: index, %d: index)
        -> vector<4xf32> {
      %s = kvcache.load_scale %k[%b, %h, %t, %d] : !cache -> vector<4xf32>
      return %s : vector<4xf32>
    }
    ```
  }];
  let arguments = !con((ins Arg<KVCache_AnyWithScales, "the cache">:$cache),
                       KVCache_IndexArguments, KVCache_ScalePageArgument,
                       (ins UnitAttr:$zero_point));
  let results = (outs Res<KVCache_Elements, "the scales">:$scale);
  let assemblyFormat = [{
    $cache `[` $batch `,` $head `,` $token `,` $element `]`
    (`scale_page` $scale_page^)? attr-dict `:` qualified(type($cache)) `->`
    type($scale)
  }];
  let hasVerifier = 1;
}

def KVCache_StoreScaleOp : KVCache_Op<"store_scale", [
    KVCache_ScalesAccess<>, MemoryEffects<[MemWrite]>]> {
  let summary = "Writes scales";
  let description = [{
    Writes the scale of the element `(b, h, t, d)`, which is that of
    quantization group `d div granularity`. If the operand is a vector of n
    lanes, the op writes n consecutive scales from there, and the group must be
    a multiple of n. With `zero_point`, the op writes the zero points of these
    groups instead. Tokens that share their scales have one: the op writes it
    for all of them. The operand is the cache or a view of its scales.

    Constraints:
    - (C1) the element type of `scale` is the scale type of the cache.
    - (C2) the number of lanes is at most the number of groups of a head.
    - (C3) the group of `d` is a multiple of the number of scales per token. The
      lowering checks constants, the bounds checks other values.
    - (C4) with `zero_point`, the cache has zero points.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64,
                            scale = f32, granularity = 128>

    func.func @store(%s: f32, %k: !cache, %b: index, %h: index, %t: index,
                     %d: index) {
      kvcache.store_scale %s, %k[%b, %h, %t, %d] : f32, !cache
      return
    }
    ```
  }];
  let arguments = !con((ins Arg<KVCache_Elements, "the scales">:$scale,
                            Arg<KVCache_AnyWithScales, "the cache">:$cache),
                       KVCache_IndexArguments, KVCache_ScalePageArgument,
                       (ins UnitAttr:$zero_point));
  let assemblyFormat = [{
    $scale `,` $cache `[` $batch `,` $head `,` $token `,` $element `]`
    (`scale_page` $scale_page^)? attr-dict `:` type($scale) `,`
    qualified(type($cache))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

def KVCache_NumScaleRowsOp : KVCache_Op<"num_scale_rows", [Pure]> {
  let summary = "The number of rows from the first to the last of the scales";
  let description = [{
    `(NB - 1) * S + P`, where a row has the `H * hg` scales of a token. The
    number includes the rows between the pages of the view, which belong to
    other layers.

    Constraints:
    - (C1) the distance between pages of scales is a whole number of rows; the
      bounds checks check it.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64,
                            scale = f32, granularity = 128>

    func.func @query(%k: !cache) -> index {
      %r = kvcache.num_scale_rows %k : !cache
      return %r : index
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_AnyQuantizedWithRows, "the cache">:$cache);
  let results = (outs Res<Index, "rows">:$result);
  let assemblyFormat = "$cache attr-dict `:` qualified(type($cache))";
}

def KVCache_ScaleRowIndexOp : KVCache_Op<"scale_row_index", !listconcat(KVCache_TableRead, [
    KVCache_Ranged, KVCache_Access<[
      "getAccessedBatch", "getAccessedToken", "accessesScales",
      "accessesElements", "getScalePageOperand"]>])> {
  let summary = "The row of a token's scales";
  let description = [{
    `SLUT[b, t div P] * S + t mod P`. With `scale_page`, the op computes
    `scale_page * S + t mod P` and does not read the table.

    Constraints:
    - (C1) the distance between pages of scales is a whole number of rows; the
      bounds checks check it.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64,
                            scale = f32, granularity = 128>

    func.func @query(%k: !cache, %b: index, %t: index) -> index {
      %row = kvcache.scale_row_index %k[%b, %t] : !cache
      return %row : index
    }
    ```
  }];
  let arguments = !con((ins
    Arg<KVCache_AnyQuantizedWithRows, "the cache">:$cache,
    Arg<Index, "the sequence in the batch">:$batch,
    Arg<Index, "the token in the sequence">:$token
  ), KVCache_ScalePageArgument);
  let results = (outs Res<Index, "the row in the scales of the view">:$row);
  let assemblyFormat = [{
    $cache `[` $batch `,` $token `]` (`scale_page` $scale_page^)? attr-dict `:`
    qualified(type($cache))
  }];
}

def KVCache_ScaleTMACoordsOp : KVCache_Op<"scale_tma_coords", !listconcat(KVCache_TableRead, [
    KVCache_Ranged, KVCache_Access<[
      "getAccessedBatch", "getAccessedToken", "accessesScales",
      "accessesElements"]>])> {
  let summary = "The row of a token's scales in their page, and the page";
  let description = [{
    `(t mod P, SLUT[b, t div P])`, with the row rounded down to a multiple of
    the number of scales in 16 bytes. A tensor map whose rows are single scales
    requires this alignment.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64,
                            scale = f32, granularity = 128>

    func.func @query(%k: !cache, %b: index, %t: index) -> (index, index) {
      %row, %page = kvcache.scale_tma_coords %k[%b, %t] : !cache
      return %row, %page : index, index
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_AnyQuantizedWithRows, "the cache">:$cache,
    Arg<Index, "the sequence in the batch">:$batch,
    Arg<Index, "the token in the sequence">:$token
  );
  let results = (outs Res<Index, "the row in the page, below P">:$row,
                      Res<Index, "the page of the scales">:$page);
  let assemblyFormat = [{
    $cache `[` $batch `,` $token `]` attr-dict `:` qualified(type($cache))
  }];
}

#endif // KVCACHE_IR_SCALESOPS_TD
