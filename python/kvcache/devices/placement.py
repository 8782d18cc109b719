# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Placement of arrays of the host for kernels of an emulated device."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Range:
    """The bytes of arrays of a call, from ``low`` to before ``high``.

    ``origin`` is the begin of their memory.
    """

    low: int
    high: int
    origin: int
    writeable: bool


def get_extent(array: np.ndarray) -> tuple[int, int]:
    """Returns the addresses of an array's lowest byte and after its highest one."""
    address = array.__array_interface__["data"][0]
    reaches = [
        (size - 1) * stride
        for size, stride in zip(array.shape, array.strides, strict=True)
    ]
    low = address + sum(reach for reach in reaches if reach < 0)
    high = address + sum(reach for reach in reaches if reach > 0)
    return low, high + array.itemsize


def get_ranges(values: Sequence[Any]) -> list[Range]:
    """Returns the ranges of the arrays among ``values``; overlapping ones share one."""
    merged: list[Range] = []
    arrays = [v for v in values if isinstance(v, np.ndarray) and v.size]
    for array in sorted(arrays, key=get_extent):
        low, high = get_extent(array)
        if merged and low < merged[-1].high:
            merged[-1].high = max(merged[-1].high, high)
            merged[-1].writeable |= array.flags.writeable
        else:
            merged.append(Range(low, high, _get_origin(array), array.flags.writeable))
    return merged


@contextmanager
def aligned_arrays(values: Sequence[Any], alignment: int) -> Iterator[list[Any]]:
    """Yields ``values`` with the arrays in memory that begins at aligned addresses.

    Memory of a device begins at multiples of 256 bytes, NumPy's at multiples of 16. If
    an array's memory doesn't begin at a multiple of ``alignment``, it is copied to an
    aligned place, and back at the end. Overlapping arrays still overlap.
    """
    moved = [
        (range_, _copy(range_, alignment))
        for range_ in get_ranges(values)
        if range_.origin % alignment
    ]
    try:
        yield [_move(value, moved) for value in values]
    finally:
        for range_, copy in moved:
            if range_.writeable:
                ctypes.memmove(range_.low, copy.ctypes.data, copy.size)


def _get_origin(array: np.ndarray) -> int:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return get_extent(array)[0]


def _copy(range_: Range, alignment: int) -> np.ndarray:
    size = range_.high - range_.low
    memory = np.empty(size + alignment, np.uint8)
    start = (range_.low - range_.origin - memory.ctypes.data) % alignment
    copy = memory[start : start + size]
    ctypes.memmove(copy.ctypes.data, range_.low, size)
    return copy


def _move(value: Any, moved: list[tuple[Range, np.ndarray]]) -> Any:
    if not isinstance(value, np.ndarray) or not value.size:
        return value
    low, _ = get_extent(value)
    for range_, copy in moved:
        if range_.low <= low < range_.high:
            offset = value.__array_interface__["data"][0] - range_.low
            array = np.ndarray(value.shape, value.dtype, copy, offset, value.strides)
            array.flags.writeable = value.flags.writeable
            return array
    return value
