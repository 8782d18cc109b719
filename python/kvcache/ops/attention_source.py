# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The source of attention over a paged cache."""

from __future__ import annotations

from collections.abc import Sequence

from .append_options import float_text
from .arguments import rows_type
from .attention_config import AttentionConfig
from .attention_spec import AttentionSpec
from .cache_forms import write_function
from .sources import scale_types


def attention_source(spec: AttentionSpec, mutates: Sequence[str]) -> str:
    scales = scale_types(spec.layer)
    lines = [*spec.cache.views(), _op_text(spec, scales)]
    types = _argument_types(spec, scales)
    return write_function("attention", spec.cache.arguments, types, mutates, lines)


def _argument_types(spec: AttentionSpec, scales: dict[str, str]) -> dict[str, str]:
    """The types of the arguments after the collection and the layer, by name."""
    q, out, lse = _types(spec)
    types = {"q": q, "row_offsets": "memref<?xi32>", "out": out, "lse": lse}
    more = {**_outputs(spec), **spec.extra, **scales, **_row_scales(spec)}
    more |= {**_query_rope(spec), **_ranges(spec)}
    return {**types, "scale": "f32", **more, **spec.regions.types}


def _op_text(spec: AttentionSpec, scales: dict[str, str]) -> str:
    """The op over the views; ``scales`` are the types of static scales by name."""
    q, out, lse = _types(spec)
    soft_cap, splits = spec.soft_cap, spec.splits
    given = {
        "window": spec.window,
        "chunk": spec.chunk,
        "soft_cap": None if soft_cap is None else f"{float_text(soft_cap)} : f64",
        "split": splits and str(splits),
        "config": spec.config if spec.config != AttentionConfig() else None,
    }
    flags = "causal", "whole_mask", "sinkless_lse"
    options = [flag for flag in flags if getattr(spec, flag)]
    options += [f"{name} = {value}" for name, value in given.items() if value is not None]
    attributes = f" {{{', '.join(options)}}}" if options else ""
    more = {**spec.extra, **scales, **_row_scales(spec), **_query_rope(spec)}
    outputs = _outputs(spec)
    views = dict(spec.cache.view_types)
    if spec.cache.rope:
        more["rope_cache"] = views.pop("rope_view")
    more |= _ranges(spec)
    # The lengths of the function are those of the cache.
    values = {name: name for name in (*outputs, *more)} | {"rope_cache": "rope_view"}
    front, back = (
        "".join(f" {name.removeprefix('kv_')} %{values[name]}" for name in names)
        for names in (outputs, more)
    )
    types = [q, *views.values(), "memref<?xi32>", "f32", out, lse]
    types += [*outputs.values(), *more.values()]
    return (
        f"kvcache.attention %q, {', '.join(f'%{view}' for view in views)}, %row_offsets, "
        f"%scale outs(%out, %lse){front}{attributes}{spec.regions.text}{back}\n"
        f"      : {', '.join(types)}"
    )


def _outputs(spec: AttentionSpec) -> dict[str, str]:
    """The types of what is written besides ``out`` and ``lse``."""
    maxima = {"max_logits": f"memref<?x{spec.query_heads}xf32>"}
    workspace = {"workspace": "memref<?xi8>"}
    return {**(maxima if spec.max_logits else {}), **(workspace if spec.has_workspace else {})}


def _ranges(spec: AttentionSpec) -> dict[str, str]:
    return {"ranges": f"memref<?x{spec.ranges}x2xi32>"} if spec.ranges else {}


def _row_scales(spec: AttentionSpec) -> dict[str, str]:
    return dict.fromkeys(spec.scaled_rows, f"memref<{spec.query_heads}xf32>")


def _query_rope(spec: AttentionSpec) -> dict[str, str]:
    if spec.query_rope is None:
        return {}
    sizes = spec.query_heads, spec.query_rope
    return {"q_rope": rows_type("?", *sizes, spec.dtypes[0], has_open_heads=True)}


def _types(spec: AttentionSpec) -> tuple[str, str, str]:
    heads = spec.query_heads
    query_dtype, out_dtype = spec.dtypes
    q = rows_type(
        "?",
        heads,
        spec.key_dim - (spec.query_rope or 0),
        query_dtype,
        has_open_heads=spec.query_rope is not None,
    )
    out = rows_type("?", heads, spec.value_dim, out_dtype)
    return q, out, f"memref<?x{heads}xf32>"
