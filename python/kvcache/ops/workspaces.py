# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The workspaces of attention that splits keys."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from ..devices import cuda
from ..execution.arrays import Array
from .arguments import check_given
from .array_checks import get_sizes
from .attention_spec import AttentionSpec


class Workspaces:
    """The workspaces of an operation: the caller's, or its own for each stream.

    On the CPU, each thread has one.
    """

    def __init__(self, spec: AttentionSpec, target: str) -> None:
        self._spec = spec
        self._is_on_gpu = target.startswith("cuda")
        self._thread_workspace = threading.local()
        self._lock = threading.Lock()
        self._stream_workspaces: dict[tuple[int, int], list[cuda.DeviceArray]] = {}

    def take(
        self, given: Array | None, batch: int, arrays: Sequence[Array]
    ) -> tuple[Array, ...]:
        """The workspace as arguments; empty without one.

        The other arrays of the call determine its GPU and stream.
        """
        if not self._spec.has_workspace:
            check_given("workspace", given, False)
            return ()
        size = self._spec.count_bytes(batch)
        if given is None:
            device = cuda.find_device(arrays) if self._is_on_gpu else 0
            stream = cuda.current_stream(arrays, device) if self._is_on_gpu else 0
            given = self.find(size, device, stream)
        elif (sizes := get_sizes(given)) and sizes[0] < size:
            raise ValueError(
                f"expects 'workspace' to have at least {size} bytes for {batch} "
                f"sequences, got {sizes[0]}"
            )
        return (given,)

    def drop(self) -> None:
        """Drops the workspace of this thread, which a failed call leaves dirty.

        A GPU runs nothing more after an error of a kernel.
        """
        self._thread_workspace.array = None

    def find(self, size: int, device: int, stream: int | None) -> Array:
        """Finds the workspace of a stream of a GPU, or of this thread of the CPU.

        The stream is None for the one of TVM-FFI.
        """
        if not self._is_on_gpu:
            return self._find_on_host(size)
        if stream is None:
            stream = cuda.current_stream((), device)
        return self._find_on_gpu(size, device, stream)

    def _find_on_host(self, size: int) -> Array:
        array = getattr(self._thread_workspace, "array", None)
        if array is None or array.size < size:
            array = self._thread_workspace.array = np.zeros(size, np.int8)
        return array

    def _find_on_gpu(self, size: int, device: int, stream: int) -> Array:
        with self._lock:
            memories = self._stream_workspaces.setdefault((device, stream), [])
            have = memories[-1].tensor.shape[0] if memories else 0
            if have < size:
                # Captured graphs may use the earlier ones, whose sum is smaller than
                # this one.
                zeros = np.zeros(max(size, 2 * have), np.int8)
                memories.append(
                    cuda.DeviceArray(zeros, device, "attention's workspace")
                )
            tensor: Array = memories[-1].tensor
        return tensor
