//===- CopyOps.td - Copies into tiles -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_COPYOPS_TD
#define KVCACHE_IR_COPYOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

// These ops do not depend on the chip: `kvcache-choose-copies` chooses the
// instructions. All threads of a block execute the copy and the wait.

/// A copy into a tile, and the methods of the access interface that it
/// overrides. It reads the cache and writes the tile.
class KVCache_TileCopyOp<string mnemonic, list<string> methods,
                         list<Trait> traits = []>
    : KVCache_Op<mnemonic, !listconcat([
        KVCache_Access<!listconcat(methods, ["getAccessedHead",
            "getAccessedElement", "getAccessedWidth"])>,
        KVCache_TileCopyOpInterface, MemoryEffects<[MemRead]>], traits)> {
  let results = (outs
    Res<KVCache_TokenType, "the token to wait for">:$token_of_copy);
  let hasVerifier = 1;
}

defvar KVCache_CopiedCache = (ins Arg<KVCache_AnyCache, "the cache">:$cache);
defvar KVCache_CopiedTile = (ins
  Arg<KVCache_TileType, "the tile", [MemWrite]>:$tile,
  Arg<Optional<KVCache_TMATileType>, "the descriptor of the cache">
      :$descriptor
);
defvar KVCache_CopyArgument = (ins OptionalAttr<KVCache_CopyKindAttr>:$copy);

def KVCache_AsyncLoadTileOp : KVCache_TileCopyOp<"async_load_tile", [
    "getAccessedBatch", "getAccessedToken"], [AttrSizedOperandSegments]> {
  let summary = "Copies consecutive tokens of a head into a tile";
  let description = [{
    Starts a copy of the tokens `t, t + 1, …` of a head, from element `d` on, to
    the rows of a tile. The tokens may lie in several pages, which the op finds
    through the lookup table. With `valid n`, the op reads only the first n rows
    and fills the others with zeros. Threads may read the tile after `wait`.

    `base_alignment` asserts that the first token is a multiple of this number.
    A tensor copy needs a box that lies inside one page; the attribute proves
    this where the compiler cannot.

    The op copies the stored elements of a quantized cache and does not
    dequantize.

    The copy sees the stores of the kernel to the cache that are ordered before
    it, by the order of the code in one thread, by barriers between threads, or
    by atomic accesses between blocks. A unit of the hardware copies by the
    async proxy: if the kernel may store to the cache, the lowering makes these
    stores visible to it, by a proxy fence (PTX ISA, "Async proxy") in the
    threads that issue the copy. Without such stores there is no fence.

    `copy` says how the op copies. `kvcache-choose-copies` sets it to the best
    kind that is possible, and keeps the kind that the author sets.
    `descriptor` is the tensor map of `tensor_boxes`.
    `kvcache-materialize-descriptors` adds it; the rows of each of its boxes lie
    in one page. The descriptor for `valid` begins before the cache, where there
    may be no memory, and GPUs read the first address of a tensor for a box that
    has nothing of it (seen on an H200). So boxes without a valid row are those
    of `zeros`, outside of a tensor that begins in the cache, where the op has
    it; the pass adds it, too.

    The distance between pages may be any multiple of 16 bytes. A tensor copy
    with `valid`, of a continuous cache, or of `async_gather_tile` needs a whole
    number of rows: its descriptor counts rows across pages. If the type of the
    blocks has another static distance, the threads copy. If the type leaves the
    distance open, the host checks it when it creates the descriptor.

    `l2_hint` says how long what is read stays in the L2 cache of a chip. Each
    instruction of a unit and each `cp.async` has it as a cache policy. Plain
    loads are `nontemporal` with `evict_first`, and have no other hint. It
    changes no result, and nothing on the CPU.

    `multicast` asserts that the blocks of a cluster copy the same rows to the
    same place (C6). Then each block loads its share of the tile, to the tiles
    of all of them, so that the cluster reads each row once. Where that can't be
    done, each block copies its whole tile, as without the attribute:
    `kvcache-choose-copies` removes it, and a remark gives the reason. It needs
    `tensor_boxes`, a kernel that states clusters of several blocks
    (`known_cluster_size`), and a cache that the kernel does not store to.

    Constraints:
    - (C1) the element type of the tile is that of the cache; for a 4-bit cache
      it is i8, which holds two elements.
    - (C2) the number of columns of the tile is at most the number of stored
      elements of a head.
    - (C3) `d` is a multiple of 16 bytes of stored elements. The lowering checks
      constants, the bounds checks other values.
    - (C4) `copy`, if given, is `plain`, `cp_async` or `tensor_boxes`; with
      `multicast`, it is `tensor_boxes`.
    - (C5) `descriptor` needs `copy = #kvcache.copy<tensor_boxes>`. Its swizzle
      is that of the tile, and its box (columns, 1, rows, 1), or (columns, rows,
      1, 1) for `valid` or a continuous cache. The columns are those of a chunk
      of the tile. The rows divide those of the tile and those of a page, and
      each box starts at a multiple of 128 bytes of the tile. `zeros` needs
      `descriptor` and `valid`, and its boxes have as many columns and rows.
    - (C6) with `multicast`, all blocks of a cluster execute the op equally
      often, each time with the same cache, index operands and `valid`, and a
      tile at the same place of their shared memory. This is an assertion.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>

    func.func @load(%k: !cache, %b: index, %h: index, %t: index, %n: index)
        -> vector<8xbf16> {
      %c0 = arith.constant 0 : index
      %kt = kvcache.alloc_tile : !kt
      %tok = kvcache.async_load_tile %k[%b, %h, %t, %c0] valid %n to %kt
               {base_alignment = 64} : !cache, !kt
      kvcache.wait %tok
      %v = kvcache.tile_load %kt[%c0, %c0] : !kt -> vector<8xbf16>
      return %v : vector<8xbf16>
    }
    ```
  }];
  let arguments = !con(KVCache_CopiedCache, KVCache_IndexArguments, (ins
    Arg<Optional<Index>, "the number of rows to read; all if absent">:$valid),
    KVCache_CopiedTile, (ins
    Arg<Optional<KVCache_TMATileType>, "a descriptor that begins in the cache">
        :$zeros,
    OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$base_alignment),
    KVCache_CopyArgument, (ins UnitAttr:$multicast), KVCache_L2Hint);
  let assemblyFormat = [{
    $cache `[` $batch `,` $head `,` $token `,` $element `]` (`valid` $valid^)?
    `to` $tile (`descriptor` $descriptor^)? (`zeros` $zeros^)? attr-dict `:`
    qualified(type($cache)) `,` qualified(type($tile))
    (`,` qualified(type($descriptor))^)? (`zeros` qualified(type($zeros))^)?
  }];
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::kvcache::CopyKind> getCopyKinds();
    int64_t getTokenAlignment() { return getBaseAlignment().value_or(1); }
    bool isMulticast() { return getMulticast(); }
  }];
}

def KVCache_AsyncGatherTileOp : KVCache_TileCopyOp<"async_gather_tile", []> {
  let summary = "Copies arbitrary rows of a head into a tile";
  let description = [{
    Starts a copy of one row of the cache to each row of the tile, from element
    `d` of a head on. A row id has the encoding of `tma_row`: `page * P +
    offset` in a paged cache, the row in a continuous one. If a row is out of
    bounds, such as -1, the op fills the row of the tile with zeros. Threads may
    read the tile after `wait`.

    `copy`, `descriptor` and `l2_hint` are those of `async_load_tile`, and stores
    of the kernel are visible to the copy likewise.

    Constraints:
    - (C1) the element type of the tile is that of the cache; for a 4-bit cache
      it is i8, which holds two elements.
    - (C2) the number of columns of the tile is at most the number of stored
      elements of a head.
    - (C3) the number of row ids is the number of rows of the tile.
    - (C4) `d` is a multiple of 16 bytes of stored elements. The lowering checks
      constants, the bounds checks other values.
    - (C5) the distance between the blocks of a continuous cache is a whole
      number of rows, because a row id counts the rows of all blocks; the bounds
      checks check it.
    - (C6) `copy`, if given, is `plain`, `cp_async`, `bulk_rows` or
      `tensor_rows`.
    - (C7) `descriptor` needs `copy = #kvcache.copy<tensor_rows>`. Its swizzle
      is that of the tile, and its box is one row of a chunk of the tile: a
      multiple of 32 bytes. The tile has a multiple of 4 rows.

    Example:

    ```mlir
    #mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
    !cache = !kvcache.paged<bf16, #mla, page_size = 64>
    !kt = !kvcache.tile<64x576xbf16>

    func.func @gather(%k: !cache, %ids: memref<64xi32>) -> vector<8xbf16> {
      %c0 = arith.constant 0 : index
      %kt = kvcache.alloc_tile : !kt
      %tok = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %kt
               : !cache, memref<64xi32>, !kt
      kvcache.wait %tok
      %v = kvcache.tile_load %kt[%c0, %c0] : !kt -> vector<8xbf16>
      return %v : vector<8xbf16>
    }
    ```
  }];
  let arguments = !con(KVCache_CopiedCache, (ins
    Arg<Index, "the head">:$head,
    Arg<Index, "the first element of the head">:$element,
    Arg<MemRefRankOf<[I32], [1]>, "the encoded row ids, signed">:$rows),
    KVCache_CopiedTile, KVCache_CopyArgument, KVCache_L2Hint);
  let assemblyFormat = [{
    $cache `[` $head `,` $element `]` `rows` $rows `to` $tile
    (`descriptor` $descriptor^)? attr-dict `:` qualified(type($cache)) `,`
    type($rows) `,` qualified(type($tile)) (`,` qualified(type($descriptor))^)?
  }];
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::kvcache::CopyKind> getCopyKinds();
    ::mlir::TypedValue<::mlir::MemRefType> getRowIds() { return getRows(); }
  }];
}

def KVCache_WaitOp : KVCache_Op<"wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits for a copy into a tile";
  let description = [{
    After the wait, the copied elements are visible to every thread of the
    block.

    Example:

    ```mlir
    func.func @wait(%tok: !kvcache.token) {
      kvcache.wait %tok
      return
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_TokenType, "the copy">:$token);
  let assemblyFormat = "$token attr-dict";
}

#endif // KVCACHE_IR_COPYOPS_TD
