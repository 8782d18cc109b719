//===- SplitOps.td - Splits of attention -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_SPLITOPS_TD
#define KVCACHE_IR_SPLITOPS_TD

include "kvcache/IR/WholeCacheOperands.td"

// Ops on the results of attention to some of the keys of a row.

def KVCache_WorkspaceSizeOp : KVCache_Op<"workspace_size", [Pure]> {
  let summary = "The bytes of the workspace of attention";
  let description = [{
    Returns the least size of the `workspace` of an `attention` to `batch`
    sequences, for every length and number of rows: 16 bytes for the counter of
    a persistent kernel, and for each of `query_heads` heads of as many queries
    of a sequence as the field `rows` of `split` says, `max` splits of
    `value_size` + 2 floats. `split` is that of the `attention`; `merge_splits`
    has the places.

    Constraints:
    - (C1) a sequence has less than 2^63 bytes.

    Example:

    ```mlir
    func.func @size(%batch: index) -> index {
      %bytes = kvcache.workspace_size %batch
          {query_heads = 32, value_size = 128, split = #kvcache.split<max = 16>}
      return %bytes : index
    }
    ```
  }];
  let arguments = (ins
    Arg<Index, "the number of sequences">:$batch,
    KVCache_SplitSize:$query_heads,
    KVCache_SplitSize:$value_size,
    OptionalAttr<KVCache_SplitAttr>:$split
  );
  let results = (outs Index:$bytes);
  let assemblyFormat = "$batch `` custom<SplitAttributes>(attr-dict)";
  let extraClassDeclaration = [{
    /// The memory of a sequence.
    WorkspaceShape getShape();
  }];
  let hasVerifier = 1;
}

def KVCache_MemRefScale : AnyTypeOf<[F32, MemRefRankOf<[F32], [1]>]>;

def KVCache_MergeSplitsOp : KVCache_Op<"merge_splits", [
    AttrSizedOperandSegments, RecursiveMemoryEffects, SingleBlock]> {
  let summary = "Merges the splits of attention";
  let description = [{
    Computes the results of the rows whose splits `attention` with `partial` has
    stored in `workspace`.

    Row i of sequence b is row `r = row_offsets[b] + i`. If the sequence has at
    most `rows` rows, a field of `split`, the region `count` yields the number n of
    the row's splits. It takes b, `row_offsets[b]`, the number of the sequence's
    rows, and i. Rows with one split and rows of longer sequences keep their
    results: `attention` has stored these.

    The workspace has a counter of 16 bytes, and then two arrays of f32, with the
    fields `rows` and `max` of `split`:

    - `acc: [batch * rows * max, H, E]`, the accumulator of each split: its values
      times their probabilities, which are not normalized,
    - `state: [batch * rows * max, H, 2]`, an exponent that these probabilities
      are relative to, and their sum.

    Split p of the row is at the first index `(b * rows + i) * max + p`. For
    query head g, over the splits p below n, in f32:

    - `exponent = max_p state[p, g, 0]`
    - `rescale(p) = 2^(state[p, g, 0] - exponent)`
    - `sum = sum_p rescale(p) * state[p, g, 1]`, with `sinks` plus
      `2^(log2(e) * sinks[g] - exponent)`
    - `out[r, g] = sum_p rescale(p) * acc[p, g] * value_scale / (sum * out_scale)`
    - `lse[r, g] = ln(2) * (exponent + log2(sum))`; with `sinkless_lse` that of
      the sum without the sink
    - `max_logits[r, g] = ln(2) * (exponent + exponent_bias)`

    Without tokens in any split, the output is 0, `max_logits` is -inf, and `lse`
    is the sink if it counts, and otherwise -inf. The order of the sums depends
    on n only.

    Constraints:
    - (C1) `out` has static sizes of heads and elements, above 0 and packed. `lse`,
      `max_logits` and `sinks` have its heads.
    - (C2) `workspace` is contiguous, in the default memory space, and has less
      than 2^63 bytes for each sequence. `row_offsets` has at least one element.
    - (C3) `value_scale` is one number, or has a static number of heads that
      divides those of `out`.
    - (C4) `out_scale` is for `out` of fp8, and has one number or its heads.
    - (C5) `sinkless_lse` is only with `sinks`.
    - (C6) `exponent_bias` is finite.
    - (C7) `count` takes four indices and yields an index.
    - (C8) the ops of `count` are those of the regions of `attention`, or of this
      dialect, without fragments. They do not use `out`, `lse`, `max_logits` and
      `workspace`.
    - (C9) n is at most `max`, `workspace` has the bytes of `workspace_size`, and
      `out` has the rows. `kvcache-expand-ops` with `checks` checks it.
    - (C10) no value in `count` is a tensor, a scalable vector or an integer of more
      than 64 bits.
    - (C11) no two elements of `out`, `lse` or `max_logits` share memory, and
      `lse` is not `max_logits`.

    Example:

    ```mlir
    // Each row of a sequence of one row has four splits.
    func.func @merge(%workspace: memref<?xi8>, %row_offsets: memref<?xi32>,
                     %out: memref<?x32x128xbf16>, %lse: memref<?x32xf32>) {
      kvcache.merge_splits %workspace, %row_offsets outs(%out, %lse)
        {split = #kvcache.split<max = 4>} count {
        ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
          %four = arith.constant 4 : index
          kvcache.yield %four : index
        }
        : memref<?xi8>, memref<?xi32>, memref<?x32x128xbf16>, memref<?x32xf32>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<MemRefRankOf<[I8], [1]>, "the memory of splits", [MemRead]>:$workspace,
    Arg<MemRefRankOf<[I32], [1]>, "first row of each sequence, [batch + 1]",
        [MemRead]>:$row_offsets,
    Arg<MemRefRankOf<[F32, F16, BF16, F8E4M3FN, F8E5M2], [3]>,
        "the output, [total, H, E]", [MemWrite]>:$out,
    Arg<Optional<MemRefRankOf<[F32], [2]>>, "logarithms of sums, [total, H]",
        [MemWrite]>:$lse,
    Arg<Optional<MemRefRankOf<[F32], [2]>>, "largest scores, [total, H]",
        [MemWrite]>:$max_logits,
    Arg<Optional<MemRefRankOf<[F32, F16, BF16], [1]>>,
        "a logit for each head, [H]", [MemRead]>:$sinks,
    Arg<Optional<KVCache_MemRefScale>,
        "a factor of values, or one for each head of the cache", [MemRead]>
        :$value_scale,
    Arg<Optional<KVCache_MemRefScale>, "a scale of the output, or [H]",
        [MemRead]>:$out_scale,
    UnitAttr:$sinkless_lse,
    DefaultValuedAttr<F32Attr, "0.0f">:$exponent_bias,
    OptionalAttr<KVCache_SplitAttr>:$split
  );
  let regions = (region SizedRegion<1>:$count);
  let assemblyFormat = [{
    $workspace `,` $row_offsets `outs` `(` $out (`,` $lse^)? `)`
    (`max_logits` $max_logits^)? (`sinks` $sinks^)?
    (`value_scale` $value_scale^)? (`out_scale` $out_scale^)?
    attr-dict `count` $count `:` type(operands)
  }];
  let extraClassDeclaration = [{
    /// How rows are split, with the defaults unless there is a `split`.
    SplitAttr getSplitOrDefault();
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def KVCache_MergeStatesOp : KVCache_WholeCacheOp<"merge_states", [KVCache_TiledOpInterface]> {
  let summary = "Merges attention over splits of the keys";
  let description = [{
    `splits` has the attention of each row over several disjoint sets of keys,
    and `lses` the natural logarithms of their sums of exponentials. The op
    computes the attention over all of these keys, in f32:

    - `lse = log(sum_p exp(lses[p]))`
    - `out = sum_p exp(lses[p] - lse) * splits[p]`

    A split whose `lses` is -inf has no keys, and is not read. Neither is one
    whose `lses` is +inf, which some kernels store for a row without keys. If no
    split has keys, `out` is 0 and `lse` is -inf.

    An output of fp8 is divided by `out_scale`, rounded to the nearest number, of
    two to the even one, and saturates: `out_scale` is one number, or one for each
    head. NaN stays NaN.

    The outputs share no memory with each other, `splits` or `lses`: another thread
    may still read what one has written.

    On a GPU, a block merges heads of one row. `block_threads` is the number of
    its threads, at most, unless those of one head are more: by default 256.

    Constraints:
    - (C1) `out` has the last three dimensions of `splits`, and `lse` the last two
      of `lses`; the sizes of heads and elements are static.
    - (C2) `block_threads` is a multiple of 32 from 32 to 1024.
    - (C3) `out_scale` is for `out` of fp8, and has one factor or its heads.
    - (C4) no two elements of `out` or `lse` share memory.

    Example:

    ```mlir
    func.func @merge(%splits: memref<?x?x32x128xbf16>, %lses: memref<?x?x32xf32>,
                     %out: memref<?x32x128xbf16>, %lse: memref<?x32xf32>) {
      kvcache.merge_states %splits, %lses outs(%out, %lse)
        : memref<?x?x32x128xbf16>, memref<?x?x32xf32>, memref<?x32x128xbf16>,
          memref<?x32xf32>
      return
    }
    ```
  }];
  let arguments = !con((ins
    Arg<KVCache_DenseOf<[F32, F16, BF16], 4>, "outputs, [splits, total, H, E]">
        :$splits,
    Arg<KVCache_DenseOf<[F32], 3>, "logarithms of sums, [splits, total, H]">:$lses,
    Arg<KVCache_NarrowRows, "the merged output, [total, H, E]">:$out,
    Arg<KVCache_DenseOf<[F32], 2>, "the merged logarithms, [total, H]">:$lse,
    Arg<Optional<KVCache_StaticScale>, "a scale of the output, or [H]">:$out_scale
  ), KVCache_BlockThreadsArgument);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let builders = [OpBuilder<(ins
    "::mlir::Value":$splits, "::mlir::Value":$lses, "::mlir::Value":$out,
    "::mlir::Value":$lse)>];
  let assemblyFormat = [{
    $splits `,` $lses `outs` `(` $out `,` $lse `)` (`out_scale` $out_scale^)?
    attr-dict `:` type(operands) (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable() {
      return MutableOperandRange(getOperation(), /*start=*/2, /*length=*/2);
    }
  }];
  let hasVerifier = 1;
}

#endif // KVCACHE_IR_SPLITOPS_TD
