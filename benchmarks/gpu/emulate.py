"""Runs our kernels on the emulator, on the inputs and against the references of the machine with the GPU."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kvcache
from kvcache import dtypes, ir

from .inputs import SMALL, Case, Sizes
from .works import Work

_ELEMENT = re.compile(r"memref<(?:[?\d]+x)*(\w+)")


def _find_argument(argument: ir.Argument, case: Case) -> Any:
    """The number or the array of an argument's name; bits become elements of its type."""
    if argument.name in case.numbers:
        return case.numbers[argument.name]
    if argument.name not in case.arrays:
        raise ValueError(f"unknown argument {argument.name!r}")
    array = case.arrays[argument.name]
    element = _ELEMENT.match(str(argument.type))
    if not element:
        raise ValueError(f"expects a memref for {argument.name!r}, got {argument.type}")
    dtype = dtypes.dtype(element[1])
    return array if dtype.kind in "iu" else array.view(dtype)


def list_arguments(source: Path, name: str, case: Case) -> list[Any]:
    """Lists the arguments of the function of this name."""
    functions = {function.name: function for function in ir.Module.parse(source).functions}
    if name not in functions:
        raise ValueError(f"there is no function {name!r} in {source.name}; it has {', '.join(functions) or 'none'}")
    return [_find_argument(argument, case) for argument in functions[name].arguments]


def check(work: Work, source: Path, chip: str, kind: str, sizes: Sizes = SMALL) -> str | None:
    """Runs our kernel as a chip does, and describes an error in its results; None if they are right."""
    case = work.make_case(kind, sizes)
    expected = work.reference(case)
    program = kvcache.jit(source, target=f"emulator:{chip}")
    program.call(work.name, *list_arguments(source, work.name, case))
    return work.compare(expected, {name: case.arrays[name] for name in case.outputs})
