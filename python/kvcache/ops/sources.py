# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sources of whole-cache operations: modules with one function each."""

from __future__ import annotations

from dataclasses import dataclass

from ..cache.params import KVCacheParams
from .attention import AttentionSpec, attention_arguments, attention_op


@dataclass(frozen=True)
class LayerSpec:
    """What an operation on the keys and values of a layer is made for."""

    params: KVCacheParams
    power_of_two: bool = False
    ragged: bool = False
    static_scales: bool = False


def append_source(spec: LayerSpec, dtype: str) -> str:
    params = spec.params
    dense = _dense_type(params, dtype, "?")
    operands = ["%keys", *(() if params.is_mla else ("%values",))]
    views = [view for _, view in _views(params)]
    scales, scale_type, scale_text = _static_scales(spec)
    types = ", ".join(
        [
            *[dense] * len(operands),
            *[params.cache_type] * len(views),
            "memref<?xi32>",
            *[scale_type] * len(scales),
        ]
    )
    arguments = ", ".join(
        [
            *(f"{name}: {dense}" for name in operands),
            "%rows: memref<?xi32>",
            *(f"{name}: {scale_type}" for name in scales),
        ]
    )
    powers = " {power_of_two}" if spec.power_of_two else ""
    body = f"""kvcache.append {', '.join(operands)} to {', '.join(views)} rows %rows{scale_text}{powers}
      : {types}"""
    return _function("append", params, f"%layer: index, {arguments}", body, views=True)


def gather_source(spec: LayerSpec, dtype: str) -> str:
    params = spec.params
    dense = _dense_type(params, dtype, "?" if spec.ragged else "?x?")
    operands = ["%keys", *(() if params.is_mla else ("%values",))]
    views = [view for _, view in _views(params)]
    offsets = ["%offsets"] if spec.ragged else []
    scales, scale_type, scale_text = _static_scales(spec)
    types = ", ".join(
        [
            *[params.cache_type] * len(views),
            "memref<?xi32>",
            *[dense] * len(operands),
            *["memref<?xi32>"] * len(offsets),
            *[scale_type] * len(scales),
        ]
    )
    arguments = ", ".join(
        [
            *(f"{name}: {dense}" for name in operands),
            *(f"{name}: memref<?xi32>" for name in ["%rows", *offsets]),
            *(f"{name}: {scale_type}" for name in scales),
        ]
    )
    ragged = " output_offsets %offsets" if spec.ragged else ""
    results = f"outs({', '.join(operands)}){ragged}{scale_text}"
    body = f"""kvcache.gather {', '.join(views)} rows %rows {results}
      : {types}"""
    return _function("gather", params, f"%layer: index, {arguments}", body, views=True)


def _static_scales(spec: LayerSpec) -> tuple[list[str], str, str]:
    """The names of the static scales, their type, and how an op spells them."""
    params = spec.params
    roles = [role for role, _ in _views(params)] if spec.static_scales else []
    names = [f"%{role}_scale" for role in roles]
    text = "".join(f" {role}_scale {name}" for role, name in zip(roles, names))
    return names, f"memref<{params.n_kv_heads_per_device}xf32>", text


def copy_pages_source(params: KVCacheParams, dtype: str) -> str:
    body = (
        "kvcache.copy_pages %cache pairs %pairs : "
        f"{params.collection_type}, memref<?x2xi32>"
    )
    return _function("copy_pages", params, "%pairs: memref<?x2xi32>", body, views=False)


def merge_states_source(sizes: tuple[int, int], dtype: str) -> str:
    heads, head_dim = sizes
    parts = f"memref<?x?x{heads}x{head_dim}x{dtype}>"
    out = f"memref<?x{heads}x{head_dim}x{dtype}>"
    lses, lse = f"memref<?x?x{heads}xf32>", f"memref<?x{heads}xf32>"
    return f"""func.func @merge_states(%parts: {parts}, %lses: {lses}, %out: {out}, %lse: {lse}) {{
  kvcache.merge_states %parts, %lses outs(%out, %lse) : {parts}, {lses}, {out}, {lse}
  return
}}
"""


def attention_source(subject: tuple[KVCacheParams, AttentionSpec], dtype: str) -> str:
    params, spec = subject
    arguments = f"%layer: index, {attention_arguments(spec, params, dtype)}"
    body = attention_op(spec, params, dtype, [view for _, view in _views(params)])
    return _function("attention", params, arguments, body, views=True)


def _function(
    name: str, params: KVCacheParams, arguments: str, body: str, *, views: bool
) -> str:
    """A function whose first arguments are those of ``StepInputs.collection``."""
    types = [params.blocks_type, "memref<?xi32>", "memref<?x?xi32>"]
    scales = ["", "", ""]
    if params.kvcache_quant_config is not None:
        types.append(params.scales_type)
        scales = [f", %scales: {params.scales_type}", " scales %scales", ""]
    lines = [
        f"%cache = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache"
        f"{scales[1]}",
        f"    : {', '.join(types)} -> {params.collection_type}",
    ]
    if views:
        lines += [
            f"{view} = kvcache.paged_view {role} %cache[%layer] : {params.collection_type}"
            for role, view in _views(params)
        ]
    text = "\n  ".join([*lines, body])
    return f"""func.func @{name}(%blocks: {params.blocks_type}, %lengths: memref<?xi32>,
    %lut: memref<?x?xi32>, %max_seq: i32, %max_cache: i32{scales[0]}, {arguments}) {{
  {text}
  return
}}
"""


def _views(params: KVCacheParams) -> list[tuple[str, str]]:
    both = [("key", "%key_view"), ("value", "%value_view")]
    return both[:1] if params.is_mla else both


def _dense_type(params: KVCacheParams, dtype: str, rows: str) -> str:
    heads = params.n_kv_heads_per_device
    packed = f"{heads}x{params.head_dim}x{dtype}"
    return f"memref<{rows}x{packed}>"
