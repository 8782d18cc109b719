# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exceptions of the package, and the diagnostics that they carry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

RawDiagnostic = tuple[str, str, str, int, int, "list[RawDiagnostic]"]
"""A diagnostic in the form of the extension."""


@dataclass(frozen=True)
class Diagnostic:
    """A report of the compiler about a place in the source.

    ``severity`` is ``"error"``, ``"warning"``, ``"remark"`` or ``"note"``. Lines and
    columns count from 1. If the place is unknown, ``filename`` is empty and both are 0.
    """

    severity: str
    message: str
    filename: str = ""
    line: int = 0
    column: int = 0
    notes: tuple[Diagnostic, ...] = ()

    @classmethod
    def from_raw(cls, raw: RawDiagnostic) -> Diagnostic:
        """Converts a diagnostic of the extension."""
        severity, message, filename, line, column, notes = raw
        converted = tuple(map(cls.from_raw, notes))
        return cls(severity, message, filename, line, column, converted)

    def __str__(self) -> str:
        place = f"{self.filename}:{self.line}:{self.column}: " if self.filename else ""
        return "\n".join(
            [f"{place}{self.severity}: {self.message}", *map(str, self.notes)]
        )


class Error(Exception):
    """The base of the exceptions of this package."""


class CompileError(Error, ValueError):
    """The source has errors; ``diagnostics`` lists all reports."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "\n".join(map(str, self.diagnostics))


class CompileWarning(UserWarning):
    """A warning of the compiler about a source that it accepts."""


class CheckError(Error, RuntimeError):
    """A run-time check of compiled code failed; the message names the source line."""


class TargetError(Error, NotImplementedError):
    """The target can't run here; the message names what is missing.

    It may be a driver, a GPU, an OpenMP library, or a feature of the processor.
    """


class ToolchainError(Error, RuntimeError):
    """A tool of the CUDA toolkit is missing or failed."""


class ArtifactError(Error, ValueError):
    """A file that is not a readable artifact."""


class TuningError(Error, ValueError):
    """A tuning file that can't be used, or an operation that can't be tuned."""


class OutOfPagesError(Error, MemoryError):
    """The pages of a cache, or of its swap space, do not suffice.

    Attributes:
        needed: The number of pages requested.
        available: The number of pages available.
    """

    def __init__(self, message: str, needed: int, available: int) -> None:
        super().__init__(f"{message}: {needed} needed, {available} available")
        self.needed = needed
        self.available = available
