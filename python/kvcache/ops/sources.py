# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sources of whole-cache operations: modules with one function each.

``mutates`` are the arguments that the operation changes, by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .append_options import AppendOptions
from .arguments import Tiling, attributes_text, rows_type
from .cache_forms import NUMBERS, CacheForm, write_function

_AFTER_SCALES = ("query_out", "query_scale")
"""Operands of ``append`` after the static scales of caches."""


@dataclass(frozen=True)
class LayerSpec:
    """The spec of an operation on the keys and values of a layer.

    ``dtype`` is the MLIR type of rows.
    """

    cache: CacheForm
    dtype: str
    options: AppendOptions = AppendOptions()
    ragged: bool = False
    static_scales: bool = False
    tiling: Tiling = Tiling()

    @property
    def dense(self) -> tuple[str, ...]:
        """The names of the arrays of rows."""
        roles = (role for role in self.cache.roles if role != "rope")
        return tuple(f"{role}s" for role in roles)

    @property
    def scales(self) -> tuple[str, ...]:
        """The names of the static scales."""
        roles = self.cache.roles if self.static_scales else ()
        return tuple(f"{role}_scale" for role in roles)


@dataclass(frozen=True)
class PagesSpec:
    """The spec of an operation on pages."""

    cache: CacheForm
    tiling: Tiling = Tiling()


@dataclass(frozen=True)
class MergeSpec:
    """The spec of an operation that merges attention.

    ``dtype`` is the MLIR type of the outputs of splits, and ``out_dtype`` that of the
    merged outputs.
    """

    heads: int
    head_dim: int
    dtype: str
    out_dtype: str
    tiling: Tiling = Tiling()

    @property
    def has_scale(self) -> bool:
        """Whether calls give a scale of the merged outputs."""
        return self.out_dtype.startswith("f8")


@dataclass(frozen=True)
class _Operands:
    """Operands: arguments of the function, or views that it makes.

    ``text`` is the op's syntax for them, with a place for their names. ``types`` are
    their types by name.
    """

    text: str
    types: Mapping[str, str]

    def __str__(self) -> str:
        return self.text.format(", ".join(f"%{name}" for name in self.types))


def append_source(spec: LayerSpec, mutates: Sequence[str]) -> str:
    if spec.cache.rope is not None:
        return _append_pair_source(spec, mutates)
    params = spec.cache.params
    extra = spec.options.extra(params.head_dim, spec.dtype)
    latent = extra.pop("latent_rope", None)
    last = {name: extra.pop(name) for name in _AFTER_SCALES if name in extra}
    operands = [
        _Operands("{}", _dense_types(spec, "?", spec.options.latent_rope or 0)),
        _Operands("with {}", {"latent_rope": latent} if latent else {}),
        _Operands("to {}", spec.cache.view_types),
        _Operands("rows {}", {"row_offsets": NUMBERS}),
        *_make_operands(extra),
        *_make_operands(scale_types(spec)),
        *_make_operands(last),
    ]
    return _layer_source("append", spec, operands, mutates)


def _append_pair_source(spec: LayerSpec, mutates: Sequence[str]) -> str:
    """Writes appends to both tensors of latent rows, which have norm and rope apart."""
    options, params = spec.options, spec.cache.params
    views = spec.cache.view_types
    content = replace(
        options, latent_rope=None, rope=None, rope_begin=0, interleaved=False,
        positions=None, rope_axes=None,
    )  # fmt: skip
    rope = replace(
        options, latent_rope=None, norm=None, power_of_two=False,
        rope_begin=options.rope_begin - params.head_dim if options.rope else 0,
    )  # fmt: skip
    rows = {
        "keys": rows_type("?", 1, params.head_dim, spec.dtype),
        "latent_rope": rows_type("?", 1, options.latent_rope or 0, spec.dtype),
    }
    arguments, bodies = dict(rows), []
    for name, view, own in (
        ("keys", "key_view", content),
        ("latent_rope", "rope_view", rope),
    ):
        extra = own.extra(params.head_dim, spec.dtype)
        operands = [
            _Operands("{}", {name: rows[name]}),
            _Operands("to {}", {view: views[view]}),
            _Operands("rows {}", {"row_offsets": NUMBERS}),
            *_make_operands(extra),
        ]
        bodies.append(_op_text("append", operands, [*own.attributes, *spec.tiling.attributes]))
        arguments |= {"row_offsets": NUMBERS, **extra}
    lines = [*spec.cache.views(), *bodies]
    return write_function("append", spec.cache.arguments, arguments, mutates, lines)


def gather_source(spec: LayerSpec, mutates: Sequence[str]) -> str:
    offsets = {"output_offsets": NUMBERS} if spec.ragged else {}
    leading = "?" if spec.ragged else "?x?"
    operands = [
        _Operands("{}", spec.cache.view_types),
        _Operands("rows {}", {"row_offsets": NUMBERS}),
        _Operands("outs({})", _dense_types(spec, leading)),
        _Operands("output_offsets {}", offsets),
        *_make_operands(scale_types(spec)),
    ]
    return _layer_source("gather", spec, operands, mutates)


def _layer_source(
    name: str,
    spec: LayerSpec,
    operands: list[_Operands],
    mutates: Sequence[str],
) -> str:
    """A function of an op with these operands, in their order.

    The arrays of rows are the first arguments after those of the cache.
    """
    types = [item for each in operands for item in each.types.items()]
    views = spec.cache.view_types
    arguments = [(name, type_) for name, type_ in types if name not in views]
    arguments.sort(key=lambda argument: argument[0] not in spec.dense)
    attributes = [*spec.options.attributes, *spec.tiling.attributes]
    lines = [*spec.cache.views(), _op_text(name, operands, attributes)]
    return write_function(name, spec.cache.arguments, dict(arguments), mutates, lines)


def _op_text(name: str, operands: list[_Operands], attributes: list[str]) -> str:
    given = [each for each in operands if each.types]
    types = ", ".join(type_ for each in given for type_ in each.types.values())
    return f"""kvcache.{name} {' '.join(map(str, given))}{attributes_text(attributes)}
      : {types}"""


def _make_operands(types: Mapping[str, str]) -> list[_Operands]:
    """Operands after their names."""
    return [_Operands(f"{name} {{}}", {name: type_}) for name, type_ in types.items()]


def scale_types(spec: LayerSpec) -> dict[str, str]:
    """The types of static scales, by name."""
    scale = f"memref<{spec.cache.params.n_kv_heads_per_device}xf32>"
    return dict.fromkeys(spec.scales, scale)


def copy_pages_source(spec: PagesSpec, mutates: Sequence[str]) -> str:
    cache = dict(spec.cache.arguments)
    del cache["layer"]
    body = (
        f"kvcache.copy_pages %cache pairs %pairs{attributes_text(spec.tiling.attributes)} : "
        f"{spec.cache.collection_type}, memref<?x2xi32>"
    )
    lines = [*spec.cache.collection(), body]
    return write_function("copy_pages", cache, {"pairs": "memref<?x2xi32>"}, mutates, lines)


def merge_states_source(spec: MergeSpec, mutates: Sequence[str]) -> str:
    heads, head_dim = spec.heads, spec.head_dim
    attributes = attributes_text(spec.tiling.attributes)
    splits = rows_type("?x?", heads, head_dim, spec.dtype)
    out = rows_type("?", heads, head_dim, spec.out_dtype)
    lses = f"memref<?x?x{heads}xf32, strided<[?, ?, 1]>>"
    lse = f"memref<?x{heads}xf32, strided<[?, 1]>>"
    types = {"splits": splits, "lses": lses, "out": out, "lse": lse}
    scale = ""
    if spec.has_scale:
        types["out_scale"] = f"memref<{heads}xf32>"
        scale = " out_scale %out_scale"
    body = f"""kvcache.merge_states %splits, %lses outs(%out, %lse){scale}{attributes}
      : {', '.join(types.values())}"""
    return write_function("merge_states", {}, types, mutates, [body])


def _dense_types(spec: LayerSpec, leading: str, missing: int = 0) -> dict[str, str]:
    """The types of rows of keys and values, by name.

    ``missing`` are the last elements of rows that another array has.
    """
    types = {}
    for role, name in zip(spec.cache.roles, spec.dense):
        params = spec.cache.get_params(role)
        heads, elements = params.n_kv_heads_per_device, params.head_dim - missing
        types[name] = rows_type(leading, heads, elements, spec.dtype)
    return types
