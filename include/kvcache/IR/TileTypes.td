//===- TileTypes.td - Tiles, and what copies fill them by -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_TILETYPES_TD
#define KVCACHE_IR_TILETYPES_TD

include "kvcache/IR/KVCacheTypes.td"

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

def KVCache_TileType : KVCache_Type<"Tile", "tile", [
    DeclareTypeInterfaceMethods<KVCache_ExpandableTypeInterface>]> {
  let summary = "tile of a cache in shared memory";
  let description = [{
    A matrix in the shared memory of a block; on the CPU, in the stack frame of
    the function. The tile consists of chunks, each with all rows and with as
    many columns as the swizzle spans: 32, 64 or 128 bytes. Without a swizzle,
    the tile is one chunk. The byte at offset a from the start of the tile is
    stored at `a ^ (((a >> 7) & m) << 4)`, where m is 1, 3 or 7 for the three
    swizzles and 0 for none. Tensor copies write this layout, and matrix
    instructions read it.

    Constraints:
    - (C1) rows and columns are positive, and a tile has fewer than 2^31 bytes.
    - (C2) the element type is an integer or a float of 1, 2, 4 or 8 bytes.
    - (C3) a row is a multiple of 16 bytes.
    - (C4) a tile of several chunks has a multiple of 8 rows, the period of the
      swizzle.

    Example:

    ```mlir
    !tile = !kvcache.tile<64x128xbf16, swizzle_128b>
    !plain = !kvcache.tile<64x128xbf16>
    ```
  }];
  let parameters = (ins
    "int64_t":$rows,
    "int64_t":$columns,
    "::mlir::Type":$elementType,
    DefaultValuedParameter<"::mlir::kvcache::Swizzle",
                           "::mlir::kvcache::Swizzle::None">:$swizzle
  );
  let assemblyFormat =
      "`<` custom<TileShape>($rows, $columns, $elementType) (`,` $swizzle^)? `>`";
  let extraClassDeclaration = [{
    /// The layout of the tile in memory.
    ::mlir::kvcache::tma::TileLayout getLayout() const;
    /// The type of the tile's memory: bytes in the workgroup memory space.
    ::mlir::MemRefType getMemoryType() const;
  }];
}

def KVCache_TokenType : TypeDef<KVCache_Dialect, "Token", [
    DeclareTypeInterfaceMethods<KVCache_ExpandableTypeInterface>]> {
  let mnemonic = "token";
  let summary = "token of an asynchronous tile copy";
  let description = [{
    The result of an asynchronous copy, and the operand of `wait`. The type
    expands to zero values.

    Example:

    ```mlir
    !token = !kvcache.token
    ```
  }];
}

def KVCache_TmemTileType : KVCache_Type<"TmemTile", "tmem_tile", [
    DeclareTypeInterfaceMethods<KVCache_ExpandableTypeInterface>]> {
  let summary = "tile in tensor memory";
  let description = [{
    A matrix in the tensor memory of a multiprocessor, which has 128 lanes of 512
    columns of 32 bits. Row i of 128 is in lane i; row i of 64 is in lane
    `32 (i / 16) + i mod 16`, and for products of A also 16 lanes further.

    Elements of 32 bits, each in a column, are for C and D of `tmem_mma`.
    Smaller elements, packed into columns, are for A.

    Constraints:
    - (C1) the tile has 64 or 128 rows.
    - (C2) the element type is f32, i32, bf16, f16, f8E4M3FN, f8E5M2 or i8.
    - (C3) f32 and i32 have 8 to 512 columns, a multiple of 8, or with 128 rows or
      more than 32 columns of i32 of 16; above 256 columns a multiple of twice
      that.
    - (C4) smaller elements have columns of a multiple of 32 bytes, and of at
      most 2048 bytes.

    Example:

    ```mlir
    !sums = !kvcache.tmem_tile<64x512xf32>
    !probs = !kvcache.tmem_tile<64x64xbf16>
    ```
  }];
  let parameters = (ins
    "int64_t":$rows,
    "int64_t":$columns,
    "::mlir::Type":$elementType
  );
  let assemblyFormat = "`<` custom<TileShape>($rows, $columns, $elementType) `>`";
  let extraClassDeclaration = [{
    /// The columns and lanes of tensor memory.
    static constexpr int64_t kMemoryColumns = 512, kMemoryLanes = 128;

    /// Whether elements have less than 32 bits.
    bool isPacked() const;
    /// Products whose D the tile is: 1, or 2 of half of the columns each.
    int64_t getNumProducts() const;
    /// Whether the second product is in the lanes that the first one leaves
    /// free. Otherwise, it is in the next columns.
    bool isSplitByLanes() const;
    /// Columns of tensor memory.
    int64_t getWidth() const;
    /// Columns of the tile that are a unit for fragments: 8, or 16 of 8 bits.
    int64_t getFragmentUnit() const;
  }];
}

def KVCache_PipeType : KVCache_Type<"Pipe", "pipe", []> {
  let summary = "pipe of tiles";
  let description = [{
    A ring of `stages` slots in the shared memory of a block. Each slot has the
    given tiles, a barrier that completes when the slot is full, and a barrier
    that completes when it is free. With `producers = n`, the first n warps of
    the block fill the slots, and the other warps read them. Without
    `producers`, all threads do both.

    Constraints:
    - (C1) the pipe has 1 to 64 stages and at least one tile.
    - (C2) `producers`, if given, is from 1 to 31.

    Example:

    ```mlir
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>
    !ring = !kvcache.pipe<3, !kt, !kt>
    !specialized = !kvcache.pipe<3, !kt, !kt, producers = 1>
    ```
  }];
  let parameters = (ins
    "int64_t":$stages,
    ArrayRefParameter<"::mlir::Type">:$tiles,
    OptionalParameter<"int64_t">:$producers
  );
  let assemblyFormat =
      "`<` $stages `` custom<PipeTiles>($tiles, $producers) `>`";
}

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

def KVCache_TMATileType : KVCache_Type<"TMATile", "tma_tile", []> {
  let summary = "TMA descriptor (tensor map)";
  let description = [{
    A tensor map describes a tensor to the hardware, and the box of elements
    that one copy moves. The type has the sides of the box, innermost first, the
    element type, the swizzle, and optionally `l2_promotion`, the minimum number
    of bytes that the L2 cache fetches: 64, 128 or 256. The descriptor itself
    has the sizes and strides of the view. The host creates it and passes it to
    a kernel as a parameter of 128 bytes.

    Constraints:
    - (C1) the box has 1 to 5 sides, each from 1 to 256.
    - (C2) the element type is an integer or a float of 1, 2, 4 or 8 bytes.
    - (C3) the inner side is a multiple of 16 bytes; with a swizzle, it is the
      span of the swizzle.
    - (C4) `l2_promotion`, if given, is 64, 128 or 256.

    Example:

    ```mlir
    !desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
    !promoted = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b, l2_promotion = 256>
    !rows = !kvcache.tma_tile<72x1xi64>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$box,
    "::mlir::Type":$elementType,
    DefaultValuedParameter<"::mlir::kvcache::Swizzle",
                           "::mlir::kvcache::Swizzle::None">:$swizzle,
    OptionalParameter<"int64_t">:$l2Promotion
  );
  let assemblyFormat = [{
    `<` custom<Box>($box, $elementType) ``
    custom<BoxOptions>($swizzle, $l2Promotion) `>`
  }];
  let extraClassDeclaration = [{
    int64_t getElementBytes() const {
      return getElementType().getIntOrFloatBitWidth() / 8;
    }
    /// The size in bytes of the box, and of its inner side.
    int64_t getBytes() const;
    int64_t getInnerBytes() const { return getBox()[0] * getElementBytes(); }
    /// The number of rows of the box: the product of all sides but the inner.
    int64_t getRows() const { return getBytes() / getInnerBytes(); }
  }];
}

#endif // KVCACHE_IR_TILETYPES_TD
