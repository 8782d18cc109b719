//===- QueryOps.td - Queries of a cache -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_QUERYOPS_TD
#define KVCACHE_IR_QUERYOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

// Notation in the formulas: LUT is the lookup table, P the page size, H and E
// heads and head size, S the distance between pages in rows of H * E elements,
// NB the number of pages. Results are 64-bit.

//===----------------------------------------------------------------------===//
// Facts about the whole cache
//===----------------------------------------------------------------------===//

def KVCache_EmptyCacheOp : KVCache_Op<"empty_cache", [Pure]> {
  let summary = "Whether no sequence has tokens in the cache";
  let description = [{
    `max_cache_length == 0`: whether the whole batch is new.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @query(%k: !cache) -> i1 {
      %r = kvcache.empty_cache %k : !cache
      return %r : i1
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_AnyCacheOrCollection, "the cache">:$cache);
  let results = (outs Res<I1, "true if the cache is empty">:$result);
  let assemblyFormat = "$cache attr-dict `:` qualified(type($cache))";
  let hasCanonicalizer = 1;
}

def KVCache_MaxPromptLengthOp : KVCache_Op<"max_prompt_length", [Pure, KVCache_Ranged]> {
  let summary = "The longest prompt of the batch";
  let description = [{
    The collection's `max_seq_length`, read as unsigned.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @query(%k: !cache) -> index {
      %r = kvcache.max_prompt_length %k : !cache
      return %r : index
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_AnyCacheOrCollection, "the cache">:$cache);
  let results = (outs Res<Index, "tokens">:$result);
  let assemblyFormat = "$cache attr-dict `:` qualified(type($cache))";
  let hasCanonicalizer = 1;
}

def KVCache_MaxContextLengthOp : KVCache_Op<"max_context_length", [Pure, KVCache_Ranged]> {
  let summary = "The longest cache of the batch";
  let description = [{
    The collection's `max_cache_length`, read as unsigned.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @query(%k: !cache) -> index {
      %r = kvcache.max_context_length %k : !cache
      return %r : index
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_AnyViewOrCollection, "the cache">:$cache);
  let results = (outs Res<Index, "tokens">:$result);
  let assemblyFormat = "$cache attr-dict `:` qualified(type($cache))";
  let hasCanonicalizer = 1;
}

def KVCache_NumKVRowsOp : KVCache_Op<"num_kv_rows", [Pure]> {
  let summary = "Rows from the first to the last of a view";
  let description = [{
    `(NB - 1) * S + P`: a row is `H * E` consecutive elements, and the rows
    between a view's pages, which belong to other layers, count. In a
    continuous cache P is the size of a block.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @query(%k: !cache) -> index {
      %r = kvcache.num_kv_rows %k : !cache
      return %r : index
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_AnyView, "the cache">:$cache);
  let results = (outs Res<Index, "rows">:$result);
  let assemblyFormat = "$cache attr-dict `:` qualified(type($cache))";
}

//===----------------------------------------------------------------------===//
// Lookups
//===----------------------------------------------------------------------===//

def KVCache_CacheLengthOp : KVCache_Op<"cache_length", !listconcat(KVCache_TableRead, [
    KVCache_Ranged, KVCache_Access<["getAccessedBatch"]>])> {
  let summary = "Tokens of a sequence in the cache";
  let description = [{
    `cache_lengths[b]`, read as unsigned: tokens in the cache before this
    step's are appended.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @query(%k: !cache, %b: index) -> index {
      %result = kvcache.cache_length %k[%b] : !cache
      return %result : index
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_AnyViewOrCollection, "the cache">:$cache,
    Arg<Index, "the sequence in the batch">:$batch
  );
  let results = (outs Res<Index, "tokens">:$result);
  let assemblyFormat = [{
    $cache `[` $batch `]` attr-dict `:` qualified(type($cache))
  }];
}

def KVCache_PageIdOp : KVCache_Op<"page_id", !listconcat(KVCache_TableRead, [
    KVCache_Ranged, KVCache_Access<["getAccessedBatch", "getAccessedToken"]>])> {
  let summary = "The page of a token";
  let description = [{
    `LUT[b, t div P]`; in a continuous cache `LUT[b]`, the sequence's block.
    Read as unsigned. `kvcache-hoist-lookups` makes this op when a page is
    looked up before the op that reads it.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @query(%k: !cache, %b: index, %t: index) -> index {
      %page = kvcache.page_id %k[%b, %t] : !cache
      return %page : index
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_AnyView, "the cache">:$cache,
    Arg<Index, "the sequence in the batch">:$batch,
    Arg<Index, "the token in the sequence">:$token
  );
  let results = (outs Res<Index, "the page, below NB">:$page);
  let assemblyFormat = [{
    $cache `[` $batch `,` $token `]` attr-dict `:` qualified(type($cache))
  }];
}

def KVCache_RowIndexOp : KVCache_Op<"row_index", !listconcat(KVCache_TableRead, [
    KVCache_Ranged, KVCache_Access<["getAccessedBatch", "getAccessedToken",
                                    "getPageOperand"]>])> {
  let summary = "The row of a token";
  let description = [{
    `LUT[b, t div P] * S + t mod P`; in a continuous cache `LUT[b] * S + t`.
    For a known page `page * S + t mod P` without reading the table.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @query(%k: !cache, %b: index, %t: index) -> index {
      %row = kvcache.row_index %k[%b, %t] : !cache
      return %row : index
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_AnyView, "the cache">:$cache,
    Arg<Index, "the sequence in the batch">:$batch,
    Arg<Index, "the token in the sequence">:$token,
    Arg<Optional<Index>, "the token's page, if looked up already">:$page
  );
  let results = (outs Res<Index, "the row in the view">:$row);
  let assemblyFormat = [{
    $cache `[` $batch `,` $token `]` (`page` $page^)? attr-dict `:`
    qualified(type($cache))
  }];
}

def KVCache_TMACoordsOp : KVCache_Op<"tma_coords", !listconcat(KVCache_TableRead, [
    KVCache_Ranged, KVCache_Access<["getAccessedBatch", "getAccessedToken"]>])> {
  let summary = "The row in its page, and the page, of a token";
  let description = [{
    `(t mod P, LUT[b, t div P])`, in the order of a tensor map's coordinates.
    Unlike a row these stay small, whatever the size of the cache. Of scales the
    row is rounded down as in `scale_tma_coords`.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @query(%k: !cache, %b: index, %t: index) -> (index, index) {
      %row, %page = kvcache.tma_coords %k[%b, %t] : !cache
      return %row, %page : index, index
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_AnyPagedView, "the cache">:$cache,
    Arg<Index, "the sequence in the batch">:$batch,
    Arg<Index, "the token in the sequence">:$token
  );
  let results = (outs Res<Index, "the row in the page, below P">:$row, Res<Index, "the page, below NB">:$page);
  let assemblyFormat = [{
    $cache `[` $batch `,` $token `]` attr-dict `:` qualified(type($cache))
  }];
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

def KVCache_TMARowOp : KVCache_Op<"tma_row", [Pure]> {
  let summary = "The row of an encoded row id";
  let description = [{
    `(e div P) * S + e mod P`, where `e = page * P + offset`; `e` itself in a
    continuous cache. A negative id comes back unchanged: a sentinel -1 stays
    out of bounds, where a tensor map reads zeros.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @query(%k: !cache, %e: index) -> index {
      %row = kvcache.tma_row %k[%e] : !cache
      return %row : index
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_AnyView, "the cache">:$cache,
    Arg<Index, "the encoded row id, signed">:$encoded
  );
  let results = (outs Res<Index, "the row in the view, or the negative id">:$row);
  let assemblyFormat = [{
    $cache `[` $encoded `]` attr-dict `:` qualified(type($cache))
  }];
  let hasFolder = 1;
}

def KVCache_ColIndexOp : KVCache_Op<"col_index", [Pure, KVCache_Ranged]> {
  let summary = "The first column of a head in a row";
  let description = [{
    `h * E`, in elements.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @query(%k: !cache, %h: index) -> index {
      %column = kvcache.col_index %k[%h] : !cache
      return %column : index
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_AnyCache, "the cache">:$cache,
    Arg<Index, "the head, below H">:$head
  );
  let results = (outs Res<Index, "the column in the row">:$column);
  let assemblyFormat = [{
    $cache `[` $head `]` attr-dict `:` qualified(type($cache))
  }];
  let hasFolder = 1;
}

def KVCache_ExtentOp : KVCache_Op<"extent", [Pure, KVCache_Ranged]> {
  let summary = "A size that is known at run time";
  let description = [{
    The number of sequences in the `batch`, of `layers` of a collection, of
    `pages` (blocks of a continuous cache), of `tokens` that a sequence's row of
    the lookup table has room for, or of tokens in a page, its `page_size` (in a
    block of a continuous cache). `kvcache-bounds-checks` compares indices with
    these.

    Constraints:
    - (C1) `layers` is asked of a collection, `pages`, `tokens` and `page_size`
      of a view.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @query(%k: !cache) -> index {
      %r = kvcache.extent batch %k : !cache
      return %r : index
    }
    ```
  }];
  let arguments = (ins KVCache_Extent:$extent,
                       Arg<KVCache_AnyViewOrCollection, "the cache">:$cache);
  let results = (outs Res<Index, "the size">:$result);
  let assemblyFormat = "$extent $cache attr-dict `:` qualified(type($cache))";
  let hasFolder = 1;
  let hasVerifier = 1;
}

#endif // KVCACHE_IR_QUERYOPS_TD
