//===- PartOps.td - The tensors of a cache -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_PARTOPS_TD
#define KVCACHE_IR_PARTOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

/// An op that gives one of the tensors that a cache was made of.
class KVCache_PartOp<string mnemonic, TypeConstraint cache = KVCache_AnyMemory>
    : KVCache_Op<mnemonic, [Pure, InferTypeOpAdaptor]> {
  let arguments = (ins Arg<cache, "the cache">:$cache);
  let assemblyFormat = "$cache attr-dict `:` qualified(type($cache))";
}

def KVCache_BlocksOp : KVCache_PartOp<"blocks"> {
  let summary = "The memory of a cache";
  let description = [{
    Gives the pages as a memref with their sizes and strides, for code that
    computes its own addresses: `[pages, 2, layers, page_size, num_heads,
    head_size]` of a collection, with 1 for 2 if it is latent, and `[pages,
    page_size, num_heads, head_size]` of a view. Over a continuous cache, blocks
    and their tokens stand for pages and page_size. Over a view of scales, it is
    the memory of the scales. Elements of 4 bits are pairs, in `i8`.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>
    !window = memref<?x64x8x128xbf16, strided<[?, 1024, 128, 1], offset: ?>>

    func.func @memory(%k: !cache) -> !window {
      %m = kvcache.blocks %k : !cache
      return %m : !window
    }
    ```
  }];
  let results = (outs Res<MemRefRankOf<[AnyType], [4, 6]>,
                          "the pages, [NB, P, H, E] or [NB, D, NL, P, H, E]">
                      :$blocks);
}

def KVCache_CacheLengthsOp : KVCache_PartOp<"cache_lengths", KVCache_AnyViewOrCollection> {
  let summary = "The lengths of all sequences in a cache";
  let description = [{
    Gives the tokens in the cache of each sequence, as unsigned numbers: what
    `cache_length` reads.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>
    !lengths = memref<?xi32, strided<[1], offset: ?>>

    func.func @lengths(%k: !cache) -> !lengths {
      %m = kvcache.cache_lengths %k : !cache
      return %m : !lengths
    }
    ```
  }];
  let results = (outs Res<MemRefRankOf<[I32], [1]>, "tokens, [batch]">
                      :$cache_lengths);
}

def KVCache_LookupTableOp : KVCache_PartOp<"lookup_table"> {
  let summary = "The lookup table of a cache";
  let description = [{
    Gives the table of page ids: `[batch, columns]`, `[rows, columns]` of a
    rows table, `[entries]` of a csr table, and the blocks `[batch]` of a
    continuous cache. Over a view of scales, it is the table of the scales.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>
    !table = memref<?x?xi32, strided<[?, 1], offset: ?>>

    func.func @table(%k: !cache) -> !table {
      %m = kvcache.lookup_table %k : !cache
      return %m : !table
    }
    ```
  }];
  let results = (outs Res<MemRefRankOf<[I32], [1, 2]>, "page ids, unsigned">
                      :$lookup_table);
}

#endif // KVCACHE_IR_PARTOPS_TD
