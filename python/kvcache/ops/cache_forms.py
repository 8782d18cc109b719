# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The forms in which steps give a cache to operations: its tensors and its table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..cache.params import KVCacheParams
from ..checks import check_flag, check_instance
from ..dtypes import DTypeLike
from ..pages.inputs import TABLES
from .arguments import check_static, dense_dtype

NUMBERS = "memref<?xi32>"
_TABLE = "memref<?x?xi32, strided<[?, 1]>>"
"""A table whose rows may be any distance apart, as those of a larger table."""

FUNCTION_NAMES = (
    *("blocks", "lengths", "lut", "table_index", "max_seq", "max_cache", "scales"),
    *("key_blocks", "value_blocks", "key_scales", "value_scales", "row_offsets"),
    *("cache", "layers", "key_view", "value_view", "rope_blocks", "rope_view"),
)
"""Names in the functions, which arrays of users can't have."""


@dataclass(frozen=True)
class CacheForm:
    """The cache of an operation, and the form in which steps give it.

    Attributes:
        params: The parameters of the cache, or of keys alone.
        values: The parameters of values.
        separate: Whether each layer has a tensor of keys and another of values.
        table: The kind of lookup table, one of ``TABLES``.
        rope: The parameters of the last elements of latent rows, if they have a tensor
            of their own.
        keys_only: Whether the operation leaves out values with tensors of their own.
    """

    params: KVCacheParams
    values: KVCacheParams
    separate: bool = False
    table: str = "dense"
    rope: KVCacheParams | None = None
    keys_only: bool = False

    @classmethod
    def of(
        cls,
        params: KVCacheParams,
        separate: bool = False,
        value_params: KVCacheParams | None = None,
        table: str = "dense",
        rope_params: KVCacheParams | None = None,
        keys_only: bool = False,
    ) -> CacheForm:
        """Checks the arguments of the functions of ``kvcache.ops``."""
        check_instance(KVCacheParams, params=params)
        check_flag(separate=separate)
        if table not in TABLES:
            known = ", ".join(map(repr, TABLES))
            raise ValueError(f"expects 'table' to be one of {known}, got {table!r}")
        if value_params is not None:
            check_instance(KVCacheParams, value_params=value_params)
            if not separate:
                raise ValueError("expects 'value_params' only with 'separate'")
            _check_values(params, value_params)
        if rope_params is not None:
            check_instance(KVCacheParams, rope_params=rope_params)
            if not separate:
                raise ValueError("expects 'rope_params' only with 'separate'")
            _check_rope(params, rope_params)
        values = value_params or params
        keys_only = keys_only and bool(separate)
        return cls(params, values, bool(separate), table, rope_params, keys_only)

    @cached_property
    def roles(self) -> tuple[str, ...]:
        if self.rope is not None:
            return ("key", "rope")
        is_alone = self.params.is_mla or self.keys_only
        return ("key",) if is_alone else ("key", "value")

    @property
    def row_dim(self) -> int:
        """The number of elements of a key, also if they are in two tensors."""
        return self.params.head_dim + (self.rope.head_dim if self.rope else 0)

    def get_params(self, role: str) -> KVCacheParams:
        """The parameters of keys, values or ropes."""
        if role == "rope" and self.rope is not None:
            return self.rope
        return self.values if role == "value" else self.params

    def view_type(self, role: str) -> str:
        """The dialect's type of a layer's keys or values."""
        return self._write(self.get_params(role).cache_type)

    @cached_property
    def view_types(self) -> Mapping[str, str]:
        """The dialect's types of the views, by their names in the function."""
        return {f"{role}_view": self.view_type(role) for role in self.roles}

    @property
    def collection_type(self) -> str:
        return self._write(self.params.collection_type)

    def _write(self, text: str) -> str:
        """Adds the kind of table to a type."""
        if self.table == "dense":
            return text
        return f"{text.removesuffix('>')}, table = {self.table}>"

    # --- Functions ------------------------------------------------------------------

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        """The names of the tensors of the cache."""
        return (*self.blocks, *self.scales)

    @cached_property
    def arguments(self) -> Mapping[str, str]:
        """The types of the first arguments of a function, by name.

        They are in the order of ``StepInputs.operands``.
        """
        return {
            **self.blocks,
            "lengths": NUMBERS,
            "lut": NUMBERS if self.table == "csr" else _TABLE,
            **({} if self.table == "dense" else {"table_index": NUMBERS}),
            "max_seq": "i32",
            "max_cache": "i32",
            **self.scales,
            **({} if self.separate else {"layer": "index"}),
        }

    @cached_property
    def blocks(self) -> Mapping[str, str]:
        """The types of the blocks, by name."""
        if not self.separate:
            return {"blocks": self.params.blocks_type}
        return {
            f"{role}_blocks": self.get_params(role).layer_blocks_type
            for role in self.roles
        }

    @cached_property
    def scales(self) -> Mapping[str, str]:
        """The types of the scales, by name."""
        if not self.separate:
            has_scales = self.params.kvcache_quant_config is not None
            return {"scales": self.params.scales_type} if has_scales else {}
        return {
            f"{role}_scales": self.get_params(role).layer_scales_type
            for role in self.roles
            if self.get_params(role).kvcache_quant_config is not None
        }

    def views(self) -> list[str]:
        """The lines that make the views of a layer, from the arguments."""
        if not self.separate:
            return [*self.collection(), *self._layer_views()]
        return [self._bundle("paged_cache", role) for role in self.roles]

    def collection(self) -> list[str]:
        """The line that makes the collection of all layers."""
        return [self._bundle("paged_collection", "")]

    def _layer_views(self) -> list[str]:
        type_ = self.collection_type
        # Also for callers that do not check: one comparison of the host.
        lines = [
            f"%layers = kvcache.extent layers %cache : {type_}",
            'kvcache.check %layer below %layers, "layer"',
        ]
        lines += [
            f"%{role}_view = kvcache.paged_view {role} %cache[%layer] : {type_}"
            for role in self.roles
        ]
        return lines

    def _bundle(self, op: str, role: str) -> str:
        prefix = f"{role}_" if role else ""
        types = self.arguments
        index = " index %table_index" if "table_index" in types else ""
        index_type = f" index {types['table_index']}" if index else ""
        has_scales = f"{prefix}scales" in types
        scales = f" scales %{prefix}scales" if has_scales else ""
        scales_type = f", {types[f'{prefix}scales']}" if has_scales else ""
        result = self.view_type(role) if role else self.collection_type
        name = f"{role}_view" if role else "cache"
        return (
            f"%{name} = kvcache.{op} %{prefix}blocks, %lengths, %lut{index}, %max_seq, "
            f"%max_cache{scales}\n    : {types[f'{prefix}blocks']}, {types['lengths']}, "
            f"{types['lut']}{index_type}{scales_type} -> {result}"
        )


def prefix_names(lines: Sequence[str], names: Sequence[str], prefix: str) -> list[str]:
    """Prefixes names in lines, for a function with two caches."""
    pattern = re.compile(rf"%({'|'.join(map(re.escape, names))})\b")
    return [pattern.sub(rf"%{prefix}\1", line) for line in lines]


def check_cache(cache: CacheForm, dtype: DTypeLike | None, static_scales: bool) -> str:
    """Checks the cache of an operation; returns the MLIR type of its rows."""
    name = dense_dtype(cache.params, dtype)
    check_static(cache.params, static_scales)
    if static_scales and cache.rope is not None:
        raise ValueError("expects no 'static_scales' with 'rope_params'")
    if cache.values is not cache.params:
        dense_dtype(cache.values, dtype)
        check_static(cache.values, static_scales)
    return name


def _check_values(params: KVCacheParams, values: KVCacheParams) -> None:
    if params.is_mla or values.is_mla:
        raise ValueError("expects no 'value_params' for a latent cache")
    for name in ("n_kv_heads_per_device", "page_size"):
        wanted, found = getattr(params, name), getattr(values, name)
        if wanted != found:
            raise ValueError(
                f"expects {name!r} of 'value_params' to be that of 'params' ({wanted}), "
                f"got {found}"
            )


def _check_rope(params: KVCacheParams, rope: KVCacheParams) -> None:
    if not (params.is_mla and rope.is_mla):
        raise ValueError(
            "expects 'rope_params' only for a latent cache, and latent themselves"
        )
    if rope.page_size != params.page_size:
        raise ValueError(
            "expects 'page_size' of 'rope_params' to be that of 'params' "
            f"({params.page_size}), got {rope.page_size}"
        )
    if rope.kvcache_quant_config or rope.dtype_shorthand not in ("f32", "f16", "bf16"):
        raise ValueError(
            "expects 'rope_params' of f32, f16 or bf16 without scales, got "
            f"{rope.cache_type}"
        )


def write_function(
    name: str,
    cache: Mapping[str, str],
    others: Mapping[str, str],
    mutates: Sequence[str],
    lines: Sequence[str],
) -> str:
    """Writes a function: the types of its arguments by name, and its lines.

    Args:
        name: The name of the function.
        cache: The arguments of ``CacheForm.arguments``, or none.
        others: The other arguments.
        mutates: The arguments that the function changes. Other arrays are marked.
        lines: The body.
    """
    body = "\n  ".join(lines)
    return f"""func.func @{name}(
    {_write_arguments({**cache, **others}, mutates)}) {{
  {body}
  return
}}
"""


def _write_arguments(types: Mapping[str, str], mutates: Sequence[str]) -> str:
    marks = {
        name: " {llvm.readonly}"
        for name, type_ in types.items()
        if type_.startswith("memref") and name not in mutates
    }
    return ",\n    ".join(
        f"%{name}: {type_}{marks.get(name, '')}" for name, type_ in types.items()
    )
