# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The source of attention over a paged cache."""

from __future__ import annotations

from dataclasses import dataclass

from ..cache.params import KVCacheParams
from ..checks import check_flag, check_positive, check_positive_real
from .append import float_text
from .arguments import check_query_heads


@dataclass(frozen=True)
class AttentionSpec:
    """What is fixed when attention is compiled.

    Attributes:
        query_heads: A multiple of the heads of the cache.
        causal: Whether a query sees no later tokens.
        window: How many tokens a query sees at most, itself included; None for all.
        soft_cap: Scores are ``soft_cap * tanh(score / soft_cap)``; None for none.
        sinks: Whether each head has a logit that joins the denominator.
        mask: Whether bits say which new tokens a query sees.
        rows: Whether ids say which rows of the cache a query sees.
        value_dim: Elements of a row of values that are read.
    """

    query_heads: int
    causal: bool
    window: int | None
    soft_cap: float | None
    sinks: bool
    mask: bool
    rows: bool
    value_dim: int

    @property
    def extra(self) -> dict[str, str]:
        """The types of the optional arguments, by name."""
        types = {
            "sinks": f"memref<{self.query_heads}xf32>",
            "mask": "memref<?x?xi32>",
            "rows": "memref<?x?xi32>",
        }
        return {name: type_ for name, type_ in types.items() if getattr(self, name)}


def make_spec(
    params: KVCacheParams,
    query_heads: int,
    causal: bool,
    window: int | None,
    soft_cap: float | None,
    sinks: bool,
    mask: bool,
    rows: bool,
    value_dim: int | None,
) -> AttentionSpec:
    """The checked arguments of ``kvcache.ops.attention``."""
    check_positive(query_heads=query_heads)
    check_flag(causal=causal, sinks=sinks, mask=mask, rows=rows)
    check_query_heads(params, query_heads)
    if window is not None:
        check_positive(window=window)
    if soft_cap is not None:
        check_positive_real(soft_cap=soft_cap)
    if rows and (window is not None or mask):
        raise ValueError("expects no 'window' or 'mask' with 'rows'")
    if value_dim is None and params.is_mla:
        raise ValueError("attention to a latent cache needs 'value_dim'")
    value_dim = params.head_dim if value_dim is None else value_dim
    check_positive(value_dim=value_dim)
    if value_dim > params.head_dim:
        raise ValueError(
            f"expects 'value_dim' to be at most 'head_dim' ({params.head_dim}), got "
            f"{value_dim}"
        )
    return AttentionSpec(
        int(query_heads),
        bool(causal) and not rows,
        None if window is None else int(window),
        None if soft_cap is None else float(soft_cap),
        bool(sinks),
        bool(mask),
        bool(rows),
        int(value_dim),
    )


def attention_arguments(spec: AttentionSpec, params: KVCacheParams, dtype: str) -> str:
    """The arguments behind those of the collection and the layer."""
    q, out, lse = _types(spec, params, dtype)
    extra = "".join(f", %{name}: {type_}" for name, type_ in spec.extra.items())
    return (
        f"%q: {q}, %row_offsets: memref<?xi32>,\n"
        f"    %out: {out}, %lse: {lse}, %scale: f32{extra}"
    )


def attention_op(
    spec: AttentionSpec, params: KVCacheParams, dtype: str, views: list[str]
) -> str:
    """The op over the views."""
    q, out, lse = _types(spec, params, dtype)
    options = ["causal"] if spec.causal else []
    if spec.window is not None:
        options.append(f"window = {spec.window}")
    if spec.soft_cap is not None:
        options.append(f"soft_cap = {float_text(spec.soft_cap)} : f64")
    attributes = f" {{{', '.join(options)}}}" if options else ""
    extra = "".join(f" {name} %{name}" for name in spec.extra)
    types = [q, *[params.cache_type] * len(views), "memref<?xi32>", "f32", out, lse]
    return (
        f"kvcache.attention %q, {', '.join(views)}, %row_offsets, %scale "
        f"outs(%out, %lse){attributes}{extra}\n"
        f"      : {', '.join([*types, *spec.extra.values()])}"
    )


def _types(
    spec: AttentionSpec, params: KVCacheParams, dtype: str
) -> tuple[str, str, str]:
    heads = spec.query_heads
    q = f"memref<?x{heads}x{params.head_dim}x{dtype}>"
    out = f"memref<?x{heads}x{spec.value_dim}x{dtype}>"
    return q, out, f"memref<?x{heads}xf32>"
