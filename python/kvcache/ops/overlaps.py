# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of a call that share memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..execution.arrays import check_memory
from ..devices.placement import get_extent
from ..pages.regions import locate

_MOST_WORK = 100_000
"""The most steps of ``check_apart`` for two arrays with irregular strides."""


def check_apart(written: Mapping[str, Any], read: Mapping[str, Any]) -> None:
    """Raises ``ValueError`` if a written array shares memory with another array.

    Raises ``TypeError`` for masked or sparse arrays, and those without memory.

    Slices of one tensor may be interleaved, as those of a fused projection.
    """
    check_memory(**written, **read)
    others = {name: each for name, each in read.items() if hasattr(each, "shape")}
    for name, output in written.items():
        if not hasattr(output, "shape"):
            continue
        for other, array in others.items():
            if _may_overlap(output, array) and _overlap(output, array):
                raise ValueError(
                    f"expects {name!r} to share no memory with {other!r}, got arrays "
                    "that overlap"
                )
        others[name] = output


def check_elements_apart(**written: Any) -> None:
    """Raises ``ValueError`` if elements of an array that is written share memory.

    The stride of a dimension is at least what those with smaller ones span.
    """
    check_memory(**written)
    for name, array in written.items():
        if not hasattr(array, "shape") or 0 in array.shape:
            continue
        each = array if isinstance(array, np.ndarray) else _as_addresses(array)
        span = each.itemsize
        for stride, size in sorted(zip(map(abs, each.strides), each.shape)):
            if size > 1 and stride < span:
                raise ValueError(
                    f"expects the elements of {name!r} to share no memory, got strides "
                    f"of {list(each.strides)} bytes for {list(each.shape)} elements"
                )
            span += (size - 1) * stride


def _may_overlap(one: Any, other: Any) -> bool:
    """Whether the addresses of two arrays have bytes in common."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.may_share_memory(one, other)
    ranges = _get_range(one), _get_range(other)
    if None in ranges:
        return False
    (low, high), (begin, end) = ranges  # type: ignore[misc]
    return bool(low < end and begin < high)


def _get_range(array: Any) -> tuple[int, int] | None:
    """The addresses of an array's first byte and after its last, or None."""
    if isinstance(array, np.ndarray):
        return get_extent(array) if array.size else None
    if hasattr(array, "element_size") and array.is_contiguous():  # PyTorch
        address = array.data_ptr()
        return address, address + array.nbytes
    if not hasattr(array, "__dlpack__") or not math.prod(array.shape):
        return None
    return get_extent(_as_addresses(array))


def _overlap(one: Any, other: Any) -> bool:
    """Whether two arrays have a common element; True if that takes too long to decide."""
    first, second = (
        each if isinstance(each, np.ndarray) else _as_addresses(each)
        for each in (one, other)
    )
    try:
        return np.shares_memory(first, second, max_work=_MOST_WORK)
    except np.exceptions.TooHardError:
        return True


class _Addresses:
    """The memory of an array of any library, with NumPy's array interface."""

    def __init__(self, array: Any) -> None:
        if hasattr(array, "element_size"):  # PyTorch
            address, itemsize = array.data_ptr(), array.element_size()
            strides = tuple(stride * itemsize for stride in array.stride())
        else:
            address, strides, itemsize = locate(array)
        self.__array_interface__ = {
            "version": 3,
            "data": (address, True),
            "shape": tuple(array.shape),
            "strides": strides,
            "typestr": f"|V{itemsize}",
        }


def _as_addresses(array: Any) -> np.ndarray:
    """Makes an array with equal addresses, whose elements must not be read."""
    return np.asarray(_Addresses(array))
