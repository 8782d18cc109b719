# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled modules, from a source or from an artifact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from .._native import Path
from ..checks import check_string
from . import artifact
from .kernels import Binary, Kernel
from .libraries import LibrarySource


class CompiledModule:
    """The kernels of a compiled source.

    ``kernels`` maps names to kernels in the order of the source. For several chips, its
    keys are pairs of name and chip. A name that several GPU modules use has the prefix
    of its module, as in ``"decode::kernel"``.
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

        Raises ``ValueError`` if there is none, or if ``chip`` is needed.
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

        It holds the PTX of each module, and the launch facts computed so far. It has
        the cubin if ``format`` is ``"cubin"`` or ``"fatbin"``, or if it was computed.
        """
        artifact.write(self.binaries, self.format, path)

    def save_library(self, path: Path) -> None:
        """Writes the host functions with their kernels as a library for TVM-FFI.

        ``tvm_ffi.load_module(path).name`` is the function ``name``. It takes memory of
        the GPU, and contains the PTX of the kernels that it launches. It needs
        ``libkvcache_runtime.so`` and ``libkvcache_cuda.so``, and looks for them in its
        folder and in this package.

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


def load(path: Path) -> CompiledModule:
    """Reads an artifact that ``CompiledModule.save`` has written.

    It needs neither the compiler nor ptxas: ``load("scores.zip").kernel("scores")`` has
    the PTX or the cubin of the kernel, and what a launch needs.

    Raises:
        ArtifactError: The file is something else, damaged, or of another version of the
            format.
        OSError: The file can't be read.
    """
    return CompiledModule(*artifact.read(path))
