# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules to look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import _native
from .base import Type


@dataclass(frozen=True)
class Argument:
    """An argument of a function; ``name`` is empty where the source has none."""

    name: str
    type: Type


@dataclass(frozen=True)
class Function:
    """A function or a kernel.

    Attributes:
        name: Its name, with those of the modules it is in: ``"kernels::gather"``.
        arguments: What it takes.
        results: What it returns.
    """

    name: str
    arguments: tuple[Argument, ...]
    results: tuple[Type, ...]


class Module:
    """A module that was parsed and verified."""

    _module: Any

    def __init__(self) -> None:
        raise TypeError("Module has no constructor: use Module.parse")

    @classmethod
    def parse(
        cls, source: _native.Source, filename: _native.Path | None = None
    ) -> Module:
        """Parses and verifies a source.

        The names that a text gives the arguments of functions become attributes, and so
        stay: ``%blocks`` has ``kvcache.name = "blocks"``.

        Args:
            source: MLIR text, MLIR text or bytecode as bytes, or the path of a file.
            filename: The source's name in diagnostics.

        Raises:
            CompileError: The source has errors; the exception carries the diagnostics.
        """
        contents, name = _native.read_source(source, filename)
        module, diagnostics = _native.extension().parse_module(contents, name)
        _native.report(diagnostics, module is not None, stacklevel=2)
        result = object.__new__(cls)
        result._module = module
        return result

    def __str__(self) -> str:
        """MLIR text, without locations."""
        return self._module.text()

    def bytecode(self) -> bytes:
        """MLIR's bytecode, with locations: what ``kvcache.compile`` takes as well."""
        return self._module.bytecode()

    @property
    def functions(self) -> tuple[Function, ...]:
        """All functions and kernels, in the order of the source."""
        return tuple(
            Function(
                name,
                tuple(Argument(name, Type.parse(text)) for name, text in arguments),
                tuple(map(Type.parse, results)),
            )
            for name, arguments, results in self._module.functions()
        )
