# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of constants as arguments of operations."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..devices import cuda
from ..execution.arrays import Array
from .arguments import check_factor

Scale = float | Array | None
"""A static scale: a number, or float32 [heads]."""


@dataclass(frozen=True)
class ConstantArray:
    """A read-only array.

    Attributes:
        value: The element, or the elements of the last dimension.
        shape: The sizes.
        dtype: NumPy's name of the dtype.
    """

    value: float | tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str = "float32"

    def place(self, where: tuple[int, int] | None) -> Array:
        """Places the array in the memory of a GPU, for work of one of its streams.

        A graph that captures the work may use the array as long as the process runs.
        Without a GPU and a stream, the array is in the memory of the host.
        """
        if where is None:
            return _fill(self)
        device, stream = where
        placed = _captured.get((self, device))
        if placed is None:
            placed = _fill_device(self, device)
            if cuda.is_capturing(stream):
                _captured[self, device] = placed
        tensor: Array = placed.tensor
        return tensor


@functools.lru_cache(maxsize=1024)
def _fill(constant: ConstantArray) -> np.ndarray:
    return np.full(constant.shape, constant.value, constant.dtype)


_captured: dict[tuple[ConstantArray, int], cuda.DeviceArray] = {}
"""The arrays of graphs, by the array and the GPU: graphs don't say when they end."""


@functools.lru_cache(maxsize=1024)
def _fill_device(constant: ConstantArray, device: int) -> cuda.DeviceArray:
    return cuda.DeviceArray(_fill(constant), device, "a number for a kernel")


def place_scale(
    scale: float, elements: int, device: int, stream: int | None
) -> Array:
    """Places an array of equal elements of f32 in the memory of a GPU.

    The stream is None for the one of TVM-FFI.
    """
    if stream is None:
        stream = cuda.current_stream((), device)
    return ConstantArray(scale, (elements,)).place((device, stream))


def expand_scale(
    name: str, scale: Scale, heads: int, default: float | None = None
) -> Any:
    """Expands a scale to f32 [heads]; ``default`` if it is None."""
    if scale is None:
        scale = default
    if isinstance(scale, int | float | np.number):
        return ConstantArray(check_factor(name, scale), (heads,))
    return scale


def expand_divisor(
    name: str, scale: Scale, heads: int, default: float | None = None
) -> Any:
    """Expands a scale by which elements are divided. Raises ``ValueError`` for 0."""
    expanded = expand_scale(name, scale, heads, default)
    if isinstance(expanded, ConstantArray) and not expanded.value:
        raise ValueError(f"expects {name!r} to be a divisor other than 0, got {scale!r}")
    return expanded
