# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations of a layer: one for layers with equal configurations and caches."""

from __future__ import annotations

import functools
import logging
from dataclasses import dataclass, field
from typing import Any

from .. import ops
from ..cache.params import KVCacheParams
from ..ops.append_operation import Append
from ..ops.attention_operation import Attention
from ..ops.splits import Splits
from .options import Options

_LOGGER = logging.getLogger("sglang.kvcache")


@dataclass(frozen=True)
class CacheConfiguration:
    """The cache of a layer.

    Attributes:
        params: The parameters of keys, or of latent rows.
        value_params: The parameters of values; None for latent rows.
        table: The kind of table, as for ``kvcache.ops.attention``.
        value_dim: Elements of a value of a latent row; None for keys and values.
        has_static_scales: Whether keys and values have one scale per layer.
    """

    params: KVCacheParams
    value_params: KVCacheParams | None
    table: str
    value_dim: int | None = None
    has_static_scales: bool = False

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of an operation on the cache."""
        return {
            "params": self.params,
            "value_params": self.value_params,
            "separate": True,
            "static_scales": self.has_static_scales,
        }


@dataclass(frozen=True)
class Configuration:
    """The configuration of a layer, apart from its cache.

    Attributes:
        options: The options of the backend.
        dtype: The name of the dtype of queries, keys and values.
        query_heads: Heads of queries.
        query_rows: The most rows of a sequence in a decode step.
        window: The most tokens that a token sees, including itself; None for all.
        soft_cap: The bound of scores; None for no bound.
        sinks: The dtype of a sink of each head; None for no sinks.
    """

    options: Options
    dtype: str
    query_heads: int
    query_rows: int
    window: int | None
    soft_cap: float | None
    sinks: str | None

    def make_append(self, cache: CacheConfiguration) -> Append:
        """Compiles the append to a cache, once for equal arguments."""
        return _make_append(self.options.target, self.dtype, cache)

    def make_attention(self, cache: CacheConfiguration) -> Attention:
        """Compiles attention to a cache, once for equal arguments, and logs it."""
        return _make_attention(self, cache)


@dataclass(frozen=True)
class LayerOperations:
    """The operations of a layer, made once.

    Attributes:
        index: The index of the layer in its pool.
        in_window: Whether the pool is that of layers with windows.
        attention: The operation that attends.
        append: The operation that stores new rows; None if they are not stored.
        scales: The static scales of both operations.
    """

    index: int
    in_window: bool
    attention: Attention
    append: Append | None = None
    scales: dict[str, Any] = field(default_factory=dict)


@functools.cache
def _make_append(target: str, dtype: str, cache: CacheConfiguration) -> Append:
    return ops.append(target=target, dtype=dtype, slots="i64", **cache.arguments)


@functools.cache
def _make_attention(layer: Configuration, cache: CacheConfiguration) -> Attention:
    options = layer.options
    operation = ops.attention(
        query_heads=layer.query_heads,
        window=layer.window,
        soft_cap=layer.soft_cap,
        sinks=layer.sinks or False,
        value_dim=cache.value_dim,
        target=options.target,
        dtype=layer.dtype,
        split_rows=layer.query_rows,
        kv_lengths=True,
        table=cache.table,
        **options.splits.arguments,
        **cache.arguments,
    )
    _LOGGER.info(
        "kvcache runs attention on %s: %s, %d query heads of %s%s",
        options.target,
        cache.params.cache_type,
        layer.query_heads,
        layer.dtype,
        _describe(layer, cache, operation.splits),
    )
    return operation


def _describe(
    layer: Configuration, cache: CacheConfiguration, splits: Splits | None
) -> str:
    """Describes the options that differ from plain causal attention."""
    parts = {
        "new tokens only": cache.table == "csr",
        f"window {layer.window}": layer.window,
        f"soft cap {layer.soft_cap}": layer.soft_cap,
        "sinks": layer.sinks,
        "static scales": cache.has_static_scales,
        f"splits of {splits and splits.tokens} tokens": splits,
    }
    return "".join(f", {part}" for part, is_used in parts.items() if is_used)
