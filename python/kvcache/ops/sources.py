# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sources of whole-cache operations: modules with one function each.

``mutates`` are the arguments that the operation changes, by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..cache.params import KVCacheParams
from .append_options import AppendOptions
from .arguments import Tiling, attributes_text, rows_type
from .attention_options import AttentionSpec, attention_arguments, attention_op

_NUMBERS = "memref<?xi32>"

FUNCTION_NAMES = (
    *("blocks", "lengths", "lut", "max_seq", "max_cache", "scales", "row_offsets"),
    *("cache", "layers", "key_view", "value_view"),
)
"""Names in the functions, which arrays of users can't have."""


@dataclass(frozen=True)
class LayerSpec:
    """The spec of an operation on the keys and values of a layer."""

    params: KVCacheParams
    options: AppendOptions = AppendOptions()
    ragged: bool = False
    static_scales: bool = False
    tiling: Tiling = Tiling()

    @property
    def dense(self) -> tuple[str, ...]:
        """The names of the arrays of rows."""
        return ("keys",) if self.params.is_mla else ("keys", "values")

    @property
    def scales(self) -> tuple[str, ...]:
        """The names of the static scales."""
        roles = [role for role, _ in _views(self.params)] if self.static_scales else []
        return tuple(f"{role}_scale" for role in roles)


@dataclass(frozen=True)
class PagesSpec:
    """The spec of an operation on pages."""

    params: KVCacheParams
    tiling: Tiling = Tiling()


@dataclass(frozen=True)
class MergeSpec:
    """The spec of an operation that merges attention."""

    heads: int
    head_dim: int
    tiling: Tiling = Tiling()


@dataclass(frozen=True)
class _Operands:
    """Operands of one type: arguments of the function, or views that it makes.

    ``text`` is the op's syntax for them, with a place for their names.
    """

    text: str
    names: tuple[str, ...]
    type: str

    def __str__(self) -> str:
        return self.text.format(", ".join(f"%{name}" for name in self.names))


def append_source(spec: LayerSpec, dtype: str, mutates: Sequence[str]) -> str:
    params = spec.params
    extra = spec.options.extra(params.head_dim, dtype)
    latent = extra.pop("latent_rope", "")
    rows = params.head_dim - (spec.options.latent_rope or 0)
    operands = [
        _Operands("{}", spec.dense, _dense_type(params, dtype, "?", rows)),
        _Operands("with {}", ("latent_rope",) if latent else (), latent),
        _view_operands(params, "to {}"),
        _Operands("rows {}", ("rows",), _NUMBERS),
        *(_Operands(f"{name} {{}}", (name,), type_) for name, type_ in extra.items()),
    ]
    return _layer_source("append", spec, operands, mutates)


def gather_source(spec: LayerSpec, dtype: str, mutates: Sequence[str]) -> str:
    dense = _dense_type(spec.params, dtype, "?" if spec.ragged else "?x?")
    offsets = ("output_offsets",) if spec.ragged else ()
    operands = [
        _view_operands(spec.params, "{}"),
        _Operands("rows {}", ("rows",), _NUMBERS),
        _Operands("outs({})", spec.dense, dense),
        _Operands("output_offsets {}", offsets, _NUMBERS),
    ]
    return _layer_source("gather", spec, operands, mutates)


def _layer_source(
    name: str,
    spec: LayerSpec,
    operands: list[_Operands],
    mutates: Sequence[str],
) -> str:
    """A function of an op with these operands, in their order, and static scales.

    The arrays of rows are the first arguments.
    """
    params = spec.params
    scale = f"memref<{params.n_kv_heads_per_device}xf32>"
    scales = [_Operands(f"{name} {{}}", (name,), scale) for name in spec.scales]
    given = [each for each in (*operands, *scales) if each.names]
    views = _view_operands(params, "").names
    types = [(name, each.type) for each in given for name in each.names]
    arguments = [(name, type_) for name, type_ in types if name not in views]
    arguments.sort(key=lambda argument: argument[0] not in spec.dense)
    attributes = [*spec.options.attributes, *spec.tiling.attributes]
    body = f"""kvcache.{name} {' '.join(map(str, given))}{attributes_text(attributes)}
      : {', '.join(type_ for _, type_ in types)}"""
    others = {"layer": "index", **dict(arguments)}
    return _function(name, params, others, mutates, body, views=True)


def _view_operands(params: KVCacheParams, text: str) -> _Operands:
    names = tuple(view.removeprefix("%") for _, view in _views(params))
    return _Operands(text, names, params.cache_type)


def copy_pages_source(spec: PagesSpec, dtype: str, mutates: Sequence[str]) -> str:
    attributes = attributes_text(spec.tiling.attributes)
    body = (
        f"kvcache.copy_pages %cache pairs %pairs{attributes} : "
        f"{spec.params.collection_type}, memref<?x2xi32>"
    )
    pairs = {"pairs": "memref<?x2xi32>"}
    return _function("copy_pages", spec.params, pairs, mutates, body, views=False)


def merge_states_source(spec: MergeSpec, dtype: str, mutates: Sequence[str]) -> str:
    heads, head_dim = spec.heads, spec.head_dim
    attributes = attributes_text(spec.tiling.attributes)
    parts = rows_type("?x?", heads, head_dim, dtype)
    out = rows_type("?", heads, head_dim, dtype)
    lses = f"memref<?x?x{heads}xf32, strided<[?, ?, 1]>>"
    lse = f"memref<?x{heads}xf32, strided<[?, 1]>>"
    types = {"parts": parts, "lses": lses, "out": out, "lse": lse}
    return f"""func.func @merge_states({_arguments(types, mutates)}) {{
  kvcache.merge_states %parts, %lses outs(%out, %lse){attributes}
      : {parts}, {lses}, {out}, {lse}
  return
}}
"""


def attention_source(
    subject: tuple[KVCacheParams, AttentionSpec], dtype: str, mutates: Sequence[str]
) -> str:
    params, spec = subject
    names = LayerSpec(params, static_scales=spec.static_scales).scales
    scales = dict.fromkeys(names, f"memref<{params.n_kv_heads_per_device}xf32>")
    others = {"layer": "index", **attention_arguments(spec, params, scales)}
    views = [view for _, view in _views(params)]
    body = attention_op(spec, params, views, scales)
    return _function("attention", params, others, mutates, body, views=True)


def _arguments(types: dict[str, str], mutates: Sequence[str]) -> str:
    """The arguments, by name. Arrays that the function does not change are marked."""
    marks = {
        name: " {llvm.readonly}"
        for name, type_ in types.items()
        if type_.startswith("memref") and name not in mutates
    }
    return ",\n    ".join(
        f"%{name}: {type_}{marks.get(name, '')}" for name, type_ in types.items()
    )


def _function(
    name: str,
    params: KVCacheParams,
    others: dict[str, str],
    mutates: Sequence[str],
    body: str,
    *,
    views: bool,
) -> str:
    """A function whose first arguments are those of ``StepInputs.collection``.

    ``others`` are the types of the other arguments, by name.
    """
    arrays = {
        "blocks": params.blocks_type,
        "lengths": _NUMBERS,
        "lut": "memref<?x?xi32>",
    }
    scales = {}
    if params.kvcache_quant_config is not None:
        scales["scales"] = params.scales_type
    types = {**arrays, "max_seq": "i32", "max_cache": "i32", **scales, **others}
    lines = [
        "%cache = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache"
        + "".join(f" {name} %{name}" for name in scales),
        f"    : {', '.join([*arrays.values(), *scales.values()])} -> "
        f"{params.collection_type}",
    ]
    if views:
        # Also for callers that do not check: one comparison of the host.
        lines += [
            f"%layers = kvcache.extent layers %cache : {params.collection_type}",
            'kvcache.check %layer below %layers, "layer"',
        ]
        lines += [
            f"{view} = kvcache.paged_view {role} %cache[%layer] : {params.collection_type}"
            for role, view in _views(params)
        ]
    text = "\n  ".join([*lines, body])
    return f"""func.func @{name}(
    {_arguments(types, mutates)}) {{
  {text}
  return
}}
"""


def _views(params: KVCacheParams) -> list[tuple[str, str]]:
    both = [("key", "%key_view"), ("value", "%value_view")]
    return both[:1] if params.is_mla else both


def _dense_type(
    params: KVCacheParams, dtype: str, rows: str, elements: int | None = None
) -> str:
    heads = params.n_kv_heads_per_device
    return rows_type(rows, heads, elements or params.head_dim, dtype)
