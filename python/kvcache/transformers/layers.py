# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layers of a model's cache, and the parameters of their pages."""

from __future__ import annotations

from typing import Any

import torch
from transformers.cache_utils import CacheLayerMixin

from .. import dtypes
from ..cache.groups import MultiKVCacheParams, as_layer_groups
from ..cache.params import KVCacheParams
from ..cache.quantization import KVCacheQuantizationConfig
from ..dtypes import DTypeLike
from .attention import graph_break, publish_rows
from .models import ModelShape


class CacheLayer(CacheLayerMixin):
    """A layer of a cache, which keeps new rows until the attention is called."""

    is_compileable = False
    is_croppable = True
    is_sliding = False

    def __init__(self, cache: Any, index: int) -> None:
        super().__init__()
        self._cache, self._index = cache, index
        self.is_initialized = True

    def lazy_initialization(self, key_states: Any, value_states: Any) -> None:
        """Does nothing: there are pages from the start."""

    @graph_break
    def update(
        self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        self._cache.check_layer(self._index, key_states, value_states)
        publish_rows(self._cache, self._index, key_states, value_states)
        return key_states, value_states

    @graph_break
    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._cache._length + query_length, 0

    @graph_break
    def get_seq_length(self) -> int:
        return self._cache._length

    def get_max_length(self) -> int:
        return self._cache.manager.max_seq_len


def make_params(
    config: Any, shape: ModelShape, dtype: Any, page_size: int, share: bool
) -> list[KVCacheParams]:
    """The parameters of a model's rows, and those of its index keys if it has them.

    Args:
        config: The configuration of the model.
        shape: The rows that it caches.
        dtype: As for ``PagedCache``.
        page_size: The tokens per page.
        share: Whether rows of a batch share pages of equal prefixes.
    """
    if dtype is None:
        dtype = config.dtype or torch.get_default_dtype()
    name: DTypeLike = "f8E4M3FN" if dtype == "fp8" else dtype
    if isinstance(dtype, torch.dtype):
        name = str(dtype).removeprefix("torch.")
    if shape.entries is not None:
        return [shape.entries.make_params(name, page_size, share)]
    layers, index = shape.cached_layers, shape.index
    common: dict[str, Any] = {"page_size": page_size, "enable_prefix_caching": share}
    rows = KVCacheParams(
        name,
        shape.kv_heads,
        shape.head_dim,
        total_num_layers=layers,
        layer_ids=None if index is None else range(layers),
        is_mla=shape.rank is not None,
        kvcache_quant_config=_make_scales(name, shape.head_dim),
        **common,
    )
    if index is None:
        return [rows]
    keys = KVCacheParams(
        name,
        1,
        index.head_dim,
        layer_ids=range(layers, layers + index.cached_layers),
        is_mla=True,
        kvcache_quant_config=_make_scales(name, index.head_dim),
        **common,
    )
    return [rows, keys]


def _make_scales(dtype: DTypeLike, head_dim: int) -> KVCacheQuantizationConfig | None:
    is_quantized = dtypes.cached_dtype("dtype", dtype).itemsize == 1
    return KVCacheQuantizationConfig("f32", head_dim) if is_quantized else None


def count_pages(params: KVCacheParams | MultiKVCacheParams, tokens: int) -> int:
    """The pages of a pool that a sequence of so many tokens takes."""
    return sum(-(-tokens // group.tokens) for group in as_layer_groups(params))
