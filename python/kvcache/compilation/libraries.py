# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared libraries of compiled functions, for TVM-FFI."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _native
from ..checks import check_path
from ..errors import ToolchainError
from .toolchain import find_on_path, make_folder

_COMPILERS = ("cc", "clang", "gcc")


@dataclass(frozen=True)
class Body:
    """How functions are compiled for a level of processors.

    Attributes:
        level: The level; empty for all processors of this architecture.
        passes: The pipeline to LLVM, with a TVM-FFI wrapper for each public function.
    """

    level: str
    passes: str


@dataclass(frozen=True)
class LibrarySource:
    """The source and options of a library of functions.

    Attributes:
        contents: The source.
        name: The source's name in diagnostics.
        bodies: The bodies of each function, from the lowest level on.
        opt_level: The optimization level of LLVM, 0 to 3.
        libraries: The libraries of this package that the code calls.
    """

    contents: bytes
    name: str
    bodies: tuple[Body, ...]
    opt_level: int
    libraries: tuple[str, ...]

    def save(self, path: _native.Path, levels: Sequence[str] = ("",)) -> None:
        """Writes the library with the bodies for these levels.

        Of several levels, those whose matrix instructions no function has are left out.
        Raises ``CompileError``, and ``ToolchainError`` if there is no C compiler to
        link with, or it fails.
        """
        check_path(path=path)
        bodies = [body for body in self.bodies if body.level in levels]
        compile_ = functools.partial(self._compile, is_optional=len(bodies) > 1)
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
            compiled = list(threads.map(compile_, bodies))
        # Diagnostics are those of the first error, or warnings, which are all equal.
        failed = [result for result in compiled if result[0] is None]
        _, diagnostics = (failed or compiled)[0]
        _native.report(diagnostics, not failed, stacklevel=3)
        objects = {
            body.level: contents
            for body, ((contents, _), _) in zip(bodies, compiled, strict=True)
            if contents
        }
        files = list(objects.values())
        if bodies[0].level:
            (_, wrappers), _ = compiled[0]
            selectors = _native.extension().compile_selectors(wrappers, list(objects))
            files.append(selectors)
        _link(
            files,
            [_native.find_library(name) for name in self.libraries],
            Path(os.fsdecode(path)),
        )

    def _compile(self, body: Body, is_optional: bool = False) -> Any:
        return _native.extension().compile_object(
            self.contents,
            self.name,
            body.passes,
            self.opt_level,
            body.level,
            is_optional,
        )


def _link(objects: Sequence[bytes], libraries: Iterable[Path], path: Path) -> None:
    helper = Path(_native.extension().helper_library())
    needed = [file for file in (*libraries, helper) if file.exists()]
    folders = dict.fromkeys(str(file.resolve().parent) for file in needed)
    with make_folder() as folder:
        output = Path(folder, "module.so")
        files = [Path(folder, f"{number}.o") for number in range(len(objects))]
        for file, contents in zip(files, objects, strict=True):
            file.write_bytes(contents)
        _run(
            _find_compiler(),
            *("-shared", "-o", str(output), *map(str, files)),
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
