//===- ViewOps.td - Collections and views -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_VIEWOPS_TD
#define KVCACHE_IR_VIEWOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

/// What an op bundles besides its blocks.
defvar KVCache_LengthsArgument = (ins
  Arg<MemRefRankOf<[I32], [1]>,
      "tokens in the cache of each sequence, [batch], unsigned">:$cache_lengths
);
defvar KVCache_MaximaArguments = (ins
  Arg<I32, "the longest prompt of the batch in tokens, unsigned">
      :$max_seq_length,
  Arg<I32, "the longest cache of the batch in tokens, unsigned">
      :$max_cache_length
);
/// The table of a paged cache, of this rank unless it is a `csr` table.
defvar KVCache_PagedTableArgument = (ins
  Arg<MemRefRankOf<[I32], [1, 2]>,
      "page ids of each sequence, [batch, columns], unsigned; [entries] of a "
      "csr table">:$lookup_table
);
defvar KVCache_TableIndexArgument = (ins
  Arg<Optional<MemRefRankOf<[I32], [1]>>,
      "of a csr table the first entry of each sequence and the end, [batch + "
      "1]; of a rows table the row of each sequence, [batch]; unsigned">
      :$table_index
);

/// An op that bundles the tensors of a paged cache.
class KVCache_PagedBundleOp<string mnemonic, int rank, string window,
                            Type cacheType, string what>
    : KVCache_Op<mnemonic, [
        Pure, AttrSizedOperandSegments, KVCache_BundleOpInterface]> {
  let arguments = !con(
    (ins Arg<MemRefRankOf<[AnyType], [rank]>,
             what # ", [" # window # ", E]">:$blocks),
    KVCache_LengthsArgument, KVCache_PagedTableArgument,
    KVCache_MaximaArguments,
    (ins Arg<Optional<MemRefRankOf<[AnyType], [rank]>>,
             "their scales, [" # window # ", hg]">:$scales,
         Arg<Optional<MemRefRankOf<[I32], [2]>>,
             "page ids of the scales, [batch, columns], unsigned">
             :$scales_lookup_table),
    KVCache_TableIndexArgument);
  let results = (outs Res<cacheType, "the cache">:$cache);
  let assemblyFormat = [{
    $blocks `,` $cache_lengths `,` $lookup_table (`index` $table_index^)? `,`
    $max_seq_length `,` $max_cache_length
    (`scales` $scales^ (`lookup` $scales_lookup_table^)?)?
    attr-dict `:` type($blocks) `,` type($cache_lengths) `,`
    type($lookup_table) (`index` type($table_index)^)?
    (`,` type($scales)^ (`,` type($scales_lookup_table)^)?)?
    `->` qualified(type($cache))
  }];
  let hasVerifier = 1;
}

/// An op that bundles the tensors of a continuous cache.
class KVCache_ContinuousBundleOp<string mnemonic, int rank, string window,
                                 Type cacheType, string what>
    : KVCache_Op<mnemonic, [Pure, KVCache_BundleOpInterface]> {
  let arguments = !con(
    (ins Arg<MemRefRankOf<[AnyType], [rank]>,
             what # ", [" # window # ", E]">:$blocks),
    KVCache_LengthsArgument,
    (ins Arg<MemRefRankOf<[I32], [1]>,
             "the block of each sequence, [batch], unsigned">:$lookup_table),
    KVCache_MaximaArguments);
  let results = (outs Res<cacheType, "the cache">:$cache);
  let assemblyFormat = [{
    $blocks `,` $cache_lengths `,` $lookup_table `,` $max_seq_length `,`
    $max_cache_length attr-dict `:` type($blocks) `,` type($cache_lengths) `,`
    type($lookup_table) `->` qualified(type($cache))
  }];
  let hasVerifier = 1;
}

def KVCache_PagedCollectionOp : KVCache_PagedBundleOp<"paged_collection", 6,
    "NB, D, NL, P, H", KVCache_PagedCollectionType,
    "keys and values of all pages and layers"> {
  let summary = "Bundles the tensors of a paged cache";
  let description = [{
    Bundles the tensors of a paged cache into a collection. The op copies no
    data. Notation: D is 2, or 1 for MLA; NL is the number of layers, P the page
    size, H the number of heads, E the stored head size, and hg the number of
    quantization groups of a head.

    The lookup table gives the page of every P tokens of a sequence. Its
    entries, the lengths and the maxima are unsigned. Without `lookup`, the
    scales have the same lookup table as the elements. The strides between
    pages, between layers, and between keys and values are strides of the
    memrefs. If a stride is dynamic, the caller must keep (C7).

    Constraints:
    - (C1) `blocks` has shape `[?, D, ?, P, H, E]` and the stored element type
      of the collection; static sizes agree with the type of the collection.
    - (C2) strides 3 to 5 of `blocks` are those of the type: `[H * E, E, 1]`
      for packed rows, else those of `layout`. A dimension of one element has no
      stride.
    - (C3) `cache_lengths`, `table_index` and the rows of the lookup tables are
      contiguous.
    - (C4) the op has `scales` if and only if the collection is quantized, and
      `scales_lookup_table` only with `scales`.
    - (C5) `scales` has shape `[?, D, ?, P, H, hg]`, the scale type, and strides
      `[H * hg, hg, 1]` for packed rows, else those of `scale_layout`.
    - (C6) all memrefs are in the default memory space.
    - (C7) `blocks` and `scales` start at multiples of 16 bytes, and their
      strides 0 to 2 are multiples of 16 bytes, or of what the bytes of a row
      are a multiple of, if that is less. With a layout, the strides of tokens
      and heads count, and the bytes of a head. An open stride of heads keeps
      the same rule; that of scales may be any number of scales. The elements of
      a page do not overlap.
    - (C8) a `dense` table has two dimensions and no `table_index`; a `csr` table
      has one dimension and `table_index`; a `rows` table has two dimensions and
      `table_index`. Its row stride is a multiple of 8 entries if it is static,
      or if `populate` reads the table.
    - (C9) with a `csr` or `rows` table, scales that have a table of their own
      have a `dense` one.

    With `index`, `table_index` says where the table of a `csr` or `rows` type
    has the entries of each sequence. The entries of a `csr` table are from
    `table_index[b]` on, up to `table_index[b + 1]`; those of a `rows` table are
    in row `table_index[b]`.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

    func.func @collect(%blocks: memref<?x2x?x64x8x128xbf16>,
                       %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                       %max_seq: i32, %max_cache: i32) -> !collection {
      %c = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
             : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32>
             -> !collection
      return %c : !collection
    }
    ```
  }];
}

def KVCache_ContinuousCollectionOp : KVCache_ContinuousBundleOp<
    "continuous_collection", 6, "NB, D, NL, T, H",
    KVCache_ContinuousCollectionType,
    "keys and values of all blocks and layers"> {
  let summary = "Bundles the tensors of a continuous cache";
  let description = [{
    Bundles the tensors of a continuous cache into a collection, as
    `paged_collection` does for a paged cache. Each sequence has one block of
    rows, and the lookup table gives the block of each sequence.

    Constraints:
    - (C1) `blocks` has shape `[?, D, ?, ?, H, E]` and the element type of the
      collection; static sizes agree with the collection's type.
    - (C2) strides 3 to 5 of `blocks` are static and those of packed rows,
      `[H * E, E, 1]`.
    - (C3) `cache_lengths` and `lookup_table` are contiguous.
    - (C4) all memrefs are in the default memory space.
    - (C5) the start and the strides 0 to 2 of `blocks` are as aligned as (C7)
      of `paged_collection` says.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !collection = !kvcache.continuous_collection<bf16, #kv>

    func.func @collect(%blocks: memref<?x2x?x?x8x128xbf16>,
                       %lengths: memref<?xi32>, %lut: memref<?xi32>,
                       %max_seq: i32, %max_cache: i32) -> !collection {
      %c = kvcache.continuous_collection %blocks, %lengths, %lut, %max_seq,
             %max_cache
             : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?xi32>
             -> !collection
      return %c : !collection
    }
    ```
  }];
}

def KVCache_PagedCacheOp : KVCache_PagedBundleOp<"paged_cache", 4, "NB, P, H",
    KVCache_PagedCacheType, "one layer's keys or values of all pages"> {
  let summary = "Bundles the tensors of one layer's keys or values";
  let description = [{
    Bundles the tensors of one layer's keys or values into a view, as
    `paged_collection` does for those of all layers. Keys and values that differ
    in element type, head size, layout or allocation are two views. Views may
    share an allocation, if none writes a byte that another reads or writes.

    Constraints:
    - (C1) `blocks` has shape `[?, P, H, E]` and the stored element type of the
      cache; static sizes agree with its type.
    - (C2) to (C9) are those of `paged_collection`, for strides 1 to 3 of
      `blocks`, shape `[?, P, H, hg]` of `scales`, and stride 0 in (C7).

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64, layout = hnd>
    !pages = memref<?x64x8x128xbf16, strided<[?, 128, 8192, 1], offset: ?>>

    func.func @keys(%keys: !pages, %lengths: memref<?xi32>,
                    %lut: memref<?x?xi32>, %max_seq: i32, %max_cache: i32)
        -> !cache {
      %k = kvcache.paged_cache %keys, %lengths, %lut, %max_seq, %max_cache
             : !pages, memref<?xi32>, memref<?x?xi32> -> !cache
      return %k : !cache
    }
    ```
  }];
}

def KVCache_ContinuousCacheOp : KVCache_ContinuousBundleOp<"continuous_cache",
    4, "NB, T, H", KVCache_ContinuousCacheType,
    "one layer's keys or values of all blocks"> {
  let summary = "Bundles the tensors of one layer's keys or values";
  let description = [{
    Bundles the tensors of one layer's keys or values into a view, as
    `continuous_collection` does for those of all layers.

    Constraints:
    - (C1) `blocks` has shape `[?, ?, H, E]` and the element type of the cache;
      static sizes agree with its type.
    - (C2) to (C5) are those of `continuous_collection`, for strides 1 to 3 of
      `blocks`, and stride 0 in (C5).

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.continuous<bf16, #kv>

    func.func @keys(%keys: memref<?x?x8x128xbf16>, %lengths: memref<?xi32>,
                    %lut: memref<?xi32>, %max_seq: i32, %max_cache: i32)
        -> !cache {
      %k = kvcache.continuous_cache %keys, %lengths, %lut, %max_seq, %max_cache
             : memref<?x?x8x128xbf16>, memref<?xi32>, memref<?xi32> -> !cache
      return %k : !cache
    }
    ```
  }];
}

class KVCache_ViewOp<string mnemonic, Type collectionType, Type cacheType>
    : KVCache_Op<mnemonic, [
        Pure, InferTypeOpAdaptor, KVCache_LayerViewOpInterface]> {
  let arguments = (ins
    KVCache_Role:$role,
    Arg<collectionType, "the cache of all layers">:$collection,
    Arg<Index, "the layer, below the number of layers">:$layer
  );
  let results = (outs Res<cacheType, "the layer's keys or values">:$cache);
  let assemblyFormat = [{
    $role $collection `[` $layer `]` attr-dict `:`
    qualified(type($collection))
  }];
  let hasVerifier = 1;
}

def KVCache_PagedViewOp : KVCache_ViewOp<"paged_view",
    KVCache_PagedCollectionType, KVCache_PagedCacheType> {
  let summary = "One layer's keys or values of a paged collection";
  let description = [{
    Gives a view of one layer: the blocks of the collection from offset
    `role * stride 1 + layer * stride 2` on, and the same window of its scales.

    Constraints:
    - (C1) an MLA collection has no value view.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>

    func.func @keys(%c: !collection, %layer: index) -> !cache {
      %k = kvcache.paged_view key %c[%layer] : !collection
      return %k : !cache
    }
    ```
  }];
}

def KVCache_ContinuousViewOp : KVCache_ViewOp<"continuous_view",
    KVCache_ContinuousCollectionType, KVCache_ContinuousCacheType> {
  let summary = "One layer's keys or values of a continuous collection";
  let description = [{
    Gives a view of one layer: the blocks of the collection from offset
    `role * stride 1 + layer * stride 2` on.

    Constraints:
    - (C1) an MLA collection has no value view.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !collection = !kvcache.continuous_collection<bf16, #kv>
    !cache = !kvcache.continuous<bf16, #kv>

    func.func @values(%c: !collection, %layer: index) -> !cache {
      %v = kvcache.continuous_view value %c[%layer] : !collection
      return %v : !cache
    }
    ```
  }];
}

#endif // KVCACHE_IR_VIEWOPS_TD
