# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types, as NumPy, ml_dtypes and MLIR name them.

As a dtype, the package takes a NumPy or ml_dtypes dtype or scalar type
(``ml_dtypes.bfloat16``), its name (``"bfloat16"``), or MLIR's name (``"bf16"``).
NumPy's short codes are not names: its ``"i8"`` has 64 bits, MLIR's has 8.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import ml_dtypes
import numpy as np

from ._formats import FORMATS

DTypeLike = np.dtype | type | str

_FLOATS = {
    row.name: getattr(ml_dtypes, row.dtype, None) or getattr(np, row.dtype)
    for row in FORMATS
    if not row.name.startswith("i")
}
_SIGNED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}

# The dtypes whose arrays hold elements of an MLIR type, the usual one first. The
# operations on a signless integer define its sign, so both kinds are accepted.
_ARRAY_DTYPES: dict[str, tuple[np.dtype, ...]] = {
    name: tuple(map(np.dtype, dtypes))
    for name, dtypes in {
        **{name: (dtype,) for name, dtype in _FLOATS.items()},
        **{f"i{bits}": (_SIGNED[bits], _UNSIGNED[bits]) for bits in _SIGNED},
        **{f"si{bits}": (dtype,) for bits, dtype in _SIGNED.items()},
        **{f"ui{bits}": (dtype,) for bits, dtype in _UNSIGNED.items()},
        "index": (np.int64, np.uint64),
        "i1": (np.bool_,),
    }.items()
}

_MLIR_NAMES: dict[np.dtype, str] = {
    **{np.dtype(dtype): name for name, dtype in _FLOATS.items()},
    **{np.dtype(dtype): f"i{bits}" for bits, dtype in _SIGNED.items()},
    **{np.dtype(dtype): f"i{bits}" for bits, dtype in _UNSIGNED.items()},
    np.dtype(np.bool_): "i1",
    # Elements of caches whose memory is bytes of two such numbers.
    np.dtype(ml_dtypes.uint4): "i4",
}
_BY_NAME = {
    "i4": np.dtype(ml_dtypes.uint4),
    **{name: dtypes[0] for name, dtypes in _ARRAY_DTYPES.items()},
    **{dtype.name: dtype for dtype in _MLIR_NAMES},
}


def formats(*uses: str, bits: Container[int] = range(65)) -> tuple[str, ...]:
    """Returns MLIR's names of the formats with one of the uses, in the table's order.

    Args:
        uses: Names of the compiler's ``FormatUse``.
        bits: Widths of the formats, by default all.
    """
    return tuple(
        row.name
        for row in FORMATS
        if row.bits in bits and not set(uses).isdisjoint(row.uses.split(" | "))
    )


def bits(format: str) -> int:
    """Returns the width of a format, given by MLIR's name."""
    return next(row.bits for row in FORMATS if row.name == format)


def dlpack_codes() -> dict[np.dtype, int]:
    """Returns DLPack's type codes of the dtypes of ml_dtypes."""
    return {
        np.dtype(_FLOATS[row.name]): row.code
        for row in FORMATS
        if row.name in _FLOATS and hasattr(ml_dtypes, row.dtype)
    }


def array_dtypes(mlir_type: str) -> tuple[np.dtype, ...]:
    """Returns the dtypes of arrays for a memref of ``mlir_type``.

    The tuple is empty for an element type without a dtype.
    """
    return _ARRAY_DTYPES.get(mlir_type, ())


def dtype(spec: DTypeLike) -> np.dtype:
    """Returns the NumPy dtype that ``spec`` names.

    Raises ``TypeError`` unless it names one for which MLIR has a type.
    """
    result: np.dtype[Any] | None = None
    if isinstance(spec, str):
        result = _BY_NAME.get(spec)
    elif isinstance(spec, np.dtype | type):
        result = np.dtype(spec)
    if result is None or result not in _MLIR_NAMES:
        raise TypeError(
            f"expects a dtype of array elements, like 'float32', 'bf16' or "
            f"ml_dtypes.float8_e4m3fn, got {spec!r}"
        )
    return result


def mlir_name(spec: DTypeLike) -> str:
    """Returns MLIR's name of a dtype: ``"bf16"`` for ``ml_dtypes.bfloat16``.

    Integers are signless, as MLIR's operations require. MLIR's names are returned
    unchanged. Raises ``TypeError`` like ``dtype``.
    """
    if isinstance(spec, str) and spec in _ARRAY_DTYPES:
        return spec
    return _MLIR_NAMES[dtype(spec)]


def cached_dtype(name: str, spec: DTypeLike, *, is_scaled: bool = True) -> np.dtype:
    """Returns the dtype of the elements of a cache.

    Raises ``TypeError`` if ``spec``, the field ``name``, is not a dtype. Raises
    ``ValueError`` if it is unsigned and has scales: MLIR's integers are signless, but
    scaled ones are signed. Without scales, elements are only moved.
    """
    try:
        result = dtype(spec)
    except TypeError as error:
        raise TypeError(f"{name!r}: {error}") from None
    if result.kind == "u" and is_scaled:
        raise ValueError(f"expects {name!r} to be signed or a float, got {result.name}")
    return result
