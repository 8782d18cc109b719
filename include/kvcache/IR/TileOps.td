//===- TileOps.td - Tiles in shared memory -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_TILEOPS_TD
#define KVCACHE_IR_TILEOPS_TD

include "kvcache/IR/KVCacheOpBase.td"
include "mlir/Interfaces/ViewLikeInterface.td"

// The memory of a tile is ordinary memory: `tile_memory` and `tile_view` give
// memrefs of it. So the effects of tile ops are on the default resource, and
// name the tile.

def KVCache_AllocTileOp : KVCache_Op<"alloc_tile"> {
  let summary = "Allocates shared memory for a tile";
  let description = [{
    Allocates shared memory with the alignment that the swizzle requires: 1024,
    512 or 256 bytes, or 128 without a swizzle. `alignment` sets a larger
    alignment, in bytes. The memory is uninitialized. It lives as long as the
    kernel, or on the CPU as long as the function. In a loop, the op gives the
    same memory in each iteration.

    Constraints:
    - (C1) `alignment`, if given, is a power of two, and at least the alignment
      that the tile requires.

    Example:

    ```mlir
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>

    func.func @alloc() -> vector<8xbf16> {
      %c0 = arith.constant 0 : index
      %kt = kvcache.alloc_tile : !kt
      %v = kvcache.tile_load %kt[%c0, %c0] : !kt -> vector<8xbf16>
      return %v : vector<8xbf16>
    }
    ```
  }];
  let arguments = (ins
    OptionalAttr<ConfinedAttr<I64Attr, [IntPowerOf2]>>:$alignment);
  let results = (outs Res<KVCache_TileType, "the tile", [MemAlloc]>:$tile);
  let assemblyFormat = "attr-dict `:` qualified(type($tile))";
  let extraClassDeclaration = [{
    /// The alignment of the memory in bytes.
    int64_t getMemoryAlignment() {
      return getAlignment().value_or(
          getTile().getType().getLayout().getAlignment());
    }
  }];
  let hasVerifier = 1;
}

def KVCache_TileLoadOp : KVCache_Op<"tile_load"> {
  let summary = "Reads consecutive elements of a row of a tile";
  let description = [{
    Reads the element `(row, column)`. If the result is a vector of n lanes, the
    op reads n consecutive elements from there, and `column` must be a multiple
    of n.

    Constraints:
    - (C1) the element type of the result is that of the tile.
    - (C2) the number of lanes is a power of two, and the result has at most 16
      bytes, the unit of a swizzle.

    Example:

    ```mlir
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>

    func.func @load(%kt: !kt, %row: index, %column: index) -> vector<8xbf16> {
      %v = kvcache.tile_load %kt[%row, %column] : !kt -> vector<8xbf16>
      return %v : vector<8xbf16>
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_TileType, "the tile", [MemRead]>:$tile,
                       Arg<Index, "the row">:$row,
                       Arg<Index, "the first column">:$column);
  let results = (outs Res<KVCache_Elements, "the elements">:$result);
  let assemblyFormat = [{
    $tile `[` $row `,` $column `]` attr-dict `:` qualified(type($tile)) `->`
    type($result)
  }];
  let hasVerifier = 1;
}

def KVCache_ClusterLoadOp : KVCache_Op<"cluster_load"> {
  let summary = "Reads consecutive elements of a tile of another thread block";
  let description = [{
    Reads elements as `tile_load` does, of the tile that thread block `rank` of
    the cluster has at the same address. That thread block has written them before
    a `cluster_barrier`, and ends after another one.

    Constraints:
    - (C1) the element type of the result is that of the tile.
    - (C2) the number of lanes is a power of two, and the result has at most 16
      bytes.
    - (C3) the kernel has a `cluster_barrier`, on a chip from sm_90 on.
    - (C4) `rank` is less than the number of thread blocks of the cluster.

    Example:

    ```mlir
    !state = !kvcache.tile<16x4xf32>

    func.func @load(%tile: !state, %row: index, %rank: index) -> vector<2xf32> {
      %c0 = arith.constant 0 : index
      kvcache.cluster_barrier {blocks = 4 : i64}
      %v = kvcache.cluster_load %tile[%row, %c0] rank %rank
          : !state -> vector<2xf32>
      kvcache.cluster_barrier {blocks = 4 : i64}
      return %v : vector<2xf32>
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_TileType, "the tile", [MemRead]>:$tile,
                       Arg<Index, "the row">:$row,
                       Arg<Index, "the first column">:$column,
                       Arg<Index, "the thread block in the cluster">:$rank);
  let results = (outs Res<KVCache_Elements, "the elements">:$result);
  let assemblyFormat = [{
    $tile `[` $row `,` $column `]` `rank` $rank attr-dict `:`
    qualified(type($tile)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def KVCache_ClusterBarrierOp : KVCache_Op<"cluster_barrier", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Synchronizes all threads of a cluster of thread blocks";
  let description = [{
    All threads of the cluster wait for each other. After it, each sees what the
    others have stored before. The op states the clusters of its kernel: `blocks`
    thread blocks that follow one another along y of the grid, whose number along
    y is a multiple of it.

    Constraints:
    - (C1) `blocks` is from 2 to 8: larger clusters are not portable.
    - (C2) the op is in GPU code, for a chip from sm_90 on.
    - (C3) all such ops of a kernel have the same `blocks`, and all threads of a
      cluster execute them together.

    Example:

    ```mlir
    func.func @sync() {
      kvcache.cluster_barrier {blocks = 4 : i64}
      return
    }
    ```
  }];
  let arguments = (ins
    ConfinedAttr<I64Attr, [IntMinValue<2>, IntMaxValue<8>]>:$blocks);
  let assemblyFormat = "attr-dict";
}

def KVCache_TileStoreOp : KVCache_Op<"tile_store"> {
  let summary = "Writes consecutive elements of a row of a tile";
  let description = [{
    Writes the element `(row, column)`. If the value is a vector of n lanes, the
    op writes n consecutive elements from there, and `column` must be a multiple
    of n. Other threads see the elements after a `gpu.barrier`.

    Constraints:
    - (C1) the element type of the value is that of the tile.
    - (C2) the number of lanes is a power of two, and the value has at most 16
      bytes.

    Example:

    ```mlir
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>

    func.func @store(%v: vector<8xbf16>, %kt: !kt, %row: index,
                     %column: index) {
      kvcache.tile_store %v, %kt[%row, %column] : vector<8xbf16>, !kt
      return
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_Elements, "the elements">:$value,
                       Arg<KVCache_TileType, "the tile", [MemWrite]>:$tile,
                       Arg<Index, "the row">:$row,
                       Arg<Index, "the first column">:$column);
  let assemblyFormat = [{
    $value `,` $tile `[` $row `,` $column `]` attr-dict `:` type($value) `,`
    qualified(type($tile))
  }];
  let hasVerifier = 1;
}

def KVCache_TileOffsetOp : KVCache_Op<"tile_offset", [Pure, KVCache_Ranged]> {
  let summary = "The byte offset of an element of a tile";
  let description = [{
    Gives the offset in bytes of the element `(row, column)` from the start of
    the tile, for `ldmatrix` and similar instructions.

    Example:

    ```mlir
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>

    func.func @offset(%kt: !kt, %row: index, %column: index) -> index {
      %o = kvcache.tile_offset %kt[%row, %column] : !kt
      return %o : index
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_TileType, "the tile">:$tile,
                       Arg<Index, "the row">:$row,
                       Arg<Index, "the column">:$column);
  let results = (outs Res<Index, "the offset in bytes">:$offset);
  let assemblyFormat = [{
    $tile `[` $row `,` $column `]` attr-dict `:` qualified(type($tile))
  }];
  let hasFolder = 1;
}

def KVCache_TileMemoryOp : KVCache_Op<"tile_memory", [
    Pure, ViewLikeOpInterface]> {
  let summary = "The memory of a tile as bytes";
  let description = [{
    Gives the memory of a tile, for code that computes its own addresses.

    Constraints:
    - (C1) the memory has the size of the tile, and is in the workgroup memory
      space.

    Example:

    ```mlir
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>
    !memory = memref<16384xi8, #gpu.address_space<workgroup>>

    func.func @memory(%kt: !kt) -> !memory {
      %m = kvcache.tile_memory %kt : !kt -> !memory
      return %m : !memory
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_TileType, "the tile">:$tile);
  let results = (outs Res<MemRefRankOf<[I8], [1]>, "its bytes">:$memory);
  let assemblyFormat = [{
    $tile attr-dict `:` qualified(type($tile)) `->` type($memory)
  }];
  let extraClassDeclaration = [{
    ::mlir::Value getViewSource() { return getTile(); }
    ::mlir::Value getViewDest() { return getMemory(); }
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def KVCache_TileViewOp : KVCache_Op<"tile_view", [
    Pure, ViewLikeOpInterface]> {
  let summary = "A tile in given memory";
  let description = [{
    The inverse of `tile_memory`, for code that lays out shared memory itself.
    The memory must have the alignment that `alloc_tile` gives.

    Constraints:
    - (C1) the memory has the size of the tile, and is in the workgroup memory
      space.

    Example:

    ```mlir
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>
    !memory = memref<16384xi8, #gpu.address_space<workgroup>>

    func.func @view(%memory: !memory) -> !kt {
      %kt = kvcache.tile_view %memory : !memory -> !kt
      return %kt : !kt
    }
    ```
  }];
  let arguments = (ins Arg<MemRefRankOf<[I8], [1]>, "its bytes">:$memory);
  let results = (outs Res<KVCache_TileType, "the tile">:$tile);
  let assemblyFormat = [{
    $memory attr-dict `:` type($memory) `->` qualified(type($tile))
  }];
  let extraClassDeclaration = [{
    ::mlir::Value getViewSource() { return getMemory(); }
    ::mlir::Value getViewDest() { return getTile(); }
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // KVCACHE_IR_TILEOPS_TD
