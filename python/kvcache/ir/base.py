# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The base classes of types and attributes, which are represented by their text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from .. import _native, dtypes
from ..checks import check_integer, check_positive
from ..dtypes import DTypeLike

_CLASSES: dict[str, type[Any]] = {}
"""The classes of the dialect's types and attributes, by the extension's names."""

Member = TypeVar("Member", bound=StrEnum)
Item = TypeVar("Item")


class _Value:
    """A type or an attribute."""

    _noun: ClassVar[str]
    _text: str

    def __init__(self) -> None:
        name = type(self).__name__
        raise TypeError(f"{name} has no constructor: use {name}.parse")

    def __init_subclass__(cls) -> None:
        _CLASSES[cls.__name__] = cls

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses MLIR text, without aliases, into its class.

        Raises:
            CompileError: The text is not a type, or not an attribute.
            ValueError: The text has another class than this.
        """
        if not isinstance(text, str):
            article = "an" if cls._noun == "attribute" else "a"
            raise TypeError(f"expects the text of {article} {cls._noun}, got {text!r}")
        contents = text.encode(errors="surrogatepass")
        parse = getattr(_native.extension(), f"parse_{cls._noun}")
        parsed, diagnostics = parse(contents)
        _native.report(diagnostics, parsed is not None, stacklevel=2)
        result = _from_plain(parsed)
        if not isinstance(result, cls):
            raise ValueError(f"expects the text of {cls.__name__}, got {result}")
        return result

    def _make(self, **fields: object) -> None:
        """Initializes this type or attribute from its fields, and verifies it."""
        plain = {name: _to_plain(value) for name, value in fields.items()}
        make = getattr(_native.extension(), f"make_{self._noun}")
        text, diagnostics = make(type(self).__name__, plain)
        _native.report(diagnostics, text is not None, stacklevel=3)
        # The dataclasses are frozen.
        for name, value in {"_text": text, **fields}.items():
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"{type(self).__name__}.parse({self._text!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Value):
            return NotImplemented
        return type(self) is type(other) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[Callable[[str], Self], tuple[str]]:
        return type(self).parse, (self._text,)


class Type(_Value):
    """A type of MLIR. Types of the dialect have subclasses."""

    _noun = "type"

    @property
    def name(self) -> str:
        """The name without parameters: ``kvcache.paged``."""
        return self._text.removeprefix("!").partition("<")[0]


class Attribute(_Value):
    """An attribute of MLIR. Attributes of the dialect have subclasses."""

    _noun = "attribute"


def _to_plain(value: object) -> object:
    """Converts a value for the extension: types and attributes become text."""
    if isinstance(value, tuple):
        return list(map(_to_plain, value))
    return str(value) if isinstance(value, _Value | StrEnum) else value


def _from_plain(parsed: object) -> Any:
    """Converts a value from the extension: class, text and fields of a type."""
    if isinstance(parsed, list):
        return tuple(map(_from_plain, parsed))
    if not isinstance(parsed, tuple):
        return parsed
    kind, text, fields = parsed
    if fields is not None:
        return _CLASSES[kind](**{name: _from_plain(fields[name]) for name in fields})
    other = object.__new__(_CLASSES[kind])
    other._text = text
    return other


# --- Fields ---------------------------------------------------------------------------


def element_type(name: str, spec: DTypeLike) -> str:
    """The text of the type of a dtype, or of MLIR text."""
    if isinstance(spec, str):
        try:
            text = dtypes.mlir_name(spec)
        except TypeError:
            # MLIR has more types than NumPy has dtypes.
            return str(Type.parse(spec))
        if text == spec:
            return text
    return dtypes.mlir_name(dtypes.cached_dtype(name, spec))


def optional_element_type(name: str, spec: DTypeLike | None) -> str | None:
    """The text of the type of an optional dtype."""
    return None if spec is None else element_type(name, spec)


def integer(name: str, value: int) -> int:
    """Checks a number that goes into an attribute or a type."""
    check_integer(**{name: value})
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"expects {name!r} to have 64 bits, got {value}")
    return int(value)


def several(name: str, values: Iterable[Item]) -> tuple[Item, ...]:
    """Converts the values of a field that may have several."""
    try:
        return tuple(values)
    except TypeError:
        raise TypeError(f"expects {name!r} to be a sequence, got {values!r}") from None


def optional_integer(name: str, value: int | None) -> int | None:
    """Checks an optional number, which must be positive."""
    if value is None:
        return None
    check_positive(**{name: value})
    return integer(name, value)


DYNAMIC = -(2**63)
"""MLIR's number for a size that is known only at run time, ``?`` in text."""


def optional_size(name: str, value: int | None) -> int | None:
    """Checks an optional size, which must be positive or ``DYNAMIC``."""
    is_open = isinstance(value, int | np.integer) and value == DYNAMIC
    return DYNAMIC if is_open else optional_integer(name, value)


def member(name: str, kind: type[Member], value: Member | str) -> Member:
    """Finds the member of an enumeration by its value."""
    if not isinstance(value, str) or value not in list(kind):
        known = ", ".join(kind)
        raise ValueError(f"expects {name!r} to be one of {known}, got {value!r}")
    return kind(value)
