//===- KVCacheAttrs.td - Attributes of the kvcache dialect -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_KVCACHEATTRS_TD
#define KVCACHE_IR_KVCACHEATTRS_TD

include "kvcache/IR/KVCacheDialect.td"
include "kvcache/IR/KVCacheInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def KVCache_ParamsAttr : AttrDef<KVCache_Dialect, "Params"> {
  let mnemonic = "params";
  let summary = "Heads and head size of a cache";
  let description = [{
    The shape of a token in a cache: `num_heads` key-value heads of `head_size`
    elements each. `is_mla = true` means multi-head latent attention: each layer
    has one latent cache and no values.

    Constraints:
    - (C1) `num_heads` and `head_size` are positive, and their product, the
      number of elements of a row, is below 2^31.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    #mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
    ```
  }];
  let parameters = (ins
    "int64_t":$num_heads,
    "int64_t":$head_size,
    DefaultValuedParameter<"bool", "false">:$is_mla
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def KVCache_LayoutAttr : AttrDef<KVCache_Dialect, "Layout",
    [KVCache_LayoutAttrInterface]> {
  let mnemonic = "layout";
  let summary = "Strides inside the pages of a cache";
  let description = [{
    The distances of tokens and of heads in a page, in stored elements: bytes
    for 4-bit caches, scales for `scale_layout`. The elements of a head are
    consecutive. `head = ?` means that the stride is that of the memref, known
    only at run time. With one head, there is no `head`.

    `role = n` is the distance from keys to values. It is given only where it is
    less aligned than tokens and heads, as where a scale follows each head of a
    key and a value side by side. Accesses then assume the alignment of `role`.

    `interleave = n`, for scales, exchanges tokens and quantization groups: of
    every n tokens of a head, the scales of a group follow each other. Scale s of
    token t is where scale `(s mod w) * n + t mod n` of token
    `t - t mod n + s div w` would be otherwise, with w the number of groups
    divided by n. FlashInfer and TensorRT-LLM interleave the scales of NVFP4
    values by 4.

    Types print a layout without the name of the attribute:
    `layout = [token = 256, head = 16384]`. The constraints are those of the
    types.

    Example:

    ```mlir
    #side_by_side = #kvcache.layout<token = 256, head = 16384>
    #open = #kvcache.layout<token = 256, head = ?>
    #one_head = #kvcache.layout<token = 656>
    #interleaved = #kvcache.layout<token = 8, head = 512, interleave = 4>
    #scale_per_head = #kvcache.layout<token = 264, head = 16896, role = 132>
    ```
  }];
  let parameters = (ins
    "int64_t":$token_stride,
    "int64_t":$head_stride,
    "int64_t":$interleave,
    "int64_t":$role_stride
  );
  let builders = [
    AttrBuilder<(ins "int64_t":$tokenStride, "int64_t":$headStride,
                     CArg<"int64_t", "1">:$interleave), [{
      return $_get($_ctxt, tokenStride, headStride, interleave,
                   /*roleStride=*/0);
    }]>
  ];
  let assemblyFormat = [{
    `<` custom<Strides>($token_stride, $head_stride, $interleave, $role_stride)
    `>`
  }];
}

def KVCache_Key : I32EnumAttrCase<"Key", 0, "key">;
def KVCache_Value : I32EnumAttrCase<"Value", 1, "value">;
def KVCache_Role : I32EnumAttr<"Role", "keys or values", [
    KVCache_Key, KVCache_Value]> {
  let cppNamespace = "::mlir::kvcache";
}

def KVCache_ExtentBatch : I32EnumAttrCase<"Batch", 0, "batch">;
def KVCache_ExtentLayers : I32EnumAttrCase<"Layers", 1, "layers">;
def KVCache_ExtentPages : I32EnumAttrCase<"Pages", 2, "pages">;
def KVCache_ExtentTokens : I32EnumAttrCase<"Tokens", 3, "tokens">;
def KVCache_ExtentPageSize : I32EnumAttrCase<"PageSize", 4, "page_size">;
def KVCache_ExtentPageStride : I32EnumAttrCase<"PageStride", 5, "page_stride">;
def KVCache_Extent : I32EnumAttr<"Extent", "a size known at run time", [
    KVCache_ExtentBatch, KVCache_ExtentLayers, KVCache_ExtentPages,
    KVCache_ExtentTokens, KVCache_ExtentPageSize, KVCache_ExtentPageStride]> {
  let cppNamespace = "::mlir::kvcache";
}

def KVCache_SwizzleNone : I32EnumAttrCase<"None", 0, "none">;
def KVCache_Swizzle32B : I32EnumAttrCase<"Span32", 1, "swizzle_32b">;
def KVCache_Swizzle64B : I32EnumAttrCase<"Span64", 2, "swizzle_64b">;
def KVCache_Swizzle128B : I32EnumAttrCase<"Span128", 3, "swizzle_128b">;
def KVCache_Swizzle : I32EnumAttr<"Swizzle",
    "layout of tiles in shared memory", [
    KVCache_SwizzleNone, KVCache_Swizzle32B, KVCache_Swizzle64B,
    KVCache_Swizzle128B]> {
  let cppNamespace = "::mlir::kvcache";
  let genSpecializedAttr = 0;
}
def KVCache_SwizzleAttr : EnumAttr<KVCache_Dialect, KVCache_Swizzle, "swizzle"> {
  let assemblyFormat = "`<` $value `>`";
}

def KVCache_DenseTable : I32EnumAttrCase<"Dense", 0, "dense">;
def KVCache_CSRTable : I32EnumAttrCase<"CSR", 1, "csr">;
def KVCache_RowsTable : I32EnumAttrCase<"Rows", 2, "rows">;
def KVCache_TableKind : I32EnumAttr<"TableKind", "form of a lookup table", [
    KVCache_DenseTable, KVCache_CSRTable, KVCache_RowsTable]> {
  let cppNamespace = "::mlir::kvcache";
  let genSpecializedAttr = 0;
}

def KVCache_KMajor : I32EnumAttrCase<"K", 0, "k_major">;
def KVCache_MNMajor : I32EnumAttrCase<"MN", 1, "mn_major">;
def KVCache_Major : I32EnumAttr<"Major",
    "index of a matrix product that runs along the rows of a tile", [
    KVCache_KMajor, KVCache_MNMajor]> {
  let cppNamespace = "::mlir::kvcache";
  let genSpecializedAttr = 0;
}
def KVCache_MajorAttr : EnumAttr<KVCache_Dialect, KVCache_Major, "major"> {
  let assemblyFormat = "`<` $value `>`";
}

def KVCache_EvictNormal : I32EnumAttrCase<"Normal", 0, "evict_normal">;
def KVCache_EvictFirst : I32EnumAttrCase<"First", 1, "evict_first">;
def KVCache_EvictLast : I32EnumAttrCase<"Last", 2, "evict_last">;
def KVCache_Eviction : I32EnumAttr<"Eviction",
    "eviction priority in the L2 cache", [
    KVCache_EvictNormal, KVCache_EvictFirst, KVCache_EvictLast]> {
  let cppNamespace = "::mlir::kvcache";
  let genSpecializedAttr = 0;
}
def KVCache_EvictionAttr
    : EnumAttr<KVCache_Dialect, KVCache_Eviction, "eviction"> {
  let assemblyFormat = "`<` $value `>`";
}

def KVCache_CopyPlain : I32EnumAttrCase<"Plain", 0, "plain">;
def KVCache_CopyAsync : I32EnumAttrCase<"CpAsync", 1, "cp_async">;
def KVCache_CopyTensorBoxes
    : I32EnumAttrCase<"TensorBoxes", 2, "tensor_boxes">;
def KVCache_CopyTensorRows : I32EnumAttrCase<"TensorRows", 3, "tensor_rows">;
def KVCache_CopyBulkRows : I32EnumAttrCase<"BulkRows", 4, "bulk_rows">;
def KVCache_CopyKind : I32EnumAttr<"CopyKind",
    "kind of instructions that copy into a tile", [
    KVCache_CopyPlain, KVCache_CopyAsync, KVCache_CopyTensorBoxes,
    KVCache_CopyTensorRows, KVCache_CopyBulkRows]> {
  let cppNamespace = "::mlir::kvcache";
  let genSpecializedAttr = 0;
}
def KVCache_CopyKindAttr : EnumAttr<KVCache_Dialect, KVCache_CopyKind, "copy"> {
  let summary = "How a copy into a tile is done";
  let description = [{
    - `plain`: loads and stores of the threads.
    - `cp_async`: `cp.async` of 16, 8 or 4 bytes, on sm_80 and newer.
    - `tensor_boxes`: tensor copies (TMA) of boxes of consecutive rows, on sm_90
      and newer.
    - `tensor_rows`: tensor copies of rows with any distance: `gather4` of four
      rows on sm_100 and newer, and one row at a time on sm_90.
    - `bulk_rows`: bulk copies of single rows, on sm_90 and newer.

    Example:

    ```mlir
    #boxes = #kvcache.copy<tensor_boxes>
    ```
  }];
  let assemblyFormat = "`<` $value `>`";
}

def KVCache_SplitAttr : AttrDef<KVCache_Dialect, "Split"> {
  let mnemonic = "split";
  let summary = "How the keys of a query row are split";
  let description = [{
    A split has `keys` keys, or more where a query row would have more than
    `max` splits. Only the queries of sequences with at most `rows` new tokens
    are split.

    The query rows of a thread block have the same splits. If they see T tokens,
    a split has the least number of whole tiles that is at least `keys` and
    `T / max` tokens; without tensor cores, a tile is one token.

    Constraints:
    - (C1) each number is from 1 to 2^20.

    Example:

    ```mlir
    #decode = #kvcache.split<keys = 256, max = 32, rows = 1>
    #speculation = #kvcache.split<rows = 4>
    ```
  }];
  let parameters = (ins
    "int64_t":$keys,
    "int64_t":$max,
    "int64_t":$rows
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Returns the split of an op without one, whose numbers are those that the
    /// text may leave out.
    static SplitAttr getDefault(MLIRContext *context);
  }];
}

def KVCache_MmaNone : I32EnumAttrCase<"None", 0, "none">;
def KVCache_MmaSync : I32EnumAttrCase<"Sync", 1, "mma_sync">;
def KVCache_MmaWgmma : I32EnumAttrCase<"Wgmma", 2, "wgmma">;
def KVCache_MmaTcgen05 : I32EnumAttrCase<"Tcgen05", 3, "tcgen05">;
def KVCache_MmaKind : I32EnumAttr<"MmaKind", "matrix instruction", [
    KVCache_MmaNone, KVCache_MmaSync, KVCache_MmaWgmma, KVCache_MmaTcgen05]> {
  let cppNamespace = "::mlir::kvcache";
  let genSpecializedAttr = 0;
}

def KVCache_DequantTile : I32EnumAttrCase<"Tile", 0, "tile">;
def KVCache_DequantRegisters : I32EnumAttrCase<"Registers", 1, "registers">;
def KVCache_DequantPlace : I32EnumAttr<"DequantPlace",
    "where stored elements are converted", [
    KVCache_DequantTile, KVCache_DequantRegisters]> {
  let cppNamespace = "::mlir::kvcache";
  let genSpecializedAttr = 0;
}

def KVCache_MergeLaunch : I32EnumAttrCase<"Launch", 0, "launch">;
def KVCache_MergeCluster : I32EnumAttrCase<"Cluster", 1, "cluster">;
def KVCache_SplitMerge : I32EnumAttr<"SplitMerge", "where splits are merged", [
    KVCache_MergeLaunch, KVCache_MergeCluster]> {
  let cppNamespace = "::mlir::kvcache";
  let genSpecializedAttr = 0;
}

def KVCache_AttentionConfigAttr
    : AttrDef<KVCache_Dialect, "AttentionConfig"> {
  let mnemonic = "attention_config";
  let summary = "How a kernel of attention computes";
  let description = [{
    A config changes the speed and the rounding of `kvcache.attention`. Each field
    that is set is kept, or refused for the chip. Fields that are not set are
    chosen by tables; `kvcache-plan-attention` shows the choice.

    - `mma`: the matrix instruction: `none`, `mma_sync`, `wgmma` (sm_90a) or
      `tcgen05` (chips with tensor memory). With `none`, a warp computes one
      query for some of its heads.
    - `swap_ab`: whether `wgmma` has keys and values as its left operand, so that
      query rows are its columns. It is for thread blocks of 16 or 32 rows and
      values of a multiple of 64 elements. Other kernels have `false`.
    - `rows`: query rows of a thread block: 16, 32, 64 or 128, or 256 for the
      schedule `roles`. A thread block has tokens of one sequence, for all query
      heads of a KV head or some.
    - `keys`: keys of a tile, a multiple of 16.
    - `stages`: tiles of keys, and of values, in shared memory.
    - `acc_shares`: warps, or warpgroups, that share the accumulator of a query
      row.
    - `dequant`: where stored elements of 8 bits or less are converted: into a
      `tile` of 16-bit elements, or in `registers`.
    - `raw_stages`: tiles of stored elements that copies bring, before threads
      convert them; 0 if threads load and convert.
    - `convert_loads`: the loads of a thread in flight while it converts. Kernels
      whose threads convert no elements into tiles have none.
    - `persistent`: thread blocks of a persistent kernel, which take work items
      by a counter in the workspace; 0 for a grid with one for each work item. It
      is for an `mma` other than `none`.
    - `l2_hint`: the priority of the cache's lines in the L2 cache. Copies of
      tiles have it as `async_load_tile` has, and other loads are `nontemporal`
      with `evict_first`.
    - `schedule`: the overlap of a tile's products, as `#kvcache.schedule` says.
      With `pipelined` and `ping_pong`, a warpgroup of its own copies tiles.
      `seesaw` is for latent caches, `wgmma`, and 64 rows: each of two
      warpgroups computes the scores of every second tile. `roles` is for
      prompts, `tcgen05`, and 256 rows: two query tiles are in flight, and warps
      copy, multiply, or compute the softmax. `pair` is for latent caches,
      `tcgen05`, and 64 rows: two thread blocks multiply together.
    - `merge`: where splits are merged: by a second `launch`, or by the `cluster`
      of thread blocks that compute the splits of the same query rows. They read
      each other's shared memory, so there is one launch and no workspace. The
      sums and their order are those of the second launch. `cluster` is for sm_90
      and newer and `mma_sync`, and only where it is set.

    Constraints:
    - (C1) `rows` is 16, 32, 64, 128 or 256; `keys` is a multiple of 16 up to 128;
      `stages` and `convert_loads` are from 1 to 16; `acc_shares` is 1 or 2;
      `raw_stages` is at most 2; `persistent` is at most 2^20.
    - (C2) `none` has no other field than `l2_hint`.
    - (C3) `swap_ab = true` is for at most 32 rows.
    - (C4) `merge = cluster` excludes `persistent` above 0.
    - (C5) `merge = cluster` excludes `wgmma` and `tcgen05`.

    Example:

    ```mlir
    #prompts = #kvcache.attention_config<mma = wgmma, rows = 128, keys = 64>
    #latent = #kvcache.attention_config<swap_ab = true, l2_hint = evict_first>
    ```
  }];
  let parameters = (ins "::mlir::kvcache::AttentionConfig":$config);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Makes the config that `getNumbers` encodes.
    static AttentionConfigAttr
    getChecked(function_ref<InFlightDiagnostic()> emitError,
               MLIRContext *context, ArrayRef<int64_t> numbers);
    SmallVector<int64_t> getNumbers() const { return getConfig().encode(); }
  }];
}

#endif // KVCACHE_IR_KVCACHEATTRS_TD
