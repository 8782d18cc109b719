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

/// Types of quantized elements, of scales, and of dequantized values.
class KVCache_LanesOf<Type lane, string lanes>
    : Type<And<[KVCache_Elements.predicate,
                SubstLeaves<"$_self", "::mlir::kvcache::getLaneType($_self)",
                            lane.predicate>]>, lanes>;

def KVCache_QuantizedLanes : KVCache_LanesOf<
    AnyTypeOf<[F8E4M3FN, F8E5M2, I8, F4E2M1FN]>,
    "f8E4M3FN, f8E5M2, i8 or f4E2M1FN, or a 1-D vector of them">;
/// The same, and the elements of caches with zero points.
def KVCache_StoredLanes : KVCache_LanesOf<
    AnyTypeOf<[F8E4M3FN, F8E5M2, I8, F4E2M1FN, I<4>]>,
    "f8E4M3FN, f8E5M2, i8, f4E2M1FN or i4, or a 1-D vector of them">;
def KVCache_ScaleLanes : KVCache_LanesOf<
    AnyTypeOf<[F32, F16, BF16, F8E8M0FNU, F8E4M3FN]>,
    "f32, f16, bf16, f8E8M0FNU or f8E4M3FN, or a 1-D vector of them">;
def KVCache_ZeroPointLanes : KVCache_LanesOf<
    AnyTypeOf<[F32, F16, BF16]>,
    "f32, f16 or bf16, or a 1-D vector of them">;
def KVCache_WideLanes : KVCache_LanesOf<
    AnyTypeOf<[F64, F32, F16, BF16]>,
    "f64, f32, f16 or bf16, or a 1-D vector of them">;
def KVCache_UnquantizedLanes : KVCache_LanesOf<
    AnyTypeOf<[F32, F16, BF16]>,
    "f32, f16 or bf16, or a 1-D vector of them">;

/// Values of consecutive elements, or rows of them: one for each token.
def KVCache_FixedVector2D : Type<
    CPred<"::llvm::isa<::mlir::VectorType>($_self) && "
          "::llvm::cast<::mlir::VectorType>($_self).getRank() == 2 && "
          "!::llvm::cast<::mlir::VectorType>($_self).isScalable()">,
    "2-D vector of fixed sizes">;
def KVCache_UnquantizedRows : Type<
    Or<[KVCache_UnquantizedLanes.predicate,
        And<[KVCache_FixedVector2D.predicate,
             SubstLeaves<"$_self", "::mlir::kvcache::getLaneType($_self)",
                         AnyTypeOf<[F32, F16, BF16]>.predicate>]>]>,
    "f32, f16 or bf16, or a 1-D or 2-D vector of them">;

// Pure without `lanes`. With `lanes`, the threads of a warp exchange values, so
// the op must not move into or out of divergent control flow.
def KVCache_QuantizeOp : KVCache_Op<"quantize", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<ConditionallySpeculatable>]> {
  let summary = "Quantizes groups of values and computes their scales";
  let description = [{
    The values form one quantization group. With a vector of n scales, they form
    n groups of adjacent lanes. The op computes for each group, in f32:

    - amax, the largest magnitude.
    - The scale `amax / max`, where max is the largest number of the quantized
      type: 448 for f8E4M3FN, 57344 for f8E5M2, 127 for i8, 6 for f4E2M1FN. With
      `tensor_scale`, the scale is `amax / max / tensor_scale`. The op rounds it
      to nearest even in the scale type, or up to the next power of two for
      f8E8M0FNU, and clamps it to the positive finite numbers of the scale type.
      The scale is 1 if amax is 0, and NaN if the group has a NaN or an
      infinity. With `power_of_two`, the scale is `amax / max` or 1e-4, whichever
      is larger, rounded up to the next power of two, and at most 2^126. With
      `least_amax`, it is at least `1e-4 / max` instead of 1e-4, as if amax were at
      least 1e-4: so DeepSeek quantizes index keys.
    - The quantized values: the values divided by the rounded scale times
      `tensor_scale`, saturated, and rounded to nearest even. i8 values are from
      -127 to 127. If the divisor is 0, which needs a tiny `tensor_scale`, the
      op divides by 1.

    `tensor_scale` must be positive and finite.

    i4 values have zero points, the third result: the op computes them, the
    scales and the values as `store_quantized` does.

    With `lanes = n`, n adjacent threads of a warp share a group. Each thread
    passes its part of the group, and all threads get the scale and the zero
    point. All threads of the warp must execute the op. The attribute is for GPU
    code only.

    Constraints:
    - (C1) `quantized` has the number of lanes of `value`, which is even for
      4-bit elements.
    - (C2) the number of lanes of `value` is a multiple of that of `scale`.
    - (C3) `lanes`, if given, is a power of two up to 32, and `scale` has one
      lane.
    - (C4) scales have the type f32, bf16 or f8E8M0FNU with `power_of_two`, which
      `least_amax` needs.
    - (C5) i4 values, and no others, have `zero_point`, of the type of `scale`:
      f32, f16 or bf16. They take neither `tensor_scale` nor `power_of_two`.

    Example:

    ```mlir
    func.func @quantize(%x: vector<128xbf16>)
        -> (vector<128xf8E4M3FN>, vector<4xf32>) {
      %w, %s = kvcache.quantize %x
                 : vector<128xbf16> -> vector<128xf8E4M3FN>, vector<4xf32>
      return %w, %s : vector<128xf8E4M3FN>, vector<4xf32>
    }

    func.func @with_zero_point(%x: vector<128xbf16>)
        -> (vector<128xi4>, f16, f16) {
      %w, %s, %z = kvcache.quantize %x
                     : vector<128xbf16> -> vector<128xi4>, f16, f16
      return %w, %s, %z : vector<128xi4>, f16, f16
    }
    ```
  }];
  let arguments = !con(
    (ins Arg<KVCache_UnquantizedLanes, "the values">:$value),
    KVCache_TensorScaleArgument,
    (ins OptionalAttr<I64Attr>:$lanes, UnitAttr:$power_of_two,
         UnitAttr:$least_amax));
  let results = (outs
    Res<KVCache_StoredLanes, "the quantized values">:$quantized,
    Res<KVCache_ScaleLanes, "the scale of each group">:$scale,
    Res<Optional<KVCache_ZeroPointLanes>, "the zero point of each group">
        :$zero_point
  );
  let assemblyFormat = [{
    $value (`tensor_scale` $tensor_scale^)? attr-dict `:` type($value) `->`
    type($quantized) `,` type($scale) (`,` type($zero_point)^)?
  }];
  let hasVerifier = 1;
}

def KVCache_DequantizeOp : KVCache_Op<"dequantize", [Pure]> {
  let summary = "Multiplies quantized values by their scales";
  let description = [{
    Casts the values to the scale type, multiplies them by the scale in this
    type, and casts the products to the result type with rounding to nearest
    even. If scales have 8 bits, or with `tensor_scale`, the op multiplies in f32
    instead. If there are n scales, each applies to one n-th of the lanes. With
    `tensor_scale`, the op first multiplies each scale by it. Products with scales of f16 are f16, so
    those beyond 65504 become infinite.

    Constraints:
    - (C1) `result` has the number of lanes of `quantized`.
    - (C2) the number of lanes of `quantized` is a multiple of that of `scale`.

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
  let summary = "Reads elements of a quantized cache without dequantization";
  let description = [{
    Reads the stored element `(b, h, t, d)`, without its scale. If the result is
    a vector of n lanes, the op reads n consecutive elements from there, and `d`
    must be a multiple of n. `nontemporal` is that of `load`.

    Constraints:
    - (C1) the element type of the result is that of the cache.
    - (C2) the number of lanes is at most `head_size`, and even for 4-bit
      elements.
    - (C3) `d` is a multiple of the number of lanes. The lowering checks
      constants, the bounds checks other values.

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
  let results = (outs Res<KVCache_StoredLanes, "the elements">:$result);
  let assemblyFormat = [{
    $cache `[` $batch `,` $head `,` $token `,` $element `]` (`page` $page^)?
    attr-dict `:` qualified(type($cache)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def KVCache_StoreQuantizedOp : KVCache_Op<"store_quantized", [
    KVCache_IndexedAccess<["accessesScales", "getScalePageOperand",
                           "getAccessedTokens"]>,
    AttrSizedOperandSegments, MemoryEffects<[MemWrite]>]> {
  let summary = "Quantizes whole groups and writes elements and scales";
  let description = [{
    Quantizes the values as `quantize` does, group by group, and writes the
    elements from `(b, h, t, d)` on, and their scales. `d` must be a multiple of
    the number of values. `nontemporal` is that of `load`.

    On a cache of fp8 or i8 without scales, `tensor_scale` alone scales the
    elements: the op writes the values divided by it, saturated and rounded to
    nearest even. A NaN stays a NaN in fp8. Integers are from -127 to 127, and
    -127 for a NaN.

    With zero points, the op computes for each quantization group, in f32:

    - The zero point: the smallest value, with 0 for -0, rounded to nearest even
      in its type, and at most its largest finite number away from 0.
    - The scale: the largest value less the rounded zero point, divided by 15,
      at least the smallest positive number of the scale type and 2^-126, at
      most its largest, and rounded to nearest even. Both are NaN if the group
      has a NaN or an infinity.
    - The elements: the values less the zero point, times the reciprocal of the
      rounded scale, rounded to nearest even and saturated to 0 and 15.

    If n tokens share their scales, the operand is a vector of n rows: the
    elements of tokens t to t + n - 1, which are one group for each column. `t`
    must be a multiple of n.

    Constraints:
    - (C1) the number of values of a token is at most `head_size`. With scales,
      it is a multiple of the granularity, or `head_size`, whose last group may
      be shorter.
    - (C2) the number of values of a token is even for 4-bit elements.
    - (C3) a cache without scales has elements of 8 bits, and the op then has
      `tensor_scale` and no `scale_page`.
    - (C4) `d` is a multiple of the number of values. The lowering checks
      constants, the bounds checks other values.
    - (C5) with `power_of_two`, which is that of `quantize`, as is `least_amax`,
      the cache has scales of f32, bf16 or f8E8M0FNU. `least_amax` needs
      `power_of_two`. A cache with zero points takes neither
      `power_of_two` nor `tensor_scale`.
    - (C6) `value` has rows if and only if tokens share their scales, and then
      as many. `t` is a multiple of them. The lowering checks constants, the
      bounds checks other values.

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
    (ins Arg<KVCache_UnquantizedRows, "the values">:$value,
         Arg<KVCache_AnyCache, "the cache">:$cache),
    KVCache_IndexArguments, KVCache_PageArgument, KVCache_ScalePageArgument,
    KVCache_TensorScaleArgument, KVCache_NontemporalArgument,
    (ins UnitAttr:$power_of_two, UnitAttr:$least_amax));
  let assemblyFormat = [{
    $value `,` $cache `[` $batch `,` $head `,` $token `,` $element `]`
    (`page` $page^)? (`scale_page` $scale_page^)?
    (`tensor_scale` $tensor_scale^)? attr-dict `:` type($value) `,`
    qualified(type($cache))
  }];
  let hasVerifier = 1;
}

#endif // KVCACHE_IR_QUANTIZATIONOPS_TD
