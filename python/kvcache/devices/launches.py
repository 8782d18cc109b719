# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches of compiled kernels on a GPU, without their host code."""

from __future__ import annotations

import ctypes
import operator
import re
import sys
from collections.abc import Callable, Sequence
from ctypes import POINTER, c_int64, c_void_p
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes
from . import cuda
from .tensors import find_address

if TYPE_CHECKING:
    from ..compilation.kernels import Binary, Kernel, Parameter

Sides = int | Sequence[int]
"""A number along x, or numbers along x, y and z; the last may be missing."""

_READABLE = (2, 3, 13)
"""DLPack's codes of memory that a GPU reads: its own, pinned, and managed."""

_INTEGER = re.compile(r"[su]?i(\d+)")


class LoadedBinary:
    """A module, registered with the runtime until this object is destroyed."""

    def __init__(self, binary: Binary) -> None:
        cubin = binary.known("cubin")
        data = cubin if cubin is not None else binary.ptx.encode() + b"\0"
        self._binary, self._image = cuda.make_binary(binary.module, binary.chip, data)

    def load(self) -> c_void_p:
        """Returns the module in the current context."""
        module = c_void_p()
        status = cuda.library().kvcacheModuleLoad(
            ctypes.byref(self._binary), ctypes.byref(module)
        )
        cuda.check(status, "")
        return module

    def __del__(self) -> None:
        # At the end of the process, the runtime may be unloaded already.
        if cuda is not None and hasattr(self, "_binary"):
            cuda.library().kvcacheModuleUnload(ctypes.byref(self._binary))


@dataclass(frozen=True)
class Options:
    """The options of a launch: see ``Kernel.launch``."""

    stream: Any
    device: int | None
    cluster: Sides | None
    programmatic: bool
    shared_bytes: int | None


def launch(
    kernel: Kernel,
    grid: Sides,
    block: Sides | None,
    args: Sequence[Any],
    options: Options,
) -> None:
    """Launches a kernel: see ``Kernel.launch``."""
    shape = _shape(kernel, grid, block, options)
    packed = _pack(kernel, args)
    device = options.device
    if device is None:
        device = _find_device(args)
    if options.stream is None:
        stream = cuda.current_stream(args, max(device, 0))
    else:
        stream = cuda.stream_handle(options.stream)
    shape.stream = stream
    count = len(packed)
    params = (c_void_p * count)(*map(ctypes.addressof, packed))
    sizes = (c_int64 * count)(*(parameter.size for parameter in kernel.parameters))
    with cuda.scope(device, stream):
        status = cuda.library().kvcacheLaunch(
            kernel.binary.loaded.load(),
            kernel.name.encode(),
            ctypes.byref(shape),
            ctypes.cast(params, POINTER(c_void_p)),
            ctypes.cast(sizes, POINTER(c_int64)),
            count,
        )
        cuda.check(status, f"launch of @{kernel.module}::@{kernel.name}")


# --- Shape ----------------------------------------------------------------------------


def _shape(
    kernel: Kernel, grid: Sides, block: Sides | None, options: Options
) -> cuda.Launch:
    fixed = kernel.block_size
    if block is None:
        if fixed is None:
            raise ValueError(f"expects 'block': {kernel.name} does not fix its size")
        block = fixed
    sides = parse_sides("block", block)
    if fixed is not None and sides != tuple(fixed):
        raise ValueError(
            f"expects 'block' to be {tuple(fixed)}, which {kernel.name} fixes, got {sides}"
        )
    shared = options.shared_bytes
    shape = cuda.Launch()
    shape.grid[:] = parse_sides("grid", grid)
    shape.block[:] = sides
    shape.shared_bytes = kernel.dynamic_shared_memory if shared is None else shared
    if options.cluster is not None:
        shape.cluster[:] = parse_sides("cluster", options.cluster)
    shape.is_programmatic = options.programmatic
    return shape


def parse_sides(name: str, given: Sides) -> tuple[int, int, int]:
    """Returns three numbers. Raises ``ValueError`` unless one to three are given."""
    try:
        values = tuple(
            map(operator.index, given if isinstance(given, Sequence) else (given,))
        )
    except TypeError:
        values = ()
    if not 1 <= len(values) <= 3:
        raise ValueError(
            f"expects {name!r} to be from one to three ints, got {given!r}"
        )
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


# --- Parameters -----------------------------------------------------------------------


def _pack(kernel: Kernel, args: Sequence[Any]) -> list[ctypes.Array[Any]]:
    names = [parameter.name for parameter in kernel.parameters]
    if len(args) != len(names):
        raise ValueError(
            f"{kernel.name} has {len(names)} parameters ({', '.join(names)}), got "
            f"{len(args)} arguments"
        )
    return [
        cuda.pack_bytes(_encode(kernel, parameter, value))
        for parameter, value in zip(kernel.parameters, args, strict=True)
    ]


def _encode(kernel: Kernel, parameter: Parameter, value: Any) -> bytes:
    def expects(wanted: str, got: str = "") -> str:
        got = got or describe_kind(value)
        return (
            f"{kernel.name}: parameter {parameter.name!r} expects {wanted} for "
            f"{parameter.type}, got {got}"
        )

    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        if len(data) != parameter.size:
            raise ValueError(expects(f"{parameter.size} bytes", f"{len(data)}"))
        return data
    is_descriptor = any(d.parameter == parameter.name for d in kernel.descriptors)
    if is_descriptor or parameter.size > 8:
        raise TypeError(expects(f"{parameter.size} bytes"))
    if parameter.type.startswith("!llvm.ptr"):
        return _find_address(value, expects).to_bytes(8, sys.byteorder)
    return encode_number(parameter.type, parameter.size, value, expects)


def describe_kind(value: Any) -> str:
    """Describes an argument for an error message."""
    name = type(value).__name__
    return f"{name} ({value!r:.40})" if np.isscalar(value) else name


def encode_number(
    type_name: str, size: int, value: Any, expects: Callable[[str], str]
) -> bytes:
    """Returns a number as bytes of a parameter. ``expects`` makes error messages."""
    if type_name == "index" or _INTEGER.fullmatch(type_name):
        return _encode_integer(type_name, size, value, expects)
    if not isinstance(value, int | float | np.generic):
        raise TypeError(expects("a float"))
    return np.array(float(value), dtypes.dtype(type_name)).tobytes()


def _encode_integer(
    type_name: str, size: int, value: Any, expects: Callable[[str], str]
) -> bytes:
    match = _INTEGER.fullmatch(type_name)
    bits = int(match[1]) if match else 64
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(expects("an int")) from None
    if not -(1 << bits - 1) <= number < 1 << bits:
        raise OverflowError(expects(f"an int of {bits} bits"))
    return (number % (1 << bits)).to_bytes(size, sys.byteorder)


def _find_address(value: Any, expects: Any) -> int:
    if not isinstance(value, bool) and isinstance(value, int | np.integer):
        return int(value)
    if hasattr(value, "__dlpack_device__"):
        if value.__dlpack_device__()[0] not in _READABLE:
            raise ValueError(
                expects(
                    "memory of a GPU",
                    "memory of the host: move it to the device first, for example with "
                    "tensor.to('cuda') or cupy.asarray(array)",
                )
            )
        if callable(address := getattr(value, "data_ptr", None)):
            return int(address())
    if hasattr(value, "__cuda_array_interface__"):
        return value.__cuda_array_interface__["data"][0] or 0
    if hasattr(value, "__dlpack__"):
        import tvm_ffi

        return find_address(tvm_ffi.from_dlpack(value))
    raise TypeError(expects("an array or an address"))


def _find_device(args: Sequence[Any]) -> int:
    """Returns the device of the arrays; -1 if it is unknown."""
    devices = {
        value.__dlpack_device__()[1]
        for value in args
        if hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] == 2
    }
    if len(devices) > 1:
        names = " and ".join(f"cuda:{device}" for device in sorted(devices))
        raise ValueError(f"expects arrays of one GPU, got arrays of {names}")
    return int(devices.pop()) if devices else -1
