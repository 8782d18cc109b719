# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of other compilers on the emulator."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, dtypes
from ..checks import check_string
from ..compilation.compiler import chips
from ..devices import cuda, emulated, launches
from ..devices.emulated import TensorMap
from ..devices.emulator import Launches, parse_launches
from ..devices.placement import aligned_arrays

if TYPE_CHECKING:
    from .._kvcache import JIT

_ALIGNMENT = 256
"""Memory of a device begins at multiples of it."""


def emulate(
    source: _native.Source,
    target: str = "sm_90a",
    filename: _native.Path | None = None,
    *,
    opt_level: int = 2,
    sanitize: bool = True,
    meter: bool = False,
    assume_fences: bool = False,
) -> EmulatedModule:
    """Compiles kernels of another compiler for the emulator.

    Args:
        source: LLVM IR, such as Triton's ``.llir`` or the output of ``clang -S
            -emit-llvm --cuda-device-only``, or MLIR of the NVVM and LLVM dialects.
            Text, bitcode or bytecode as bytes, or the path of a file.
        target: The chip to emulate. A ``gpu.module`` with ``#nvvm.target`` keeps its
            own.
        filename: The source's name in diagnostics.
        opt_level: The optimization level of LLVM, 0 to 3, for the emulator's speed
            only.
        sanitize: Whether accesses are checked: bounds, uninitialized memory, races,
            copies in flight.
        meter: Whether requests to memory are counted, for ``EmulatedModule.launches``.
        assume_fences: Whether to assume fences that PTX requires but today's chips
            don't need, as Triton does: the fence of mbarriers' initialization, and
            ``tcgen05.fence``.

    Raises:
        CompileError: The source has errors, or an instruction that the emulator does
            not support.
        ValueError: An argument has an invalid value, or the source is a string that
            names a file.
        TypeError: The source or its name is of another type.

    Examples:
        >>> module = emulate('''
        ... target triple = "nvptx64-nvidia-cuda"
        ... declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
        ... define ptx_kernel void @number(ptr addrspace(1) %out) {
        ...   %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
        ...   %to = getelementptr i32, ptr addrspace(1) %out, i32 %thread
        ...   store i32 %thread, ptr addrspace(1) %to
        ...   ret void
        ... }
        ... ''')
        >>> out = np.zeros(4, np.int32)
        >>> module.kernel("number").launch(1, 4, out)
        >>> out.tolist()
        [0, 1, 2, 3]
    """
    if target not in (known := chips()):
        raise ValueError(f"unknown chip {target!r}; known are {', '.join(known)}")
    opt_level = _native.check_opt_level(opt_level)
    sanitize = _native.check_switch("sanitize", sanitize)
    meter = _native.check_switch("meter", meter)
    assume_fences = _native.check_switch("assume_fences", assume_fences)
    contents, name = _native.read_source(source, filename)
    passes = (
        f"kvcache-kernels-to-emulator{{chip={target} sanitize={int(sanitize)} "
        f"meter={int(meter)} assume-fences={int(assume_fences)}}}"
    )
    compiled, diagnostics = _native.extension().jit(
        contents, name, passes, opt_level, "emulator", False, True
    )
    _native.report(diagnostics, compiled is not None, stacklevel=2)
    return EmulatedModule(compiled, target, meter)


@dataclass(frozen=True)
class _Field:
    """A number or a pointer, in a parameter."""

    type: str
    kind: str
    offset: int
    bytes: int


@dataclass(frozen=True)
class EmulatedParameter:
    """A parameter of a kernel: its type in MLIR syntax, and its size in bytes.

    Structures are passed by value.
    """

    type: str
    size: int
    is_structure: bool
    fields: tuple[_Field, ...] = field(repr=False)


class EmulatedModule:
    """The kernels of a source, by their names in ``kernels``."""

    def __init__(self, compiled: JIT, target: str, has_meter: bool) -> None:
        self._compiled = compiled
        self._has_meter = has_meter
        self._last_launch = threading.local()
        self.target = target
        binaries = compiled.binaries
        self.kernels: Mapping[str, EmulatedKernel] = MappingProxyType(
            {
                facts["name"]: EmulatedKernel(self, binaries[facts["module"]], facts)
                for facts in json.loads(compiled.functions)
            }
        )

    def kernel(self, name: str) -> EmulatedKernel:
        """Returns a kernel. Raises ``ValueError`` if there is none of that name."""
        check_string(name=name)
        if name in self.kernels:
            return self.kernels[name]
        raise ValueError(
            f"there is no kernel {name!r}; the module has {', '.join(self.kernels)}"
        )

    def empty(
        self, shape: int | Sequence[int], dtype: dtypes.DTypeLike = np.float32
    ) -> np.ndarray:
        """Returns an array in device memory, aligned to 256 bytes.

        It is uninitialized: a kernel that uses values which neither a kernel nor
        ``write`` has written is an error. Writes by NumPy do not count.
        """
        return emulated.empty(shape, dtype)

    def write(self, array: np.ndarray, values: Any) -> None:
        """Copies values to an array of ``empty``, or to contiguous rows of one.

        Raises:
            ValueError: The array is not from ``empty``, or the shapes do not agree.
        """
        emulated.write(array, values)

    @property
    def launches(self) -> Launches:
        """The meter of the last launch by this thread.

        Raises:
            ValueError: The module was compiled without ``meter=True``.
        """
        if not self._has_meter:
            raise ValueError("nothing was counted: compile with meter=True")
        return getattr(self._last_launch, "launches", Launches())

    def _run(self, launch: Callable[[], None]) -> None:
        try:
            launch()
        finally:
            counted = self._compiled.take_meter()
            if self._has_meter:
                self._last_launch.launches = parse_launches(counted)

    def __repr__(self) -> str:
        kernels = "".join(f"\n  {kernel!r}" for kernel in self.kernels.values())
        return f"<kvcache.EmulatedModule for {self.target}:{kernels}>"


class EmulatedKernel:
    """A kernel that runs on the emulator.

    ``parameters`` are in the order of a launch. ``block_size`` is None unless the
    kernel fixes the size of its blocks.
    """

    def __init__(
        self, module: EmulatedModule, binary: int, facts: Mapping[str, Any]
    ) -> None:
        self._module = module
        self._binary = binary
        self._what = f"launch of @{facts['module']}::@{facts['name']}"
        self.name: str = facts["name"]
        self.parameters = tuple(
            EmulatedParameter(
                parameter["type"],
                parameter["bytes"],
                parameter["is_structure"],
                tuple(_Field(**part) for part in parameter["fields"]),
            )
            for parameter in facts["parameters"]
        )
        sides = (*facts["block"], 1, 1, 1)[:3] if facts["block"] else None
        self.block_size: tuple[int, int, int] | None = sides

    def launch(
        self,
        grid: launches.Sides,
        block: launches.Sides | None,
        *args: Any,
        cluster: launches.Sides | None = None,
        programmatic: bool = False,
        shared_bytes: int = 0,
    ) -> None:
        """Launches the kernel, and waits for its end.

        Sizes have one to three numbers, along x, y and z. A kernel may only access the
        memory of the arrays among its arguments, and may not write to read-only arrays.
        NumPy arrays that are less aligned than device memory are copied for the launch,
        and back.

        Args:
            grid: The number of thread blocks.
            block: Threads per thread block; None for the size that the kernel fixes.
            args: A value for each of ``parameters``: for a pointer, an array that NumPy
                or DLPack describe, or an address, such as 0; for a number, an int or a
                float; for a structure, its bytes, a ``TensorMap``, or a tuple of its
                numbers and pointers.
            cluster: Thread blocks per cluster, which divide the grid. From sm_90 on.
            programmatic: As for ``Kernel.launch``, but launches do not overlap here.
            shared_bytes: Bytes of dynamic shared memory per thread block.

        Raises:
            CheckError: The emulator found an error in the kernel, or in the launch.
            OverflowError: An integer does not fit.
            TypeError: An argument has the wrong type.
            ValueError: Arguments are too few or too many, or a size is wrong.
        """
        shape = self._shape(grid, block, cluster, programmatic, shared_bytes)
        if len(args) != len(self.parameters):
            types = ", ".join(parameter.type for parameter in self.parameters)
            raise ValueError(
                f"{self.name} has {len(self.parameters)} parameters ({types}), got "
                f"{len(args)} arguments"
            )
        values, arrays = _split(args)
        with aligned_arrays(arrays, _ALIGNMENT) as placed:
            params = [
                _encode(self.name, index, parameter, value, placed)
                for index, (parameter, value) in enumerate(
                    zip(self.parameters, values, strict=True)
                )
            ]
            with emulated.registered(placed):
                self._module._run(
                    lambda: emulated.launch(
                        self._binary, self.name, self._what, shape, params
                    )
                )

    def _shape(
        self,
        grid: launches.Sides,
        block: launches.Sides | None,
        cluster: launches.Sides | None,
        programmatic: bool,
        shared_bytes: int,
    ) -> cuda.Launch:
        if block is None:
            if self.block_size is None:
                raise ValueError(f"expects 'block': {self.name} does not fix its size")
            block = self.block_size
        shape = cuda.Launch()
        shape.grid[:] = launches.parse_sides("grid", grid)
        shape.block[:] = launches.parse_sides("block", block)
        shape.shared_bytes = shared_bytes
        if cluster is not None:
            shape.cluster[:] = launches.parse_sides("cluster", cluster)
        shape.is_programmatic = _native.check_switch("programmatic", programmatic)
        return shape

    def __repr__(self) -> str:
        types = ", ".join(parameter.type for parameter in self.parameters)
        return f"{self.name}({types})"


# --- Arguments ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    """The number of an array of a launch, and its tensor map, if any."""

    number: int
    map: TensorMap | None = None


def _split(args: Sequence[Any]) -> tuple[list[Any], list[np.ndarray]]:
    """Replaces the arrays in arguments by their numbers; returns both."""
    arrays: list[np.ndarray] = []

    def replace(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(replace, value))
        map_ = value if isinstance(value, TensorMap) else None
        array = map_.array if map_ else value
        if not isinstance(array, np.ndarray):
            if isinstance(array, np.generic) or not hasattr(array, "__dlpack__"):
                return value
            array = np.from_dlpack(array)
        arrays.append(array)
        return _Place(len(arrays) - 1, map_)

    return [replace(value) for value in args], arrays


def _encode(
    kernel: str,
    index: int,
    parameter: EmulatedParameter,
    value: Any,
    arrays: Sequence[np.ndarray],
) -> bytes:
    def expects(wanted: str, got: str = "") -> str:
        kind = "an array" if isinstance(value, _Place) else launches.describe_kind(value)
        return (
            f"{kernel}: parameter {index} expects {wanted} for {parameter.type}, got "
            f"{got or kind}"
        )

    if isinstance(value, _Place) and value.map and parameter.is_structure:
        value = value.map.encode(arrays[value.number])
    if isinstance(value, np.void):
        value = value.tobytes()
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        if len(data) != parameter.size:
            raise ValueError(expects(f"{parameter.size} bytes", f"{len(data)}"))
        return data
    if not parameter.is_structure:
        return _encode_field(parameter.fields[0], value, arrays, expects)
    if not isinstance(value, tuple):
        raise TypeError(expects("bytes, a TensorMap or a tuple"))
    if len(value) != len(parameter.fields):
        count = len(parameter.fields)
        raise ValueError(expects(f"{count} numbers and pointers", f"{len(value)}"))
    packed = bytearray(parameter.size)
    for part, given in zip(parameter.fields, value, strict=True):
        packed[part.offset : part.offset + part.bytes] = _encode_field(
            part, given, arrays, expects
        )
    return bytes(packed)


def _encode_field(
    part: _Field,
    value: Any,
    arrays: Sequence[np.ndarray],
    expects: Callable[[str], str],
) -> bytes:
    if part.kind == "other":
        raise TypeError(expects("bytes"))
    if part.kind != "pointer":
        return launches.encode_number(part.type, part.bytes, value, expects)
    if isinstance(value, _Place) and value.map is None:
        address = arrays[value.number].ctypes.data
    elif isinstance(value, int | np.integer) and not isinstance(value, bool):
        address = int(value)
    else:
        raise TypeError(expects("an array or an address"))
    return address.to_bytes(part.bytes, sys.byteorder)
