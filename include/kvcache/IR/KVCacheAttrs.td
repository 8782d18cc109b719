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
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def KVCache_ParamsAttr : AttrDef<KVCache_Dialect, "Params"> {
  let mnemonic = "params";
  let summary = "Heads and head size of a cache";
  let description = [{
    What a cache's dtype and layout do not say: `num_heads` key-value heads of
    `head_size` elements each. `is_mla = true` is multi-head latent attention:
    one latent cache per layer, and no values.

    Constraints:
    - (C1) `num_heads` and `head_size` are positive, and a row of
      `num_heads * head_size` elements has fewer than 2^31.

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
def KVCache_Extent : I32EnumAttr<"Extent", "a size known at run time", [
    KVCache_ExtentBatch, KVCache_ExtentLayers, KVCache_ExtentPages,
    KVCache_ExtentTokens]> {
  let cppNamespace = "::mlir::kvcache";
}

def KVCache_SwizzleNone : I32EnumAttrCase<"None", 0, "none">;
def KVCache_Swizzle32B : I32EnumAttrCase<"Span32", 1, "swizzle_32b">;
def KVCache_Swizzle64B : I32EnumAttrCase<"Span64", 2, "swizzle_64b">;
def KVCache_Swizzle128B : I32EnumAttrCase<"Span128", 3, "swizzle_128b">;
def KVCache_Swizzle : I32EnumAttr<"Swizzle", "how tiles lie in shared memory", [
    KVCache_SwizzleNone, KVCache_Swizzle32B, KVCache_Swizzle64B,
    KVCache_Swizzle128B]> {
  let cppNamespace = "::mlir::kvcache";
}

#endif // KVCACHE_IR_KVCACHEATTRS_TD
