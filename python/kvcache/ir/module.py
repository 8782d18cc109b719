# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parsed modules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import _native
from .base import Type
from .builder import FunctionBuilder


@dataclass(frozen=True)
class Argument:
    """An argument of a function; ``name`` is empty if the source has none."""

    name: str
    type: Type


@dataclass(frozen=True)
class Function:
    """A function or a kernel.

    Attributes:
        name: The name, qualified by the enclosing modules: ``"kernels::gather"``.
        arguments: The arguments.
        results: The types of the results.
    """

    name: str
    arguments: tuple[Argument, ...]
    results: tuple[Type, ...]


class Module:
    """A parsed and verified module."""

    _module: Any

    def __init__(self) -> None:
        raise TypeError("Module has no constructor: use Module.parse")

    @classmethod
    def parse(
        cls, source: _native.Source, filename: _native.Path | None = None
    ) -> Module:
        """Parses and verifies a source.

        The names of function arguments in text become attributes: ``%blocks`` has
        ``kvcache.name = "blocks"``.

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

    @classmethod
    def build(cls, *functions: FunctionBuilder) -> Module:
        """Makes a module of functions, and verifies it.

        Raises:
            CompileError: An op is not valid; its line is a line of the functions' text.
        """
        return cls.parse("".join(map(str, functions)), filename="<functions>")

    def __str__(self) -> str:
        """MLIR text, without locations."""
        return self._module.text()

    def bytecode(self) -> bytes:
        """MLIR bytecode, with locations, which ``kvcache.compile`` also takes."""
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
