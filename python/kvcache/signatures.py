# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How compiled functions are called: types, checks and conversions.

A call passes its arguments as one array of 64-bit words. A memref takes the words of
its descriptor (two pointers, the offset, sizes and strides in elements), a number one
word. Results come back as a word each.
"""

from __future__ import annotations

import operator
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from . import dtypes
from .placement import get_ranges

_WORD_MASK = 2**64 - 1


class Type(Protocol):
    """The type of an argument or a result."""

    def encode(self, value: Any) -> list[int]:
        """Returns the words of an argument.

        Raises ``TypeError`` for the wrong kind of value, ``ValueError`` for the wrong
        shape or layout, ``OverflowError`` for an integer that does not fit.
        """

    def decode(self, word: int) -> Any:
        """Returns the Python number for the word of a result."""


@dataclass(frozen=True)
class Integer:
    """``index``, signless, signed (``s``) and unsigned (``u``) integers.

    A signless integer may be given as signed or as unsigned, and comes back as signed.
    """

    text: str
    bits: int
    signedness: str

    def encode(self, value: Any) -> list[int]:
        try:
            is_bool = isinstance(value, np.bool_)
            number = int(value) if is_bool else operator.index(value)
        except TypeError:
            raise TypeError(self._expects("an int", _kind(value))) from None
        low = 0 if self.signedness == "u" else -(2 ** (self.bits - 1))
        high = 2 ** (self.bits - 1) if self.signedness == "s" else 2**self.bits
        if not low <= number < high:
            wanted = f"an int from {low} to {high - 1}"
            raise OverflowError(self._expects(wanted, number))
        return [number & (2**self.bits - 1)]

    def decode(self, word: int) -> int | bool:
        if self.bits == 1:
            return bool(word)
        negative = self.signedness != "u" and word >> (self.bits - 1)
        return word - 2**self.bits if negative else word

    def _expects(self, wanted: str, got: Any) -> str:
        return f"expects {wanted} for {self.text}, got {got}"


@dataclass(frozen=True)
class Float:
    """A floating-point number of any of MLIR's formats."""

    text: str
    dtype: np.dtype[Any]

    def encode(self, value: Any) -> list[int]:
        try:
            if not isinstance(value, int | float | np.generic):
                raise TypeError
            with np.errstate(all="ignore"):
                number = self.dtype.type(float(value))
        except (TypeError, ValueError):
            message = f"expects a float for {self.text}, got {_kind(value)}"
            raise TypeError(message) from None
        return [int.from_bytes(number.tobytes(), "little")]

    def decode(self, word: int) -> float:
        return float(np.frombuffer(struct.pack("<Q", word), self.dtype, count=1)[0])


@dataclass(frozen=True)
class MemRef:
    """A memref that an array can stand for.

    ``shape`` and ``strides`` hold None for what the type leaves open; strides and
    ``offset`` count elements. ``contiguous`` is the identity layout.
    """

    text: str
    dtypes: tuple[np.dtype[Any], ...]
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    offset: int
    contiguous: bool
    readonly: bool
    alignment: int

    def encode(self, value: Any) -> list[int]:
        self._check_kind(value)
        self._check_shape(value)
        address = value.__array_interface__["data"][0]
        self._check_memory(value, address)
        base = address - self.offset * value.itemsize
        return [base, base, self.offset, *value.shape, *self._get_strides(value)]

    def decode(self, word: int) -> Any:
        raise TypeError("a memref can't be a result")

    def _check_kind(self, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.dtype in self.dtypes:
            return
        wanted = " or ".join(dtype.name for dtype in self.dtypes)
        got = _kind(value)
        if isinstance(value, np.ndarray):
            order = "" if value.dtype.isnative else " in another byte order"
            got = f"one of {value.dtype.name}{order}"
        raise TypeError(self._expects(f"a NumPy array of {wanted}", got))

    def _check_shape(self, array: np.ndarray) -> None:
        if array.ndim != len(self.shape):
            wanted = f"{len(self.shape)} dimensions"
            got = f"{array.ndim} (shape {array.shape})"
            raise ValueError(self._expects(wanted, got))
        for dimension, size in enumerate(array.shape):
            if self.shape[dimension] not in (None, size):
                wanted = f"size {self.shape[dimension]} in dimension {dimension}"
                got = f"{size} (shape {array.shape})"
                raise ValueError(self._expects(wanted, got))

    def _check_memory(self, array: np.ndarray, address: int) -> None:
        if not (array.flags.writeable or self.readonly):
            got = (
                "a read-only one: pass a copy, or mark the function's argument "
                "{llvm.readonly}"
            )
            raise ValueError(self._expects("a writeable array", got))
        alignment = max(array.itemsize, self.alignment)
        if array.size and address % alignment:
            wanted = f"data at a multiple of {alignment} bytes"
            raise ValueError(self._expects(wanted, f"address {address:#x}"))
        if self.alignment > 1:
            self._check_distances(array)

    def _check_distances(self, array: np.ndarray) -> None:
        """Pages of a cache lie so far apart that each is as aligned as its rows."""
        row = array.itemsize * array.shape[-2] * array.shape[-1]
        unit = min(self.alignment, row & -row)
        for dimension in range(3):
            if array.shape[dimension] > 1 and array.strides[dimension] % unit:
                wanted = f"strides that are multiples of {unit} bytes"
                got = f"{array.strides[dimension]} in dimension {dimension}"
                raise ValueError(self._expects(wanted, got))

    def _get_strides(self, array: np.ndarray) -> list[int]:
        """The distance of a dimension that has no second element doesn't matter."""
        if self.contiguous:
            return self._get_contiguous_strides(array)
        strides = []
        for dimension, wanted in enumerate(self.strides):
            stride, rest = divmod(array.strides[dimension], array.itemsize)
            matters = array.size > 0 and array.shape[dimension] > 1
            if matters and (rest or wanted not in (None, stride)):
                count = "a whole number of" if wanted is None else str(wanted)
                raise ValueError(
                    self._expects(
                        f"a stride of {count} elements in dimension {dimension}",
                        f"{array.strides[dimension] / array.itemsize:g} (strides "
                        f"{array.strides} in bytes)",
                    )
                )
            strides.append(stride if wanted is None else wanted)
        return strides

    def _get_contiguous_strides(self, array: np.ndarray) -> list[int]:
        if not array.flags.c_contiguous:
            got = f"strides {array.strides} in bytes (shape {array.shape})"
            raise ValueError(self._expects("a C-contiguous array", got))
        strides = [1] * array.ndim
        for dimension in range(array.ndim - 1, 0, -1):
            strides[dimension - 1] = strides[dimension] * array.shape[dimension]
        return strides

    def _expects(self, wanted: str, got: str) -> str:
        return f"expects {wanted} for {self.text}, got {got}"


@dataclass(frozen=True)
class Argument:
    """An argument of a function. ``name`` is empty where the source has none."""

    index: int
    name: str
    type: Type

    def __str__(self) -> str:
        return f"argument {self.index}" + (f" ({self.name!r})" if self.name else "")


@dataclass(frozen=True)
class Function:
    """A function of a module. ``obstacle`` says why it can't be called, if so."""

    name: str
    text: str
    arguments: tuple[Argument, ...]
    results: tuple[Type, ...]
    obstacle: str

    def encode(self, values: tuple[Any, ...]) -> bytes:
        """Returns the frame of a call, or raises with the place of a wrong argument."""
        if self.obstacle:
            raise TypeError(f"{self.name} can't be called from Python: {self.obstacle}")
        if len(values) != len(self.arguments):
            raise ValueError(
                f"{self.name}: expects {len(self.arguments)} arguments, got "
                f"{len(values)}: {self.text}"
            )
        words: list[int] = []
        for argument, value in zip(self.arguments, values, strict=True):
            try:
                words += argument.type.encode(value)
            except (TypeError, ValueError, OverflowError) as error:
                raise type(error)(f"{self.name}: {argument} {error}") from None
        return struct.pack(f"<{len(words)}Q", *(word & _WORD_MASK for word in words))

    @staticmethod
    def get_memory(values: Sequence[Any]) -> bytes:
        """Returns address, bytes and whether it is constant of all memory of a call."""
        words = [
            word
            for range_ in get_ranges(values)
            for word in (
                range_.low,
                range_.high - range_.low,
                int(not range_.writeable),
            )
        ]
        return struct.pack(f"<{len(words)}Q", *words)

    def decode(self, words: bytes) -> Any:
        """Returns the results of a call: None, a number, or a tuple of numbers."""
        values = struct.unpack(f"<{len(self.results)}Q", words)
        results = tuple(
            type.decode(value) for type, value in zip(self.results, values, strict=True)
        )
        return results if len(results) > 1 else results[0] if results else None


def parse_function(description: dict[str, Any]) -> Function:
    """Makes a function from what the extension says about it."""
    arguments: list[Argument] = []
    results: list[Type] = []
    obstacles: list[str] = []
    for index, argument in enumerate(description["arguments"]):
        if argument_type := _parse_type(argument):
            arguments.append(Argument(index, argument.get("name", ""), argument_type))
        else:
            obstacles.append(
                f"argument {index} is {argument['text']}, and only memrefs and numbers "
                "can be passed"
            )
    for result in description["results"]:
        result_type = _parse_type(result)
        if result_type and not isinstance(result_type, MemRef):
            results.append(result_type)
        else:
            obstacles.append(
                f"it returns {result['text']}, and only numbers can be returned: write "
                "other results to memref arguments"
            )
    return Function(
        description["name"],
        description["text"],
        tuple(arguments),
        tuple(results),
        obstacles[0] if obstacles else "",
    )


def _parse_type(description: dict[str, Any]) -> Type | None:
    text = description["text"]
    if description["kind"] == "memref":
        element_dtypes = dtypes.array_dtypes(description["element"])
        if not element_dtypes:
            return None
        return MemRef(
            text,
            element_dtypes,
            tuple(description["shape"]),
            tuple(description["strides"]),
            description["offset"],
            description["contiguous"],
            description.get("readonly", False),
            description.get("alignment", 1),
        )
    if description["kind"] != "scalar":
        return None
    if text == "index":
        return Integer(text, 64, "")
    if match := re.fullmatch(r"([su]?)i(\d+)", text):
        return Integer(text, int(match[2]), match[1])
    element_dtypes = dtypes.array_dtypes(text)
    return Float(text, element_dtypes[0]) if element_dtypes else None


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"{name} ({value!r:.40})" if np.isscalar(value) else name
