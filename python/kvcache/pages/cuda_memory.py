# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory of a GPU, with swaps in parallel with kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..devices import cuda
from ..devices.copies import Copies, CopyStream, pin
from .memory import ArrayMemory, NumPyMemory
from .regions import locate


class CUDAMemory(ArrayMemory):
    """An ``ArrayMemory`` of a GPU with asynchronous copies: ``CUDAMemory(torch,
    device="cuda")``.

    Host memory for swaps is pinned, all of it when the manager is made. Pages move on
    separate streams, after the work that the kernels' stream has when the swap begins,
    and in parallel with later work. The bytes of a page have the same order on the host
    and the device.

    Args:
        library: PyTorch, CuPy, or another library as for ``ArrayMemory``.
        stream: A function that returns the stream of the kernels: a number, or an
            object as for ``jit``'s calls. By default, PyTorch's current stream for its
            tensors, and the default stream for others.
        options: As for ``ArrayMemory``.
    """

    def __init__(
        self,
        library: Any,
        *,
        stream: Callable[[], Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(library, **options)
        self._stream = stream
        self._device = -1
        # One stream per device and direction.
        self._streams: dict[tuple[int, bool], CopyStream] = {}

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        tensor = super().allocate(shape, dtype)
        self._device = cuda.find_device([tensor])
        return tensor

    def allocate_host(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        array = NumPyMemory().allocate(shape, dtype)
        pin(array, self._device)
        return array

    def begin_read(
        self, tensor: Any, pages: Sequence[int], host: np.ndarray, places: Sequence[int]
    ) -> Copies:
        return self._begin(tensor, pages, host, places, is_read=True)

    def begin_write(
        self, tensor: Any, pages: Sequence[int], host: np.ndarray, places: Sequence[int]
    ) -> Copies:
        return self._begin(tensor, pages, host, places, is_read=False)

    # On the copy streams, so in order with ``begin_read`` and ``begin_write``.
    def read_page(self, tensor: Any, page: int, into: np.ndarray) -> None:
        self.begin_read(tensor, [page], into[None], [0]).wait()

    def write_page(self, tensor: Any, page: int, values: np.ndarray) -> None:
        contiguous = np.ascontiguousarray(values)
        self.begin_write(tensor, [page], contiguous[None], [0]).wait()

    def _begin(
        self,
        tensor: Any,
        pages: Sequence[int],
        host: np.ndarray,
        places: Sequence[int],
        is_read: bool,
    ) -> Copies:
        device = cuda.find_device([tensor])
        if (device, is_read) not in self._streams:
            self._streams[device, is_read] = CopyStream(device)
        if self._stream:
            after = cuda.stream_handle(self._stream())
        else:
            after = cuda.current_stream([tensor], device)
        on_device, on_host, length = _describe(tensor, pages, host, places)
        ends = (on_host, on_device) if is_read else (on_device, on_host)
        lengths = np.full(len(on_device), length)
        table = _join(np.stack([*ends, lengths], axis=1))
        return self._streams[device, is_read].begin(table, after, (tensor, host))


def _describe(
    tensor: Any, pages: Sequence[int], host: np.ndarray, places: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, int]:
    """The contiguous runs of pages: addresses on the device and the host, and bytes."""
    address, strides, length = locate(tensor)
    offsets = np.zeros(1, np.int64)
    # From the fastest dimension on.
    for stride, size in sorted(zip(strides[1:], tensor.shape[1:], strict=True)):
        if len(offsets) == 1 and (stride == length or size == 1):
            length *= size
        else:
            offsets = np.add.outer(np.arange(size) * stride, offsets).reshape(-1)
    own = address + np.array(pages, np.int64) * strides[0]
    start, page_bytes = host.ctypes.data, len(offsets) * length
    other = start + np.array(places, np.int64) * page_bytes
    return (
        np.add.outer(own, offsets).reshape(-1),
        np.add.outer(other, np.arange(len(offsets)) * length).reshape(-1),
        length,
    )


def _join(table: np.ndarray) -> np.ndarray:
    """Merges copies [n, 3] that are contiguous at both ends."""
    table = table[table[:, 0].argsort()]
    ends = table[:-1, :2] + table[:-1, 2:]
    firsts = np.flatnonzero(np.r_[True, (table[1:, :2] != ends).any(axis=1)])
    joined = table[firsts]
    joined[:, 2] = np.add.reduceat(table[:, 2], firsts)
    return joined
