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
    OptionalParameter<"int64_t">:$granularity,
    OptionalParameter<"::mlir::kvcache::LayoutAttrInterface">:$layout,
    OptionalParameter<"::mlir::kvcache::LayoutAttrInterface">:$scaleLayout,
    DefaultValuedParameter<"::mlir::kvcache::TableKind",
                           "::mlir::kvcache::TableKind::Dense">:$table,
    OptionalParameter<"::mlir::Type">:$zeroPoint,
    DefaultValuedParameter<"int64_t", "1">:$tokenGranularity
  );
  let assemblyFormat = [{
    `<` $elementType `,` qualified($params) `,`
    `page_size` `=` custom<PageSize>($pageSize)
    `` custom<PagedOptions>(ref($elementType), ref($params), ref($pageSize),
                            $scale, $granularity, $layout, $scaleLayout,
                            $table, $zeroPoint, $tokenGranularity) `` `>`
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
    Keys and values of all layers in pages of `page_size` tokens. A lookup table
    gives the pages of each sequence. With `scale` and `granularity`, the cache
    is quantized: every `granularity` elements of a head share a scale of type
    `scale`.

    `page_size = ?` means that the page size is dimension 3 of the blocks and
    known only at run time, so that one kernel serves all page sizes. The caller
    must then keep the constraints of this type and of ops on the page size;
    `kvcache-bounds-checks` checks them at run time. Descriptors whose shape
    depends on the page size need a static one.

    Constraints:
    - (C1) a static `page_size` is positive, and a page has fewer than 2^31
      elements.
    - (C2) the element type is a format of elements: without scales one such as
      bf16, f8E4M3FN or i64, with scales one such as f8E4M3FN or f4E2M1FN, and
      with zero points i4. The page of formats lists them.
    - (C3) `granularity` is positive, 1 by default where the type has `scale`;
      without `scale` there is none.
    - (C4) the scale type is f32, f16, bf16, f8E8M0FNU or f8E4M3FN, and a cache
      of f4E2M1FN has the granularity and scales of NVFP4 (16, f8E4M3FN) or MX
      (32, f8E8M0FNU).
    - (C5) the head size of a 4-bit cache is even.
    - (C6) `layout`, and `scale_layout` likewise, has `head` if and only if the
      cache has several heads. `token` is static.
    - (C7) strides are positive, and a page spans fewer than 2^40 stored
      elements.
    - (C8) elements do not overlap: a stride is at least a head, and either
      tokens lie between heads or heads between tokens.
    - (C9) the type has `scale_layout` only with `scale`.
    - (C10) only `scale_layout` has `interleave`, which divides the page size,
      a static one, and the number of quantization groups of a head. The scales
      are then without zero points, and not shared by tokens.
    - (C11) the type has `zero_point` if and only if elements are i4. It is the
      scale type, and f32, f16 or bf16.
    - (C12) `token_granularity` is positive. If it is not 1, the granularity is
      1, and it divides a static `page_size`.
    - (C13) `layout`, and `scale_layout` likewise, has `role` only if the cache
      has keys and values, and if the distance is less aligned than tokens and
      heads. The distance is at least a head.

    The elements of i4 caches are numbers q from 0 to 15, and stand for
    `q * scale + zero_point`: the zero point is the value of element 0. The zero
    points of a head follow its scales in memory: `[NB, D, NL, P, H, 2 * hg]`
    for hg quantization groups.

    With `token_granularity = n`, n tokens share their scales and zero points:
    tokens `n * i` to `n * i + n - 1` of a page, channel by channel, as the keys
    of KIVI do. The dimension of tokens of the scales is then `P / n`. Tokens
    are quantized n at a time, so that those of a group that is not full yet
    belong to another cache, without scales. `store_quantized` and `copy` write
    whole groups only; `load` reads any token.

    The elements of i16, i32, i64 and f64 caches, and of i8 ones without scales,
    are loaded and stored without conversion. So these integers may be unsigned:
    types have no sign. A `load` to a float type, and `tensor_scale`, read i8 as
    signed.

    `table` says how the lookup table gives the page of entry i of sequence b:

    - `dense`, the default: `table[b, i]`.
    - `csr`: `table[starts[b] + i]`. The table has one dimension, and `starts`
      an entry for each sequence and one more for the end.
    - `rows`: `table[rows[b], i]`. The table may have more rows than the batch
      has sequences.

    Without `layout`, rows are packed: the heads of a token follow each other,
    and then the next token. `layout` gives other distances in stored elements,
    and `scale_layout` those of scales, in scales:

    - `layout = hnd`: the tokens of a head follow each other, and then the next
      head: `[token = E, head = P * E]`, or `[token = E, head = ?]` with
      `page_size = ?`.
    - `layout = nhd`: packed rows, the same type as without `layout`.
    - `layout = [token = 256, head = 16384]`: any distances. `head = ?` leaves
      the stride of heads to the memref.
    - `layout = [token = 264, head = 16896, role = 132]`: the distance of keys
      and values counts in the alignment. An example is a scale of 4 bytes after
      each head of 128 bytes of a key and a value side by side.
    - `scale_layout = [token = 8, head = 512, interleave = 4]`: the scales of
      four tokens share their rows, as FlashInfer's of NVFP4 values. Ops on the
      rows or the tiles of such scales are errors.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
    !quantized = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64,
                                           scale = f32, granularity = 128>
    !any_pages = !kvcache.paged_collection<bf16, #kv, page_size = ?>
    !int4 = !kvcache.paged_collection<i4, #kv, page_size = 64, scale = f16,
                                      granularity = 32, zero_point = f16>
    !kivi = !kvcache.paged_collection<i4, #kv, page_size = 64, scale = f16,
                                      granularity = 1, zero_point = f16,
                                      token_granularity = 32>
    !hnd = !kvcache.paged_collection<bf16, #kv, page_size = 64, layout = hnd>
    !side_by_side = !kvcache.paged_collection<bf16, #kv, page_size = 64,
                                              layout = [token = 256, head = 16384]>
    !inline_scales = !kvcache.paged_collection<
        f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128,
        layout = [token = 132, head = 8448],
        scale_layout = [token = 33, head = 2112]>
    ```
  }];
}

def KVCache_PagedCacheType : KVCache_PagedType<"PagedCache", "paged", 0> {
  let summary = "paged cache of one layer's keys or values";
  let description = [{
    A view of one layer's keys or values: a window `[pages, page_size,
    num_heads, head_size]` whose page stride is known only at run time.
    Parameters and constraints are those of `paged_collection`.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>
    !hnd = !kvcache.paged<bf16, #kv, page_size = 64, layout = hnd>
    !open = !kvcache.paged<bf16, #kv, page_size = 64,
                           layout = [token = 256, head = ?]>
    ```
  }];
}

def KVCache_ContinuousCollectionType
    : KVCache_ContinuousType<"ContinuousCollection", "continuous_collection",
                             1> {
  let summary = "continuous cache of all layers";
  let description = [{
    Keys and values of all layers, with one block of rows for each sequence. The
    lookup table gives the block of each sequence.

    Constraints:
    - (C1) the element type is a format of elements without scales, such as bf16,
      f8E4M3FN or i64.

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
                                ["isPaged", "getLayout", "getTable",
                                 "getElementsPerLane", "hasMemory",
                                 "getTokensPerRow", "getNumbersPerLane"]>]> {
  let summary = "view of the scales of a cache";
  let description = [{
    A view of the scales of a quantized cache, as a separate operand of an
    attention kernel: a window `[pages, page_size, num_heads, groups]` of the
    scale type, with its own lookup table and page stride. Indices count
    elements of the cache: element `d` selects the scale of quantization group
    `d div granularity`. A row consists of the `num_heads * groups` scales of a
    token. Zero points, if the cache has them, follow the scales of a head;
    `load_scale` and `store_scale` access them.

    A view of scales supports `load`, `store`, `load_scale`, `store_scale`,
    `block_tile`, `scales_block_tile`, `scales_base`, `cache_length`,
    `max_context_length`, `num_kv_rows`, `row_index`, `tma_row`, `tma_coords`,
    `page_id`, `populate`, `extent`, `blocks`, `cache_lengths` and
    `lookup_table`.

    A kernel that serves quantized and other caches has this operand in both
    cases. The view of a cache without scales has no memory. It supports
    `cache_length`, `cache_lengths`, `max_context_length`, `extent batch` and,
    if the cache is paged, `extent page_size`; other ops are errors.

    Constraints:
    - (C1) the cache is a view of a paged or continuous cache.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64,
                            scale = f32, granularity = 128>
    !scales = !kvcache.scales<!cache>
    ```
  }];
  let parameters = (ins "::mlir::Type":$cache);
  let assemblyFormat = "`<` custom<CacheOfScales>($cache) `>`";
  let extraClassDeclaration = [{
    /// The cache of the scales.
    ::mlir::kvcache::CacheTypeInterface getViewed() const {
      return ::llvm::cast<::mlir::kvcache::CacheTypeInterface>(getCache());
    }
  }];
}

//===----------------------------------------------------------------------===//
// Row indices
//===----------------------------------------------------------------------===//

def KVCache_RowIndicesType : KVCache_Type<"RowIndices", "row_indices", [
    DeclareTypeInterfaceMethods<KVCache_ExpandableTypeInterface>]> {
  let summary = "row indices of consecutive tokens";
  let description = [{
    The cache rows of `rows` consecutive tokens of a sequence, with one read of
    the lookup table per page. For a continuous cache, the type has no
    `page_size`. For a cache with `page_size = ?`, the type has `page_size = ?`
    as well, and all rows lie in one page.

    Constraints:
    - (C1) `rows` and a static `page_size` are positive.
    - (C2) `rows` is at most `page_size` or a multiple of it.
    - (C3) the rows lie in at most 1024 pages, because each page is an SSA
      value.

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
      // An absent or dynamic page size is not positive.
      return getPageSize() > 0 && getPageSize() < getRows() ? getPageSize()
                                                            : getRows();
    }
    /// Entries of the lookup table that the rows need.
    int64_t getNumPages() const { return getRows() / getRowsPerPage(); }
  }];
}

#endif // KVCACHE_IR_KVCACHETYPES_TD
