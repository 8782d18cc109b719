# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled GPU modules, their kernels, and what is known about launching them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from . import toolchain
from ._native import Path
from .checks import check_string
from .descriptors import Descriptor
from .libraries import LibrarySource


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

    What takes a run of ptxas or nvdisasm is found out when it is first asked for.
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

    def known(self, name: str) -> Any:
        """Returns the value of a property, or None if nobody has asked for it yet."""
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
    ``block_size`` is the number of threads in x, y and z where the kernel fixes it,
    else None. ``dynamic_shared_memory`` is the number of bytes of dynamic shared memory
    that a launch has to give because tiles and other variables take more than 48 KB; to
    give more than that, CUDA wants ``CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES``
    set. ``descriptors`` says how to make the tensor maps that the kernel takes as its last
    parameters.

    The properties below need ptxas, ``sass_instructions`` also nvdisasm, unless an
    artifact brought them along: they raise ``ToolchainError`` where it is missing.
    """

    name: str
    parameters: tuple[Parameter, ...]
    block_size: tuple[int, int, int] | None
    dynamic_shared_memory: int
    descriptors: tuple[Descriptor, ...]
    binary: Binary = field(repr=False)

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
        """Registers of a thread."""
        return self._resources.registers

    @property
    def spill_bytes(self) -> int:
        """Bytes that a thread stores and loads because registers run out."""
        return self._resources.spill_bytes

    @property
    def stack_bytes(self) -> int:
        """Bytes of local memory that a thread has for its stack."""
        return self._resources.stack_bytes

    @property
    def shared_bytes(self) -> int:
        """Bytes of static shared memory of a block."""
        return self._resources.shared_bytes

    @property
    def sass_instructions(self) -> int:
        """Machine instructions, without the padding at the end."""
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


class CompiledModule:
    """The kernels of a compiled source.

    ``kernels`` maps names to kernels in the order of the source. Compiled for several
    chips, its keys are pairs of name and chip. A name that several GPU modules use is
    preceded by its module, as in ``"decode::kernel"``.
    """

    def __init__(
        self,
        binaries: Iterable[Binary],
        format: str,
        library: LibrarySource | None = None,
    ) -> None:
        self.binaries = tuple(binaries)
        self.format = format
        self._library = library
        kernels = [kernel for binary in self.binaries for kernel in binary.kernels]
        self.chips: tuple[str, ...] = tuple(dict.fromkeys(k.chip for k in kernels))
        uses = Counter((k.name, k.chip) for k in kernels)
        self.kernels: dict[str | tuple[str, str], Kernel] = {}
        for kernel in kernels:
            unique = uses[kernel.name, kernel.chip] == 1
            name = kernel.name if unique else f"{kernel.module}::{kernel.name}"
            self.kernels[name if len(self.chips) == 1 else (name, kernel.chip)] = kernel

    def kernel(self, name: str, chip: str | None = None) -> Kernel:
        """Returns the kernel of that name, for the only chip or for ``chip``.

        Raises ``ValueError`` where there is none, or where ``chip`` has to be given.
        """
        check_string(name=name, **({} if chip is None else {"chip": chip}))
        if chip is None and len(self.chips) > 1:
            raise ValueError(f"expects 'chip', one of {', '.join(self.chips)}")
        for key, kernel in self.kernels.items():
            if key in (name, (name, chip)) and chip in (None, kernel.chip):
                return kernel
        known = ", ".join(map(str, self.kernels)) or "none"
        where = f" for {chip}" if chip is not None else ""
        raise ValueError(f"there is no kernel {name!r}{where}; the module has {known}")

    def save(self, path: Path) -> None:
        """Writes an artifact, for ``kvcache.load``.

        It holds the PTX of each module, its cubin if ``format`` is ``"cubin"`` or
        ``"fatbin"`` or if it was asked for, and the launch facts known by then.
        """
        from . import artifact

        artifact.save(self, path)

    def save_library(self, path: Path) -> None:
        """Writes the host functions with their kernels as a library for TVM-FFI.

        ``tvm_ffi.load_module(path).name`` is the function ``name``. It takes memory of
        the GPU, and holds the PTX of the kernels that it launches. It needs
        ``libkvcache_runtime.so`` and ``libkvcache_cuda.so``, which it looks for beside
        it and in this package.

        Raises:
            CompileError: A host function has no lowering.
            ToolchainError: There is no C compiler to link with, or it fails.
            ValueError: The module was read from an artifact, which has no host code.
        """
        if not self._library:
            raise ValueError(
                "expects a module that 'compile' made: an artifact has no host code"
            )
        self._library.save(path)

    def __repr__(self) -> str:
        kernels = "".join(f"\n  {kernel!r}" for kernel in self.kernels.values())
        chips = ", ".join(self.chips) or "no chip"
        return f"<kvcache.CompiledModule for {chips}:{kernels or ' no kernels'}>"
