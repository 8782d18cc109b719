# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of TVM-FFI on memory that TVM-FFI does not accept directly."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes

if TYPE_CHECKING:
    import tvm_ffi

# The memory of elements of less than a byte has a byte for each.
CODES = dtypes.dlpack_codes()

_BITS: dict[int, np.dtype[Any]] = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16)}

# The offsets of address, device, dtype and byte offset in a tensor of TVM-FFI: they are in the
# DLTensor after the header of the object (24 bytes).
_ADDRESS_OFFSET = 24
_DEVICE_OFFSET = 24 + 8
_DTYPE_OFFSET = 24 + 8 + 8 + 4
_BYTES_OFFSET = 24 + 40
_CUDA = 2


def export(array: np.ndarray, code: int | None) -> tvm_ffi.Tensor:
    """Returns a tensor on the memory of an array that NumPy alone does not export."""
    from tvm_ffi import from_dlpack

    bits = array if code is None else array.view(_BITS[array.itemsize])
    if array.flags.writeable:
        tensor = from_dlpack(bits)
    else:  # only this version of DLPack has a flag for read-only memory
        tensor = from_dlpack(bits.__dlpack__(max_version=(1, 0)))
    if code is not None:
        dtype = ctypes.c_uint32.from_address(tensor.__chandle__() + _DTYPE_OFFSET)
        dtype.value = code | 8 * array.itemsize << 8 | 1 << 16
    return tensor


def find_address(tensor: tvm_ffi.Tensor) -> int:
    """Returns the address of a tensor's first element, also before TVM-FFI 0.1.15."""
    handle = tensor.__chandle__()
    start, offset = (
        int(ctypes.c_uint64.from_address(handle + place).value)
        for place in (_ADDRESS_OFFSET, _BYTES_OFFSET)
    )
    return start + offset


def place(array: np.ndarray, address: int, device: int) -> tvm_ffi.Tensor:
    """Returns a tensor with the shape, strides and dtype of ``array`` on a GPU.

    ``address`` is the address of its first element. The memory of ``array`` is unused.
    """
    # NumPy makes no strided arrays of some of ml_dtypes' dtypes.
    bits = np.empty(1, f"V{array.itemsize}")
    template = np.lib.stride_tricks.as_strided(bits, array.shape, array.strides)
    template = template.view(array.dtype)
    tensor = export(template, CODES.get(array.dtype))
    handle = tensor.__chandle__()
    ctypes.c_uint64.from_address(handle + _ADDRESS_OFFSET).value = address
    where = (ctypes.c_int32 * 2).from_address(handle + _DEVICE_OFFSET)
    where[:] = [_CUDA, device]
    return tensor


def from_cuda_array(value: Any) -> tvm_ffi.Tensor:
    """Returns a tensor on the memory of an object with ``__cuda_array_interface__``.

    The object must live as long as the tensor. Its memory is of the current device, or
    of ``value.device`` where that is a number.
    """
    interface = value.__cuda_array_interface__
    address, _ = interface["data"]
    shape = tuple(interface["shape"])
    dtype = np.dtype(interface["typestr"])
    strides = interface.get("strides")
    if strides is None:
        strides = np.cumprod((dtype.itemsize, *shape[:0:-1]))[::-1].tolist()
        strides = strides[: len(shape)]
    template = np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides)
    device = getattr(value, "device", 0)
    return place(template, address or 0, device if isinstance(device, int) else 0)
