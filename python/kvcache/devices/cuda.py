# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPUs of this machine: chips, streams, memory, and launches, by libkvcache_cuda.so."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_void_p
from typing import Any

import numpy as np

from .. import _native
from ..errors import CheckError, TargetError
from . import tensors
from .placement import Range, get_extent, get_ranges

_CUDA = (2, 13)
"""DLPack's codes of GPUs' memory, and of memory that the host shares."""
_ALIGNMENT = 256
"""Memory of a device begins at multiples of it."""


class Launch(ctypes.Structure):
    """``KVCacheLaunch``."""

    _fields_ = (
        ("grid", c_int64 * 3),
        ("block", c_int64 * 3),
        ("shared_bytes", c_int64),
        ("stream", c_void_p),
        ("cluster", c_int64 * 3),
        ("is_programmatic", c_int64),
    )


class Image(ctypes.Structure):
    """``KVCacheImage``."""

    _fields_ = (("chip", c_char_p), ("data", c_char_p), ("size", c_int64))


class Binary(ctypes.Structure):
    """``KVCacheBinary``."""

    _fields_ = (("name", c_char_p), ("images", POINTER(Image)), ("count", c_int64))


class _Scope(ctypes.Structure):
    _fields_ = (("context", c_void_p), ("stream", c_void_p))


# The functions for memory, which the emulator's library has as well.
MEMORY_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "kvcacheMemAlloc": (c_int64, POINTER(c_void_p)),
    "kvcacheMemFree": (c_void_p,),
    "kvcacheMemCopy": (c_void_p, c_void_p, c_int64, c_void_p),
    "kvcacheStreamSynchronize": (c_void_p,),
}

_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "kvcacheDeviceCount": (POINTER(c_int32),),
    "kvcacheDeviceCapability": (c_int32, POINTER(c_int32)),
    "kvcacheScopeEnter": (c_int32, c_void_p, POINTER(_Scope)),
    **MEMORY_FUNCTIONS,
    "kvcacheStreamIsCapturing": (c_void_p,),
    "kvcacheTensorMapEncode": (c_void_p, c_void_p),
    "kvcacheModuleLoad": (POINTER(Binary), POINTER(c_void_p)),
    "kvcacheModuleUnload": (POINTER(Binary),),
    "kvcacheKernelLoad": (POINTER(Binary), c_char_p, c_int64),
    "kvcacheLaunch": (
        *(c_void_p, c_char_p, POINTER(Launch)),
        *(POINTER(c_void_p), POINTER(c_int64), c_int64),
    ),
}


def open_library(
    name: str, functions: Mapping[str, tuple[Any, ...]]
) -> ctypes.CDLL:
    """Opens one of our libraries, with functions that return a status."""
    loaded = ctypes.CDLL(str(_native.find_library(name)))
    for function, arguments in functions.items():
        found = getattr(loaded, function)
        found.argtypes, found.restype = arguments, c_int32
    return loaded


@functools.cache
def library() -> ctypes.CDLL:
    """Returns the library, which opens the driver when a function first needs it."""
    loaded = open_library("kvcache_cuda", _FUNCTIONS)
    loaded.kvcacheScopeLeave.argtypes = (POINTER(_Scope),)
    loaded.kvcacheScopeLeave.restype = None
    loaded.kvcacheGetLastError.restype = c_char_p
    return loaded


def check(status: int, what: str, error: type[Exception] = CheckError) -> None:
    """Raises ``error`` for a call that failed."""
    if status:
        message = library().kvcacheGetLastError().decode(errors="replace")
        raise error(f"{what}: {message}" if what else message)


# --- Devices --------------------------------------------------------------------------


def find_chips() -> list[str]:
    """Returns the chips to compile for, one for each kind of GPU of this machine.

    Raises ``TargetError`` without a driver, or without a known GPU.
    """
    return list(dict.fromkeys(list_chips()))


def list_chips() -> list[str]:
    """Returns the chip of each GPU. Raises as ``find_chips`` does."""
    count = c_int32()
    wanted = "target 'cuda' needs a GPU of NVIDIA and its driver"
    check(library().kvcacheDeviceCount(ctypes.byref(count)), wanted, TargetError)
    if not count.value:
        raise TargetError(f"{wanted}: the driver finds no device")
    known = _native.extension().chips()
    found = []
    for device in range(count.value):
        capability = c_int32()
        status = library().kvcacheDeviceCapability(device, ctypes.byref(capability))
        check(status, wanted, TargetError)
        found.append(_choose_chip(capability.value, known))
    return found


def _choose_chip(capability: int, known: Sequence[str]) -> str:
    """Returns exactly this chip, or the next older one whose code runs on it."""
    for name in (f"sm_{capability}a", f"sm_{capability}"):
        if name in known:
            return name
    older = [
        name
        for name in known
        if name[-1].isdigit() and int(name.removeprefix("sm_")) <= capability
    ]
    if not older:
        raise TargetError(
            f"target 'cuda' finds a GPU of compute capability {capability // 10}."
            f"{capability % 10}, and this package compiles for {', '.join(known)}"
        )
    return max(older, key=lambda name: int(name.removeprefix("sm_")))


# --- Streams --------------------------------------------------------------------------


def stream_handle(stream: Any) -> int:
    """Returns the address of a stream.

    A stream is a number, or an object of PyTorch, CuPy, cuda-bindings, or with
    ``__cuda_stream__``, such as those of cuda-core. Raises ``TypeError`` for others.
    """
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        return int((protocol() if callable(protocol) else protocol)[1])
    for name in ("cuda_stream", "ptr"):
        if isinstance(address := getattr(stream, name, None), int):
            return address
    if isinstance(stream, bool | float | str):
        raise TypeError(f"expects a stream of CUDA, got {type(stream).__name__}")
    try:
        return int(stream)
    except (TypeError, ValueError):
        raise TypeError(
            f"expects a stream of CUDA, got {type(stream).__name__}"
        ) from None


def current_stream(values: Sequence[Any], device: int) -> int:
    """Returns the current stream of the arrays' framework, or else of TVM-FFI."""
    torch = sys.modules.get("torch")
    if torch and any(isinstance(value, torch.Tensor) for value in values):
        return int(torch.cuda.current_stream(device).cuda_stream)
    if tvm_ffi := sys.modules.get("tvm_ffi"):
        return int(tvm_ffi.get_raw_stream(tvm_ffi.device("cuda", device)))
    return 0


def is_capturing(stream: int) -> bool:
    """Whether work of the stream is captured into a graph."""
    return bool(library().kvcacheStreamIsCapturing(stream))


def find_device(values: Sequence[Any]) -> int:
    """Returns the device that the first array among ``values`` is on, or else 0."""
    found = (find_gpu(value) for value in values)
    return next((device for device in found if device is not None), 0)


def find_gpu(value: Any) -> int | None:
    """Returns the device that an array is on; None for other memory."""
    if not hasattr(value, "__dlpack_device__"):
        return None
    kind, number = value.__dlpack_device__()
    return int(number) if kind in _CUDA else None


@contextmanager
def scope(device: int, stream: int) -> Iterator[None]:
    """Makes a context of the device and the stream current for calls of the library.

    Raises ``TargetError`` without a driver, or without such a device.
    """
    outer = _Scope()
    status = library().kvcacheScopeEnter(device, stream, ctypes.byref(outer))
    check(status, "", TargetError)
    try:
        yield
    finally:
        library().kvcacheScopeLeave(ctypes.byref(outer))


class DeviceArray:
    """A copy of an array on a device, whose memory is freed with the object.

    Attributes:
        tensor: The copy, while the object lives.
    """

    def __init__(self, array: np.ndarray, device: int, what: str) -> None:
        self._device = device
        self._address = 0
        if size := array.nbytes:
            with scope(device, 0):
                self._address = _allocate(size, what)
                source = array.ctypes.data
                check(library().kvcacheMemCopy(self._address, source, size, 0), what)
                check(library().kvcacheStreamSynchronize(0), what)
        self.tensor = tensors.place(array, self._address, device)

    def __del__(self) -> None:
        if self._address:
            with scope(self._device, 0):
                library().kvcacheMemFree(self._address)


# --- Copies of arrays of the host -----------------------------------------------------


@contextmanager
def copied_arrays(
    values: Sequence[Any], device: int, stream: int
) -> Iterator[list[Any]]:
    """Yields ``values`` with tensors on the device in place of NumPy's arrays.

    The memory of the arrays is copied to the device, and back at the end. That
    allocates memory, and waits for the stream. Overlapping arrays still overlap.
    """
    with scope(device, stream):
        copies: list[tuple[Range, int, int]] = []
        try:
            for range_ in get_ranges(values):
                size = range_.high - range_.low + _ALIGNMENT
                memory = _allocate(size, "copy to the device")
                copies.append((range_, memory, memory + range_.low % _ALIGNMENT))
                _copy(copies[-1][2], range_.low, range_, stream)
            yield [_place(value, copies, device) for value in values]
            for range_, _, start in copies:
                if range_.writeable:
                    _copy(range_.low, start, range_, stream)
            check(library().kvcacheStreamSynchronize(stream), "copy to the host")
        finally:
            for _, memory, _ in copies:
                library().kvcacheMemFree(memory)


def _allocate(size: int, what: str) -> int:
    memory = c_void_p()
    check(library().kvcacheMemAlloc(size, ctypes.byref(memory)), what)
    return memory.value or 0


def _copy(to: int, source: int, range_: Range, stream: int) -> None:
    size = range_.high - range_.low
    check(library().kvcacheMemCopy(to, source, size, stream), "copy")


def _place(value: Any, copies: list[tuple[Range, int, int]], device: int) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    address = value.__array_interface__["data"][0]
    if not value.size:
        return tensors.place(value, 0, device)
    low, _ = get_extent(value)
    for range_, _, start in copies:
        if range_.low <= low < range_.high:
            return tensors.place(value, start + address - range_.low, device)
    return value


# --- Launches -------------------------------------------------------------------------


def make_binary(name: str, chip: str, data: bytes) -> tuple[Binary, Image]:
    """Returns the description of a module, and its image, which must live as long."""
    image = Image(chip.encode(), data, len(data))
    return Binary(name.encode(), ctypes.pointer(image), 1), image


def pack_bytes(data: bytes) -> ctypes.Array[c_uint8]:
    """Returns a copy of ``data`` at a multiple of 64 bytes, as descriptors require."""
    memory = (c_uint8 * (len(data) + 64))()
    start = -ctypes.addressof(memory) % 64
    packed = (c_uint8 * len(data)).from_buffer(memory, start)
    packed[:] = list(data)
    return packed
