//===- KVCacheTypes.td - Types of the kvcache dialect -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_KVCACHETYPES_TD
#define KVCACHE_IR_KVCACHETYPES_TD

include "kvcache/IR/KVCacheAttrs.td"
include "kvcache/IR/KVCacheInterfaces.td"

class KVCache_Type<string name, string typeMnemonic, list<Trait> traits>
    : TypeDef<KVCache_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

class KVCache_PagedType<string name, string typeMnemonic, bit collection>
    : KVCache_Type<name, typeMnemonic, [
        DeclareTypeInterfaceMethods<KVCache_ExpandableTypeInterface>,
        KVCache_CacheTypeInterface]> {
  let parameters = (ins
    "::mlir::Type":$elementType,
    "::mlir::kvcache::ParamsAttr":$params,
    "int64_t":$pageSize,
    OptionalParameter<"::mlir::Type">:$scale,
    OptionalParameter<"int64_t">:$granularity
  );
  let assemblyFormat = [{
    `<` $elementType `,` qualified($params) `,`
    `page_size` `=` custom<PageSize>($pageSize)
    `` custom<Quantization>($scale, $granularity) `` `>`
  }];
  let extraClassDeclaration = [{
    bool isCollection() const { return }] # collection # [{; }
  }];
}

class KVCache_ContinuousType<string name, string typeMnemonic, bit collection>
    : KVCache_Type<name, typeMnemonic, [
        DeclareTypeInterfaceMethods<KVCache_ExpandableTypeInterface>,
        KVCache_CacheTypeInterface]> {
  let parameters = (ins
    "::mlir::Type":$elementType,
    "::mlir::kvcache::ParamsAttr":$params
  );
  let assemblyFormat = "`<` $elementType `,` qualified($params) `>`";
  let extraClassDeclaration = [{
    bool isCollection() const { return }] # collection # [{; }
    bool isPaged() const { return false; }
    int64_t getPageSize() const { return ::mlir::ShapedType::kDynamic; }
    ::mlir::Type getScale() const { return {}; }
    int64_t getGranularity() const { return 0; }
  }];
}

def KVCache_PagedCollectionType
    : KVCache_PagedType<"PagedCollection", "paged_collection", 1> {
  let summary = "paged cache of all layers";
  let description = [{
    Keys and values of all layers in pages of `page_size` tokens, found through
    a lookup table. With `scale` and `granularity` the cache is quantized:
    every `granularity` elements of a head share a scale of type `scale`.

    A `page_size` of `?` is dimension 3 of the blocks, known only at run time:
    one kernel serves all page sizes. Then what this and ops demand of the page
    size is up to the caller, and `kvcache-bounds-checks` checks it. Descriptors
    whose shape depends on it need a number.

    Constraints:
    - (C1) `page_size` is positive, and if it is a number, a page of that many
      rows has fewer than 2^31 elements.
    - (C2) the element type is f32, f16, bf16, f8E4M3FN or f8E5M2, or with
      scales also i8 or f4E2M1FN.
    - (C3) `granularity` is positive and given exactly when `scale` is.
    - (C4) the scale type is f32, f16, bf16, f8E8M0FNU or f8E4M3FN, the element
      type has at most 8 bits, and a 4-bit cache has the granularity and scales
      of NVFP4 (16, f8E4M3FN) or MX (32, f8E8M0FNU).
    - (C5) the head size of a 4-bit cache is even.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
    !quantized = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64,
                                           scale = f32, granularity = 128>
    !any_pages = !kvcache.paged_collection<bf16, #kv, page_size = ?>
    ```
  }];
}

def KVCache_PagedCacheType : KVCache_PagedType<"PagedCache", "paged", 0> {
  let summary = "paged cache of one layer's keys or values";
  let description = [{
    A view of one layer's keys or values: a window `[pages, page_size,
    num_heads, head_size]` with a distance between pages that is known only at
    run time. Parameters and constraints are those of `paged_collection`.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>
    ```
  }];
}

def KVCache_ContinuousCollectionType
    : KVCache_ContinuousType<"ContinuousCollection", "continuous_collection",
                             1> {
  let summary = "continuous cache of all layers";
  let description = [{
    Keys and values of all layers, one block of rows for each sequence. The
    lookup table names each sequence's block.

    Constraints:
    - (C1) the element type is f32, f16, bf16, f8E4M3FN or f8E5M2.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !collection = !kvcache.continuous_collection<bf16, #kv>
    ```
  }];
}

def KVCache_ContinuousCacheType
    : KVCache_ContinuousType<"ContinuousCache", "continuous", 0> {
  let summary = "continuous cache of one layer's keys or values";
  let description = [{
    A view of one layer's keys or values. Parameters and constraints are those
    of `continuous_collection`.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.continuous<bf16, #kv>
    ```
  }];
}

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

def KVCache_ScalesType : KVCache_Type<"Scales", "scales", [
    DeclareTypeInterfaceMethods<KVCache_ExpandableTypeInterface>,
    DeclareTypeInterfaceMethods<KVCache_CacheTypeInterface,
                                ["getElementsPerLane"]>]> {
  let summary = "scales of a quantized cache";
  let description = [{
    A view of the scales behind a quantized cache, as an attention operand of
    its own: a window `[pages, page_size, num_heads, groups]` of the scale type,
    with its own lookup table and distance between pages. Elements are still
    counted as in the cache: element `d` finds the scale of group
    `d div granularity`, and a row is the `num_heads * groups` scales of a
    token.

    What the scales support: `load`, `store`, `block_tile`, `cache_length`,
    `max_context_length`, `num_kv_rows`, `row_index`, `tma_row`, `tma_coords`,
    `page_id`, `populate` and `extent`.

    Constraints:
    - (C1) the cache is the view of a quantized paged cache.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64,
                            scale = f32, granularity = 128>
    !scales = !kvcache.scales<!cache>
    ```
  }];
  let parameters = (ins "::mlir::Type":$cache);
  let assemblyFormat = "`<` $cache `>`";
  let extraClassDeclaration = [{
    /// The cache that the scales belong to.
    ::mlir::kvcache::PagedCacheType getPagedCache() const {
      return ::llvm::cast<::mlir::kvcache::PagedCacheType>(getCache());
    }
  }];
}

//===----------------------------------------------------------------------===//
// Row indices
//===----------------------------------------------------------------------===//

def KVCache_RowIndicesType : KVCache_Type<"RowIndices", "row_indices", [
    DeclareTypeInterfaceMethods<KVCache_ExpandableTypeInterface>]> {
  let summary = "cache rows of consecutive tokens";
  let description = [{
    The cache rows of `rows` consecutive tokens of a sequence, read from the
    lookup table once per page. No `page_size` over a continuous cache. Over a
    cache with `page_size = ?` the rows have the same, and lie in one page.

    Constraints:
    - (C1) `rows` is positive, and `page_size`, if it is a number, too.
    - (C2) `rows` is at most `page_size` or a multiple of it.
    - (C3) the rows lie in at most 1024 pages: each is a value.

    Example:

    ```mlir
    !rows = !kvcache.row_indices<rows = 128, page_size = 64>
    ```
  }];
  let parameters = (ins
    "int64_t":$rows,
    OptionalParameter<"int64_t">:$pageSize
  );
  let assemblyFormat = "`<` custom<Rows>($rows, $pageSize) `>`";
  let extraClassDeclaration = [{
    /// Rows that one entry of the lookup table covers.
    int64_t getRowsPerPage() const {
      // A page size that is absent or open is not positive.
      return getPageSize() > 0 && getPageSize() < getRows() ? getPageSize()
                                                            : getRows();
    }
    /// Entries of the lookup table behind the rows.
    int64_t getNumPages() const { return getRows() / getRowsPerPage(); }
  }];
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

def KVCache_TileType : KVCache_Type<"Tile", "tile", [
    DeclareTypeInterfaceMethods<KVCache_ExpandableTypeInterface>]> {
  let summary = "tile of a cache in shared memory";
  let description = [{
    Rows and columns of elements in the shared memory of a block, on the CPU in
    the function's frame. A tile lies in chunks of as many columns as the span
    of its swizzle has, 32, 64 or 128 bytes, each of them all rows; without a
    swizzle in one chunk. The byte at offset a from the tile is stored at
    `a ^ (((a >> 7) & m) << 4)`, with m = 1, 3 or 7 for the three spans and 0
    for none: as tensor copies store it, and matrix instructions read it.

    Constraints:
    - (C1) rows and columns are positive, and a tile has fewer than 2^31 bytes.
    - (C2) the element type is an integer or a float of 1, 2, 4 or 8 bytes.
    - (C3) a row is a multiple of 16 bytes.
    - (C4) the rows of several chunks are a multiple of 8, after which the
      swizzle repeats.

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
    /// How the tile lies in memory.
    ::mlir::kvcache::tma::TileLayout getLayout() const;
    /// The memory of the tile: bytes, shared by the threads of a block.
    ::mlir::MemRefType getMemoryType() const;
  }];
}

def KVCache_TokenType : TypeDef<KVCache_Dialect, "Token", [
    DeclareTypeInterfaceMethods<KVCache_ExpandableTypeInterface>]> {
  let mnemonic = "token";
  let summary = "copy on its way into a tile";
  let description = [{
    What `wait` waits for. It expands to no value.

    Example:

    ```mlir
    !token = !kvcache.token
    ```
  }];
}

def KVCache_PipeType : KVCache_Type<"Pipe", "pipe", []> {
  let summary = "tiles in flight";
  let description = [{
    A ring of `stages` slots in the shared memory of a block, each with the
    tiles given, and the barriers that tell when a slot is full and when it is
    free. With `producers = n` the first n warps of the block fill the slots,
    and the others read them; without, all threads do both.

    Constraints:
    - (C1) there are 1 to 64 stages, and at least one tile.
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
  let summary = "descriptor of the boxes that tensor copies move";
  let description = [{
    A tensor map: how the hardware views a cache, and the box of elements that
    one copy moves. The type says the box, innermost side first, the elements,
    the swizzle, and, with `l2_promotion`, how many bytes the L2 cache fetches
    at least: 64, 128 or 256. The sizes and strides of the view are in the
    descriptor, which is made on the host, and reaches a kernel as a parameter
    of 128 bytes.

    Constraints:
    - (C1) the box has 1 to 5 sides, each from 1 to 256.
    - (C2) the element type is an integer or a float of 1, 2, 4 or 8 bytes.
    - (C3) the inner side is a multiple of 16 bytes, and with a swizzle the
      swizzle's span.
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
    /// Bytes of the box, and of its inner side.
    int64_t getBytes() const;
    int64_t getInnerBytes() const { return getBox()[0] * getElementBytes(); }
    /// Rows of the box: all of its sides but the inner one.
    int64_t getRows() const { return getBytes() / getInnerBytes(); }
  }];
}

//===----------------------------------------------------------------------===//
// Constraints on operands and results
//===----------------------------------------------------------------------===//

def KVCache_AnyQuantized : Type<
    CPred<"::llvm::isa<::mlir::kvcache::PagedCacheType>($_self) && "
          "::llvm::cast<::mlir::kvcache::PagedCacheType>($_self).isQuantized()">,
    "view of a quantized cache", "::mlir::kvcache::PagedCacheType">;

def KVCache_AnyPagedView : Type<
    CPred<"::llvm::isa<::mlir::kvcache::PagedCacheType, "
          "::mlir::kvcache::ScalesType>($_self)">,
    "view of a paged cache or of its scales",
    "::mlir::kvcache::CacheTypeInterface">;

def KVCache_AnyCache : Type<
    CPred<"::llvm::isa<::mlir::kvcache::PagedCacheType, "
          "::mlir::kvcache::ContinuousCacheType>($_self)">,
    "view of a paged or continuous cache (and not of scales)",
    "::mlir::kvcache::CacheTypeInterface">;

def KVCache_AnyView : Type<
    CPred<"::llvm::isa<::mlir::kvcache::PagedCacheType, "
          "::mlir::kvcache::ContinuousCacheType, "
          "::mlir::kvcache::ScalesType>($_self)">,
    "view of a paged or continuous cache or of scales",
    "::mlir::kvcache::CacheTypeInterface">;

def KVCache_Barriers : Type<
    CPred<"::llvm::isa<::mlir::nvgpu::MBarrierGroupType>($_self)">,
    "mbarriers in shared memory", "::mlir::nvgpu::MBarrierGroupType">;

def KVCache_AnyCacheOrCollection : Type<
    CPred<"::llvm::isa<::mlir::kvcache::CacheTypeInterface>($_self) && "
          "!::llvm::isa<::mlir::kvcache::ScalesType>($_self)">,
    "cache view or collection (and no view of scales)",
    "::mlir::kvcache::CacheTypeInterface">;

def KVCache_AnyViewOrCollection : Type<
    CPred<"::llvm::isa<::mlir::kvcache::CacheTypeInterface>($_self)">,
    "view or collection", "::mlir::kvcache::CacheTypeInterface">;

def KVCache_FixedVector1D : Type<
    CPred<"::llvm::isa<::mlir::VectorType>($_self) && "
          "::llvm::cast<::mlir::VectorType>($_self).getRank() == 1 && "
          "!::llvm::cast<::mlir::VectorType>($_self).isScalable() && "
          "::llvm::isa<::mlir::FloatType, ::mlir::IntegerType>("
          "::llvm::cast<::mlir::VectorType>($_self).getElementType())">,
    "1-D vector of fixed length">;

/// Floats or integers that an access moves: one, or a vector of them.
def KVCache_Elements : AnyTypeOf<[AnyFloat, AnySignlessInteger,
                                  KVCache_FixedVector1D]>;

#endif // KVCACHE_IR_KVCACHETYPES_TD
