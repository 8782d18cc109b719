//===- QuantizationOps.td - Quantize and dequantize -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_QUANTIZATIONOPS_TD
#define KVCACHE_IR_QUANTIZATIONOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Types of quantized elements, of scales, and of what they stand for.
class KVCache_LanesOf<Type lane, string lanes>
    : Type<And<[KVCache_Elements.predicate,
                SubstLeaves<"$_self", "::mlir::kvcache::getLaneType($_self)",
                            lane.predicate>]>, lanes>;

def KVCache_QuantizedLanes : KVCache_LanesOf<
    AnyTypeOf<[F8E4M3FN, F8E5M2, I8, F4E2M1FN]>,
    "f8E4M3FN, f8E5M2, i8 or f4E2M1FN, or a 1-D vector of them">;
def KVCache_ScaleLanes : KVCache_LanesOf<
    AnyTypeOf<[F32, F16, BF16, F8E8M0FNU, F8E4M3FN]>,
    "f32, f16, bf16, f8E8M0FNU or f8E4M3FN, or a 1-D vector of them">;
def KVCache_WideLanes : KVCache_LanesOf<
    AnyTypeOf<[F64, F32, F16, BF16]>,
    "f64, f32, f16 or bf16, or a 1-D vector of them">;
def KVCache_UnquantizedLanes : KVCache_LanesOf<
    AnyTypeOf<[F32, F16, BF16]>,
    "f32, f16 or bf16, or a 1-D vector of them">;

// Pure without `lanes`. With it the threads of a warp meet in the op, so that it
// must not move into or out of a branch that only some of them take.
def KVCache_QuantizeOp : KVCache_Op<"quantize", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<ConditionallySpeculatable>]> {
  let summary = "Quantizes groups of values and computes their scales";
  let description = [{
    The values form one group, or with a vector of n scales n groups of
    neighbouring lanes. For each group, in f32:

    - amax is the largest magnitude.
    - The scale is `amax / max`, where max is the largest number of the
      quantized type: 448 for f8E4M3FN, 57344 for f8E5M2, 127 for i8, 6 for
      f4E2M1FN. With `tensor_scale` this is divided by it. It is rounded to the
      scale type, to nearest even, and to f8E8M0FNU up to the next power of two.
      It is at least the smallest positive number of the scale type and at most
      the largest, 1 where amax is 0, and NaN where the group holds a NaN or an
      infinity.
    - Values are divided by the rounded scale, times `tensor_scale`, saturated,
      and rounded to nearest even. i8 is within 127 of 0. A divisor of 0, which
      only a tiny `tensor_scale` gives, counts as 1.

    `tensor_scale` is positive and finite.

    With `lanes = n` a group is spread over n neighbouring threads of a warp,
    n a power of two: each passes its part, and all get the scale. All of them
    take part, and so do all threads of their warp. GPU code only.

    Constraints:
    - (C1) `quantized` has as many lanes as `value`, and an even number of
      4-bit ones.
    - (C2) the lanes of `value` are a multiple of those of `scale`.
    - (C3) `lanes`, if given, is a power of two up to 32, with one scale.
    - (C4) `tensor_scale` is given only with scales of f8E4M3FN.

    Example:

    ```mlir
    func.func @quantize(%x: vector<128xbf16>)
        -> (vector<128xf8E4M3FN>, vector<4xf32>) {
      %w, %s = kvcache.quantize %x
                 : vector<128xbf16> -> vector<128xf8E4M3FN>, vector<4xf32>
      return %w, %s : vector<128xf8E4M3FN>, vector<4xf32>
    }
    ```
  }];
  let arguments = !con(
    (ins Arg<KVCache_UnquantizedLanes, "the values">:$value),
    KVCache_TensorScaleArgument,
    (ins OptionalAttr<I64Attr>:$lanes));
  let results = (outs
    Res<KVCache_QuantizedLanes, "the quantized values">:$quantized,
    Res<KVCache_ScaleLanes, "the scale of each group">:$scale
  );
  let assemblyFormat = [{
    $value (`tensor_scale` $tensor_scale^)? attr-dict `:` type($value) `->`
    type($quantized) `,` type($scale)
  }];
  let hasVerifier = 1;
}

def KVCache_DequantizeOp : KVCache_Op<"dequantize", [Pure]> {
  let summary = "Multiplies quantized values by their scales";
  let description = [{
    Values are cast to the scale type, multiplied by the scale there, and cast
    to the result type, to nearest even. Scales of 8 bits are widened to f32
    together with the values. Each of n scales belongs to an n-th of the lanes.
    With `tensor_scale` each scale is first multiplied by it. Products with
    scales of f16 are f16: those beyond 65504 become infinite.

    Constraints:
    - (C1) `result` has as many lanes as `quantized`.
    - (C2) the lanes of `quantized` are a multiple of those of `scale`.
    - (C3) `tensor_scale` is given only with scales of f8E4M3FN.

    Example:

    ```mlir
    func.func @dequantize(%w: vector<16xf8E4M3FN>, %s: f32) -> vector<16xbf16> {
      %x = kvcache.dequantize %w, %s
             : vector<16xf8E4M3FN>, f32 -> vector<16xbf16>
      return %x : vector<16xbf16>
    }
    ```
  }];
  let arguments = !con(
    (ins Arg<KVCache_QuantizedLanes, "the quantized values">:$quantized,
         Arg<KVCache_ScaleLanes, "the scale of each group">:$scale),
    KVCache_TensorScaleArgument);
  let results = (outs Res<KVCache_WideLanes, "the values">:$result);
  let assemblyFormat = [{
    $quantized `,` $scale (`tensor_scale` $tensor_scale^)? attr-dict `:`
    type($quantized) `,` type($scale) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

def KVCache_LoadQuantizedOp : KVCache_Op<"load_quantized", [
    KVCache_IndexedAccess<>, MemoryEffects<[MemRead]>]> {
  let summary = "Reads elements of a quantized cache as they are stored";
  let description = [{
    Reads the element `(b, h, t, d)`, or as many consecutive ones from it on as
    the result vector has lanes, without their scales; `d` is a multiple of
    their number. `nontemporal` is that of `load`.

    Constraints:
    - (C1) the result's element type is the cache's.
    - (C2) the result has at most `head_size` lanes, and an even number of
      4-bit ones.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64,
                            scale = f32, granularity = 128>

    func.func @load(%k: !cache, %b: index, %h: index, %t: index, %d: index)
        -> vector<16xf8E4M3FN> {
      %w = kvcache.load_quantized %k[%b, %h, %t, %d]
             : !cache -> vector<16xf8E4M3FN>
      return %w : vector<16xf8E4M3FN>
    }
    ```
  }];
  let arguments = !con((ins Arg<KVCache_AnyQuantized, "the cache">:$cache),
                       KVCache_IndexArguments, KVCache_PageArgument,
                       KVCache_NontemporalArgument);
  let results = (outs Res<KVCache_QuantizedLanes, "the elements">:$result);
  let assemblyFormat = [{
    $cache `[` $batch `,` $head `,` $token `,` $element `]` (`page` $page^)?
    attr-dict `:` qualified(type($cache)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def KVCache_StoreQuantizedOp : KVCache_Op<"store_quantized", [
    KVCache_IndexedAccess<["accessesScales", "getScalePageOperand"]>,
    AttrSizedOperandSegments, MemoryEffects<[MemWrite]>]> {
  let summary = "Quantizes whole groups and writes elements and scales";
  let description = [{
    Quantizes the values as `quantize` does, group by group, and writes the
    elements from `(b, h, t, d)` on, and their scales; `d` is a multiple of the
    number of values. `nontemporal` is that of `load`.

    Constraints:
    - (C1) the number of values is a multiple of the granularity and at most
      `head_size`, or is `head_size`, whose last group may be shorter.
    - (C2) an even number of 4-bit elements is written.
    - (C3) `tensor_scale` is given only for scales of f8E4M3FN.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64,
                            scale = f32, granularity = 32>

    func.func @store(%v: vector<128xbf16>, %k: !cache, %b: index, %h: index,
                     %t: index, %d: index) {
      kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<128xbf16>, !cache
      return
    }
    ```
  }];
  let arguments = !con(
    (ins Arg<KVCache_UnquantizedLanes, "the values">:$value,
         Arg<KVCache_AnyQuantized, "the cache">:$cache),
    KVCache_IndexArguments, KVCache_PageArgument, KVCache_ScalePageArgument,
    KVCache_TensorScaleArgument, KVCache_NontemporalArgument);
  let assemblyFormat = [{
    $value `,` $cache `[` $batch `,` $head `,` $token `,` $element `]`
    (`page` $page^)? (`scale_page` $scale_page^)?
    (`tensor_scale` $tensor_scale^)? attr-dict `:` type($value) `,`
    qualified(type($cache))
  }];
  let hasVerifier = 1;
}

#endif // KVCACHE_IR_QUANTIZATIONOPS_TD
