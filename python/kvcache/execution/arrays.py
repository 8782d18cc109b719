# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arrays that compiled functions take, and the types of index tables."""

from __future__ import annotations

import functools
import re
from typing import Any, Protocol, TypeAlias

import numpy as np


class Array(Protocol):
    """An array of NumPy, or of a library with DLPack: PyTorch, JAX, CuPy, TVM-FFI."""

    @property
    def shape(self) -> Any:
        """The sizes, as integers."""

    @property
    def dtype(self) -> Any:
        """The library's dtype."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        """The memory, for another library."""


Value: TypeAlias = Array | int | float | np.generic
"""An argument: an array for a memref, or a number."""

Number: TypeAlias = int | float

Result: TypeAlias = None | Number | tuple[Number, ...]
"""The result of a function: nothing, a number, or several."""

_INTEGERS = re.compile("u?int(8|16|32|64)")
_HOST = 1
"""DLPack's code of the host's memory."""


def check_integers(rank: int, **arrays: Any) -> None:
    """Raises ``TypeError`` unless arrays are of integers, ``ValueError`` for a rank."""
    for name, array in arrays.items():
        if not hasattr(array, "shape") or not hasattr(array, "dtype"):
            raise TypeError(
                f"expects {name!r} to be an array, got {type(array).__name__}"
            )
        if not _INTEGERS.fullmatch(found := _get_dtype_name(array)):
            raise TypeError(f"expects {name!r} to be an array of integers, got {found}")
        check_memory(**{name: array})
        try:
            read_integers(array)
        except Exception as error:
            raise _explain(name, type(array).__name__) from error
        if len(array.shape) != rank:
            raise ValueError(
                f"expects {name!r} with {rank} dimensions, got {tuple(array.shape)}"
            )


def check_int32(rank: int, **arrays: Any) -> None:
    """As ``check_integers``; also raises ``TypeError`` for other than 32 bits."""
    check_integers(rank, **arrays)
    for name, array in arrays.items():
        if (found := _get_dtype_name(array))[-2:] != "32":
            raise TypeError(
                f"expects {name!r} to be an array of int32 or uint32, got {found}"
            )


def check_memory(**arrays: Any) -> None:
    """Raises ``TypeError`` for masked or sparse arrays, and those without memory."""
    for name, array in arrays.items():
        if isinstance(array, np.ndarray):
            # NumPy imports its masked arrays when they are first named.
            if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray):
                raise _explain(name, "a masked array")
        elif hasattr(array, "is_meta"):  # PyTorch
            if array.is_meta:
                raise _explain(name, "a meta tensor")
            if not _is_strided(array.layout):
                raise _explain(name, "a sparse tensor")


@functools.cache
def _is_strided(layout: object) -> bool:
    """Whether a layout of PyTorch is that of dense tensors."""
    return str(layout) == "torch.strided"


def _explain(name: str, found: str) -> TypeError:
    return TypeError(
        f"expects {name!r} to be a dense array with its elements in memory, got {found}"
    )


def read_if_integers(array: Any) -> np.ndarray | None:
    """As ``read_integers``; also None for what is no array of integers."""
    if not hasattr(array, "shape") or not hasattr(array, "dtype"):
        return None
    if not _INTEGERS.fullmatch(_get_dtype_name(array)):
        return None
    return read_integers(array)


def read_integers(array: Any) -> np.ndarray | None:
    """Returns the elements of an array in host memory; None for other memory."""
    if isinstance(array, np.ndarray):
        return array
    locate = getattr(array, "__dlpack_device__", None)
    if locate is None or locate()[0] != _HOST:
        return None
    numbers: np.ndarray = np.from_dlpack(array)
    if numbers.size and not numbers.ctypes.data:  # PyTorch can free a tensor's memory
        raise TypeError("expects an array with its elements in memory, got a null address")
    return numbers


def check_32_bits(**arrays: Any) -> None:
    """Raises ``ValueError`` for an integer that 32 bits can't represent.

    Only wider arrays in host memory are read.
    """
    for name, array in arrays.items():
        numbers = None if _get_dtype_name(array)[-2:] != "64" else read_integers(array)
        if numbers is None or not numbers.size:
            continue
        for number in (int(numbers.min()), int(numbers.max())):
            if not -(2**31) <= number < 2**32:
                raise ValueError(
                    f"expects the elements of {name!r} to have 32 bits, got {number}"
                )


def as_32_bits(name: str, array: Any, *, strided: bool = False) -> Any:
    """Converts an array of integers for kernels: 32 bits, in row-major order.

    Returns the array itself if possible, or a copy in the same kind of memory. With
    ``strided``, rows may be any distance apart.
    """
    is_narrow = _get_dtype_name(array)[-2:] == "32"
    if strided and is_narrow and _has_packed_rows(array):
        return array
    if isinstance(array, np.ndarray):
        kind = np.uint32 if array.dtype.kind == "u" else np.int32
        return np.ascontiguousarray(array, kind)
    try:
        if hasattr(array, "contiguous"):  # PyTorch
            return (array if is_narrow else array.int()).contiguous()
        array = array if is_narrow else array.astype(np.int32)
        return array if _is_packed(array) else array.copy(order="C")
    except (AttributeError, TypeError):
        raise TypeError(
            f"expects {name!r} to be of int32 or uint32 and C-contiguous, as "
            f"{type(array).__name__} can't be converted, got {_get_dtype_name(array)}"
        ) from None


def _has_packed_rows(array: Any) -> bool:
    """Whether the elements of a row are contiguous, and rows do not go backwards."""
    if isinstance(array, np.ndarray):
        if not array.dtype.isnative or any(step % array.itemsize for step in array.strides):
            return False
        strides = [step // array.itemsize for step in array.strides]
    elif callable(getattr(array, "stride", None)):  # PyTorch
        strides = list(array.stride())
    else:
        return False
    return strides[0] >= 0 and (array.shape[1] < 2 or strides[1] == 1)


def _is_packed(array: Any) -> bool:
    """Whether the array of another library is C-contiguous; those of JAX always are."""
    if hasattr(array, "is_contiguous"):  # TVM-FFI
        return bool(array.is_contiguous())
    flags = getattr(array, "flags", None)  # CuPy
    return flags is None or bool(flags.c_contiguous)


def _get_dtype_name(array: Any) -> str:
    """Returns ``"int32"`` for ``np.int32``, ``torch.int32`` and the like."""
    name = getattr(array.dtype, "name", None)
    return name if isinstance(name, str) else str(array.dtype).rpartition(".")[2]
