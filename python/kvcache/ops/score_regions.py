# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The regions of attention that users write as functions of NumPy: scores and masks."""

from __future__ import annotations

import inspect
import keyword
import math
import os
import re
from collections.abc import Mapping
from numbers import Number
from types import TracebackType
from typing import Any

import numpy as np

from .. import dtypes
from .regions import Function, ScoreRegions, Sizes
from .traced_functions import convert
from .tracing import Trace, Traced, TracedArray, arguments

_Specs = dict[str, tuple[str, Sizes]]
_PARAMETERS = {
    "score": ("s", "sequence", "head", "query", "key"),
    "mask": ("sequence", "head", "query", "key"),
}
_ARRAY = re.compile(r"\s*(\w+)\s*\[(.*)\]\s*")
_VALUES = re.compile(r"(score|mask)_(\d+|s|sequence|head|query|key)")  # of the regions
_ELEMENTS = re.compile(r"i1|[su]?i(8|16|32)|s?i64|b?f16|f32|f64")
_SOURCES = tuple(os.path.dirname(path) for path in (__file__, np.__file__))


def trace_regions(
    score: Function | None,
    mask: Function | None,
    arrays: Mapping[str, str] | None,
    reserved: tuple[str, ...],
) -> ScoreRegions:
    """Traces functions to regions.

    Args:
        score: A function of a score, a sequence, a query head, the positions of a query
            and a key, and arrays by name, or None. It returns the new score.
        mask: A function as ``score``, without the score, or None. It returns whether the
            query sees the key.
        arrays: The type of each array, such as ``"f32[32]"`` or ``"i32[?, ?]"``.
        reserved: Names that arrays can't have.

    Raises:
        TypeError: A function can't be traced, with the line, or an array has no type.
        ValueError: An array has a name or a type that is not possible.
    """
    specs = _parse_arrays(arrays or {}, reserved)
    functions = {"score": score, "mask": mask}
    given = {name: function for name, function in functions.items() if function is not None}
    used = {name: _find_arrays(name, function, specs) for name, function in given.items()}
    for name in specs:
        if not any(name in names for names in used.values()):
            raise ValueError(
                f"expects {name!r} of 'arrays' to be a parameter of 'score' or 'mask'"
            )
    texts = [_trace(name, given[name], used[name], specs) for name in given]
    return ScoreRegions("".join(texts), tuple((name, *specs[name]) for name in specs))


def _parse_arrays(arrays: Mapping[str, str], reserved: tuple[str, ...]) -> _Specs:
    """Reads the elements and sizes of each array."""
    if not isinstance(arrays, Mapping):
        raise TypeError(f"expects 'arrays' to be a dict of types, got {arrays!r}")
    specs = {}
    for name, text in arrays.items():
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"expects names in 'arrays', got {name!r}")
        if not name.isascii():
            raise ValueError(f"expects ASCII names in 'arrays', got {name!r}")
        if name in reserved or _VALUES.fullmatch(name):
            raise ValueError(f"expects another name of an array than {name!r}")
        match = _ARRAY.fullmatch(text) if isinstance(text, str) else None
        if not match:
            raise ValueError(
                f"expects the type of {name!r} as in 'f32[32]' or 'i32[?, ?]', got {text!r}"
            )
        specs[name] = _parse_element(name, match[1]), _parse_sizes(name, match[2])
    return specs


def _parse_element(name: str, text: str) -> str:
    """Returns MLIR's name of a dtype. Integers without a sign have a ``u``."""
    try:
        element = dtypes.mlir_name(text)
    except TypeError:
        element = text
    if text.startswith("uint"):
        element = f"u{element}"
    if not _ELEMENTS.fullmatch(element):
        raise ValueError(
            f"expects elements of {name!r} to be bools, integers below 2^63 or floats of "
            f"16 to 64 bits, got {text}"
        )
    return element


def _parse_sizes(name: str, text: str) -> Sizes:
    texts = [size.strip() for size in text.split(",")]
    if not all(re.fullmatch(r"\?|[0-9]+", size) for size in texts):
        raise ValueError(f"expects the sizes of {name!r} to be positive or '?', got {text!r}")
    sizes = tuple(None if size == "?" else int(size) for size in texts)
    if any(size is not None and not 0 < size < 2**31 for size in sizes):
        raise ValueError(
            f"expects the sizes of {name!r} to be positive and below 2^31, got {text!r}"
        )
    if math.prod(size or 1 for size in sizes) >= 2**60:
        raise ValueError(f"expects fewer than 2^60 elements of {name!r}, got {text!r}")
    return sizes


def _find_arrays(name: str, function: Function, specs: _Specs) -> list[str]:
    """Returns the parameters of a function that are arrays."""
    if not callable(function):
        raise TypeError(f"expects {name!r} to be a function, got {function!r}")
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        raise TypeError(f"expects {name!r} to be a function of Python, got {function!r}") from None
    names = [key for key, parameter in parameters.items() if parameter.kind in kinds]
    first = _PARAMETERS[name]
    if len(names) != len(parameters) or len(names) < len(first):
        raise TypeError(
            f"expects {name!r} to take {', '.join(first)}, and arrays by name, got "
            f"({', '.join(parameters)})"
        )
    arrays = names[len(first) :]
    for array in arrays:
        if array not in specs and parameters[array].default is inspect.Parameter.empty:
            raise ValueError(
                f"expects the type of {array!r}, a parameter of {name!r} after "
                f"{', '.join(first)}, in 'arrays'"
            )
    return [array for array in arrays if array in specs]


def _make_array(trace: Trace, name: str, specs: _Specs) -> TracedArray:
    return TracedArray(trace, name, *specs[name])


def _trace(name: str, function: Function, arrays: list[str], specs: _Specs) -> str:
    """Returns the region of a function as text."""
    trace = Trace(name)
    values = arguments(trace, [f"{name}_{each}" for each in _PARAMETERS[name]])
    given = {array: _make_array(trace, array, specs) for array in arrays}
    try:
        result = function(*values, **given)
        returned = _get_result(name, trace, result)
    except Exception as error:
        where = _locate(error.__traceback__) or _get_place(function)
        hint = ": name arrays in 'arrays'" if "only integers" in str(error) else ""
        raise TypeError(f"{where}in {name!r}: {error}{hint}") from error
    types = [("f32" if value.kind == "float" else "index") for value in values]
    block = ", ".join(f"{value.name}: {type_}" for value, type_ in zip(values, types))
    result_type = "f32" if name == "score" else "i1"
    lines = [f"^bb0({block}):", *trace.lines, f"kvcache.yield {returned.name} : {result_type}"]
    body = "\n".join(f"    {line}" for line in lines)
    return f"\n    {name} {{\n{body}\n    }}"


def _get_result(name: str, trace: Trace, result: Any) -> Traced:
    kind = "number" if name == "score" else "bool"
    if not isinstance(result, Traced | TracedArray | Number | np.generic | np.ndarray):
        raise TypeError(f"expects a {kind} as the result, got {type(result).__name__}")
    value = trace.lift(result)
    if name == "score":
        return convert(value, "float")
    if value.kind != "bool":
        raise TypeError(f"expects a {kind} as the result, got {value.kind}")
    return value


def _get_place(function: Function) -> str:
    """Returns the first line of a function of Python."""
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}: " if code else ""


def _locate(traceback: TracebackType | None) -> str:
    """Returns the innermost line that is neither of this package nor of NumPy."""
    where = ""
    while traceback:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith(_SOURCES):
            where = f"{file}:{traceback.tb_lineno}: "
        traceback = traceback.tb_next
    return where
