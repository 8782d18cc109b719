# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the tensors of a cache lie: in NumPy's memory, or in an array library's."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..checks import check_instance, check_integer


@runtime_checkable
class Memory(Protocol):
    """What a page manager needs of the memory of a device.

    Tensors have pages as their first dimension; what they are is up to the memory, but
    kernels must take them: NumPy arrays here, anything that speaks DLPack on a GPU.
    Work on tensors happens in the order of these calls. Any of them may raise anything;
    the page that it was to write may hold anything then.
    """

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """Returns a C-contiguous tensor of zeros, of 1 dimension or more."""

    def view(self, tensor: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """Returns what a tensor of bytes, [pages, bytes], is to others.

        The tensor is cut in ``shape[0]`` equal parts, the first bytes of each of which
        are elements of ``dtype``. Only for caches of several groups of layers.
        """

    def upload(self, array: np.ndarray) -> Any:
        """Copies a host array, which may change when this returns, to a new tensor."""

    def read_page(self, tensor: Any, page: int, into: np.ndarray) -> None:
        """Copies a page to C-contiguous host memory; done when this returns."""

    def write_page(self, tensor: Any, page: int, values: np.ndarray) -> None:
        """Copies a page from host memory, which may change when this returns."""

    def copy_page(self, tensor: Any, source: int, target: int) -> None:
        """Copies one page over another."""


@runtime_checkable
class Copy(Protocol):
    """Copies that an ``AsyncMemory`` has begun."""

    def poll(self) -> bool:
        """Whether they have ended; never waits.

        Raises if they have failed: then they have ended, and write no more.
        """


@runtime_checkable
class AsyncMemory(Memory, Protocol):
    """A memory whose pages are copied to the host and back while kernels run.

    Copies begin after all work that was given to the device before, and may end in any
    order. Until they end, the manager uses what they write for nothing else.
    """

    def allocate_host(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Returns a C-contiguous array of zeros that copies may use: pinned memory."""

    def begin_read(
        self, tensor: Any, pages: Sequence[int], host: np.ndarray, places: Sequence[int]
    ) -> Copy:
        """Begins to copy pages of a tensor to as many places of the host's array.

        ``begin_read`` and ``begin_write`` that raise have begun nothing.
        """

    def begin_write(
        self, tensor: Any, pages: Sequence[int], host: np.ndarray, places: Sequence[int]
    ) -> Copy:
        """Begins to copy such places to the pages of a tensor."""


# Linux gives memory when a page is first written, and refuses no mapping for its size.
# Python 3.11 has no name for this flag.
_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)


class NumPyMemory:
    """Host memory as NumPy arrays, at the boundaries of the machine's pages.

    So they are aligned for every access of a kernel, and pages of a cache that are
    never written take no memory: a cache may be larger than the memory of the machine.
    ``MemoryError`` tells that there is no room for the addresses.
    """

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        check_instance(np.dtype, dtype=dtype)
        if not isinstance(shape, tuple | list):
            raise TypeError(f"expects 'shape' to be a tuple of sizes, got {shape!r}")
        check_integer(**{f"shape[{i}]": side for i, side in enumerate(shape)})
        size = math.prod(map(int, shape)) * dtype.itemsize
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        try:
            mapping = mmap.mmap(-1, max(size, 1), flags)
        except (OSError, OverflowError) as error:
            message = f"no room for a tensor of {size} bytes, {shape} of {dtype.name}"
            raise MemoryError(message) from error
        memory = np.frombuffer(mapping, np.uint8, size)
        return memory.view(dtype).reshape(shape)

    def view(
        self, tensor: np.ndarray, shape: tuple[int, ...], dtype: np.dtype
    ) -> np.ndarray:
        return _take_parts(tensor, shape, dtype).view(dtype).reshape(shape)

    def upload(self, array: np.ndarray) -> np.ndarray:
        # Not mapped anew: the first access to each page of the machine costs more than
        # the copy. The view's base is no array, so that nothing looks in front of it.
        memory = np.empty(array.nbytes + mmap.PAGESIZE, np.uint8)
        start = -memory.ctypes.data % mmap.PAGESIZE
        view = memory.data[start : start + array.nbytes]
        tensor = np.frombuffer(view, np.uint8).view(array.dtype).reshape(array.shape)
        tensor[...] = array
        return tensor

    def read_page(self, tensor: np.ndarray, page: int, into: np.ndarray) -> None:
        into[...] = tensor[page]

    def write_page(self, tensor: np.ndarray, page: int, values: np.ndarray) -> None:
        tensor[page] = values

    def copy_page(self, tensor: np.ndarray, source: int, target: int) -> None:
        tensor[target] = tensor[source]


class NoMemory(NumPyMemory):
    """No memory for pages, on a machine that only plans what others do.

    Blocks and scales have their shapes and dtypes, and hold zeros that can't be written.
    Tables and lengths are NumPy arrays.
    """

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        zero = super().allocate((1,) * len(shape), dtype)
        return np.broadcast_to(zero, shape)

    def view(
        self, tensor: np.ndarray, shape: tuple[int, ...], dtype: np.dtype
    ) -> np.ndarray:
        return self.allocate(shape, dtype)

    def read_page(self, tensor: np.ndarray, page: int, into: np.ndarray) -> None:
        """Copies nothing, as ``write_page`` and ``copy_page`` do."""

    def write_page(self, tensor: np.ndarray, page: int, values: np.ndarray) -> None:
        pass

    def copy_page(self, tensor: np.ndarray, source: int, target: int) -> None:
        pass


class ArrayMemory:
    """The memory of an array library: ``ArrayMemory(torch, device="cuda")``.

    The library has ``zeros``, ``asarray`` and dtypes of NumPy's names; its arrays can
    be indexed, assigned to, viewed as bytes, and exchanged by DLPack, as CuPy's and
    PyTorch's can. A dtype that it does not have is kept as integers of its size. Work
    is done on the library's current stream.

    Args:
        library: The module.
        options: What else its ``zeros`` and ``asarray`` take, such as ``device``.
    """

    def __init__(self, library: Any, **options: Any) -> None:
        self._library = library
        self._options = options

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        # Zeros of bytes: a library need not be able to fill all that it has dtypes for.
        in_bytes = *shape[:-1], shape[-1] * dtype.itemsize
        zeros = self._library.zeros(
            in_bytes, dtype=self._library.uint8, **self._options
        )
        return zeros.view(self._native(dtype))

    def view(self, tensor: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        parts = _take_parts(tensor, shape, dtype)
        return parts.view(self._native(dtype)).reshape(shape)

    def upload(self, array: np.ndarray) -> Any:
        # The library may go on using the memory that it is given.
        copied = np.array(array, order="C")
        return self._put(copied).view(self._native(array.dtype))

    def read_page(self, tensor: Any, page: int, into: np.ndarray) -> None:
        into.view(np.uint8)[...] = _to_host(self._as_bytes(tensor[page]))

    def write_page(self, tensor: Any, page: int, values: np.ndarray) -> None:
        self._as_bytes(tensor[page])[...] = self._put(np.ascontiguousarray(values))

    def copy_page(self, tensor: Any, source: int, target: int) -> None:
        self._as_bytes(tensor[target])[...] = self._as_bytes(tensor[source])

    def _native(self, dtype: np.dtype) -> Any:
        bits = 8 * dtype.itemsize
        for name in (dtype.name, f"uint{bits}", f"int{bits}"):
            if hasattr(self._library, name):
                return getattr(self._library, name)
        raise TypeError(f"{self._library.__name__} has no dtype for {dtype.name}")

    def _put(self, array: np.ndarray) -> Any:
        return self._library.asarray(array.view(np.uint8), **self._options)

    def _as_bytes(self, tensor: Any) -> Any:
        return tensor.view(self._library.uint8)


def _take_parts(tensor: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """The first bytes of each of ``shape[0]`` equal parts of a tensor of bytes."""
    size = math.prod(shape[1:]) * dtype.itemsize
    return tensor.reshape(shape[0], -1)[:, :size]


def _to_host(tensor: Any) -> np.ndarray:
    """A NumPy array with what a tensor of any device holds."""
    for download in ("get", "cpu"):  # CuPy's and PyTorch's
        if hasattr(tensor, download):
            tensor = getattr(tensor, download)()
            break
    return np.from_dlpack(tensor)
