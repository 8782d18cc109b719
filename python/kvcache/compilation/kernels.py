# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled kernels, and the facts for their launches."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..devices import launches
from . import toolchain
from .descriptors import Descriptor


@dataclass(frozen=True)
class Parameter:
    """A kernel parameter: MLIR's type of it, size and offset in bytes."""

    name: str
    type: str
    size: int
    offset: int


@dataclass
class Binary:
    """One GPU module compiled for one chip.

    Properties that need ptxas or nvdisasm are computed on first use.
    """

    module: str
    chip: str
    ptx: str
    opt_level: int
    kernels: list[Kernel] = field(default_factory=list)

    @cached_property
    def cubin(self) -> bytes:
        return self._assemble().cubin

    @cached_property
    def resources(self) -> dict[str, toolchain.Resources]:
        return self._assemble().resources

    @cached_property
    def instructions(self) -> dict[str, int]:
        return toolchain.count_instructions(self.cubin)

    @cached_property
    def fatbin(self) -> bytes:
        return toolchain.make_fatbin(self.ptx, self.cubin, self.chip)

    @cached_property
    def loaded(self) -> launches.LoadedBinary:
        return launches.LoadedBinary(self)

    def known(self, name: str) -> Any:
        """Returns the value of a property, or None if it is not computed yet."""
        return self.__dict__.get(name)

    def _assemble(self) -> toolchain.Assembly:
        assembly = toolchain.assemble(self.ptx, self.chip, self.opt_level)
        self.__dict__.setdefault("cubin", assembly.cubin)
        self.__dict__.setdefault("resources", assembly.resources)
        return assembly


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel of a compiled module.

    ``name`` is the symbol to launch. ``parameters`` are in the order of the launch.
    ``block_size`` is the number of threads in x, y and z if the kernel fixes it, else
    None. ``dynamic_shared_memory`` is the bytes of dynamic shared memory of a launch,
    which tiles and other variables of more than 48 KB need. Above 48 KB, CUDA requires
    ``CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES``. ``descriptors`` describe the
    tensor maps that are the kernel's last parameters.

    The properties below need ptxas, ``sass_instructions`` also nvdisasm, unless an
    artifact contains them. They raise ``ToolchainError`` if it is missing.
    """

    name: str
    parameters: tuple[Parameter, ...]
    block_size: tuple[int, int, int] | None
    dynamic_shared_memory: int
    descriptors: tuple[Descriptor, ...]
    binary: Binary = field(repr=False)

    def launch(
        self,
        grid: launches.Sides,
        block: launches.Sides | None,
        *args: Any,
        stream: Any = None,
        device: int | None = None,
        cluster: launches.Sides | None = None,
        programmatic: bool = False,
        shared_bytes: int | None = None,
    ) -> None:
        """Launches the kernel on a GPU, and does not wait for it.

        Sizes have one to three numbers, along x, y and z. The compiler is not used: the
        kernel may come from an artifact.

        Args:
            grid: The number of thread blocks.
            block: Threads per thread block; None for the size that the kernel fixes.
            args: A value for each of ``parameters``: for a pointer, an array of the GPU
                or an address; for a number, an int or a float; for a descriptor, its
                128 bytes.
            stream: The stream, as a number or an object of PyTorch, CuPy, cuda-bindings
                or cuda-core. By default, the current stream of PyTorch for its tensors,
                else that of TVM-FFI.
            device: The number of the GPU; by default that of the arrays.
            cluster: Thread blocks per cluster, which divide the grid. From sm_90 on.
            programmatic: Whether thread blocks may start before earlier kernels of the
                stream have ended (programmatic dependent launch). From sm_90 on.
            shared_bytes: Bytes of dynamic shared memory per thread block;
                ``dynamic_shared_memory`` by default.

        Raises:
            CheckError: The driver rejects the code or the launch.
            OverflowError: An integer does not fit.
            TargetError: There is no driver, or no GPU.
            TypeError: An argument has the wrong type.
            ValueError: Arguments are too few, too many, or not in memory of one GPU, or
                a size is wrong.
        """
        options = launches.Options(stream, device, cluster, programmatic, shared_bytes)
        launches.launch(self, grid, block, args, options)

    @property
    def module(self) -> str:
        """The GPU module that holds the kernel."""
        return self.binary.module

    @property
    def chip(self) -> str:
        """The chip that the kernel is compiled for."""
        return self.binary.chip

    @property
    def ptx(self) -> str:
        """The PTX of the kernel's module."""
        return self.binary.ptx

    @property
    def cubin(self) -> bytes:
        """The module's machine code."""
        return self.binary.cubin

    @property
    def fatbin(self) -> bytes:
        """The module's machine code and PTX in one file, for the CUDA run-time."""
        return self.binary.fatbin

    @property
    def registers(self) -> int:
        """Registers per thread."""
        return self._resources.registers

    @property
    def spill_bytes(self) -> int:
        """Bytes of spill stores and spill loads per thread."""
        return self._resources.spill_bytes

    @property
    def stack_bytes(self) -> int:
        """Bytes of local memory for the stack per thread."""
        return self._resources.stack_bytes

    @property
    def shared_bytes(self) -> int:
        """Bytes of static shared memory per thread block."""
        return self._resources.shared_bytes

    @property
    def sass_instructions(self) -> int:
        """The number of machine instructions, without the padding at the end."""
        return self.binary.instructions[self.name]

    @property
    def _resources(self) -> toolchain.Resources:
        return self.binary.resources[self.name]

    def __repr__(self) -> str:
        parameters = ", ".join(f"{p.name}: {p.type}" for p in self.parameters)
        block = f", block_size={self.block_size}" if self.block_size else ""
        dynamic = self.dynamic_shared_memory
        shared = f", dynamic_shared_memory={dynamic}" if dynamic else ""
        return (
            f"<kvcache.Kernel {self.name}({parameters}) for {self.chip}{block}{shared}>"
        )
