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

// Made on the host: a kernel takes descriptors as parameters. The type of a
// descriptor follows from the op's attributes.

defvar KVCache_PositiveI64 = ConfinedAttr<I64Attr, [IntPositive]>;
defvar KVCache_L2Promotion =
  DefaultValuedAttr<ConfinedAttr<I64Attr, [
    AttrConstraint<CPred<"::llvm::is_contained({0, 64, 128, 256}, "
                         "::llvm::cast<::mlir::IntegerAttr>($_self).getInt())">,
                   "whose value is 0, 64, 128 or 256">]>, "0">;
defvar KVCache_OptionalSwizzle =
  DefaultValuedAttr<KVCache_SwizzleAttr, "::mlir::kvcache::Swizzle::None">;

/// An op `create_…_tma_tile`, with the attributes that say its geometry.
class KVCache_TensorMapOp<string mnemonic, Type viewType, dag geometry>
    : KVCache_Op<mnemonic, [Pure,
        InferTypeOpAdaptor,
        DeclareOpInterfaceMethods<KVCache_TensorMapOpInterface>]> {
  let arguments = !con((ins Arg<viewType, "the view">:$cache), geometry, (ins
    KVCache_L2Promotion:$l2_promotion));
  let results = (outs
    Res<KVCache_TMATileType, "its descriptor">:$descriptor);
  let assemblyFormat = [{
    $cache attr-dict `:` qualified(type($cache)) `->`
    qualified(type($descriptor))
  }];
  let extraClassDeclaration = [{
    /// What a diagnostic or a description calls this geometry, such as `paged`.
    static ::llvm::StringRef getKind() {
      return getOperationName().drop_front(sizeof("kvcache.create_") - 1)
          .drop_back(sizeof("tma_tile") - 1).rtrim('_');
    }
  }];
}

def KVCache_CreateTMATileOp : KVCache_TensorMapOp<"create_tma_tile",
    KVCache_AnyView, (ins
      KVCache_PositiveI64:$rows,
      DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$columns,
      DefaultValuedAttr<KVCache_MajorAttr, "::mlir::kvcache::Major::K">:$major,
      KVCache_OptionalSwizzle:$swizzle)> {
  let summary = "Descriptor of rows of a cache";
  let description = [{
    Of a paged cache, a span of `min(rows, page_size)` rows of a head: sizes
    (E, H, rows of the view), box (span, 1, rows). The coordinates are the
    element, the head and the row, as from `row_index` and `tma_row`.

    Of a continuous cache, a matrix: sizes (H * E, rows of the view). K-major
    the box is (span, rows); MN-major (span, rows) if `columns` is the span,
    else (span, 8).

    A span has 16, 32, 64 or 128 bytes by the swizzle.

    Constraints:
    - (C1) the descriptor keeps the limits of the hardware: sides of the box
      from 1 to 256, strides of a multiple of 16 bytes.
    - (C2) the view is not of scales: those have `create_scale_tma_tile`.
    - (C3) `columns` and `major` are for a continuous cache; `mn_major` takes
      `swizzle_128b` and `columns`.
    - (C4) the page size of a paged cache is static.

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
      KVCache_OptionalSwizzle:$swizzle)> {
  let summary = "Descriptor of rows of a page";
  let description = [{
    Sizes (E, H, P, NB), box (span, 1, rows, 1), without a swizzle
    (columns, 1, rows, 1). The coordinates are the element, the head, the row in
    the page, and the page, as from `tma_coords`: they stay small in caches of
    more than 2^31 rows.

    Constraints:
    - (C1) the descriptor keeps the limits of the hardware.
    - (C2) the view is one of a paged cache, and not of scales.
    - (C3) `rows` divides the page size.
    - (C4) the page size is static.

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
      KVCache_PositiveI64:$rows,
      DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$columns,
      KVCache_OptionalSwizzle:$swizzle)> {
  let summary = "Descriptor of rows of which the last may be missing";
  let description = [{
    Sizes (E, rows, H, rows of the view + 1) from `rows` rows before the view
    on, box (span, rows, 1, 1). With the coordinates (d, rows - v, h, r + v) a
    copy takes the v rows of head h from row r on, and `rows - v` rows of zeros:
    always as many bytes. A store drops these rows.

    Without a swizzle, the inner side of the box is `columns`, if given.

    Constraints:
    - (C1) the descriptor keeps the limits of the hardware.
    - (C2) the view is not of scales.
    - (C3) `columns` is given without a swizzle only.

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
  let summary = "Descriptor of the rope behind MLA rows";
  let description = [{
    A row that has `padded_depth` bytes of content and then `columns` bf16 of
    rope: sizes (columns, H, rows of the view), box (span, 1, rows), with at
    most the rows of a page.

    Constraints:
    - (C1) the descriptor keeps the limits of the hardware.
    - (C2) the view is not of scales.
    - (C3) the cache has one head of one-byte elements, and
      `padded_depth + 2 * columns` of them.
    - (C4) the page size of a paged cache is static.

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
      KVCache_PositiveI64:$tile_height, KVCache_PositiveI64:$tile_width,
      OptionalAttr<KVCache_PositiveI64>:$tile_stride,
      OptionalAttr<TypeAttr>:$dtype, KVCache_OptionalSwizzle:$swizzle)> {
  let summary = "Descriptor of single rows of a cache";
  let description = [{
    Sizes (tile_stride, rows of the view), box (w, 1): w is the tile's width
    without a swizzle, else a span. With `dtype` the descriptor counts in
    elements of this type, the width and the stride too: rows of 576 bytes fit
    a box of 72 64-bit integers, where one of bytes ends at 256.

    The stride is that of a row unless given.

    Constraints:
    - (C1) the descriptor keeps the limits of the hardware.
    - (C2) the view is not of scales.
    - (C3) `tile_height` is a multiple of 4, and `tile_stride` at least
      `tile_width`.
    - (C4) `tile_stride` elements are a row of the cache.

    Example:

    ```mlir
    #mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
    !cache = !kvcache.paged<f8E4M3FN, #mla, page_size = 64>
    !desc = !kvcache.tma_tile<72x1xi64>

    func.func @create(%k: !cache) -> !desc {
      %desc = kvcache.create_gather4_tma_tile %k
                {tile_height = 64, tile_width = 72, dtype = i64}
                : !cache -> !desc
      return %desc : !desc
    }
    ```
  }];
  let hasVerifier = 1;
}

def KVCache_CreateRopeGather4TMATileOp : KVCache_TensorMapOp<
    "create_rope_gather4_tma_tile", KVCache_AnyView, (ins
      KVCache_PositiveI64:$tile_height, KVCache_PositiveI64:$tile_width,
      KVCache_PositiveI64:$padded_depth, KVCache_OptionalSwizzle:$swizzle)> {
  let summary = "Descriptor of the rope behind single MLA rows";
  let description = [{
    A row that has `padded_depth` bytes of content and then `tile_width` bf16 of
    rope: sizes (tile_width, rows of the view), box (w, 1): w is the tile's
    width without a swizzle, else a span.

    Constraints:
    - (C1) the descriptor keeps the limits of the hardware.
    - (C2) the view is not of scales.
    - (C3) the cache has one head of one-byte elements, and
      `padded_depth + 2 * tile_width` of them.
    - (C4) `tile_height` is a multiple of 4.

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
  let hasVerifier = 1;
}

def KVCache_CreateScaleTMATileOp : KVCache_TensorMapOp<
    "create_scale_tma_tile", KVCache_AnyView, (ins
      KVCache_PositiveI64:$rows)> {
  let summary = "Descriptor of the scales of a page";
  let description = [{
    Sizes (P, NB), box (rows, 1), of a cache whose tokens have a scale each. The
    coordinates are the row in the page and the page, as from
    `scale_tma_coords`.

    Constraints:
    - (C1) the descriptor keeps the limits of the hardware: `rows` scales are a
      multiple of 16 bytes.
    - (C2) the view is one of scales.
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
  let summary = "Descriptor of a tensor";
  let description = [{
    What the ops above become: a tensor at `offset` bytes from `base` with these
    sizes and strides, innermost first; the innermost stride is 1.

    Constraints:
    - (C1) there is a size for each side of the box, and a stride for each but
      the first.

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
    Arg<AnyMemRef, "where the view begins">:$base,
    Arg<Variadic<Index>, "the sizes in elements">:$sizes,
    Arg<Variadic<Index>, "the distances in elements">:$strides,
    DefaultValuedAttr<I64Attr, "0">:$offset);
  let results = (outs
    Res<KVCache_TMATileType, "its descriptor">:$descriptor);
  let assemblyFormat = [{
    $base `sizes` `[` $sizes `]` `strides` `[` $strides `]` attr-dict `:`
    type($base) `->` qualified(type($descriptor))
  }];
  let hasVerifier = 1;
}

#endif // KVCACHE_IR_TENSORMAPOPS_TD
