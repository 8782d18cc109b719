# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared libraries of compiled functions, for TVM-FFI."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .. import _native
from ..checks import check_path
from ..errors import ToolchainError
from .toolchain import find_on_path, make_folder

_COMPILERS = ("cc", "clang", "gcc")


@dataclass(frozen=True)
class LibrarySource:
    """The source and options of a library of functions.

    Attributes:
        contents: The source.
        name: The source's name in diagnostics.
        passes: The pipeline to LLVM, with a TVM-FFI wrapper for each public function.
        opt_level: The optimization level of LLVM, 0 to 3.
        libraries: The libraries of this package that the code calls.
    """

    contents: bytes
    name: str
    passes: str
    opt_level: int
    libraries: tuple[str, ...]

    def save(self, path: _native.Path) -> None:
        """Writes the library.

        Raises ``CompileError``, and ``ToolchainError`` if there is no C compiler to
        link with, or it fails.
        """
        check_path(path=path)
        compiled, diagnostics = _native.extension().compile_object(
            self.contents, self.name, self.passes, self.opt_level
        )
        _native.report(diagnostics, compiled is not None, stacklevel=3)
        _link(
            compiled,
            [_native.find_library(name) for name in self.libraries],
            Path(os.fsdecode(path)),
        )


def _link(compiled: bytes, libraries: Iterable[Path], path: Path) -> None:
    helper = Path(_native.extension().helper_library())
    needed = [file for file in (*libraries, helper) if file.exists()]
    folders = dict.fromkeys(str(file.resolve().parent) for file in needed)
    with make_folder() as folder:
        object_file, output = Path(folder, "module.o"), Path(folder, "module.so")
        object_file.write_bytes(compiled)
        _run(
            _find_compiler(),
            *("-shared", "-o", str(output), str(object_file)),
            *("-Wl,--as-needed", *map(str, needed), "-lm"),
            *(f"-Wl,-rpath,{place}" for place in ("$ORIGIN", *folders)),
        )
        # Processes that have loaded the old library keep it.
        path.unlink(missing_ok=True)
        path.write_bytes(output.read_bytes())


def _find_compiler() -> str:
    given = os.environ.get("CC")
    for name in (given,) if given else _COMPILERS:
        if found := find_on_path(name):
            return found
    raise ToolchainError(
        f"expects a C compiler to link a library with, but there is no "
        f"{given or ', '.join(_COMPILERS)}: install one, or set CC to its path"
    )


def _run(*command: str) -> None:
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if done.returncode:
        raise ToolchainError(
            f"{command[0]} failed (exit code {done.returncode}):\n"
            f"{(done.stderr or done.stdout).strip() or 'it printed nothing'}"
        )
