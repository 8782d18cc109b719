//===- WholeCacheOps.td - Ops on whole caches -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_WHOLECACHEOPS_TD
#define KVCACHE_IR_WHOLECACHEOPS_TD

include "kvcache/IR/WholeCacheOperands.td"

// Ops for a compiler, in host code, above the ops of a kernel:
// `kvcache-expand-ops` expands each into parallel loops of accesses. Caches are
// changed in place. Dense operands are memrefs, or tensors that
// `one-shot-bufferize` makes memrefs of; results are those of `outs` that are
// tensors.
//
// Notation: sequence b has n_b = row_offsets[b + 1] - row_offsets[b] new tokens,
// the rows from row_offsets[b] on. Rows from row_offsets[batch] on are padding.
// Operands with a size of the same name, such as `total`, have it in common:
// the verifiers compare static sizes. Among others a shorter one is undefined,
// and an error with `kvcache-expand-ops{checks=1}`.
//
// Builders take the operands that an op mostly has, of which those may be null
// that are optional, and make the results. `op.getSlotsMutable().assign(slots)`
// adds any other, and `op.setEpsilon` and the like set options.
//
// Ops with `TiledOpInterface` take hints for GPUs, which change no result.

def KVCache_AppendOp : KVCache_WholeCacheOp<"append", [
    AttrSizedOperandSegments, KVCache_TiledOpInterface]> {
  let summary = "Writes the keys and values of new tokens";
  let description = [{
    Writes row `row_offsets[b] + i` of `keys` and `values` to token
    `cache_length(b) + i` of sequence b, for every head. With `slots`, row r goes
    to offset `slots[r] mod P` of page `slots[r] div P`, where P is the page
    size, and neither table nor lengths are read; a negative slot is skipped.
    Two rows with one slot are undefined; `kvcache-expand-ops{checks=1}`, as
    with `bounds_checks` from Python, makes them an error.

    Before a row is stored, in this order and in f32, rounded once at the end:

    - `norm`: the elements x of each head of the keys, up to the length of the
      weights w, become `x * w / sqrt(mean(x^2) + epsilon)` (RMS norm).
    - `rope`: R elements from `rope_begin` on are rotated. The row of the table
      of a token's position has R/2 cosines and then R/2 sines. Pair j is the
      elements j and `j + R/2` of these, or `2j` and `2j + 1` if `interleaved`.
      The position is `positions[r]`, or the token's number. Positions may have
      several axes, as time, height and width (M-RoPE): then that of pair j is
      `positions[rope_axes[j], r]`.
    - quantization, as the type of the cache says; `power_of_two` and
      `least_amax` are those of `quantize`. `key_scale` and `value_scale` are static scales, the
      `tensor_scale` of `store_quantized`: one, or one for each head.

    `queries` are normed by `query_norm`, roped and written back in place. With
    `query_out`, they stay as they are, and the results are written there: divided
    by `query_scale`, one number or one for each head, rounded to the nearest
    number of fp8, of two to the even one, and saturated.
    `latent_rope` are the last elements of the rows of a latent cache (MLA),
    whose first elements are `keys`.

    Only `queries` are read and written at one address. They, `query_out` and the
    caches share no memory with each other or with another operand.

    On a GPU, a block appends one row. `block_threads` is the number of its
    threads, at most, unless those of one head are more: by default 256.

    Constraints:
    - (C1) the caches have the heads of `keys` and `values`, and their head size;
      with `latent_rope`, whose size and that of `keys` add up to it.
    - (C2) `values` and `value_cache` are given together; a latent cache has
      none.
    - (C3) the sizes of heads and elements are static, and the weights of a norm
      are at most a head.
    - (C4) R is even and static, and `rope_begin + R` is at most the head size;
      `latent_rope` needs no rope or one of its own elements.
    - (C5) `slots` require a paged cache, and with `rope` also `positions`.
    - (C6) `query_norm` requires `queries`, which have the head size of the keys
      unless the cache is latent.
    - (C7) `interleaved`, `rope_begin`, `positions` and `rope_axes` require
      `rope`.
    - (C8) with `power_of_two`, which `least_amax` needs, the caches have scales of
      f32, bf16 or f8E8M0FNU, and no zero points.
    - (C9) tokens have scales of their own.
    - (C10) `key_scale` and `value_scale` are for caches with scales and no zero
      points, or of fp8 or i8, and have one factor or the heads of the cache.
      A cache of i8 without scales has one.
    - (C11) `rope_axes` come with `positions` of two dimensions, of which the
      first is static, and only with them: R/2 numbers below that size.
    - (C12) `block_threads` is a multiple of 32 from 32 to 1024.
    - (C13) `queries` are no memref that is also `keys`, `values` or
      `latent_rope`.
    - (C14) `query_out` requires `queries`, and has their sizes. `query_scale`
      requires `query_out`, and has one number or its heads.
    - (C15) no two elements of what is written, `queries` or `query_out`, share
      memory.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @append(%k: memref<?x8x128xbf16>, %v: memref<?x8x128xbf16>,
                      %keys: !cache, %values: !cache, %rows: memref<?xi32>) {
      kvcache.append %k, %v to %keys, %values rows %rows
        : memref<?x8x128xbf16>, memref<?x8x128xbf16>, !cache, !cache, memref<?xi32>
      return
    }
    ```
  }];
  let arguments = !con((ins
    Arg<KVCache_DenseRows, "new keys, [total, H, E]">:$keys,
    Arg<Optional<KVCache_DenseRows>, "new values, [total, H, E]">:$values,
    Arg<Optional<KVCache_DenseRows>, "the rope of latent rows, [total, 1, R]">
        :$latent_rope,
    Arg<KVCache_AnyConvertingCache, "a layer's keys">:$key_cache,
    Arg<Optional<KVCache_AnyConvertingCache>, "a layer's values">:$value_cache,
    Arg<KVCache_Numbers, "first row of each sequence, [batch + 1]">:$row_offsets,
    Arg<Optional<KVCache_WideNumbers>,
        "where each row goes, signed, [total]">:$slots,
    Arg<Optional<KVCache_DenseOf<[F32, F16, BF16], 1>>,
        "weights of the norm of keys">:$norm,
    Arg<Optional<KVCache_DenseOf<[F32, F16, BF16], 1>>,
        "weights of the norm of queries">:$query_norm,
    Arg<Optional<KVCache_DenseOf<[F32], 2>>,
        "cosines and sines, [positions, R]">:$rope,
    Arg<Optional<KVCache_Positions>,
        "position of each row, [total] or [axes, total]">:$positions,
    Arg<Optional<KVCache_DenseRows>, "queries, [total, Hq, E]">:$queries,
    Arg<Optional<KVCache_StaticScale>, "a static scale, or [H]">:$key_scale,
    Arg<Optional<KVCache_StaticScale>, "a static scale, or [H]">:$value_scale,
    Arg<Optional<KVCache_FP8Rows>, "queries of fp8, [total, Hq, E]">:$query_out,
    Arg<Optional<KVCache_StaticScale>, "a scale of queries, or [Hq]">
        :$query_scale,
    DefaultValuedAttr<F32Attr, "1.0e-6f">:$epsilon,
    DefaultValuedAttr<I64Attr, "0">:$rope_begin,
    UnitAttr:$interleaved,
    UnitAttr:$power_of_two,
    UnitAttr:$least_amax,
    OptionalAttr<DenseI64ArrayAttr>:$rope_axes
  ), KVCache_BlockThreadsArgument);
  let results = (outs Optional<KVCache_NarrowRows>:$result);
  let builders = [OpBuilder<(ins
    "::mlir::Value":$keys, "::mlir::Value":$values, "::mlir::Value":$keyCache,
    "::mlir::Value":$valueCache, "::mlir::Value":$rowOffsets,
    CArg<"::mlir::Value", "{}">:$queries)>];
  let assemblyFormat = [{
    $keys (`,` $values^)? (`with` $latent_rope^)? `to` $key_cache
    (`,` $value_cache^)? `rows` $row_offsets (`slots` $slots^)?
    (`norm` $norm^)? (`query_norm` $query_norm^)? (`rope` $rope^)?
    (`positions` $positions^)? (`queries` $queries^)?
    (`key_scale` $key_scale^)? (`value_scale` $value_scale^)?
    (`query_out` $query_out^)? (`query_scale` $query_scale^)? attr-dict
    `:` type(operands) (`->` type($result)^)?
  }];
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable() {
      return getQueryOut() ? getQueryOutMutable() : getQueriesMutable();
    }
  }];
  let hasVerifier = 1;
}

def KVCache_GatherOp : KVCache_WholeCacheOp<"gather", [
    AttrSizedOperandSegments, KVCache_TiledOpInterface]> {
  let summary = "Copies the tokens of all sequences to dense memory";
  let description = [{
    Writes tokens `[begin, end)` of sequence b to rows `[b, 0 …)` of the outputs,
    dequantized and converted, and zeros after them. `begin` is 0 unless given.
    `end` is `cache_length(b)` unless given, and with `row_offsets` also the new
    tokens: `cache_length(b) + n_b`. Tokens that an output has no room for are
    left out.

    Ragged outputs have no dimension of sequences: with `output_offsets`, the
    rows of sequence b are those from `output_offsets[b]` up to
    `output_offsets[b + 1]`, and rows from `output_offsets[batch]` on stay as
    they are.

    `key_scale` and `value_scale` are static scales, the `tensor_scale` of `load`:
    one, or one for each head.

    The outputs share no memory with each other or with another operand.

    On a GPU, a block gathers one token or several, at most 64. `block_threads`
    is the number of its threads, at most, unless those of one head are more: by
    default 256. A thread loads its share of several heads before it stores one:
    `heads_per_thread` is the number of heads, at most, and divides them all; by
    default 4. With more heads, a thread has more bytes in flight, and more
    registers.

    Constraints:
    - (C1) the outputs have the static sizes of the caches, and four dimensions,
      [batch, tokens, H, E], or with `output_offsets` three, [total, H, E].
    - (C2) `value_cache` and `values` are given together.
    - (C3) `key_scale` and `value_scale` are for caches with scales and no zero
      points, or of fp8 or i8, and have one factor or the heads of the cache.
      A cache of i8 without scales has one.
    - (C4) `block_threads` is a multiple of 32 from 32 to 1024, and
      `heads_per_thread` is from 1 to 32.
    - (C5) `keys` and `values` are not one memref.
    - (C6) no two elements of an output share memory.
    - (C7) `begin` and `end` have a number for each sequence, and so have outputs
      of four dimensions.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @gather(%keys: !cache, %out: memref<?x?x8x128xbf16>) {
      kvcache.gather %keys outs(%out) : !cache, memref<?x?x8x128xbf16>
      return
    }
    ```
  }];
  let arguments = !con((ins
    Arg<KVCache_AnyConvertingCache, "a layer's keys">:$key_cache,
    Arg<Optional<KVCache_AnyConvertingCache>, "a layer's values">:$value_cache,
    Arg<Optional<KVCache_Numbers>, "first new row of each sequence, [batch + 1]">
        :$row_offsets,
    Arg<Optional<KVCache_Numbers>, "first token of each sequence, [batch]">:$begin,
    Arg<Optional<KVCache_Numbers>, "the token after the last, [batch]">:$end,
    Arg<KVCache_GatheredRows, "the keys, [batch, tokens, H, E] or [total, H, E]">
        :$keys,
    Arg<Optional<KVCache_GatheredRows>, "the values, as the keys">:$values,
    Arg<Optional<KVCache_Numbers>,
        "first output row of each sequence, [batch + 1]">:$output_offsets,
    Arg<Optional<KVCache_StaticScale>, "a static scale, or [H]">:$key_scale,
    Arg<Optional<KVCache_StaticScale>, "a static scale, or [H]">:$value_scale
  ), KVCache_TilingArguments);
  let results = (outs Variadic<KVCache_GatheredRows>:$results);
  let builders = [OpBuilder<(ins
    "::mlir::Value":$keyCache, "::mlir::Value":$valueCache, "::mlir::Value":$keys,
    "::mlir::Value":$values)>];
  let assemblyFormat = [{
    $key_cache (`,` $value_cache^)? (`rows` $row_offsets^)? (`begin` $begin^)?
    (`end` $end^)? `outs` `(` $keys (`,` $values^)? `)`
    (`output_offsets` $output_offsets^)? (`key_scale` $key_scale^)?
    (`value_scale` $value_scale^)? attr-dict
    `:` type(operands) (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable();
  }];
  let hasVerifier = 1;
}

def KVCache_CopyOp : KVCache_WholeCacheOp<"copy", [
    AttrSizedOperandSegments, KVCache_TiledOpInterface]> {
  let summary = "Copies tokens of one cache to another";
  let description = [{
    Writes tokens `[begin, end)` of every sequence of `source` to the same tokens
    of `target`. The caches may differ in format, page size and layout. `begin`
    is 0 and `end` is `cache_length(b)` of the source unless given. `heads`
    heads from `source_head` on go to those from `target_head` on.

    Values of one format are copied bit by bit, with their scales. Others are
    dequantized to f32, and quantized or rounded to the format of the target; so
    are all if there is a static scale: `source_scale` is the `tensor_scale` of
    `load`, `target_scale` that of `store_quantized`, one or one for each head
    of its cache. No byte may be both read and written, so `source` and `target`
    may be one cache only with other heads.

    If tokens of the target share their scales, only those groups are written
    that lie in `[begin, end)` with all of their tokens: the source keeps the
    others until their group is full. So one op seals the groups that new tokens
    have filled: `begin` is the length before, rounded down to whole groups, and
    `end` the length now.

    On a GPU, a block copies one token, or the tokens that share their scales.
    `block_threads` and `heads_per_thread` are those of `gather`, by default 256
    and 2. A thread copies one head at a time where tokens share their scales.

    Constraints:
    - (C1) both caches have the same head size.
    - (C2) the heads are those of the caches; `heads` is all heads of the source
      unless given.
    - (C3) `source_scale` and `target_scale` are for caches with scales and no
      zero points, or of fp8 or i8, and have one factor or the heads of the cache.
      A cache of i8 without scales has one.
      Both caches then have elements that are converted.
    - (C4) `block_threads` is a multiple of 32 from 32 to 1024, and
      `heads_per_thread` is from 1 to 32.
    - (C5) within one cache, the heads that are read are not written.
    - (C6) `begin` and `end` have a number for each sequence.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !from = !kvcache.paged<bf16, #kv, page_size = 64>
    !to = !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32,
                         granularity = 32>

    func.func @copy(%from: !from, %to: !to) {
      kvcache.copy %from to %to : !from, !to
      return
    }
    ```
  }];
  let arguments = !con((ins
    Arg<KVCache_AnyCache, "a layer's keys or values">:$source,
    Arg<KVCache_AnyCache, "those that are written">:$target,
    Arg<Optional<KVCache_Numbers>, "first token of each sequence, [batch]">:$begin,
    Arg<Optional<KVCache_Numbers>, "the token after the last, [batch]">:$end,
    Arg<Optional<KVCache_StaticScale>, "a static scale, or [H]">:$source_scale,
    Arg<Optional<KVCache_StaticScale>, "a static scale, or [H]">:$target_scale,
    DefaultValuedAttr<I64Attr, "0">:$source_head,
    DefaultValuedAttr<I64Attr, "0">:$target_head,
    OptionalAttr<I64Attr>:$heads
  ), KVCache_TilingArguments);
  let builders = [OpBuilder<(ins
    "::mlir::Value":$source, "::mlir::Value":$target)>];
  let assemblyFormat = [{
    $source `to` $target (`begin` $begin^)? (`end` $end^)?
    (`source_scale` $source_scale^)? (`target_scale` $target_scale^)? attr-dict
    `:` type(operands)
  }];
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable() {
      return MutableOperandRange(getOperation(), /*start=*/0, /*length=*/0);
    }
    /// The number of heads that the op copies.
    int64_t getNumHeads();
  }];
  let hasVerifier = 1;
}

def KVCache_CopyPagesOp : KVCache_WholeCacheOp<"copy_pages", [
    KVCache_TiledOpInterface]> {
  let summary = "Copies pages to other pages of the same cache";
  let description = [{
    For each pair, copies page `pairs[i, 0]` to page `pairs[i, 1]`: all layers,
    keys and values, and their scales. A pair with a negative number is skipped.
    No page may be both read and written, or written twice: a chain of copies
    takes an op for each link. `pairs` is not in the memory of the cache.

    On a GPU, a block copies a token of a layer, or a part of the scales of a
    page. `block_threads` is the number of its threads, at most, unless those of
    one head are more: by default 256.

    Constraints:
    - (C1) `pairs` has two columns.
    - (C2) `block_threads` is a multiple of 32 from 32 to 1024.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

    func.func @fork(%cache: !collection, %pairs: memref<?x2xi32>) {
      kvcache.copy_pages %cache pairs %pairs : !collection, memref<?x2xi32>
      return
    }
    ```
  }];
  let arguments = !con((ins
    Arg<KVCache_PagedCollectionType, "the cache of all layers">:$collection,
    Arg<KVCache_DenseOf<[I32], 2>, "page ids, signed, [pairs, 2]">:$pairs
  ), KVCache_BlockThreadsArgument);
  let assemblyFormat = [{
    $collection `pairs` $pairs attr-dict `:` type(operands)
  }];
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable() {
      return MutableOperandRange(getOperation(), /*start=*/0, /*length=*/0);
    }
  }];
  let hasVerifier = 1;
}

def KVCache_RemapRowsOp : KVCache_WholeCacheOp<"remap_rows", [
    KVCache_TiledOpInterface]> {
  let summary = "Finds the rows of tokens in the cache";
  let description = [{
    Row r of `tokens` has the numbers of k tokens of the sequence b of row r.
    Each number t becomes the slot of the token, `page * P + t mod P` with
    the page of token t and the page size P, which `tma_row` and
    `async_gather_tile` take. It is below 2^31, which bounds checks check.
    Negative numbers stay as they are, and so do rows of padding. `ids` may be `tokens`, and shares no memory with others.

    On a GPU, a thread finds one. `block_threads` is the number of threads of a
    block, by default 256.

    Constraints:
    - (C1) the cache is paged.
    - (C2) `ids` has the shape of `tokens`.
    - (C3) `block_threads` is a multiple of 32 from 32 to 1024.
    - (C4) no two elements of `ids` share memory.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @remap(%tokens: memref<?x2048xi32>, %cache: !cache,
                     %rows: memref<?xi32>, %ids: memref<?x2048xi32>) {
      kvcache.remap_rows %tokens, %cache rows %rows outs(%ids)
        : memref<?x2048xi32>, !cache, memref<?xi32>, memref<?x2048xi32>
      return
    }
    ```
  }];
  let arguments = !con((ins
    Arg<KVCache_DenseOf<[I32], 2>, "token numbers, signed, [total, k]">:$tokens,
    Arg<KVCache_AnyPagedView, "a layer's cache">:$cache,
    Arg<KVCache_Numbers, "first row of each sequence, [batch + 1]">:$row_offsets,
    Arg<KVCache_DenseOf<[I32], 2>, "slots, signed, [total, k]">:$ids
  ), KVCache_BlockThreadsArgument);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let builders = [OpBuilder<(ins
    "::mlir::Value":$tokens, "::mlir::Value":$cache, "::mlir::Value":$rowOffsets,
    "::mlir::Value":$ids)>];
  let assemblyFormat = [{
    $tokens `,` $cache `rows` $row_offsets `outs` `(` $ids `)` attr-dict
    `:` type(operands) (`->` type($result)^)?
  }];
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable() { return getIdsMutable(); }
  }];
  let hasVerifier = 1;
}

#endif // KVCACHE_IR_WHOLECACHEOPS_TD
