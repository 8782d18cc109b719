# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The caches of vLLM as caches of the dialect, without a copy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from ..cache.layouts import describe
from ..cache.params import KVCacheParams
from ..cache.quantization import KVCacheQuantizationConfig
from ..cache.row_params import row_params
from ..cache.rows import LAYOUTS

ROW_DTYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
"""MLIR's names of the dtypes of queries, keys and values."""

_FP8 = {
    "fp8": torch.float8_e4m3fn,
    "fp8_e4m3": torch.float8_e4m3fn,
    "fp8_e5m2": torch.float8_e5m2,
}
_PER_TOKEN_HEAD = {
    "int8_per_token_head": torch.int8,
    "fp8_per_token_head": torch.float8_e4m3fn,
}
_NAMES = {
    **ROW_DTYPES,
    torch.float8_e4m3fn: "f8E4M3FN",
    torch.float8_e5m2: "f8E5M2",
    torch.int8: "i8",
}

FP8_NAMES = {kind: name for kind, name in _NAMES.items() if name.startswith("f8")}
"""MLIR's names of the dtypes of fp8."""

FIELDS = "fp8_ds_mla"
"""FlashMLA's format: rows of fp8 elements, their scales, and elements of rope."""
_FIELDS_LAYOUT = LAYOUTS["FlashMLA-V3.2"]

SCALE_BYTES = 4
"""Bytes of the f32 scale after the elements of a head."""

_DIMS = "page head token role element"


def has_static_scales(kv_cache_dtype: str) -> bool:
    """Whether the elements of a format have one scale per layer."""
    return kv_cache_dtype in _FP8


def has_packed_scales(kv_cache_dtype: str) -> bool:
    """Whether each head of a token has its scale after its elements."""
    return kv_cache_dtype in _PER_TOKEN_HEAD


def customize_spec(spec: Any) -> Any:
    """Returns vLLM's spec of a layer's cache, with the bytes of packed scales."""
    if spec.state_content_bytes is not None or not spec.kv_quant_mode.is_per_token_head:
        return spec
    elements = (spec.head_size + spec.head_size_v) * spec.dtype.itemsize
    return replace(spec, state_content_bytes=elements + 2 * SCALE_BYTES)


def cache_dtypes() -> list[str]:
    """The values of ``--kv-cache-dtype`` of caches of keys and values."""
    return ["auto", "float16", "bfloat16", *_FP8, *_PER_TOKEN_HEAD]


def latent_dtypes() -> list[str]:
    """The values of ``--kv-cache-dtype`` of latent caches."""
    return ["auto", "float16", "bfloat16", *_FP8, FIELDS]


@dataclass(frozen=True)
class LayerCache:
    """The cache of a layer as the arguments of ``kvcache.ops``.

    Attributes:
        params: The parameters, with the layout of the tensor.
        blocks: A view of vLLM's tensor, [pages, roles, 1, tokens, heads, elements].
        scales: A view of its scales, f32 [pages, roles, 1, tokens, heads, 1], if each
            head of a token has one.
        ropes: A view of the elements of rope of ``fp8_ds_mla``, bf16 [pages, tokens, 1,
            elements]. The other views have no dimensions of roles and layers then.
        rope_params: The parameters of ``ropes``.
    """

    params: KVCacheParams
    blocks: Any
    scales: Any = None
    ropes: Any = None
    rope_params: KVCacheParams | None = None

    @classmethod
    def from_pairs(cls, tensor: Any, kv_cache_dtype: str) -> LayerCache:
        """Views keys and values, [pages, heads, tokens, 2 * elements] with any strides.

        With packed scales, the last dimension is the elements of a key, its scale, the
        elements of a value, and its scale, in bytes.
        """
        if has_packed_scales(kv_cache_dtype):
            return cls._from_packed_pairs(tensor, _PER_TOKEN_HEAD[kv_cache_dtype])
        elements = tensor.view(_FP8.get(kv_cache_dtype, tensor.dtype))
        pairs = elements.unflatten(-1, (2, -1))
        return cls._describe(pairs, _DIMS)

    @classmethod
    def from_latent(cls, tensor: Any, kv_cache_dtype: str) -> LayerCache:
        """Views latent rows, [pages, tokens, elements] with any strides.

        The elements of ``fp8_ds_mla`` are the bytes of a row.
        """
        if kv_cache_dtype == FIELDS:
            return cls._from_fields(tensor)
        elements = tensor.view(_FP8.get(kv_cache_dtype, tensor.dtype))
        return cls._describe(elements, "page token element", is_mla=True)

    @classmethod
    def _from_fields(cls, tensor: Any) -> LayerCache:
        layout = _FIELDS_LAYOUT
        row_bytes = layout.page_bytes(1)
        if tensor.shape[-1] != row_bytes or tensor.stride()[1:] != (row_bytes, 1):
            raise ValueError(
                f"kvcache expects rows of {row_bytes} bytes for {FIELDS}, got "
                f"{tuple(tensor.shape)} with strides {tensor.stride()}"
            )
        views, kinds = {}, {name: kind for kind, name in _NAMES.items()}
        for field in layout.fields:
            kind = kinds[field.dtype]
            size = field.columns * kind.itemsize
            views[field.name] = (
                tensor.narrow(-1, field.offset, size).view(kind).unsqueeze(2)
            )
        content, rope = row_params(layout, tensor.shape[1])
        return cls(content, views["content"], views["scales"], views["rope"], rope)

    @classmethod
    def _from_packed_pairs(cls, tensor: Any, dtype: Any) -> LayerCache:
        width = tensor.shape[-1] // 2 - SCALE_BYTES
        pairs = tensor.view(dtype).unflatten(-1, (2, -1))[..., :width]
        words = tensor.view(torch.float32).unflatten(-1, (2, -1))
        scales = words[..., width // SCALE_BYTES :]
        config = KVCacheQuantizationConfig("f32", width)
        return cls._describe(pairs, _DIMS, scales, kvcache_quant_config=config)

    @classmethod
    def _describe(
        cls, elements: Any, dims: str, scales: Any = None, **fields: Any
    ) -> LayerCache:
        sizes = dict(zip(dims.split(), elements.shape, strict=True))
        params = KVCacheParams(
            _NAMES[elements.dtype],
            sizes.get("head", 1),
            sizes["element"],
            page_size=sizes["token"],
            total_num_layers=1,
            **fields,
        )
        layout = describe(elements, dims)
        blocks = layout.collection(elements)
        if scales is None:
            return cls(params.with_layout(layout), blocks)
        scale_layout = describe(scales, dims)
        params = params.with_layout(layout, scale_layout)
        return cls(params, blocks, scale_layout.collection(scales))


def check_width(cache: LayerCache, width: int) -> None:
    """Raises ``ValueError`` unless keys and values have ``width`` elements each."""
    if cache.params.head_dim != width:
        raise ValueError(
            f"kvcache expects keys and values of {width} elements each in vLLM's cache, "
            f"got {2 * cache.params.head_dim} elements for both"
        )
