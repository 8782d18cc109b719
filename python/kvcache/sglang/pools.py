# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pools of SGLang as caches of the dialect, without a copy."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, MLATokenToKVPool
from sglang.srt.mem_cache.swa_memory_pool import SWAKVPool

from ..cache.params import KVCacheParams
from ..pages.inputs import StepInputs

FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)
"""The dtypes of caches with static scales."""

_DTYPES = (torch.float32, torch.float16, torch.bfloat16, *FP8)


def name_dtype(dtype: torch.dtype) -> str:
    """Returns a dtype's name, such as ``"bfloat16"``."""
    return str(dtype).removeprefix("torch.")


@dataclass(frozen=True)
class Pool:
    """The layers of a pool, as the arguments of ``kvcache.ops``.

    Attributes:
        params: The parameters of keys, or of latent rows.
        value_params: The parameters of values; None for latent rows.
        keys: A tensor per layer, [pages, page_size, heads, elements].
        values: Likewise; empty for latent rows.
        value_dim: Elements of a value of a latent row; None for keys and values.
    """

    params: KVCacheParams
    value_params: KVCacheParams | None
    keys: tuple[Any, ...]
    values: tuple[Any, ...]
    value_dim: int | None = None

    @property
    def has_static_scales(self) -> bool:
        return self.keys[0].dtype in FP8

    @functools.cached_property
    def slots(self) -> StepInputs:
        """The inputs of appends with slots."""
        return StepInputs.of(keys=self.keys, values=self.values)

    @classmethod
    def of(cls, pool: Any, page_size: int) -> Pool:
        """Views a pool of one kind of layers.

        Raises ``NotImplementedError`` for a pool that kernels cannot read.
        """
        check_pool(pool)
        layers = range(pool.start_layer, pool.start_layer + pool.layer_num)
        keys = tuple(_view(pool.get_key_buffer(i), page_size) for i in layers)
        if isinstance(pool, MLATokenToKVPool):
            params = make_params(keys, is_mla=True)
            return cls(params, None, keys, (), pool.kv_lora_rank)
        values = tuple(_view(pool.get_value_buffer(i), page_size) for i in layers)
        return cls(make_params(keys), make_params(values), keys, values)


def check_pool(pool: Any) -> None:
    """Raises ``NotImplementedError`` unless a pool has rows that kernels read."""
    kind = type(pool)
    if kind not in (MHATokenToKVPool, MLATokenToKVPool):
        raise NotImplementedError(
            "kvcache expects a pool of MHATokenToKVPool, MLATokenToKVPool or SWAKVPool, "
            f"got {kind.__name__}"
        )
    if pool.dtype not in _DTYPES:
        raise NotImplementedError(
            "kvcache expects --kv-cache-dtype to be f32, f16, bf16, fp8_e4m3 or "
            f"fp8_e5m2, got {pool.dtype}"
        )
    if kind is MLATokenToKVPool:
        if pool.use_dsa:
            raise NotImplementedError("kvcache expects no sparse attention (DSA)")
    elif pool.is_quantized_kv_cache or pool.kv_cache_layout != "nhd":
        layout = "quantized" if pool.is_quantized_kv_cache else pool.kv_cache_layout
        raise NotImplementedError(f"kvcache expects the cache layout nhd, got {layout}")


def split_pool(pool: Any) -> tuple[Any, Any]:
    """The pool of layers that see all tokens, and that of windows or None."""
    if type(pool) is SWAKVPool:
        return pool.full_kv_pool, pool.swa_kv_pool
    return pool, None


def _view(tensor: Any, page_size: int) -> Any:
    pages = tensor.shape[0] // page_size
    return tensor[: pages * page_size].unflatten(0, (pages, page_size))


def make_params(tensors: tuple[Any, ...], **fields: Any) -> KVCacheParams:
    """The parameters of one tensor per layer, [pages, page_size, heads, elements]."""
    _, page_size, heads, elements = tensors[0].shape
    return KVCacheParams(
        name_dtype(tensors[0].dtype),
        heads,
        elements,
        page_size=page_size,
        total_num_layers=len(tensors),
        **fields,
    )
