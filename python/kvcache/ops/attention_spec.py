# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of ``kvcache.ops.attention``, with their checks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._native import extension
from ..checks import check_flag, check_positive, check_positive_real, check_size
from ..dtypes import DTypeLike
from .arguments import check_dense, check_query_heads
from .attention_config import AttentionConfig
from .cache_forms import CacheForm
from .regions import ScoreRegions
from .sources import LayerSpec
from .splits import MOST, Splits

_CLUSTER_BLOCKS = 8  # of a cluster on every chip that has clusters

_FLAGS = (
    "causal",
    "mask",
    "kv_lengths",
    "whole_mask",
    "sinkless_lse",
    "max_logits",
    "static_scales",
)


@dataclass(frozen=True, kw_only=True)
class AttentionSpec:
    """The options of attention, fixed when it is compiled.

    Attributes:
        cache: The form of the cache.
        query_heads: A multiple of the heads of the cache.
        causal: Whether queries see no later tokens.
        window: The most tokens that a query sees, including itself; None for all.
        chunk: Tokens per chunk; a query sees only its chunk. None for no chunks.
        soft_cap: The bound of scores, ``soft_cap * tanh(score / soft_cap)``; None for
            none.
        sinks: The type of a logit of each head that joins the denominator; empty for
            none.
        mask: Whether calls give bits for the tokens that a query sees.
        whole_mask: Whether cached tokens have such bits, too, not only new ones.
        ranges: The number of ranges of tokens that a query sees, which calls give; None
            for none.
        sinkless_lse: Whether ``lse`` has no sink.
        max_logits: Whether calls give an array for largest scores.
        rows: The type of the rows of the cache that a query sees; empty for none.
        kv_lengths: Whether calls give the number of tokens of each sequence.
        value_dim: The number of elements of a value.
        splits: The options of split KV, or None.
        static_scales: Whether calls give static scales.
        dtypes: The types of queries and outputs.
        config: How kernels compute.
        swap_operands: Whether ``swap_ab`` of the config is only for chips that have it.
        regions: The user's functions of scores and masks.
        query_rope: The number of last elements of queries in an array of their own;
            None for none.
    """

    cache: CacheForm
    query_heads: int
    causal: bool
    window: int | None
    chunk: int | None
    soft_cap: float | None
    sinks: str
    mask: bool
    whole_mask: bool
    ranges: int | None
    sinkless_lse: bool
    max_logits: bool
    rows: str
    kv_lengths: bool
    value_dim: int
    splits: Splits | None
    static_scales: bool
    dtypes: tuple[str, str]
    config: AttentionConfig
    swap_operands: bool
    regions: ScoreRegions
    query_rope: int | None

    def checked(self) -> AttentionSpec:
        """Returns the spec with Python's numbers, or raises what contradicts it."""
        check_positive(query_heads=self.query_heads)
        flags: dict[str, Any] = {name: getattr(self, name) for name in _FLAGS}
        check_flag(**flags)
        check_query_heads(self.cache.params, self.query_heads)
        if self.sinkless_lse and not self.sinks:
            raise ValueError("expects 'sinkless_lse' only with 'sinks'")
        _check_soft_cap(self.soft_cap)
        if self.config.persistent and self.splits is None:
            raise ValueError(
                "expects 'persistent' or 'scheduled_blocks' only with 'split_tokens'"
            )
        if self.config.merge == "cluster":
            self._check_cluster()
        self._check_seen()
        self._check_sizes()
        flags = {name: bool(flag) for name, flag in flags.items()}
        return replace(
            self,
            **flags | {"causal": flags["causal"] and not self.rows},
            query_heads=int(self.query_heads),
            window=_to_int(self.window),
            chunk=_to_int(self.chunk),
            soft_cap=None if self.soft_cap is None else float(self.soft_cap),
            ranges=_to_int(self.ranges),
            value_dim=int(self.value_dim),
            query_rope=_to_int(self.query_rope),
        )

    def _check_cluster(self) -> None:
        """Raises for options of an operation whose splits no cluster merges."""
        if self.splits is None:
            raise ValueError(
                "expects 'merge' to be 'cluster' only with 'split_tokens'"
            )
        if not 2 <= self.splits.most <= _CLUSTER_BLOCKS:
            raise ValueError(
                f"expects 'max_splits' to be from 2 to {_CLUSTER_BLOCKS} with "
                f"merge='cluster', got {self.splits.most}"
            )
        if self.rows:
            raise ValueError("expects no 'rows' with merge='cluster'")

    def _check_seen(self) -> None:
        """Raises for contradictions in the tokens that a query sees."""
        _check_most(2**63 - 1, window=self.window, chunk=self.chunk)
        _check_most(MOST, ranges=self.ranges)
        if self.whole_mask and not self.mask:
            raise ValueError("expects 'whole_mask' only with 'mask=True'")
        if not self.rows:
            return
        limits = self.window, self.chunk, self.ranges
        if self.mask or any(limit is not None for limit in limits):
            raise ValueError(
                "expects no 'window', 'chunk', 'mask' or 'ranges' with 'rows'"
            )
        if self.regions.text:
            raise ValueError("expects no functions of scores and masks with 'rows'")
        if self.kv_lengths:
            raise ValueError(
                "expects no 'kv_lengths' with 'rows', which are the tokens seen"
            )

    def _check_sizes(self) -> None:
        """Raises for wrong numbers of elements."""
        if self.query_rope is not None:
            if not self.cache.params.is_mla:
                raise ValueError("expects 'query_rope' only for a latent cache")
            check_size(self.key_dim - 1, query_rope=self.query_rope)
        check_positive(value_dim=self.value_dim)
        most = self.cache.values.head_dim
        if self.value_dim > most:
            raise ValueError(
                f"expects 'value_dim' to be at most 'head_dim' ({most}), got "
                f"{self.value_dim}"
            )

    @cached_property
    def layer(self) -> LayerSpec:
        """The spec of a layer's keys and values, with rows of the type of queries."""
        return LayerSpec(self.cache, self.dtypes[0], static_scales=self.static_scales)

    @property
    def key_dim(self) -> int:
        """The number of elements of a key and a query."""
        return self.cache.row_dim

    @cached_property
    def scaled_rows(self) -> tuple[str, ...]:
        """The names of the scales of queries and outputs, one for each fp8 type."""
        names = "query_scale", "out_scale"
        return tuple(
            name for name, dtype in zip(names, self.dtypes) if dtype.startswith("f8")
        )

    @cached_property
    def extra(self) -> dict[str, str]:
        """The types of the optional arguments, by name."""
        types = {
            "sinks": f"memref<{self.query_heads}x{self.sinks}>",
            "mask": "memref<?x?xi32>",
            "rows": self.rows,
            "kv_lengths": "memref<?xi32>",
        }
        return {name: type_ for name, type_ in types.items() if getattr(self, name)}

    @property
    def has_workspace(self) -> bool:
        """Whether splits are in a workspace: a cluster merges them without one."""
        return self.splits is not None and self.config.merge != "cluster"

    def count_bytes(self, batch: int) -> int:
        """The bytes of the workspace for ``batch`` sequences; 0 without one."""
        per_sequence, fixed = self.workspace_bytes
        return batch * per_sequence + fixed

    @cached_property
    def workspace_bytes(self) -> tuple[int, int]:
        """The bytes of the workspace for each sequence, and those for all."""
        if self.splits is None or not self.has_workspace:
            return 0, 0
        sizes = self.query_heads, self.value_dim, self.splits.most, self.splits.rows
        return extension().workspace_bytes(*sizes)


def find_value_dim(cache: CacheForm, value_dim: int | None) -> int:
    """The number of elements of a value; None for all that the cache has."""
    if value_dim is not None:
        return value_dim
    if cache.params.is_mla:
        raise ValueError("attention to a latent cache needs 'value_dim'")
    return cache.values.head_dim


def find_rows_type(rows: bool | str, heads: int) -> str:
    """The type of the rows that queries see; empty for none."""
    if isinstance(rows, str):
        if rows != "heads":
            raise ValueError(
                f"expects 'rows' to be True, False or 'heads', got {rows!r}"
            )
        return f"memref<?x{heads}x?xi32>"
    check_flag(rows=rows)
    return "memref<?x?xi32>" if rows else ""


def find_sink_type(sinks: bool | DTypeLike) -> str:
    """The MLIR type of sinks, f32 by default; empty for none."""
    if isinstance(sinks, bool | np.bool_):
        return "f32" if sinks else ""
    if isinstance(sinks, int | float | None):
        raise TypeError(f"expects 'sinks' to be True, False or a dtype, got {sinks!r}")
    return check_dense("sinks", sinks)


def _check_soft_cap(soft_cap: float | None) -> None:
    if soft_cap is None:
        return
    check_positive_real(soft_cap=soft_cap)
    if not 2.0**-16 <= soft_cap <= 2.0**16:
        raise ValueError(
            f"expects 'soft_cap' to be between 2^-16 and 2^16, got {soft_cap!r}"
        )


def _check_most(most: int, **sizes: int | None) -> None:
    check_size(most, **{name: size for name, size in sizes.items() if size is not None})


def _to_int(value: int | None) -> int | None:
    return None if value is None else int(value)
