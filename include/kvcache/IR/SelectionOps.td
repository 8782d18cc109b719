//===- SelectionOps.td - Selection of tokens -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_SELECTIONOPS_TD
#define KVCACHE_IR_SELECTIONOPS_TD

include "kvcache/IR/WholeCacheOperands.td"

// Ops that summarize, score and select the tokens that sparse attention reads. The notation is that
// of WholeCacheOps.td.

def KVCache_PoolOp : KVCache_WholeCacheOp<"pool", [KVCache_TiledOpInterface]> {
  let summary = "Summarizes blocks of tokens of a cache";
  let description = [{
    Block n of a sequence is tokens `[n * w, (n + 1) * w)`, where w is `width`.
    Row `r = row_offsets[b] + i` is token `p = cache_length(b) + i` of sequence b.
    If p is the last token of its block, row r of `pooled` becomes a summary of
    the block, in f32 and rounded once at the end. For each head and element,
    over the w dequantized keys:

    - their mean: the sum divided by w; the order of the sum is not specified,
    - with `min_max` the largest ones of all elements, and then the smallest ones.
      A NaN is left out; of NaNs alone, they are -inf and inf,
    - with `gated` a mean with weights. Half of the elements of a key are its
      values v, and the other half their gates z. The summary of the keys t is
      `sum_t(exp(z_t) * v_t) / sum_t(exp(z_t))`.

    With `overlap`, values and gates each have two halves. The sums are over the
    tokens of the previous block, with their first halves, and over those of
    this block, with their second halves. The first block of a sequence has no
    previous one. This is how DeepSeek V4 compresses: its gates include a bias
    of each token of a block.

    `new_rows` are the keys of this step. Then tokens from `cache_length(b)` on
    are read there, and not in the cache. So the cache may hold only a window of
    tokens, and `append` may come after this op.

    Other rows, and rows of padding, stay as they are. `append` with `slots` writes
    the summaries to a cache of their own, with -1 for other rows.

    `pooled` shares no memory with the cache.

    On a GPU, a thread block summarizes heads of one row. `block_threads` is the
    number of its threads, at most, unless those of one head are more: by
    default 256.

    Constraints:
    - (C1) `pooled` has the heads of the cache and its elements: twice as many with
      `min_max`, half as many with `gated`, and a quarter with `overlap`. Heads and
      elements are packed.
    - (C2) `block_threads` is a multiple of 32 from 32 to 1024.
    - (C3) no two elements of `pooled` share memory.
    - (C4) `gated` excludes `min_max`.
    - (C5) `overlap` requires `gated`.
    - (C6) with `gated`, the head size of the cache is a multiple of 2, and with
      `overlap` of 4: of elements, or of pairs of elements of 4 bits.
    - (C7) `new_rows` has the heads and the head size of the cache, packed, and the
      rows of `pooled`.
    - (C8) `pooled` is not `new_rows`.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>
    #state = #kvcache.params<num_heads = 1, head_size = 2048, is_mla = true>
    !states = !kvcache.paged<f32, #state, page_size = 4>

    func.func @summarize(%keys: !cache, %rows: memref<?xi32>,
                         %pooled: memref<?x8x128xf32>) {
      kvcache.pool %keys rows %rows outs(%pooled) {width = 64}
        : !cache, memref<?xi32>, memref<?x8x128xf32>
      return
    }

    func.func @compress(%states: !states, %rows: memref<?xi32>,
                        %new: memref<?x1x2048xf32>,
                        %entries: memref<?x1x512xf32>) {
      kvcache.pool %states rows %rows outs(%entries) new %new
        {width = 4, gated, overlap}
        : !states, memref<?xi32>, memref<?x1x512xf32>, memref<?x1x2048xf32>
      return
    }
    ```
  }];
  let arguments = !con((ins
    Arg<KVCache_AnyConvertingCache, "a layer's keys">:$cache,
    Arg<KVCache_Numbers, "first row of each sequence, [batch + 1]">:$row_offsets,
    Arg<KVCache_DenseRows, "summaries, [total, H, E], or other elements by kind">
        :$pooled,
    Arg<Optional<KVCache_DenseRows>, "keys of this step, [total, H, E]">:$new_rows,
    KVCache_SplitSize:$width,
    UnitAttr:$min_max,
    UnitAttr:$gated,
    UnitAttr:$overlap
  ), KVCache_BlockThreadsArgument);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let builders = [OpBuilder<(ins
    "::mlir::Value":$cache, "::mlir::Value":$rowOffsets, "::mlir::Value":$pooled,
    "int64_t":$width, CArg<"::mlir::Value", "{}">:$newRows)>];
  let assemblyFormat = [{
    $cache `rows` $row_offsets `outs` `(` $pooled `)` (`new` $new_rows^)? attr-dict
    `:` type(operands) (`->` type($result)^)?
  }];
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable() { return getPooledMutable(); }
    /// The parts of a key of which each is as long as a gated summary.
    int64_t countGatedParts() { return getOverlap() ? 4 : 2; }
  }];
  let hasVerifier = 1;
}

def KVCache_IndexScoresOp : KVCache_WholeCacheOp<"index_scores", [
    AttrSizedOperandSegments, KVCache_TiledOpInterface]> {
  let summary = "Scores the tokens of a cache for sparse attention";
  let description = [{
    Scores entries of `cache` by the queries `q` of Hi index heads. An entry
    stands for m tokens, where m is `width`. The position of row
    `r = row_offsets[b] + i` is `p = lengths[b] + i`, and `lengths` is by default
    `cache_length(b)`: a cache whose entries stand for several tokens may count
    entries. Row r sees the entries t below `(p + 1) div m`. For each, in
    f32, with the dequantized key k(t):

    - `dot(r, h, t) = sum_d q[r, h, d] * k(t)[d]`; with `relu` 0 if that is less,
    - `s(r, h, t) = weights[r, h] * dot(r, h, t)`, without `weights` the product,
    - with `sum_heads`, `s(r, t) = sum_h s(r, h, t)`.

    `scores[r, t]`, or `scores[r, h, t]` without `sum_heads`, is that number. With
    `block` B, column c is the largest score of the entries of
    `[c * B, (c + 1) * B)` that the row sees. Then a NaN is smaller than every
    number, so only a column of NaNs alone is NaN. With `relu`, a NaN stays NaN.
    Columns without an entry, and rows of padding, stay as they are. The order of
    sums is not specified. If all elements of a token have one scale, of f32 or
    f8E8M0FNU, sums are multiplied by it; other scales multiply elements.

    With `q_scales`, queries have the format MXFP4: a byte of `q` has two
    elements of f4E2M1FN, the first one in its low bits. Element d is multiplied by
    `q_scales[r, h, d div 32]`. Products that are multiplied by one of their scales
    are f32, too: if they overflow, the score is infinite or NaN.

    With `kvcache-expand-ops{checks=1}`, a row that needs more columns than the N
    of `scores` is an error. Without, it has the scores of these columns.

    On a GPU, tensor cores multiply if all of this holds:

    - `sum_heads`, without `block`, of a multiple of 16 heads,
    - keys of at most 128 elements: of f8E4M3FN, f8E5M2, f16 or bf16, with at most
      one scale for a token, or of f4E2M1FN with a scale for 32 elements (MXFP4),
    - scales of tokens of f32 or f8E8M0FNU, and a cache without `layout`,
    - queries of fp8, of MXFP4, or of the elements of products: bf16 for keys of
      bf16, and f16 otherwise. So keys and queries are exact, and sums are f32.
      With MXFP4, 32 elements are a product of their own, which is then scaled.

    A block then scores eight tiles of 128 keys of fp8, or of 64 others, for
    `128 div Hi` rows of a sequence: it reads each key once for all of these.

    Otherwise, a thread computes a column. `block_threads` is then the number of
    threads of a block, by default 256.

    Constraints:
    - (C1) `q` has a static number of heads, from 1 to 64, and the head size E of
      the cache, a multiple of 32; with `q_scales` E / 2 bytes. The elements of
      a head are contiguous.
    - (C2) the cache has one head, and no zero points.
    - (C3) `scores` has two dimensions with `sum_heads`, and otherwise three, of
      which the second is the heads of `q`.
    - (C4) `weights` has the heads of `q`, and `q`, `q_scales`, `weights` and
      `scores` have one number of rows.
    - (C5) `scores` is neither `q` nor `weights`. If it shares memory with an operand
      in another way, the result is undefined.
    - (C6) `block_threads` is a multiple of 32 from 32 to 1024.
    - (C7) no two elements of `scores` share memory.
    - (C8) a `width` of more than 1 needs `lengths`.
    - (C9) `q` has elements of i8 with `q_scales`, and only then.
    - (C10) `q_scales` has the heads of `q`, and E / 32 scales of each, which
      are contiguous.
    - (C11) `lengths` has a number for each sequence of `row_offsets`.

    Example:

    ```mlir
    #index = #kvcache.params<num_heads = 1, head_size = 128, is_mla = true>
    !cache = !kvcache.paged<f8E4M3FN, #index, page_size = 64, scale = f32,
                            granularity = 128>

    func.func @score(%q: memref<?x64x128xf8E4M3FN>, %cache: !cache,
                     %rows: memref<?xi32>, %weights: memref<?x64xf32>,
                     %scores: memref<?x?xf32>) {
      kvcache.index_scores %q, %cache rows %rows outs(%scores) weights %weights
        {relu, sum_heads}
        : memref<?x64x128xf8E4M3FN>, !cache, memref<?xi32>, memref<?x?xf32>,
          memref<?x64xf32>
      return
    }

    !mxfp4 = !kvcache.paged<f4E2M1FN, #index, page_size = 64,
                            scale = f8E8M0FNU, granularity = 32>

    func.func @score_mxfp4(%q: memref<?x64x64xi8>, %cache: !mxfp4,
                           %rows: memref<?xi32>, %scores: memref<?x?xf32>,
                           %q_scales: memref<?x64x4xf8E8M0FNU>) {
      kvcache.index_scores %q, %cache rows %rows outs(%scores)
        q_scales %q_scales {sum_heads}
        : memref<?x64x64xi8>, !mxfp4, memref<?xi32>, memref<?x?xf32>,
          memref<?x64x4xf8E8M0FNU>
      return
    }
    ```
  }];
  let arguments = !con((ins
    Arg<KVCache_IndexQueries, "queries, [total, Hi, E], or bytes, [total, Hi, E / 2]">
        :$q,
    Arg<KVCache_AnyConvertingCache, "a layer's index keys">:$cache,
    Arg<KVCache_Numbers, "first row of each sequence, [batch + 1]">:$row_offsets,
    Arg<KVCache_Scores, "scores, [total, N] or [total, Hi, N]">:$scores,
    Arg<Optional<KVCache_DenseOf<[F32], 2>>, "a factor of each head, [total, Hi]">
        :$weights,
    Arg<Optional<KVCache_Numbers>,
        "tokens of each sequence before this step, [batch]">:$lengths,
    Arg<Optional<KVCache_DenseOf<[F8E8M0FNU], 3>>,
        "scales of 32 elements of `q` each, [total, Hi, E / 32]">:$q_scales,
    UnitAttr:$relu,
    UnitAttr:$sum_heads,
    DefaultValuedAttr<KVCache_SplitSize, "1">:$width,
    OptionalAttr<KVCache_SplitSize>:$block
  ), KVCache_BlockThreadsArgument);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let builders = [OpBuilder<(ins
    "::mlir::Value":$q, "::mlir::Value":$cache, "::mlir::Value":$rowOffsets,
    "::mlir::Value":$scores, CArg<"::mlir::Value", "{}">:$weights)>];
  let assemblyFormat = [{
    $q `,` $cache `rows` $row_offsets `outs` `(` $scores `)`
    (`weights` $weights^)? (`lengths` $lengths^)?
    (`q_scales` $q_scales^)? attr-dict
    `:` type(operands) (`->` type($result)^)?
  }];
  let extraClassDeclaration = [{
    /// The most index heads.
    static constexpr int64_t kMostHeads = 64;
    /// A divisor of the elements of a key, and those of a query with a scale.
    static constexpr int64_t kElements = 32;

    MutableOperandRange getDpsInitsMutable() { return getScoresMutable(); }
    /// The entries of a column.
    int64_t getBlockSize() { return getBlock().value_or(1); }
    /// The scales of a query, or 0.
    int64_t countQScales();
  }];
  let hasVerifier = 1;
}

def KVCache_TopRowsOp : KVCache_WholeCacheOp<"top_rows", [
    AttrSizedOperandSegments, KVCache_TiledOpInterface]> {
  let summary = "Selects the rows with the largest scores";
  let description = [{
    Row r of `scores` has a number for each candidate of new token r, and for each
    of H heads if `scores` has three dimensions. Candidate c is tokens
    `[c * w, (c + 1) * w)` of the sequence b of row r, where w is `width`. The
    position of row `r = row_offsets[b] + i` is `p = lengths[b] + i`, and
    `lengths` is by default `cache_length(b)`. The candidates are the c below

    - `(p + 1) div w` with `whole`: all of their tokens are at p or before,
    - `(p + w) div w` without: one of their tokens is.

    The op selects k candidates, or all if there are fewer: the first `first`,
    the last `last`, and then those with the largest scores. If scores are equal, the
    candidate of smaller number is first. -0 equals +0, and a NaN is smaller than
    every number. So the selection depends on the scores alone, and neither on
    the target nor on other rows.

    A row of `ids` has the slots of the selection, in ascending order of tokens.
    With pages of P entries, the slot of t is `page * P + t mod P`, as `remap_rows`
    computes it:

    - without `expand`, t is the candidate's number, for a cache with an entry
      for each candidate,
    - with `expand`, t is each of the candidate's tokens at p or before,
    - with `tail`, t is then each token from `((p + 1) div w) * w` to p.

    -1 follows the last. Rows of padding are -1. So `ids` has
    `k * (expand ? w : 1) + (tail ? w - 1 : 0)` columns. `tokens` has the numbers
    t in place of slots. With `kvcache-expand-ops{checks=1}`, a row with
    more candidates than the N columns of `scores` is an error.

    On a GPU, a block selects from one row of `scores`, which it reads once.
    `block_threads` is the number of its threads, by default 1024.

    With `workspace`, the candidates of a row are in S splits of consecutive
    ones: a block selects k of each, and a second launch k of these. The result
    is the same, and it takes less time if the rows are too few for all
    multiprocessors. A split of a row is k candidates in the workspace, and then
    their k sort keys: integers that sort as scores do. The op writes them before it
    reads them, so their content before is arbitrary, and after undefined. The
    memory is in use until the second launch ends.

    Constraints:
    - (C1) `scores` and `ids` have as many dimensions, and the same sizes except
      for the last one; `tokens` has the shape of `ids`.
    - (C2) the columns of `ids` are static, and k is from 1 to 4096.
    - (C3) `first + last` is at most k.
    - (C4) `tail` requires `whole` and `expand`.
    - (C5) the cache is paged, and no view of scales.
    - (C6) `tokens` is not `ids`. If `ids`, `tokens` or `workspace` shares memory with
      an operand in another way, the result is undefined.
    - (C7) `block_threads` is a multiple of 32 from 32 to 1024.
    - (C8) no two elements of `ids`, `tokens` or `workspace` share memory.
    - (C9) `workspace` has the dimensions of `scores` and one more, and the same
      sizes except for the last two: S, static and from 2 to 256, and 2k. It is in
      the default memory space.
    - (C10) `lengths` has a number for each sequence of `row_offsets`.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @select(%scores: memref<?x?xf32>, %cache: !cache,
                      %rows: memref<?xi32>, %ids: memref<?x2048xi32>) {
      kvcache.top_rows %scores, %cache rows %rows outs(%ids)
        : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x2048xi32>
      return
    }

    func.func @select_in_splits(%scores: memref<?x?xf32>, %cache: !cache,
                                %rows: memref<?xi32>, %ids: memref<?x512xi32>,
                                %workspace: memref<?x8x1024xi32>) {
      kvcache.top_rows %scores, %cache rows %rows outs(%ids)
        workspace %workspace
        : memref<?x?xf32>, !cache, memref<?xi32>, memref<?x512xi32>,
          memref<?x8x1024xi32>
      return
    }
    ```
  }];
  let arguments = !con((ins
    Arg<KVCache_Scores, "scores, [total, N] or [total, H, N]">:$scores,
    Arg<KVCache_AnyPagedView, "a layer's cache">:$cache,
    Arg<KVCache_Numbers, "first row of each sequence, [batch + 1]">:$row_offsets,
    Arg<KVCache_SelectedRows, "slots, signed, [total, K] or [total, H, K]">
        :$ids,
    Arg<Optional<KVCache_SelectedRows>, "numbers of tokens, signed, as `ids`">
        :$tokens,
    Arg<Optional<KVCache_Numbers>,
        "tokens of each sequence before this step, [batch]">:$lengths,
    Arg<Optional<KVCache_SelectionWorkspace>,
        "memory for splits, [total, S, 2k] or [total, H, S, 2k]">:$workspace,
    DefaultValuedAttr<KVCache_SplitSize, "1">:$width,
    UnitAttr:$whole,
    UnitAttr:$expand,
    UnitAttr:$tail,
    DefaultValuedAttr<KVCache_Count, "0">:$first,
    DefaultValuedAttr<KVCache_Count, "0">:$last
  ), KVCache_BlockThreadsArgument);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let builders = [OpBuilder<(ins
    "::mlir::Value":$scores, "::mlir::Value":$cache,
    "::mlir::Value":$rowOffsets, "::mlir::Value":$ids,
    CArg<"::mlir::Value", "{}">:$tokens)>];
  let assemblyFormat = [{
    $scores `,` $cache `rows` $row_offsets `outs` `(` $ids (`,` $tokens^)? `)`
    (`lengths` $lengths^)? (`workspace` $workspace^)? attr-dict
    `:` type(operands) (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    /// The most candidates that a row may select.
    static constexpr int64_t kMostSelected = 4096;
    /// The most splits of a row.
    static constexpr int64_t kMostSplits = 256;

    MutableOperandRange getDpsInitsMutable();
    /// The number k of candidates that a row selects, at most.
    int64_t countSelected();
    /// The splits of a row: 1 without a workspace.
    int64_t countSplits();
    /// The columns that a selected candidate has.
    int64_t countColumnsOfCandidate() { return getExpand() ? getWidth() : 1; }
    /// The columns of the tail.
    int64_t countTailColumns() { return getTail() ? getWidth() - 1 : 0; }
  }];
  let hasVerifier = 1;
}

#endif // KVCACHE_IR_SELECTIONOPS_TD
