# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the tensors of a cache lie: NumPy's memory, or that of another array library."""

from __future__ import annotations

import math
import mmap
from typing import Any, Protocol

import numpy as np


class Memory(Protocol):
    """What a page manager needs of the memory of a device.

    Tensors have pages as their first dimension; what they are is up to the memory, but
    kernels must take them: NumPy arrays here, anything that speaks DLPack on a GPU.
    """

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """Returns a C-contiguous tensor of zeros."""

    def upload(self, array: np.ndarray) -> Any:
        """Returns the contents of a host array as a tensor of this memory."""

    def read_page(self, tensor: Any, page: int, into: np.ndarray) -> None:
        """Copies a page to host memory; done when this returns."""

    def write_page(self, tensor: Any, page: int, values: np.ndarray) -> None:
        """Copies a page from host memory, before any later work on the tensor."""

    def copy_page(self, tensor: Any, source: int, target: int) -> None:
        """Copies one page over another, before any later work on the tensor."""


class NumPyMemory:
    """Host memory as NumPy arrays, at the boundaries of the machine's pages.

    So they are aligned for every access of a kernel, and pages of a cache that are
    never written take no memory.
    """

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        size = math.prod(shape) * dtype.itemsize
        memory = np.frombuffer(mmap.mmap(-1, max(size, 1)), np.uint8, size)
        return memory.view(dtype).reshape(shape)

    def upload(self, array: np.ndarray) -> np.ndarray:
        return array

    def read_page(self, tensor: np.ndarray, page: int, into: np.ndarray) -> None:
        into[...] = tensor[page]

    def write_page(self, tensor: np.ndarray, page: int, values: np.ndarray) -> None:
        tensor[page] = values

    def copy_page(self, tensor: np.ndarray, source: int, target: int) -> None:
        tensor[target] = tensor[source]


class ArrayMemory:
    """The memory of an array library: ``ArrayMemory(torch, device="cuda")``.

    The library has ``zeros``, ``asarray`` and dtypes of NumPy's names; its arrays can be
    indexed, assigned to, viewed as bytes, and exchanged by DLPack, as CuPy's and
    PyTorch's can. A dtype that it does not have is kept as unsigned integers.

    Args:
        library: The module.
        options: What else its ``zeros`` and ``asarray`` take, such as ``device``.
    """

    def __init__(self, library: Any, **options: Any) -> None:
        self._library = library
        self._options = options

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        return self._library.zeros(shape, dtype=self._native(dtype), **self._options)

    def upload(self, array: np.ndarray) -> Any:
        return self._put(array).view(self._native(array.dtype))

    def read_page(self, tensor: Any, page: int, into: np.ndarray) -> None:
        into.view(np.uint8)[...] = _to_host(self._as_bytes(tensor[page]))

    def write_page(self, tensor: Any, page: int, values: np.ndarray) -> None:
        self._as_bytes(tensor[page])[...] = self._put(values)

    def copy_page(self, tensor: Any, source: int, target: int) -> None:
        tensor[target] = tensor[source]

    def _native(self, dtype: np.dtype) -> Any:
        bits = 8 * dtype.itemsize
        return getattr(self._library, dtype.name, None) or getattr(
            self._library, f"uint{bits}"
        )

    def _put(self, array: np.ndarray) -> Any:
        contents = np.ascontiguousarray(array).view(np.uint8)
        return self._library.asarray(contents, **self._options)

    def _as_bytes(self, tensor: Any) -> Any:
        return tensor.view(self._library.uint8)


def _to_host(tensor: Any) -> np.ndarray:
    """A NumPy array with what a tensor of any device holds."""
    for download in ("get", "cpu"):  # CuPy's and PyTorch's
        if hasattr(tensor, download):
            tensor = getattr(tensor, download)()
            break
    return np.from_dlpack(tensor)
