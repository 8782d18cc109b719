# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies between a GPU and pinned memory of the host, in parallel with kernels."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import weakref
from ctypes import POINTER, c_int32, c_int64, c_void_p
from typing import Any

import numpy as np

from . import cuda

_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "kvcacheHostPin": (c_void_p, c_int64),
    "kvcacheHostUnpin": (c_void_p,),
    "kvcacheCopyStreamCreate": (POINTER(c_void_p),),
    "kvcacheStreamDestroy": (c_void_p,),
    "kvcacheCopiesBegin": (c_void_p, c_void_p, c_void_p, c_int64, POINTER(c_void_p)),
    "kvcacheCopiesQuery": (c_void_p, POINTER(c_int32)),
    "kvcacheCopiesEnd": (c_void_p,),
}


@functools.cache
def _library() -> Any:
    loaded = cuda.library()
    for name, arguments in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.argtypes, function.restype = arguments, c_int32
    return loaded


def pin(array: np.ndarray, device: int) -> None:
    """Pins the memory of an array of the host for as long as it lives."""
    if array.nbytes:
        address = array.ctypes.data
        with cuda.scope(device, 0):
            what = "pinned memory for swaps"
            cuda.check(_library().kvcacheHostPin(address, array.nbytes), what)
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        weakref.finalize(owner, _unpin, address, device)


def _unpin(address: int, device: int) -> None:
    with contextlib.suppress(Exception), cuda.scope(device, 0):
        _library().kvcacheHostUnpin(address)


class CopyStream:
    """A stream of a device on which only copies run."""

    def __init__(self, device: int) -> None:
        self.device = device
        self._handle = c_void_p()
        with cuda.scope(device, 0):
            status = _library().kvcacheCopyStreamCreate(ctypes.byref(self._handle))
            cuda.check(status, "stream of copies")

    def begin(self, table: np.ndarray, after: int, ends: tuple[Any, ...]) -> Copies:
        """Begins copies after all work that a stream has now.

        Args:
            table: The copies, int64 [n, 3]: target and source address, and bytes.
            after: The stream; 0 for the default stream.
            ends: The owners of the memory, kept alive until the copies have ended.
        """
        rows = np.ascontiguousarray(table, np.int64)
        event = c_void_p()
        with cuda.scope(self.device, 0):
            status = _library().kvcacheCopiesBegin(
                self._handle, after, rows.ctypes.data, len(rows), ctypes.byref(event)
            )
            cuda.check(status, "copy of pages")
        return Copies(self, event.value, ends)

    def __del__(self) -> None:
        if self._handle:
            with contextlib.suppress(Exception), cuda.scope(self.device, 0):
                _library().kvcacheStreamDestroy(self._handle)


class Copies:
    """Unfinished copies. The object waits for them before it is destroyed."""

    def __init__(
        self, stream: CopyStream, event: int | None, ends: tuple[Any, ...]
    ) -> None:
        self._stream = stream
        self._event = event
        self._ends = ends

    def poll(self) -> bool:
        """Returns whether they have ended; raises ``CheckError`` if they have failed."""
        if self._event is not None:
            has_ended = c_int32()
            with cuda.scope(self._stream.device, 0):
                status = _library().kvcacheCopiesQuery(
                    self._event, ctypes.byref(has_ended)
                )
                if status == 0 and not has_ended.value:
                    return False
                try:
                    cuda.check(status, "copy of pages")
                finally:
                    self._end()
        return True

    def wait(self) -> None:
        """Waits until they have ended; raises ``CheckError`` if they have failed."""
        if self._event is not None:
            with cuda.scope(self._stream.device, 0):
                cuda.check(self._end(), "copy of pages")

    def _end(self) -> int:
        event, self._event, self._ends = self._event, None, ()
        status: int = _library().kvcacheCopiesEnd(event)
        return status

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.wait()
