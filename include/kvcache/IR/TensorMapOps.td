//===- TensorMapOps.td - Descriptors of caches -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_TENSORMAPOPS_TD
#define KVCACHE_IR_TENSORMAPOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

// The host executes these ops and passes the descriptors to kernels as
// parameters. The type of a descriptor follows from the attributes of the op.

defvar KVCache_PositiveI64 = ConfinedAttr<I64Attr, [IntPositive]>;
defvar KVCache_L2Promotion =
  DefaultValuedAttr<ConfinedAttr<I64Attr, [
    AttrConstraint<CPred<"::llvm::is_contained({0, 64, 128, 256}, "
                         "::llvm::cast<::mlir::IntegerAttr>($_self).getInt())">,
                   "whose value is 0, 64, 128 or 256">]>, "0">;
defvar KVCache_OptionalColumns =
  DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">;
defvar KVCache_TileHeight = DefaultValuedAttr<KVCache_PositiveI64, "4">;
defvar KVCache_OptionalElement = OptionalAttr<TypeAttr>;
defvar KVCache_OptionalSwizzle =
  DefaultValuedAttr<KVCache_SwizzleAttr, "::mlir::kvcache::Swizzle::None">;

/// An op `create_…_tma_tile`, with the attributes of its geometry.
class KVCache_TensorMapOp<string mnemonic, Type viewType, dag geometry>
    : KVCache_Op<mnemonic, [Pure,
        InferTypeOpAdaptor,
        DeclareOpInterfaceMethods<KVCache_TensorMapOpInterface>]> {
  let arguments = !con((ins Arg<viewType, "the view">:$cache), geometry, (ins
    KVCache_L2Promotion:$l2_promotion));
  let results = (outs
    Res<KVCache_TMATileType, "the descriptor">:$descriptor);
  let assemblyFormat = [{
    $cache attr-dict `:` qualified(type($cache)) `->`
    qualified(type($descriptor))
  }];
  let extraClassDeclaration = [{
    /// The name of this geometry in diagnostics, such as `paged`.
    static ::llvm::StringRef getKind() {
      return getOperationName().drop_front(sizeof("kvcache.create_") - 1)
          .drop_back(sizeof("tma_tile") - 1).rtrim('_');
    }
  }];
}

def KVCache_CreateTMATileOp : KVCache_TensorMapOp<"create_tma_tile",
    KVCache_AnyView, (ins
      KVCache_PositiveI64:$rows, KVCache_OptionalColumns:$columns,
      DefaultValuedAttr<KVCache_MajorAttr, "::mlir::kvcache::Major::K">:$major,
      KVCache_OptionalElement:$dtype, KVCache_OptionalSwizzle:$swizzle)> {
  let summary = "Creates a descriptor of rows of a cache";
  let description = [{
    For a paged cache, the sizes are (E, H, rows of the view), and the box is
    (w, 1, `min(rows, page_size)`): rows of one head. The coordinates are the
    element, the head and the row, as from `row_index` and `tma_row`.

    For a continuous cache, the tensor is a matrix with the sizes (H * E, rows
    of the view). For `k_major`, the box is (w, rows). For `mn_major`, it is
    (w, rows) if `columns` is w, else (w, 8): `tma_load` with `at` loads the
    rows of a tile, eight at a time.

    `columns` is the width of the tile. With a swizzle, w is the span of 32, 64
    or 128 bytes, and a tile has as many chunks as cover the width. Without one,
    a tile is one chunk and w is `columns`, or 16 bytes if it is absent.

    With `dtype`, the descriptor counts elements of this type, and so does
    `columns`. A row of 576 bytes, for example, fits a box of 72 64-bit integers,
    but not a box of bytes, whose sides are at most 256.

    Constraints:
    - (C1) the descriptor is within the limits of the hardware: the sides of the
      box are from 1 to 256, and the strides are multiples of 16 bytes.
    - (C2) the view is not a view of scales; use `create_scale_tma_tile`.
    - (C3) `mn_major` requires a continuous cache and `columns`.
    - (C4) the page size of a paged cache is static.
    - (C5) the distance between pages is a whole number of rows. The lowering
      checks a static distance, the host another one when it creates the
      descriptor.
    - (C6) `columns` is at most the number of stored elements of a head, or of a
      row of a continuous cache, rounded up to whole spans.
    - (C7) heads and rows have a multiple of the bytes of `dtype`, which has 1,
      2, 4 or 8.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>
    !desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>

    func.func @create(%k: !cache) -> !desc {
      %desc = kvcache.create_tma_tile %k
                {rows = 64, swizzle = #kvcache.swizzle<swizzle_128b>}
                : !cache -> !desc
      return %desc : !desc
    }
    ```
  }];
  let hasVerifier = 1;
}

def KVCache_CreatePagedTMATileOp : KVCache_TensorMapOp<
    "create_paged_tma_tile", KVCache_AnyView, (ins
      KVCache_PositiveI64:$rows, KVCache_PositiveI64:$columns,
      KVCache_OptionalElement:$dtype, KVCache_OptionalSwizzle:$swizzle)> {
  let summary = "Creates a descriptor of rows of a page";
  let description = [{
    The sizes are (E, H, P, NB). The box is (span, 1, rows, 1), or
    (columns, 1, rows, 1) without a swizzle. The coordinates are the element,
    the head, the row in the page, and the page, as from `tma_coords`. They fit
    into 32 bits also in caches of more than 2^31 rows. `dtype` is that of
    `create_tma_tile`. The host checks that the distance between pages is a
    multiple of it.

    Constraints:
    - (C1) the descriptor is within the limits of the hardware.
    - (C2) the view is a view of a paged cache, not of scales.
    - (C3) `rows` divides the page size.
    - (C4) the page size is static.
    - (C5) `columns` is at most the number of stored elements of a head, rounded
      up to whole spans.
    - (C6) heads and rows have a multiple of the bytes of `dtype`.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>
    !desc = !kvcache.tma_tile<128x1x16x1xbf16>

    func.func @create(%k: !cache) -> !desc {
      %desc = kvcache.create_paged_tma_tile %k {rows = 16, columns = 128}
                : !cache -> !desc
      return %desc : !desc
    }
    ```
  }];
  let hasVerifier = 1;
}

def KVCache_CreateRaggedTMATileOp : KVCache_TensorMapOp<
    "create_ragged_tma_tile", KVCache_AnyView, (ins
      KVCache_PositiveI64:$rows, KVCache_OptionalColumns:$columns,
      KVCache_OptionalElement:$dtype, KVCache_OptionalSwizzle:$swizzle)> {
  let summary = "Creates a descriptor of rows, some of which may be invalid";
  let description = [{
    The sizes are (E, rows, H, rows of the view + 1), starting `rows` rows
    before the view. The box is (w, rows, 1, 1). With the coordinates (d,
    rows - v, h, r + v), a copy reads v rows of head h from row r on, and fills
    the other `rows - v` rows with zeros. The number of bytes is always the
    same. A store drops the invalid rows.

    `columns` is the width of the tile, and w follows from it as for
    `create_tma_tile`. `dtype` is that of `create_tma_tile`.

    Constraints:
    - (C1) the descriptor is within the limits of the hardware.
    - (C2) the view is not a view of scales.
    - (C3) `columns` is at most the number of stored elements of a head, rounded
      up to whole spans.
    - (C4) the distance between pages is a whole number of rows. The lowering
      checks a static distance, the host another one when it creates the
      descriptor.
    - (C5) heads and rows have a multiple of the bytes of `dtype`.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>
    !desc = !kvcache.tma_tile<64x64x1x1xbf16, swizzle_128b>

    func.func @create(%k: !cache) -> !desc {
      %desc = kvcache.create_ragged_tma_tile %k
                {rows = 64, swizzle = #kvcache.swizzle<swizzle_128b>}
                : !cache -> !desc
      return %desc : !desc
    }
    ```
  }];
  let hasVerifier = 1;
}

def KVCache_CreateRopeTMATileOp : KVCache_TensorMapOp<
    "create_rope_tma_tile", KVCache_AnyView, (ins
      KVCache_PositiveI64:$rows, KVCache_PositiveI64:$columns,
      KVCache_PositiveI64:$padded_depth, KVCache_OptionalSwizzle:$swizzle)> {
  let summary = "Creates a descriptor of the rope part of MLA rows";
  let description = [{
    A row has `padded_depth` bytes of content, then `columns` bf16 elements of
    rope. The sizes are (columns, H, rows of the view). The box is (w, 1, rows)
    with at most the rows of a page. w is the span of the swizzle: 16, 32 or 64
    columns. Without a swizzle, w is 8 columns (16 bytes), so a tile of 64
    columns needs eight copies.

    Constraints:
    - (C1) the descriptor is within the limits of the hardware.
    - (C2) the view is not a view of scales.
    - (C3) the cache has one head of `padded_depth + 2 * columns` elements of
      one byte.
    - (C4) the page size of a paged cache is static.
    - (C5) the distance between pages is a whole number of rows. The lowering
      checks a static distance, the host another one when it creates the
      descriptor.

    Example:

    ```mlir
    #mla = #kvcache.params<num_heads = 1, head_size = 640, is_mla = true>
    !cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>
    !desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>

    func.func @create(%k: !cache) -> !desc {
      %desc = kvcache.create_rope_tma_tile %k
                {rows = 64, columns = 64, padded_depth = 512,
                 swizzle = #kvcache.swizzle<swizzle_128b>} : !cache -> !desc
      return %desc : !desc
    }
    ```
  }];
  let hasVerifier = 1;
}

def KVCache_CreateGather4TMATileOp : KVCache_TensorMapOp<
    "create_gather4_tma_tile", KVCache_AnyView, (ins
      KVCache_TileHeight:$tile_height, KVCache_PositiveI64:$tile_width,
      OptionalAttr<KVCache_PositiveI64>:$tile_stride,
      KVCache_OptionalElement:$dtype, KVCache_OptionalSwizzle:$swizzle)> {
  let summary = "Creates a descriptor of single rows of a cache";
  let description = [{
    The sizes are (tile_stride, rows of the view), and the box is (w, 1), where
    w is `tile_width` without a swizzle, else a span. With `dtype`, the
    descriptor, the width and the stride count elements of this type. A row of
    576 bytes, for example, fits a box of 72 64-bit integers, but not a box of
    bytes, whose sides are at most 256.

    Row r of the descriptor starts r times `tile_stride` after the view. The
    default is `tile_width`: that of a tile of whole rows. A tile of a part of a
    row gives the row as `tile_stride`, so that the rows are those of `tma_row`
    and `row_index`. With a smaller stride, the rows are equal parts of the
    first bytes of the view, such as its heads, as many as the view has rows. A
    view with a layout has the rows of the layout: `tile_stride` is the token
    stride, also by default, and the first size is a row from its first element
    to its last.

    Constraints:
    - (C1) the descriptor is within the limits of the hardware.
    - (C2) the view is not a view of scales.
    - (C3) `tile_height` is a multiple of 4, and `tile_stride` at least
      `tile_width` in a view without a layout.
    - (C4) `tile_stride` is at most a row of the cache, so that all rows of the
      descriptor lie in the view.
    - (C5) the distance between pages is a whole number of rows. The lowering
      checks a static distance, the host another one when it creates the
      descriptor.
    - (C6) of a view with a layout, the stride of heads is static, a row has
      whole elements of the descriptor, `tile_width` is at most a row, and
      `tile_stride` is the token stride.

    Example:

    ```mlir
    #mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
    !cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>
    !rows = !kvcache.tma_tile<72x1xi64>
    !content = !kvcache.tma_tile<64x1xi64>

    func.func @create(%k: !cache) -> (!rows, !content) {
      %rows = kvcache.create_gather4_tma_tile %k
                {tile_height = 64, tile_width = 72, dtype = i64}
                : !cache -> !rows
      %content = kvcache.create_gather4_tma_tile %k
                   {tile_width = 64, tile_stride = 72, dtype = i64}
                   : !cache -> !content
      return %rows, %content : !rows, !content
    }
    ```
  }];
  // Files always have the height.
  let useCustomPropertiesEncoding = 1;
  let hasVerifier = 1;
}

def KVCache_CreateRopeGather4TMATileOp : KVCache_TensorMapOp<
    "create_rope_gather4_tma_tile", KVCache_AnyView, (ins
      KVCache_TileHeight:$tile_height, KVCache_PositiveI64:$tile_width,
      KVCache_PositiveI64:$padded_depth, KVCache_OptionalSwizzle:$swizzle)> {
  let summary = "Creates a descriptor of the rope part of single MLA rows";
  let description = [{
    A row has `padded_depth` bytes of content, then `tile_width` bf16 elements
    of rope. The sizes are (tile_width, rows of the view), and the box is (w,
    1), where w is `tile_width` without a swizzle, else a span.

    Constraints:
    - (C1) the descriptor is within the limits of the hardware.
    - (C2) the view is not a view of scales.
    - (C3) the cache has one head of `padded_depth + 2 * tile_width` elements of
      one byte.
    - (C4) `tile_height` is a multiple of 4.
    - (C5) the distance between pages is a whole number of rows. The lowering
      checks a static distance, the host another one when it creates the
      descriptor.

    Example:

    ```mlir
    #mla = #kvcache.params<num_heads = 1, head_size = 640, is_mla = true>
    !cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>
    !desc = !kvcache.tma_tile<64x1xbf16>

    func.func @create(%k: !cache) -> !desc {
      %desc = kvcache.create_rope_gather4_tma_tile %k
                {tile_height = 64, tile_width = 64, padded_depth = 512}
                : !cache -> !desc
      return %desc : !desc
    }
    ```
  }];
  // Files always have the height.
  let useCustomPropertiesEncoding = 1;
  let hasVerifier = 1;
}

def KVCache_CreateScaleTMATileOp : KVCache_TensorMapOp<
    "create_scale_tma_tile", KVCache_AnyView, (ins
      KVCache_PositiveI64:$rows)> {
  let summary = "Creates a descriptor of the scales of a page";
  let description = [{
    For a cache with one scale per token. The sizes are (P, NB), and the box is
    (rows, 1). The coordinates are the row in the page, and the page, as from
    `scale_tma_coords`.

    Constraints:
    - (C1) the descriptor is within the limits of the hardware: `rows` scales
      have a multiple of 16 bytes.
    - (C2) the view is a view of scales.
    - (C3) a token has one scale.
    - (C4) the page size is static.

    Example:

    ```mlir
    #mla = #kvcache.params<num_heads = 1, head_size = 512, is_mla = true>
    !cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64,
                            scale = f32, granularity = 512>
    !scales = !kvcache.scales<!cache>
    !desc = !kvcache.tma_tile<64x1xf32>

    func.func @create(%s: !scales) -> !desc {
      %desc = kvcache.create_scale_tma_tile %s {rows = 64} : !scales -> !desc
      return %desc : !desc
    }
    ```
  }];
  let hasVerifier = 1;
}

def KVCache_EncodeTensorMapOp : KVCache_Op<"encode_tensor_map", [
    Pure, AttrSizedOperandSegments]> {
  let summary = "Creates a descriptor of a tensor";
  let description = [{
    The tensor starts `offset` bytes after `base` and has these sizes and
    strides, innermost first. The innermost stride is 1. The ops above lower to
    this op.

    Constraints:
    - (C1) the number of sizes is the number of sides of the box, and the number
      of strides is one less.

    Example:

    ```mlir
    !desc = !kvcache.tma_tile<64x64xbf16, swizzle_128b>

    func.func @encode(%base: memref<bf16>, %columns: index, %rows: index)
        -> !desc {
      %desc = kvcache.encode_tensor_map %base sizes [%columns, %rows]
                strides [%columns] : memref<bf16> -> !desc
      return %desc : !desc
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyMemRef, "the base of the view">:$base,
    Arg<Variadic<Index>, "the sizes in elements">:$sizes,
    Arg<Variadic<Index>, "the strides in elements">:$strides,
    DefaultValuedAttr<I64Attr, "0">:$offset);
  let results = (outs
    Res<KVCache_TMATileType, "the descriptor">:$descriptor);
  let assemblyFormat = [{
    $base `sizes` `[` $sizes `]` `strides` `[` $strides `]` attr-dict `:`
    type($base) `->` qualified(type($descriptor))
  }];
  let hasVerifier = 1;
}

#endif // KVCACHE_IR_TENSORMAPOPS_TD
