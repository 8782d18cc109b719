# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of the options that several operations share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .. import dtypes
from ..cache.params import KVCacheParams
from ..checks import check_instance, check_integer
from ..dtypes import DTypeLike

_DENSE = dtypes.formats("Wide", bits=(16, 32))
MXFP4 = "f4E2M1FN"
"""The type of the elements of MXFP4."""
_CONVERTED = (*_DENSE, *dtypes.formats("FP8"))
# Elements of a byte, which static scales may scale.
_BYTES = dtypes.formats("Element", bits=(8,))
# Elements of caches without scales that accesses convert.
_UNSCALED = (*_DENSE, *_BYTES)
_POWERS = dtypes.formats("Power")
_NUMBERS = ("i32", "i64")
_BLOCK_THREADS = range(32, 1024 + 1, 32)
_HEADS_PER_THREAD = range(1, 32 + 1)
_MOST_SCORE_FACTOR = 65536
_MOST_FACTOR = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Tiling:
    """Hints for the distribution of an operation's work over the threads of a GPU.

    Attributes:
        block_threads: The most threads of a thread block; None if the compiler chooses.
        heads_per_thread: The most heads that a thread loads before it stores one; None
            if the compiler chooses.
    """

    block_threads: int | None = None
    heads_per_thread: int | None = None

    def checked(self) -> Tiling:
        """Returns the checked hints as Python's integers."""
        return Tiling(
            _checked_hint("block_threads", self.block_threads, _BLOCK_THREADS),
            _checked_hint("heads_per_thread", self.heads_per_thread, _HEADS_PER_THREAD),
        )

    @property
    def attributes(self) -> list[str]:
        """The given hints as attributes of an op."""
        hints = {
            "block_threads": self.block_threads,
            "heads_per_thread": self.heads_per_thread,
        }
        return [f"{name} = {hint}" for name, hint in hints.items() if hint is not None]


def _checked_hint(name: str, hint: int | None, values: range) -> int | None:
    if hint is None:
        return None
    check_integer(**{name: hint})
    if int(hint) not in values:
        kind = f"a multiple of {values.step} from" if values.step > 1 else "from"
        raise ValueError(
            f"expects {name!r} to be {kind} {values[0]} to {values[-1]}, got {hint}"
        )
    return int(hint)


def attributes_text(attributes: list[str]) -> str:
    """The attributes of an op, after its operands."""
    return f" {{{', '.join(attributes)}}}" if attributes else ""


def check_paged(params: KVCacheParams) -> None:
    """Raises ``TypeError`` or ``ValueError`` unless a cache is paged."""
    check_instance(KVCacheParams, params=params)
    if not params.is_paged:
        raise ValueError("operations on whole caches need a paged cache")


def dense_dtype(params: KVCacheParams, dtype: DTypeLike | None) -> str:
    """The MLIR type of new rows and outputs; by default that of the cache, or bf16."""
    check_paged(params)
    own = params.dtype_shorthand
    if params.kvcache_quant_config is None and own not in _UNSCALED:
        raise ValueError(
            f"expects a cache of {', '.join(_UNSCALED)} or with scales, got {own}"
        )
    stored = dtypes.dtype(params.dtype)
    if stored.kind == "u":
        raise ValueError(f"expects a cache of signed elements, got {stored.name}")
    if dtype is not None:
        return check_dense("dtype", dtype)
    return own if own in _DENSE else "bf16"


def check_dense(name: str, dtype: DTypeLike) -> str:
    return _check_dtype(name, dtype, _DENSE)


def check_converted(name: str, dtype: DTypeLike) -> str:
    return _check_dtype(name, dtype, _CONVERTED)


def check_index_queries(name: str, dtype: DTypeLike) -> str:
    """The MLIR type of index queries; an error lists all."""
    known = *_CONVERTED, MXFP4
    wanted = f"expects {name!r} to be one of {', '.join(known)}"
    try:
        found = dtypes.mlir_name(dtype)
    except TypeError as error:
        raise TypeError(f"{wanted}, got {dtype!r}") from error
    if found not in known:
        given = dtype if isinstance(dtype, str) else np.dtype(dtype).name
        raise ValueError(f"{wanted}, got {given}")
    return found


def fp8_dtype(name: str, dtype: DTypeLike) -> str:
    return _check_dtype(name, dtype, dtypes.formats("FP8"))


def number_dtype(name: str, dtype: DTypeLike | None) -> str | None:
    """The MLIR type of an optional array of numbers."""
    return None if dtype is None else _check_dtype(name, dtype, _NUMBERS)


def _check_dtype(name: str, dtype: DTypeLike, known: tuple[str, ...]) -> str:
    found = dtypes.mlir_name(dtype)
    if found not in known:
        raise ValueError(
            f"expects {name!r} to be one of {', '.join(known)}, got {found}"
        )
    return found


def check_powers(params: KVCacheParams) -> None:
    config = params.kvcache_quant_config
    scale = dtypes.mlir_name(config.scale_dtype) if config else "no scales"
    if scale not in _POWERS:
        raise ValueError(
            f"expects scales of {', '.join(_POWERS)} with 'power_of_two', got {scale}"
        )


def check_static(params: KVCacheParams, wanted: bool) -> None:
    own = params.dtype_shorthand
    config = params.kvcache_quant_config
    if config is None:
        is_scaled = own in _BYTES
    else:
        is_scaled = config.zero_point_dtype is None
    if wanted and not is_scaled:
        raise ValueError(
            "expects a cache with scales and no zero points, or of fp8 or i8, for "
            f"'static_scales', got {own}"
        )
    if not wanted and config is None and own == "i8":
        raise ValueError("expects 'static_scales' for a cache of i8 without scales")


def check_given(name: str, value: object, wanted: bool) -> None:
    """Raises ``ValueError`` if an argument is missing, or not expected."""
    if (value is not None) != wanted:
        raise ValueError(
            f"expects {'' if wanted else 'no '}{name!r}, as the operation was made "
            f"{'with' if wanted else 'without'} it"
        )


def check_factor(name: str, value: float) -> float:
    """Returns a factor as a float.

    Raises ``ValueError`` for bools, NaN and what is infinite as float32, ``TypeError``
    for what is no number.
    """
    try:
        factor = math.nan if isinstance(value, bool | np.bool_) else float(value)
    except OverflowError:
        factor = math.inf
    except (TypeError, RuntimeError):
        factor = None
    if factor is None or isinstance(value, str | bytes):
        raise TypeError(f"expects {name!r} to be a number, got {value!r}")
    if not abs(factor) <= _MOST_FACTOR:
        range_ = " in the range of float32" if math.isfinite(factor) else ""
        raise ValueError(f"expects {name!r} to be a finite number{range_}, got {value!r}")
    return factor


def check_score_factor(name: str, value: float) -> float:
    """Returns the factor of scores as a float.

    Raises errors as ``check_factor`` does, and for factors above 2^16: tensor cores lose
    accuracy for scores from 2^24 on.
    """
    factor = check_factor(name, value)
    if abs(factor) > _MOST_SCORE_FACTOR:
        raise ValueError(
            f"expects {name!r} to be from -{_MOST_SCORE_FACTOR} to "
            f"{_MOST_SCORE_FACTOR}, got {value!r}"
        )
    return factor


def check_query_heads(params: KVCacheParams, query_heads: int) -> None:
    heads = params.n_kv_heads_per_device
    if query_heads % heads:
        raise ValueError(
            f"expects 'query_heads' to be a multiple of the cache's heads ({heads}), got "
            f"{query_heads}"
        )


def rows_type(
    leading: str, heads: int, elements: int, dtype: str, *, has_open_heads: bool = False
) -> str:
    """The type of dense rows: heads are packed, and other strides are dynamic.

    So a slice of a fused projection needs no copy. With ``has_open_heads``, heads are
    any distance apart.
    """
    open_strides = "?, " * len(leading.split("x"))
    head = "?" if has_open_heads else elements
    return (
        f"memref<{leading}x{heads}x{elements}x{dtype}, "
        f"strided<[{open_strides}{head}, 1]>>"
    )
