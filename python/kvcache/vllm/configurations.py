# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations of a layer: one for layers with equal configurations and caches."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from vllm.logger import init_logger

from .. import ops
from ..cache.params import KVCacheParams
from ..ops.append_operation import Append
from ..ops.attention_operation import Attention
from ..ops.splits import Splits
from .formats import LayerCache, has_static_scales
from .options import Options

_LOGGER = init_logger("vllm.kvcache")
_OLDEST_CAPABILITY = (8, 0)


def check_capability(capability: Any) -> bool:
    """Whether kernels exist for a GPU; None is no GPU."""
    return capability is None or tuple(capability) >= _OLDEST_CAPABILITY


def count_query_rows(vllm_config: Any) -> int:
    """The most rows of a sequence in a decode step: 1, and its drafts."""
    speculative = vllm_config.speculative_config
    return 1 + (speculative.num_speculative_tokens or 0 if speculative else 0)


def add_alibi(
    s: Any, sequence: Any, head: Any, query: Any, key: Any, slopes: Any
) -> Any:
    """Adds ALiBi's bias to a score, as a function for ``kvcache.ops.attention``."""
    return s + slopes[head] * (key - query)


@dataclass(frozen=True)
class Configuration:
    """The configuration of a layer, apart from its cache.

    Attributes:
        options: The options of the backend.
        dtype: MLIR's name of the dtype of queries, keys and values.
        cache_dtype: The value of ``--kv-cache-dtype``.
        query_heads: Heads of queries.
        query_rows: The most rows of a sequence in a decode step.
        window: The most tokens that a token sees, including itself; None for all.
        soft_cap: The bound of scores; None for no bound.
        sinks: Whether each head has a sink.
        alibi: Whether each head has a slope that ALiBi adds.
        value_dim: Elements of a value of a latent row; None for keys and values.
        latent_rope: Elements of a latent row after the value.
    """

    options: Options
    dtype: str
    cache_dtype: str
    query_heads: int
    query_rows: int
    window: int | None
    soft_cap: float | None
    sinks: bool = False
    alibi: bool = False
    value_dim: int | None = None
    latent_rope: int | None = None

    @property
    def has_static_scales(self) -> bool:
        return has_static_scales(self.cache_dtype)

    def make_append(self, cache: LayerCache) -> Append:
        """Compiles the append to a cache, once for equal arguments."""
        return _make_append(self, cache.params, cache.rope_params)

    def make_attention(
        self,
        cache: LayerCache,
        causal: bool,
        *,
        out_dtype: str | None = None,
        query_rope: int | None = None,
    ) -> Attention:
        """Compiles attention to a cache, once for equal arguments, and logs it."""
        return _make_attention(
            self, cache.params, cache.rope_params, causal, out_dtype, query_rope
        )


@functools.cache
def _make_append(
    layer: Configuration, params: KVCacheParams, rope_params: KVCacheParams | None
) -> Append:
    return ops.append(
        params,
        layer.options.target,
        layer.dtype,
        static_scales=layer.has_static_scales,
        latent_rope=layer.latent_rope,
        slots="i64",
        separate=rope_params is not None,
        rope_params=rope_params,
    )


@functools.cache
def _make_attention(
    layer: Configuration,
    params: KVCacheParams,
    rope_params: KVCacheParams | None,
    causal: bool,
    out_dtype: str | None,
    query_rope: int | None,
) -> Attention:
    options = layer.options
    operation = ops.attention(
        params,
        layer.query_heads,
        causal=causal,
        window=layer.window,
        soft_cap=layer.soft_cap,
        sinks=layer.sinks,
        value_dim=layer.value_dim,
        target=options.target,
        dtype=layer.dtype,
        out_dtype=out_dtype,
        query_rope=query_rope,
        separate=rope_params is not None,
        rope_params=rope_params,
        split_rows=layer.query_rows,
        static_scales=layer.has_static_scales,
        kv_lengths=True,
        score=add_alibi if layer.alibi else None,
        arrays={"slopes": f"f32[{layer.query_heads}]"} if layer.alibi else None,
        **options.splits.arguments,
    )
    _LOGGER.info(
        "kvcache runs attention on %s: %s, %d query heads of %s%s",
        options.target,
        params.cache_type,
        layer.query_heads,
        layer.dtype,
        _describe(layer, causal, out_dtype, operation.splits),
    )
    return operation


def _describe(
    layer: Configuration, causal: bool, out_dtype: str | None, splits: Splits | None
) -> str:
    """Describes the options that differ from plain causal attention."""
    parts = {
        "not causal": not causal,
        f"window {layer.window}": layer.window,
        f"soft cap {layer.soft_cap}": layer.soft_cap,
        "sinks": layer.sinks,
        "ALiBi": layer.alibi,
        "static scales": layer.has_static_scales,
        f"outputs of {out_dtype}": out_dtype,
        f"splits of {splits and splits.tokens} tokens": splits,
    }
    return "".join(f", {part}" for part, is_used in parts.items() if is_used)
