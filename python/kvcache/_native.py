# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiled extension, imported on first use: artifacts load without it."""

from __future__ import annotations

import os
import pathlib
import re
import warnings
from collections.abc import Iterable, Sequence
from types import ModuleType

import numpy as np

from . import bytecode
from .checks import check_path
from .errors import CompileError, CompileWarning, Diagnostic, RawDiagnostic

Path = str | os.PathLike[str]
"""The name of a file."""

Source = str | bytes | os.PathLike[str]
"""MLIR text, MLIR text or bytecode as bytes, or the path of a file with either."""


_MAX_FILE_NAME = 4096
_SOURCE_NAME = re.compile(rb"[^\s\"{}()<>]+\.mlir(bc)?")


def extension() -> ModuleType:
    """Returns the extension module. Raises ``ImportError`` if it was not built."""
    try:
        from . import _kvcache
    except ImportError as error:
        raise ImportError(
            f"the compiler of the kvcache package can't be loaded: {error}"
        ) from error
    return _kvcache


def find_library(library: str) -> pathlib.Path:
    """Returns the path of a library of this package."""
    return pathlib.Path(extension().__file__ or "").parent / f"lib{library}.so"


def read_source(source: Source, filename: Path | None) -> tuple[bytes, str]:
    """Returns the contents of a source and its name in locations.

    Raises ``CompileError`` for bytecode that can't be read.
    """
    if isinstance(source, str):
        contents, name = source.encode(errors="surrogatepass"), "<string>"
    elif isinstance(source, bytes | bytearray | memoryview):
        contents, name = bytes(source), "<bytes>"
    elif isinstance(source, os.PathLike):
        contents, name = pathlib.Path(source).read_bytes(), os.fsdecode(source)
    else:
        raise TypeError(
            f"expects MLIR text, bytes or a path as source, got {type(source).__name__}"
        )
    if not isinstance(source, os.PathLike) and _is_file_name(contents):
        raise ValueError(
            f"expects MLIR text as source, got the name of a file: pass "
            f"pathlib.Path({os.fsdecode(contents)!r})"
        )
    if filename is not None:
        check_path(filename=filename)
        name = os.fsdecode(filename)
    name = name.encode(errors="replace").decode()
    return _rewrite_bytecode(contents, name), name


def _rewrite_bytecode(contents: bytes, name: str) -> bytes:
    """Returns text as it is, and bytecode rewritten so that it is safe to read."""
    if not bytecode.is_bytecode(contents):
        return contents
    written, diagnostics = bytecode.rewrite(contents, name, extension().__file__ or "")
    if not written:
        raise CompileError(map(Diagnostic.from_raw, diagnostics))
    return written


def _is_file_name(contents: bytes) -> bool:
    """Whether a source is the name of a file, or looks like one."""
    if len(contents) > _MAX_FILE_NAME or len(contents.splitlines()) != 1:
        return False
    return os.path.isfile(contents) or bool(_SOURCE_NAME.fullmatch(contents))


def add_checks(passes: str, bounds_checks: bool, expansion: str) -> str:
    """Returns the text of a pipeline, optionally preceded by bounds checks.

    Bounds checks need accesses, so whole-cache ops are expanded first: with these
    options of ``kvcache-expand-ops``.
    """
    if not bounds_checks:
        return passes
    return f"kvcache-expand-ops{{checks=1 {expansion}}},kvcache-bounds-checks,{passes}"


def add_checks_on_chips(passes: str, bounds_checks: bool, chips: Sequence[str]) -> str:
    """As ``add_checks``, for whole-cache ops on GPUs."""
    if not bounds_checks:
        return passes
    chip = f"chip={','.join(chips)}" if chips else ""
    checked = add_checks(passes, bounds_checks, f"for-gpu=1 {chip}")
    return f"kvcache-plan-attention{{{chip}}},kvcache-split-attention,{checked}"


def check_opt_level(opt_level: int) -> int:
    """Raises ``ValueError`` for an optimization level that is not 0, 1, 2 or 3."""
    is_integer = isinstance(opt_level, int | np.integer)
    if not is_integer or isinstance(opt_level, bool) or not 0 <= opt_level <= 3:
        raise ValueError(f"expects 'opt_level' to be 0, 1, 2 or 3, got {opt_level!r}")
    return int(opt_level)


def check_switch(name: str, value: bool) -> bool:
    """Raises ``ValueError`` unless a value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"expects {name!r} to be True or False, got {value!r}")
    return bool(value)


def report(raw: Iterable[RawDiagnostic], succeeded: bool, stacklevel: int) -> None:
    """Raises ``CompileError`` unless the compiler succeeded; forwards its warnings.

    ``stacklevel`` counts from the caller, which is 1.
    """
    diagnostics = list(map(Diagnostic.from_raw, raw))
    if not succeeded:
        raise CompileError(diagnostics)
    for diagnostic in diagnostics:
        if diagnostic.severity == "warning":
            warnings.warn(str(diagnostic), CompileWarning, stacklevel=stacklevel + 1)
