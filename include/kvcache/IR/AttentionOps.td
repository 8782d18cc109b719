//===- AttentionOps.td - Attention over caches -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_ATTENTIONOPS_TD
#define KVCACHE_IR_ATTENTIONOPS_TD

include "kvcache/IR/WholeCacheOperands.td"

// Ops on whole caches, as those of WholeCacheOps.td, with the same notation and
// builders.

def KVCache_AttentionOp : KVCache_WholeCacheOp<"attention", [
    AttrSizedOperandSegments, RecursiveMemoryEffects]> {
  let summary = "Attends to the tokens of all sequences";
  let description = [{
    For query head g of row r, which reads head `g div (Hq / H)` of the caches,
    and the tokens t that the row sees:

    - `score(t) = scale * dot(q[r, g], key(t))`, and with `soft_cap` c then
      `c * tanh(score(t) / c)`
    - `sum[r, g] = sum_t exp(score(t))`, with `sinks` plus `exp(sinks[g])`
    - `out[r, g] = sum_t exp(score(t)) * value(t) / sum[r, g]`
    - `lse[r, g] = log(sum[r, g])`, the natural logarithm; with `sinkless_lse`
      that of the sum without the sink
    - `max_logits[r, g] = max_t score(t)`, without the sink

    All is in f32, rounded once at the end. A row that sees no token gets
    zeros, a maximum of -inf, and the logarithm of its sink, or -inf.

    Sequence b has n_b rows and `K = cache_length(b) + n_b` tokens, the last n_b of
    which are appended first; with `lengths`, `K = lengths[b]`. Row
    `row_offsets[b] + i` has the position `K - n_b + i`, and sees

    - all K tokens, with `causal` those up to its position,
    - with `window` w those from w - 1 positions before its own on,
    - with `chunk` c those t of its chunk: `floor(t / c)` is that of its position,
    - with `mask`, the new tokens `K - n_b + j` whose bit is 1, and all before
      these: bit `j mod 32` of `mask[r, j div 32]`. With `whole_mask`, bit t is
      token t's,
    - with `ranges`, those t with `ranges[r, k, 0] <= t < ranges[r, k, 1]` for
      some k. Ranges are sorted.

    With `rows`, it sees the tokens in the slots `rows[r, k]`, or `rows[r, h, k]`
    for head h. Negative ones are skipped.

    The region `score` computes another score of each query row and token, and
    the region `mask` which tokens a query row sees. `score` takes the score after
    `scale` and `soft_cap`; a result of -inf excludes the token. The other
    arguments of both are the sequence in the batch, the query head, and the
    positions of the row and of the token. Loads indexed by these stay in bounds.

    Queries and keys of a latent cache may lie in two arrays: `q` and `key_cache`
    have the first elements, `q_rope` and `rope_cache` the others. Values are the
    first elements of keys.

    `key_scale` and `value_scale` are static scales, as `tensor_scale` of `load`.
    Queries of fp8 are multiplied by `query_scale`, and outputs of fp8 divided by
    `out_scale`: one number, or one for each head.

    With `workspace`, kernels split the keys of a query row as `split` says. It
    has the bytes of `workspace_size`, aligned to 16; its first 16 bytes are
    zeroed once, and each op leaves them zero. With `partial`, rows with several
    splits get no results. Their splits stay in the workspace, for `merge_splits`.

    `config` says how a kernel computes: it changes the order of sums and where
    numbers are rounded, and nothing else. What is written shares no memory with
    other operands. docs/explanation/what-attention-computes.md has the meaning at
    the edges.

    Constraints:
    - (C1) `q` has the head size of `key_cache`, and a multiple of its heads;
      the sizes of heads and elements are static, at most 16384 elements of a
      head. With `q_rope` and `rope_cache`, the sizes of each pair add up. The
      elements of a head are contiguous; heads and rows may be any distance apart.
    - (C2) `value_cache` has the heads of `key_cache`. A latent cache has none.
    - (C3) `out` has the heads of `q` and at most the elements of a value, an
      even number for values of 4 bits; `lse` and `sinks` have the heads of `q`.
    - (C4) `soft_cap` is between 2^-16 and 2^16.
    - (C5) `rows` require paged caches of one page size, and exclude `causal`,
      `window`, `chunk`, `mask`, `ranges` and `lengths`. With three dimensions,
      they have the heads of the caches.
    - (C6) `sinkless_lse` is only with `sinks`, and `whole_mask` with `mask`.
    - (C7) `workspace` is contiguous, in the default memory space, and has less
      than 2^63 bytes for each sequence. `row_offsets` then has at least one
      element.
    - (C8) `key_scale` and `value_scale` are for caches with scales and no zero
      points, or of fp8 or i8, and have one factor or the heads of the cache.
      A cache of i8 without scales has one.
    - (C9) `query_scale` is for `q` of fp8, and `out_scale` for `out` of fp8; they
      have one factor or the heads of `q`.
    - (C10) tensor cores take caches of 16 bits or less, and `q` of the type of
      keys of 16 bits, or of f16, bf16 or fp8. Heads have a multiple of 16
      elements, and at most 256. Latent rows have at most 640 and their values
      512, above 256 a multiple of 32, and `rows` of `config` is at most 32, or 64
      with `wgmma` and `tcgen05`.
      Otherwise, `config` has no `rows`, and no `mma` but `none`.
    - (C11) `split`, and `persistent` above 0 in `config`, are only with
      `workspace`, or `split` with `merge = cluster` in `config`.
    - (C12) `out` is not the memref `q` or `q_rope`, and `lse` not `max_logits`.
    - (C13) there is at most one region of each kind, `score` before `mask`, and
      each has one block. `score` takes (f32, index, index, index, index) and yields an f32, `mask`
      takes (index, index, index, index) and yields an i1.
    - (C14) the ops of the regions at most read memory, and mean the same in all
      threads and on all targets. They are no calls and no parallel loops, and of
      the dialects `affine`, `arith`, `cf`, `index`, `math`, `memref`, `scf`, `ub`
      and `vector`.
    - (C15) the regions do not use `out`, `lse`, `max_logits` and `workspace`.
    - (C16) no value in the regions is a tensor, a scalable vector or an integer of
      more than 64 bits.
    - (C17) `rows` exclude the regions: such tokens have no positions.
    - (C18) `q_rope` is for a latent cache, and has the heads and the element type
      of `q`. Tensor cores take a `q` with a multiple of 16 elements then.
    - (C19) `rope_cache` and `key_cache` are latent, and of one page size if they
      are paged. `rope_cache` has elements of f32, f16 or bf16 without scales.
    - (C20) `rope_cache` excludes `key_scale`, which would be a scale of both.
    - (C21) `ranges` has at least one range of a query, and two numbers of each.
    - (C22) `partial` is only with `workspace` and without tensors.
    - (C23) `partial` is only with a `config` that has an `mma`, and `rows`, `keys`
      and `dequant` unless that is `none`.
    - (C24) no two elements of `out`, `lse` or `max_logits` share memory.
    - (C25) `lengths` has a number for each sequence of `row_offsets`.
    - (C26) with `merge = cluster` in `config`, `max` of `split` is from 2 to 8:
      larger clusters are not portable, and need an opt-in of each launch.
    - (C27) `merge = cluster` in `config` excludes `partial` and `rows`.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @attend(%q: memref<?x32x128xbf16>, %keys: !cache, %values: !cache,
                      %offsets: memref<?xi32>, %scale: f32,
                      %out: memref<?x32x128xbf16>, %lse: memref<?x32xf32>) {
      kvcache.attention %q, %keys, %values, %offsets, %scale outs(%out, %lse)
        {causal, window = 4096, soft_cap = 50.0}
        : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32,
          memref<?x32x128xbf16>, memref<?x32xf32>
      return
    }

    // ALiBi, in documents: a row sees the tokens of its own document.
    func.func @attend_in_documents(
        %q: memref<?x32x128xbf16>, %keys: !cache, %values: !cache,
        %offsets: memref<?xi32>, %scale: f32, %out: memref<?x32x128xbf16>,
        %slopes: memref<32xf32>, %documents: memref<?x?xi32>) {
      kvcache.attention %q, %keys, %values, %offsets, %scale outs(%out) {causal}
        score {
        ^bb0(%s: f32, %sequence: index, %head: index, %query: index, %key: index):
          %slope = memref.load %slopes[%head] : memref<32xf32>
          %distance = arith.subi %key, %query : index
          %integer = arith.index_cast %distance : index to i32
          %float = arith.sitofp %integer : i32 to f32
          %y = math.fma %slope, %float, %s : f32
          kvcache.yield %y : f32
        } mask {
        ^bb0(%sequence: index, %head: index, %query: index, %key: index):
          %own = memref.load %documents[%sequence, %query] : memref<?x?xi32>
          %other = memref.load %documents[%sequence, %key] : memref<?x?xi32>
          %sees = arith.cmpi eq, %own, %other : i32
          kvcache.yield %sees : i1
        }
        : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32,
          memref<?x32x128xbf16>
      return
    }

    // DeepSeek V3.2: 512 elements of fp8, and 64 of rope, in rows of 656 bytes.
    #latent = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
    #rope = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
    !content = !kvcache.paged<f8E4M3FN, #latent, page_size = 64,
                              scale = f32, granularity = 128,
                              layout = [token = 656],
                              scale_layout = [token = 164]>
    !rope = !kvcache.paged<bf16, #rope, page_size = 64,
                           layout = [token = 328]>
    !q = memref<?x128x512xbf16, strided<[?, ?, 1], offset: ?>>
    !q_rope = memref<?x128x64xbf16, strided<[?, ?, 1], offset: ?>>

    func.func @attend_to_fields(%q: !q, %q_rope: !q_rope, %keys: !content,
                                %ropes: !rope, %offsets: memref<?xi32>,
                                %scale: f32, %out: memref<?x128x512xbf16>) {
      kvcache.attention %q, %keys, %offsets, %scale outs(%out) {causal}
        q_rope %q_rope rope_cache %ropes
        : !q, !content, memref<?xi32>, f32, memref<?x128x512xbf16>, !q_rope,
          !rope
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_NarrowRows, "queries, [total, Hq, E]">:$q,
    Arg<KVCache_AnyConvertingCache, "a layer's keys">:$key_cache,
    Arg<Optional<KVCache_AnyConvertingCache>, "a layer's values">:$value_cache,
    Arg<KVCache_Numbers, "first row of each sequence, [batch + 1]">:$row_offsets,
    Arg<F32, "a factor of scores">:$scale,
    Arg<KVCache_NarrowRows, "the output, [total, Hq, Ev]">:$out,
    Arg<Optional<KVCache_DenseOf<[F32], 2>>, "logarithms of sums, [total, Hq]">
        :$lse,
    Arg<Optional<KVCache_DenseOf<[F32], 2>>, "largest scores, [total, Hq]">
        :$max_logits,
    Arg<Optional<MemRefRankOf<[I8], [1]>>, "memory for partial results">
        :$workspace,
    Arg<Optional<KVCache_DenseOf<[F32, F16, BF16], 1>>,
        "a logit for each head, [Hq]">:$sinks,
    Arg<Optional<KVCache_DenseOf<[I32], 2>>,
        "which tokens a query sees, [total, words]">:$mask,
    Arg<Optional<KVCache_SelectedRows>,
        "the slots that a query sees, signed, [total, k] or [total, H, k]">:$rows,
    Arg<Optional<KVCache_Numbers>, "tokens of each sequence, [batch]">:$lengths,
    Arg<Optional<KVCache_StaticScale>, "a static scale, or [H]">:$key_scale,
    Arg<Optional<KVCache_StaticScale>, "a static scale, or [H]">:$value_scale,
    Arg<Optional<KVCache_StaticScale>, "a scale of queries, or [Hq]">
        :$query_scale,
    Arg<Optional<KVCache_StaticScale>, "a scale of the output, or [Hq]">
        :$out_scale,
    Arg<Optional<KVCache_NarrowRows>, "the last elements of queries, [total, Hq, R]">
        :$q_rope,
    Arg<Optional<KVCache_AnyConvertingCache>, "the last elements of a layer's keys">
        :$rope_cache,
    Arg<Optional<KVCache_DenseOf<[I32], 3>>,
        "begins and ends of the tokens that a query sees, signed, [total, k, 2]">
        :$ranges,
    UnitAttr:$causal,
    OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$window,
    OptionalAttr<F64Attr>:$soft_cap,
    OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$chunk,
    UnitAttr:$whole_mask,
    UnitAttr:$sinkless_lse,
    UnitAttr:$partial,
    OptionalAttr<KVCache_SplitAttr>:$split,
    OptionalAttr<KVCache_AttentionConfigAttr>:$config
  );
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region VariadicRegion<AnyRegion>:$modifiers);
  let builders = [OpBuilder<(ins
    "::mlir::Value":$q, "::mlir::Value":$keyCache, "::mlir::Value":$valueCache,
    "::mlir::Value":$rowOffsets, "::mlir::Value":$scale, "::mlir::Value":$out,
    CArg<"::mlir::Value", "{}">:$lse)>];
  let assemblyFormat = [{
    custom<AttentionOperands>($q, $key_cache, $value_cache, $row_offsets, $scale)
    `outs` `(` $out (`,` $lse^)? `)` (`max_logits` $max_logits^)?
    (`workspace` $workspace^)?
    `` custom<AttentionAttributes>(attr-dict)
    `` custom<AttentionModifiers>($modifiers, $sinks, $mask)
    (`rows` $rows^)? (`lengths` $lengths^)?
    (`key_scale` $key_scale^)? (`value_scale` $value_scale^)?
    (`query_scale` $query_scale^)? (`out_scale` $out_scale^)?
    (`q_rope` $q_rope^)? (`rope_cache` $rope_cache^)?
    (`ranges` $ranges^)?
    `:` type(operands) (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable() {
      return MutableOperandRange(getOperation(),
                                 getOutMutable().getOperandNumber(),
                                 1 + (getLse() ? 1 : 0) +
                                     (getMaxLogits() ? 1 : 0));
    }
    /// The cache of the values: that of the keys if it is latent.
    Value getValues() {
      return getValueCache() ? getValueCache() : getKeyCache();
    }
    /// The number of elements of a query, also if they are in two arrays.
    int64_t getKeySize();
    /// The number of elements of a key that `rope_cache` has; 0 without it.
    int64_t getRopeSize();
    /// The regions that change scores and exclude tokens; null if there is none.
    Region *getScoreRegion();
    Region *getMaskRegion();
    /// How rows are split, with the defaults unless there is a `split`.
    SplitAttr getSplitOrDefault();
    /// The fields of `config`, all unset unless there is one.
    AttentionConfig getFields();
    /// Whether thread blocks compute splits of the keys of rows.
    bool splitsKeys() { return getWorkspace() || mergesInCluster(); }
    /// Whether `config` says that a cluster of thread blocks merges splits.
    bool mergesInCluster();
    /// Whether `config` has the fields on which the number of a row's splits and
    /// their exponents in the workspace depend.
    bool decidesSplits();
    /// The type of 16 bits that tensor cores compute with elements of a cache
    /// in; null if there is none.
    FloatType getTileElement(Value cache);
    /// What tensor cores do not compute, or an empty text.
    std::string getTileObstacle();
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

#endif // KVCACHE_IR_ATTENTIONOPS_TD
