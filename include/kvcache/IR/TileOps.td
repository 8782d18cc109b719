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

def KVCache_AllocTileOp : KVCache_Op<"alloc_tile", [
    MemoryEffects<[MemAlloc]>]> {
  let summary = "Shared memory for a tile";
  let description = [{
    Memory of the block, as aligned as the tile's swizzle needs: 1024, 512 or
    256 bytes, 128 without one. It holds anything at first, and lives as long as
    the kernel; on the CPU as long as the function. An op in a loop gives the
    same memory each time. `alignment` asks for more, in bytes.

    Constraints:
    - (C1) `alignment`, if given, is a power of two, and at least what the tile
      needs.

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
  let results = (outs Res<KVCache_TileType, "the tile">:$tile);
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

def KVCache_TileLoadOp : KVCache_Op<"tile_load", [MemoryEffects<[MemRead]>]> {
  let summary = "Reads consecutive elements of a row of a tile";
  let description = [{
    Reads the element `(row, column)`, or as many consecutive ones from it on as
    the result vector has lanes; the column is a multiple of their number.

    Constraints:
    - (C1) the result's element type is the tile's.
    - (C2) the result has a power of two of lanes, and at most 16 bytes: what a
      swizzle moves as a whole.

    Example:

    ```mlir
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>

    func.func @load(%kt: !kt, %row: index, %column: index) -> vector<8xbf16> {
      %v = kvcache.tile_load %kt[%row, %column] : !kt -> vector<8xbf16>
      return %v : vector<8xbf16>
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_TileType, "the tile">:$tile,
                       Arg<Index, "the row">:$row,
                       Arg<Index, "the first column">:$column);
  let results = (outs Res<KVCache_Elements, "the elements">:$result);
  let assemblyFormat = [{
    $tile `[` $row `,` $column `]` attr-dict `:` qualified(type($tile)) `->`
    type($result)
  }];
  let hasVerifier = 1;
}

def KVCache_TileStoreOp : KVCache_Op<"tile_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes consecutive elements of a row of a tile";
  let description = [{
    Writes the element `(row, column)`, or as many consecutive ones from it on
    as the vector has lanes; the column is a multiple of their number. Other
    threads see it after a `gpu.barrier`.

    Constraints:
    - (C1) the value's element type is the tile's.
    - (C2) the value has a power of two of lanes, and at most 16 bytes.

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
                       Arg<KVCache_TileType, "the tile">:$tile,
                       Arg<Index, "the row">:$row,
                       Arg<Index, "the first column">:$column);
  let assemblyFormat = [{
    $value `,` $tile `[` $row `,` $column `]` attr-dict `:` type($value) `,`
    qualified(type($tile))
  }];
  let hasVerifier = 1;
}

def KVCache_TileOffsetOp : KVCache_Op<"tile_offset", [Pure, KVCache_Ranged]> {
  let summary = "The byte of an element of a tile";
  let description = [{
    Where the element `(row, column)` lies, from the tile's memory on, in bytes:
    for `ldmatrix` and its kin.

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
  let results = (outs Res<Index, "bytes from the tile's memory on">:$offset);
  let assemblyFormat = [{
    $tile `[` $row `,` $column `]` attr-dict `:` qualified(type($tile))
  }];
  let hasFolder = 1;
}

def KVCache_TileMemoryOp : KVCache_Op<"tile_memory", [Pure]> {
  let summary = "The memory of a tile as bytes";
  let description = [{
    The memory of a tile, for code that does its own addressing.

    Constraints:
    - (C1) the memory has the bytes of the tile, in the workgroup memory space.

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
  let hasVerifier = 1;
  let hasFolder = 1;
}

def KVCache_TileViewOp : KVCache_Op<"tile_view", [Pure]> {
  let summary = "A tile in given memory";
  let description = [{
    The inverse of `tile_memory`, for code that lays out shared memory itself.
    The memory is as aligned as `alloc_tile` would make it.

    Constraints:
    - (C1) the memory has the bytes of the tile, in the workgroup memory space.

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
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // KVCACHE_IR_TILEOPS_TD
