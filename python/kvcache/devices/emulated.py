# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The device that libkvcache_emulator.so emulates: memory, tensor maps, launches."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes
from ..cache import geometry
from ..checks import check_positive
from ..errors import CheckError
from . import cuda
from .placement import get_ranges

_MAP_BYTES = 128
_L2_PROMOTIONS = (0, 64, 128, 256)


class _TensorMapFields(ctypes.Structure):
    """``KVCacheTensorMap``."""

    _fields_ = (
        ("base", c_void_p),
        ("dims", c_int64 * 5),
        ("strides", c_int64 * 5),
        ("box", c_int64 * 5),
        ("offset", c_int64),
        ("rank", c_int32),
        ("element_bytes", c_int32),
        ("swizzle", c_int32),
        ("l2_promotion", c_int32),
    )


_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "kvcacheModuleLoad": (c_void_p, POINTER(c_void_p)),
    **cuda.MEMORY_FUNCTIONS,
    "kvcacheTensorMapEncode": (POINTER(_TensorMapFields), c_void_p),
    "kvcacheLaunch": (
        *(c_void_p, c_char_p, POINTER(cuda.Launch)),
        *(POINTER(c_void_p), POINTER(c_int64), c_int64),
    ),
}


@functools.cache
def library() -> ctypes.CDLL:
    """Returns the library of the emulator."""
    loaded = cuda.open_library("kvcache_emulator", _FUNCTIONS)
    for name in ("kvcacheEmulatorRegister", "kvcacheEmulatorRegisterConstant"):
        getattr(loaded, name).argtypes = (c_void_p, c_int64)
        getattr(loaded, name).restype = None
    loaded.kvcacheEmulatorUnregister.argtypes = (c_void_p,)
    loaded.kvcacheEmulatorUnregister.restype = None
    loaded.kvcacheGetLastError.restype = c_char_p
    return loaded


def check(status: int, what: str, error: type[Exception] = CheckError) -> None:
    """Raises ``error`` for a call that failed."""
    if status:
        message = library().kvcacheGetLastError().decode(errors="replace")
        raise error(f"{what}: {message}" if what else message)


# --- Memory ---------------------------------------------------------------------------


class _Allocation:
    """Memory of the device, as bytes for NumPy. It counts as uninitialized."""

    def __init__(self, size: int) -> None:
        pointer = c_void_p()
        check(library().kvcacheMemAlloc(size, ctypes.byref(pointer)), "")
        self._pointer = pointer
        self.__array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (pointer.value or 0, False),
            "version": 3,
        }

    def __del__(self) -> None:
        if getattr(self, "_pointer", None) and library is not None:
            library().kvcacheMemFree(self._pointer)


def empty(shape: int | Sequence[int], dtype: dtypes.DTypeLike) -> np.ndarray:
    """Returns an array in uninitialized memory of the device."""
    element = dtypes.dtype(dtype)
    sides = (shape,) if isinstance(shape, int) else tuple(shape)
    size = int(np.prod(sides, dtype=np.int64)) * element.itemsize
    check_positive(size=size)
    allocation: Any = _Allocation(size)
    return np.asarray(allocation).view(element).reshape(sides)


def write(array: np.ndarray, values: Any) -> None:
    """Copies values to an array of ``empty``, or a part of one, as a host does."""
    if not _is_allocated(array) or not array.flags.c_contiguous:
        raise ValueError("expects contiguous rows of an array of 'empty'")
    given = np.ascontiguousarray(np.broadcast_to(values, array.shape), array.dtype)
    status = library().kvcacheMemCopy(
        array.ctypes.data, given.ctypes.data, given.nbytes, None
    )
    check(status, "")


def _is_allocated(array: np.ndarray) -> bool:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, _Allocation)


@contextmanager
def registered(arrays: Sequence[np.ndarray]) -> Iterator[None]:
    """Lets kernels access arrays of the host, besides memory of ``empty``."""
    ranges = get_ranges([array for array in arrays if not _is_allocated(array)])
    for found in ranges:
        register = (
            library().kvcacheEmulatorRegister
            if found.writeable
            else library().kvcacheEmulatorRegisterConstant
        )
        register(found.low, found.high - found.low)
    try:
        yield
    finally:
        for found in ranges:
            library().kvcacheEmulatorUnregister(found.low)


# --- Tensor maps ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TensorMap:
    """A tensor map of an array, for a parameter of a kernel.

    Attributes:
        array: The tensor; its last dimension is the innermost one, without gaps.
        box: The sizes of the box that one copy moves, innermost first.
        swizzle: ``"none"``, ``"32b"``, ``"64b"`` or ``"128b"``.
        l2_promotion: The bytes that a miss fetches: 0, 64, 128 or 256.
    """

    array: np.ndarray
    box: tuple[int, ...]
    swizzle: str = "none"
    l2_promotion: int = 0

    def __post_init__(self) -> None:
        span = geometry.span(self.swizzle)
        check_positive(**{f"box[{i}]": side for i, side in enumerate(self.box)})
        rank, item = self.array.ndim, self.array.itemsize
        if not 1 <= rank <= 5 or len(self.box) != rank:
            raise ValueError(
                f"expects an array of one to five dimensions and a box of as many, got "
                f"{rank} and {len(self.box)}"
            )
        if self.l2_promotion not in _L2_PROMOTIONS:
            raise ValueError(
                f"expects 'l2_promotion' to be 0, 64, 128 or 256, got {self.l2_promotion}"
            )
        if self.array.strides[-1] != item or any(s % item for s in self.array.strides):
            raise ValueError(
                "expects strides of whole elements, the last of one element, got "
                f"{self.array.strides} bytes"
            )
        object.__setattr__(self, "_span", span if self.swizzle != "none" else 0)

    def encode(self, array: np.ndarray) -> bytes:
        """Returns the 128 bytes for an array like this one, at another address."""
        rank, item = array.ndim, array.itemsize
        fields = _TensorMapFields()
        fields.base = array.ctypes.data
        fields.dims[:rank] = array.shape[::-1]
        fields.strides[:rank] = [stride // item for stride in array.strides[::-1]]
        fields.box[:rank] = self.box
        fields.rank, fields.element_bytes = rank, item
        fields.swizzle = getattr(self, "_span")  # noqa: B009, as the class is frozen
        fields.l2_promotion = self.l2_promotion
        data = cuda.pack_bytes(bytes(_MAP_BYTES))
        status = library().kvcacheTensorMapEncode(
            ctypes.byref(fields), ctypes.addressof(data)
        )
        check(status, "tensor map", ValueError)
        return bytes(data)


# --- Launches -------------------------------------------------------------------------


def launch(
    binary: int, kernel: str, what: str, shape: cuda.Launch, params: Sequence[bytes]
) -> None:
    """Launches a kernel of the module at an address, and waits for its end."""
    module = c_void_p()
    check(library().kvcacheModuleLoad(binary, ctypes.byref(module)), what)
    packed: list[ctypes.Array[c_uint8]] = list(map(cuda.pack_bytes, params))
    count = len(packed)
    pointers = (c_void_p * count)(*map(ctypes.addressof, packed))
    sizes = (c_int64 * count)(*map(len, packed))
    status = library().kvcacheLaunch(
        module, kernel.encode(), ctypes.byref(shape), pointers, sizes, count
    )
    check(status, what)
    # Its last block may wait for a later launch.
    check(library().kvcacheStreamSynchronize(None), what)
