# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory of a cache's tensors: NumPy's, or that of an array library."""

from __future__ import annotations

import contextlib
import math
import mmap
from collections.abc import Sequence
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from ..checks import check_instance, check_integer


@runtime_checkable
class Memory(Protocol):
    """The interface of a device's memory that a page manager needs.

    The first dimension of tensors is pages. Tensors may be of any type that kernels
    accept: NumPy arrays on the CPU, anything that supports DLPack on a GPU.

    Work on tensors happens in the order of these calls. Any of them may raise anything;
    the contents of the page it writes are undefined then.
    """

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """Returns a C-contiguous tensor of zeros, of 1 dimension or more."""

    def view(self, tensor: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """Returns a view of a tensor of bytes [pages, bytes] with a shape and dtype.

        The tensor is divided into ``shape[0]`` equal ranges, which begin with elements
        of ``dtype``. Only for caches of several groups of layers.
        """

    def upload(self, array: np.ndarray) -> Any:
        """Copies a host array, which may change after this returns, to a new tensor."""

    def read_page(self, tensor: Any, page: int, into: np.ndarray) -> None:
        """Copies a page to C-contiguous host memory; done when this returns."""

    def write_page(self, tensor: Any, page: int, values: np.ndarray) -> None:
        """Copies a page from host memory, which may change after this returns."""

    def copy_page(self, tensor: Any, source: int, target: int) -> None:
        """Copies one page over another."""


@runtime_checkable
class Copy(Protocol):
    """Copies that an ``AsyncMemory`` has begun."""

    def poll(self) -> bool:
        """Returns whether the copies have ended; never waits.

        Raises if they have failed. They have ended then, and write no more.
        """


@runtime_checkable
class AsyncMemory(Memory, Protocol):
    """A memory whose pages are copied to the host and back while kernels run.

    Copies begin after all work submitted to the device before, and may end in any
    order. Until they end, the manager uses the pages they write for nothing else.
    """

    def allocate_host(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Returns a C-contiguous array of zeros that copies may use: pinned memory."""

    def begin_read(
        self, tensor: Any, pages: Sequence[int], host: np.ndarray, places: Sequence[int]
    ) -> Copy:
        """Begins to copy pages of a tensor to ``places`` of the host's array.

        If ``begin_read`` or ``begin_write`` raises, no copy has begun.
        """

    def begin_write(
        self, tensor: Any, pages: Sequence[int], host: np.ndarray, places: Sequence[int]
    ) -> Copy:
        """Begins to copy ``places`` of the host's array to pages of a tensor."""


# Linux allocates memory at the first write to a page, and refuses no mapping for its
# size. Python 3.11 has no name for this flag.
_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
_MADV_HUGEPAGE = getattr(mmap, "MADV_HUGEPAGE", None)


class NumPyMemory:
    """Host memory as NumPy arrays, aligned to the machine's pages.

    So they are aligned for every access of a kernel. Pages of a cache that are never
    written take no memory: a cache may be larger than the machine's memory. Linux is
    asked for huge pages, which take fewer translations of addresses; memory then grows
    by 2 MiB. ``MemoryError`` means that the address space has no room.
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
        if _MADV_HUGEPAGE is not None:
            with contextlib.suppress(OSError):  # a system without them
                mapping.madvise(_MADV_HUGEPAGE)
        memory = np.frombuffer(mapping, np.uint8, size)
        return memory.view(dtype).reshape(shape)

    def view(
        self, tensor: np.ndarray, shape: tuple[int, ...], dtype: np.dtype
    ) -> np.ndarray:
        return _take_parts(tensor, shape, dtype).view(dtype).reshape(shape)

    def upload(self, array: np.ndarray) -> np.ndarray:
        # Not a new mapping: the first access to each machine page costs more than the
        # copy. The view's base is not an array, so that nothing reads before it.
        memory = np.empty(array.nbytes + mmap.PAGESIZE, np.uint8)
        address: int = memory.__array_interface__["data"][0]  # faster than its 'ctypes'
        start = -address % mmap.PAGESIZE
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
    """No memory for pages, for a machine that only plans for others.

    Blocks and scales have their shapes and dtypes, and hold zeros that can't be
    written. Tables and lengths are NumPy arrays.
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

    The library needs ``zeros``, ``asarray`` and dtypes of NumPy's names. Its arrays
    must support indexing, assignment, views as bytes, and DLPack, as CuPy's and
    PyTorch's do. A dtype that it lacks is stored as integers of its size. Work runs on
    the library's current stream.

    Args:
        library: The module.
        options: More arguments of its ``zeros`` and ``asarray``, such as ``device``.
    """

    def __init__(self, library: Any, **options: Any) -> None:
        self._library = library
        self._options = options

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # the tensors are the caller's

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        # Zeros of bytes: a library may not be able to fill tensors of every dtype.
        in_bytes = *shape[:-1], shape[-1] * dtype.itemsize
        zeros = self._library.zeros(
            in_bytes, dtype=self._library.uint8, **self._options
        )
        return zeros.view(self._native(dtype))

    def view(self, tensor: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        parts = _take_parts(tensor, shape, dtype)
        return parts.view(self._native(dtype)).reshape(shape)

    def upload(self, array: np.ndarray) -> Any:
        # The library may keep using the memory of its argument.
        copied = np.array(array, order="C")
        return self._begin_put(copied).view(self._native(array.dtype))

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

    def _begin_put(self, array: np.ndarray) -> Any:
        """As ``_put``; PyTorch does not wait for the GPU that reads pinned memory."""
        device = self._options.get("device")
        if device is None or not hasattr(self._library, "from_numpy"):
            return self._put(array)
        if self._library.device(device).type != "cuda":
            return self._put(array)
        # PyTorch reuses the pinned memory only after the copy.
        pinned = self._library.from_numpy(array.view(np.uint8)).pin_memory()
        return pinned.to(device, non_blocking=True)

    def _as_bytes(self, tensor: Any) -> Any:
        return tensor.view(self._library.uint8)


def _take_parts(tensor: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """The first bytes of each of ``shape[0]`` equal ranges of a tensor of bytes."""
    size = math.prod(shape[1:]) * dtype.itemsize
    return tensor.reshape(shape[0], -1)[:, :size]


def _to_host(tensor: Any) -> np.ndarray:
    """Copies a tensor of any device to a NumPy array."""
    for download in ("get", "cpu"):  # CuPy's and PyTorch's
        if hasattr(tensor, download):
            tensor = getattr(tensor, download)()
            break
    return np.from_dlpack(tensor)
