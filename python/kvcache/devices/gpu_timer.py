# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPUs of this machine by model and driver, and times of their work by events."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import CheckError, TargetError
from . import cuda

_MULTIPROCESSORS, _L2_BYTES, _SHARED_BYTES = 16, 38, 81
"""Attributes of the driver."""
_NOT_READY = 600
_L2_TIMES = 4
"""Bytes written between calls, in sizes of the L2 cache."""
_OUTLIER = 5
"""Deviations above the median from which on a time is an outlier."""
_POLL_SECONDS = 20e-6
_VERSION = Path("/proc/driver/nvidia/version")

_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuDriverGetVersion": (c_void_p,),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (c_void_p, c_int, c_int),
    "cuEventCreate": (c_void_p, c_uint),
    "cuEventDestroy_v2": (c_void_p,),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventQuery": (c_void_p,),
    "cuEventElapsedTime": (c_void_p, c_void_p, c_void_p),
    "cuMemsetD8Async": (c_uint64, c_ubyte, c_size_t, c_void_p),
}


@dataclass(frozen=True)
class Model:
    """The model of a GPU, for which times are measured.

    Attributes:
        gpu: The name that the driver gives.
        chip: The chip that kernels are compiled for.
        driver: The version of the driver.
        multiprocessors: Their number.
        l2_bytes: The bytes of the L2 cache.
        shared_bytes: The bytes of shared memory of a multiprocessor.
    """

    gpu: str
    chip: str
    driver: str
    multiprocessors: int
    l2_bytes: int
    shared_bytes: int


@functools.cache
def _driver() -> ctypes.CDLL:
    """The driver's library, which our own library opens as well."""
    name = os.environ.get("KVCACHE_CUDA_DRIVER") or "libcuda.so.1"
    try:
        loaded = ctypes.CDLL(name)
        for function, arguments in _FUNCTIONS.items():
            found = getattr(loaded, function)
            found.argtypes, found.restype = arguments, c_int
    except (OSError, AttributeError) as error:
        raise TargetError(f"no CUDA driver: {error}") from error
    return loaded


def _call(name: str, *arguments: Any) -> None:
    """Calls a function of the driver. Raises ``CheckError`` if it fails."""
    if status := getattr(_driver(), name)(*arguments):
        raise CheckError(f"{name}: CUDA error {status}")


def _get_attribute(code: int, device: int) -> int:
    value = c_int()
    _call("cuDeviceGetAttribute", byref(value), code, device)
    return value.value


def _find_version() -> str:
    """The version of NVIDIA's kernel module, or of CUDA if that is unknown."""
    try:
        words = _VERSION.read_text(errors="replace").splitlines()[0].split()
        return next(word for word in words if word[0].isdigit())
    except (OSError, IndexError, StopIteration):
        version = c_int()
        _call("cuDriverGetVersion", byref(version))
        return f"CUDA {version.value // 1000}.{version.value % 1000 // 10}"


def find_model(device: int) -> Model:
    """Describes a GPU. Raises ``TargetError`` without a driver or such a GPU."""
    chips = cuda.list_chips()
    if not 0 <= device < len(chips):
        raise TargetError(f"expects 'device' to be from 0 to {len(chips) - 1}, got {device}")
    name = ctypes.create_string_buffer(256)
    _call("cuDeviceGetName", name, len(name), device)
    gpu = name.value.decode(errors="replace")
    codes = _MULTIPROCESSORS, _L2_BYTES, _SHARED_BYTES
    numbers = (_get_attribute(code, device) for code in codes)
    return Model(gpu, chips[device], _find_version(), *numbers)


@functools.cache
def find_models() -> tuple[Model, ...]:
    """Describes all GPUs of this machine; empty without a driver or a known GPU."""
    try:
        return tuple(map(find_model, range(len(cuda.list_chips()))))
    except (TargetError, CheckError):
        return ()


class HungError(CheckError):
    """A kernel has not ended in time. It can't be stopped."""


def summarize(times: Sequence[float]) -> float | None:
    """The median of times without outliers; None if most are no positive numbers."""
    valid = [time for time in times if math.isfinite(time) and time > 0]
    if 2 * len(valid) <= len(times):
        return None
    import statistics  # not where no time is measured

    middle = statistics.median(valid)
    deviation = statistics.median(abs(time - middle) for time in valid)
    most = middle + _OUTLIER * max(deviation, middle / 100)
    return statistics.median(time for time in valid if time <= most)


class GPUTimer:
    """Measures calls on the current stream of a GPU, each with a cold L2 cache."""

    def __init__(self, device: int, l2_bytes: int) -> None:
        self._device = device
        self._size = _L2_TIMES * l2_bytes
        self._is_hung = False
        self._memory = c_void_p()
        if self._size:
            with cuda.scope(device, 0):
                status = cuda.library().kvcacheMemAlloc(self._size, byref(self._memory))
                cuda.check(status, "memory to clear the L2 cache")

    def close(self) -> None:
        """Frees the memory that clears the L2 cache, unless that would wait forever."""
        if self._memory.value and not self._is_hung:
            with cuda.scope(self._device, 0):
                cuda.library().kvcacheMemFree(self._memory)
            self._memory = c_void_p()

    def measure(
        self, call: Callable[[], object], count: int, seconds: float
    ) -> list[float]:
        """Returns the microseconds of calls, which the GPU gets all at once.

        Raises ``HungError`` if they have not ended after ``seconds``, and
        ``CheckError`` if a kernel fails.
        """
        stream = _find_stream(self._device)
        with cuda.scope(self._device, stream):
            events = [c_void_p() for _ in range(2 * count)]
            for event in events:
                _call("cuEventCreate", byref(event), 0)
            try:
                for first, last in zip(events[::2], events[1::2]):
                    self._clear_cache(stream)
                    _call("cuEventRecord", first, stream)
                    call()
                    _call("cuEventRecord", last, stream)
                self._wait(events[-1], seconds)
                return list(map(_get_elapsed, events[::2], events[1::2]))
            finally:
                for event in events:
                    _driver().cuEventDestroy_v2(event)

    def _clear_cache(self, stream: int) -> None:
        if self._memory.value:
            _call("cuMemsetD8Async", self._memory.value, 0, self._size, stream)

    def _wait(self, event: c_void_p, seconds: float) -> None:
        end = time.monotonic() + seconds
        while status := _driver().cuEventQuery(event):
            if status != _NOT_READY:
                raise CheckError(f"cuEventQuery: CUDA error {status}")
            if time.monotonic() > end:
                self._is_hung = True
                raise HungError(f"a kernel has not ended within {seconds:.3g} s")
            time.sleep(_POLL_SECONDS)


def _find_stream(device: int) -> int:
    """The current stream of PyTorch if it uses GPUs, or else of TVM-FFI."""
    torch = sys.modules.get("torch")
    if torch and torch.cuda.is_initialized():
        return int(torch.cuda.current_stream(device).cuda_stream)
    return cuda.current_stream((), device)


def _get_elapsed(first: c_void_p, last: c_void_p) -> float:
    milliseconds = c_float()
    _call("cuEventElapsedTime", byref(milliseconds), first, last)
    return 1000 * milliseconds.value
