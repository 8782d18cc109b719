# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of ``kvcache.ops.append``, with their checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..cache.params import KVCacheParams
from ..checks import (
    check_flag,
    check_instance,
    check_integer,
    check_positive,
    check_positive_f32,
    check_size,
)
from ..dtypes import DTypeLike
from .arguments import (
    check_powers,
    check_query_heads,
    fp8_dtype,
    number_dtype,
    rows_type,
)
from .cache_forms import CacheForm


@dataclass(frozen=True)
class AppendOptions:
    """The options of ``kvcache.ops.append``, by their names there."""

    power_of_two: bool = False
    least_amax: bool = False
    norm: int | None = None
    query_norm: int | None = None
    rope: int | None = None
    rope_begin: int = 0
    interleaved: bool = False
    epsilon: float = 1e-6
    query_heads: int | None = None
    latent_rope: int | None = None
    slots: DTypeLike | None = None
    positions: DTypeLike | None = None
    rope_axes: Sequence[int] | None = None
    query_dtype: DTypeLike | None = None

    def checked(self, cache: CacheForm) -> AppendOptions:
        """Returns the checked options in a normal form. Raises as ``append`` does."""
        params = cache.params
        check_flag(power_of_two=self.power_of_two, least_amax=self.least_amax)
        check_flag(interleaved=self.interleaved)
        check_positive_f32(epsilon=self.epsilon)
        if self.power_of_two:
            check_powers(params)
        elif self.least_amax:
            raise ValueError("expects 'least_amax' only with 'power_of_two'")
        latent_rope = self._check_latent_rope(cache)
        self._check_queries(cache)
        _check_size("norm", self.norm, cache.row_dim - latent_rope)
        _check_size("query_norm", self.query_norm, params.head_dim)
        self._check_rope(cache.row_dim, latent_rope)
        slots = number_dtype("slots", self.slots)
        positions = number_dtype("positions", self.positions)
        if self.rope is not None and slots and not positions:
            raise ValueError(
                "expects 'positions' with 'rope' and 'slots', which have none"
            )
        return AppendOptions(
            bool(self.power_of_two),
            bool(self.least_amax),
            _to_int(self.norm),
            _to_int(self.query_norm),
            _to_int(self.rope),
            int(self.rope_begin),
            bool(self.interleaved),
            float(self.epsilon),
            _to_int(self.query_heads),
            latent_rope or None,
            slots,
            positions,
            self._checked_axes(),
            self._checked_query_dtype(),
        )

    def _checked_axes(self) -> tuple[int, ...] | None:
        if self.rope_axes is None:
            return None
        check_instance(Sequence, rope_axes=self.rope_axes)
        for axis in self.rope_axes:
            check_integer(rope_axes=axis)
            if axis < 0:
                raise ValueError(f"expects 'rope_axes' not to be negative, got {axis}")
        if self.rope is None or self.positions is None:
            raise ValueError("expects 'rope' and 'positions' with 'rope_axes'")
        if 2 * len(self.rope_axes) != self.rope:
            raise ValueError(
                f"expects 'rope_axes' to have a number for each of {self.rope // 2} "
                f"pairs, got {len(self.rope_axes)}"
            )
        return tuple(int(axis) for axis in self.rope_axes)

    def _check_latent_rope(self, cache: CacheForm) -> int:
        """The number of elements of a row that are a separate input."""
        if cache.rope is not None:
            return self._check_rope_tensor(cache.rope)
        if self.latent_rope is None:
            return 0
        if not cache.params.is_mla:
            raise ValueError("expects 'latent_rope' only for a latent cache")
        _check_size("latent_rope", self.latent_rope, cache.params.head_dim - 1)
        return int(self.latent_rope)

    def _check_rope_tensor(self, rope: KVCacheParams) -> int:
        """The number of elements of a separate input that has a tensor of its own."""
        if self.latent_rope not in (None, rope.head_dim):
            raise ValueError(
                "expects 'latent_rope' to be 'head_dim' of 'rope_params' "
                f"({rope.head_dim}), got {self.latent_rope!r}"
            )
        return rope.head_dim

    def _checked_query_dtype(self) -> str | None:
        if self.query_dtype is None:
            return None
        if self.query_heads is None:
            raise ValueError("expects 'query_heads' with 'query_dtype'")
        return fp8_dtype("query_dtype", self.query_dtype)

    def _check_queries(self, cache: CacheForm) -> None:
        params = cache.params
        if self.query_heads is not None and cache.rope is not None:
            raise ValueError("expects no 'query_heads' with 'rope_params'")
        if self.query_heads is None:
            if self.query_norm is not None:
                raise ValueError("expects 'query_heads' with 'query_norm'")
            return
        check_positive(query_heads=self.query_heads)
        check_query_heads(params, self.query_heads)
        if self.query_norm is None and self.rope is None and self.query_dtype is None:
            raise ValueError(
                "expects 'query_norm', 'rope' or 'query_dtype' with 'query_heads': "
                "otherwise queries stay as they are"
            )

    def _check_rope(self, row_dim: int, latent_rope: int) -> None:
        check_integer(rope_begin=self.rope_begin)
        if self.rope is None:
            if self.interleaved or self.rope_begin or self.positions is not None:
                raise ValueError(
                    "expects 'interleaved', 'rope_begin' and 'positions' only with 'rope'"
                )
            return
        check_positive(rope=self.rope)
        if self.rope % 2:
            raise ValueError(f"expects 'rope' to be even, got {self.rope}")
        first = row_dim - latent_rope if latent_rope else 0
        if not first <= self.rope_begin <= row_dim - self.rope:
            raise ValueError(
                f"expects 'rope_begin' and 'rope' to be in elements {first} to "
                f"{row_dim} of a row, got {self.rope_begin} to "
                f"{self.rope_begin + self.rope}"
            )

    @property
    def attributes(self) -> list[str]:
        """The attributes of the op, without those that equal their defaults."""
        attributes = []
        if self.norm or self.query_norm:
            attributes.append(f"epsilon = {float_text(self.epsilon)} : f32")
        if self.rope_begin:
            attributes.append(f"rope_begin = {self.rope_begin} : i64")
        attributes += [
            name
            for name in ("interleaved", "power_of_two", "least_amax")
            if getattr(self, name)
        ]
        if self.rope_axes:
            attributes.append(
                f"rope_axes = array<i64: {', '.join(map(str, self.rope_axes))}>"
            )
        return attributes

    def extra(self, head_dim: int, dtype: str) -> dict[str, str]:
        """The types of the optional arguments of calls, by name, in their order."""
        latent, heads = self.latent_rope or 0, self.query_heads or 0
        axes = f"{max(self.rope_axes) + 1}x?" if self.rope_axes else "?"
        types = {
            "latent_rope": (latent, rows_type("?", 1, latent, dtype)),
            "slots": (self.slots, f"memref<?x{self.slots}>"),
            "norm": (self.norm, f"memref<{self.norm}x{dtype}>"),
            "query_norm": (self.query_norm, f"memref<{self.query_norm}x{dtype}>"),
            "rope": (self.rope, f"memref<?x{self.rope}xf32>"),
            "positions": (self.positions, f"memref<{axes}x{self.positions}>"),
            "queries": (heads, rows_type("?", heads, head_dim, dtype)),
            "query_out": (
                self.query_dtype,
                rows_type("?", heads, head_dim, str(self.query_dtype)),
            ),
            "query_scale": (self.query_dtype, f"memref<{heads}xf32>"),
        }
        return {name: type_ for name, (wanted, type_) in types.items() if wanted}


def float_text(number: float) -> str:
    """Writes a float for MLIR, which requires a decimal point."""
    text = repr(number)
    return text if "." in text else text.replace("e", ".0e")


def _check_size(name: str, size: int | None, most: int) -> None:
    if size is not None:
        check_size(most, **{name: size})


def _to_int(value: int | None) -> int | None:
    return None if value is None else int(value)
