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

// Notation: LUT is the lookup table, P the page size, H the number of heads, E
// the head size, S the page stride in rows of H * E elements, and NB the number
// of pages. Results have 64 bits.

//===----------------------------------------------------------------------===//
// Facts about the whole cache
//===----------------------------------------------------------------------===//

def KVCache_EmptyCacheOp : KVCache_Op<"empty_cache", [Pure]> {
  let summary = "Whether the cache is empty for all sequences";
  let description = [{
    `max_cache_length == 0`: all sequences of the batch are new.

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
  let summary = "The length of the longest prompt of the batch";
  let description = [{
    The operand `max_seq_length` of the collection, as an unsigned number.

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
  let summary = "The length of the longest cache of the batch";
  let description = [{
    The operand `max_cache_length` of the collection, as an unsigned number.

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
  let summary = "The number of rows from the first to the last of a view";
  let description = [{
    `(NB - 1) * S + P`, where a row has `H * E` consecutive elements. The number
    includes the rows between the pages of the view, which belong to other
    layers. In a continuous cache, P is the number of tokens of a block.

    Constraints:
    - (C1) the distance between pages is a whole number of rows; the bounds
      checks check it.

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
  let arguments = (ins Arg<KVCache_AnyViewWithRows, "the cache">:$cache);
  let results = (outs Res<Index, "rows">:$result);
  let assemblyFormat = "$cache attr-dict `:` qualified(type($cache))";
}

//===----------------------------------------------------------------------===//
// Lookups
//===----------------------------------------------------------------------===//

def KVCache_CacheLengthOp : KVCache_Op<"cache_length", !listconcat(KVCache_TableRead, [
    KVCache_Ranged, KVCache_Access<["getAccessedBatch"]>])> {
  let summary = "The number of tokens of a sequence in the cache";
  let description = [{
    `cache_lengths[b]`, as an unsigned number: the tokens in the cache before
    this step appends its tokens.

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
    `LUT[b, t div P]`; in a continuous cache `LUT[b]`, the block of the
    sequence. The entry is an unsigned number. `kvcache-hoist-lookups` creates
    this op to look a page up before the op that accesses it.

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
    With `page`, the op computes `page * S + t mod P` and does not read the
    table.

    Constraints:
    - (C1) the distance between pages is a whole number of rows; the bounds
      checks check it.

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
    Arg<KVCache_AnyViewWithRows, "the cache">:$cache,
    Arg<Index, "the sequence in the batch">:$batch,
    Arg<Index, "the token in the sequence">:$token,
    Arg<Optional<Index>, "the page of the token, if already known">:$page
  );
  let results = (outs Res<Index, "the row in the view">:$row);
  let assemblyFormat = [{
    $cache `[` $batch `,` $token `]` (`page` $page^)? attr-dict `:`
    qualified(type($cache))
  }];
}

def KVCache_TMACoordsOp : KVCache_Op<"tma_coords", !listconcat(KVCache_TableRead, [
    KVCache_Ranged, KVCache_Access<["getAccessedBatch", "getAccessedToken"]>])> {
  let summary = "The row of a token in its page, and the page";
  let description = [{
    `(t mod P, LUT[b, t div P])`, in the order of the coordinates of a tensor
    map. Unlike rows, these coordinates fit into 32 bits for caches of any size.
    For a view of scales, the op rounds the row down as `scale_tma_coords` does.

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
    Arg<KVCache_AnyPagedViewWithRows, "the cache">:$cache,
    Arg<Index, "the sequence in the batch">:$batch,
    Arg<Index, "the token in the sequence">:$token
  );
  let results = (outs Res<Index, "the row in the page, below P">:$row,
                      Res<Index, "the page, below NB">:$page);
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
    continuous cache. The op returns a negative id unchanged: the sentinel -1
    stays out of bounds, where a tensor copy reads zeros.

    Constraints:
    - (C1) the distance between pages is a whole number of rows; the bounds
      checks check it.

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
    Arg<KVCache_AnyViewWithRows, "the cache">:$cache,
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
  let summary = "A size of a cache, known at run time";
  let description = [{
    The extent selects the size:

    - `batch`: the number of sequences in the batch.
    - `layers`: the number of layers of a collection.
    - `pages`: the number of pages, or blocks of a continuous cache.
    - `tokens`: the capacity in tokens of a row of the lookup table; with
      `batch`, that of this sequence, which differs in a `csr` table.
    - `page_size`: the number of tokens in a page, or in a block of a continuous
      cache.
    - `page_stride`: the number of stored elements from a page to the next.

    `kvcache-bounds-checks` compares indices with these sizes.

    Constraints:
    - (C1) `layers` requires a collection; `pages`, `tokens`, `page_size` and
      `page_stride` require a view.
    - (C2) `batch` requires `tokens`.
    - (C3) a view of the scales of a cache without scales has only `batch` and,
      if the cache is paged, `page_size`.

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
                       Arg<KVCache_AnyViewOrCollection, "the cache">:$cache,
                       Arg<Optional<Index>, "the sequence in the batch">:$batch);
  let results = (outs Res<Index, "the size">:$result);
  let assemblyFormat = [{
    $extent $cache (`[` $batch^ `]`)? attr-dict `:` qualified(type($cache))
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "Extent":$extent,
                             "::mlir::Value":$cache), [{
    build($_builder, $_state, result, extent, cache, /*batch=*/::mlir::Value());
  }]>];
  let hasFolder = 1;
  let hasVerifier = 1;
}

#endif // KVCACHE_IR_QUERYOPS_TD
