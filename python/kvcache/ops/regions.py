# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The regions of attention that functions of the user are traced to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..execution.arrays import Array
from .array_checks import get_sizes

Function = Callable[..., Any]
"""A function of numbers, which is traced."""

Sizes = tuple[int | None, ...]


def _write_dtype(element: str) -> str:
    """Returns NumPy's name of the elements' type: uint8 for ui8."""
    sign = "u" if element.startswith("u") else ""
    width = element.lstrip("usi")
    return f"{sign}int{width}" if width.isdigit() else element


@dataclass(frozen=True)
class ScoreRegions:
    """The regions of an op, as text, and the arrays that they read.

    Attributes:
        text: The regions in the op's syntax; empty for none.
        arrays: The name, the element type and the sizes of each array, in order; None
            for a size that is known at run time.
    """

    text: str = ""
    arrays: tuple[tuple[str, str, Sizes], ...] = ()

    @property
    def types(self) -> dict[str, str]:
        """The memref type of each array, by name."""
        if not self.arrays:
            return {}
        from .tracing import Trace, TracedArray

        return {array[0]: TracedArray(Trace(""), *array).type for array in self.arrays}

    def take(self, arrays: Mapping[str, Array]) -> list[Array]:
        """Returns the arrays of a call in their order.

        Raises ``TypeError`` for an unexpected array or sign of integers, and
        ``ValueError`` for one that is missing or has no elements.
        """
        for name in arrays.keys() - {name for name, *_ in self.arrays}:
            raise TypeError(f"got an unexpected array {name!r}")
        for name, element, _ in self.arrays:
            if name not in arrays:
                raise ValueError(f"expects {name!r}, as the operation was made with it")
            if 0 in (sizes := get_sizes(arrays[name])):
                raise ValueError(f"expects {name!r} to have elements, got {sizes}")
            found = str(getattr(arrays[name], "dtype", "")).removeprefix("torch.")
            if "int" in found and element.lstrip("u") != "i1" and found != _write_dtype(element):
                raise TypeError(f"expects {name!r} to be of {_write_dtype(element)}, got {found}")
        return [arrays[name] for name, *_ in self.arrays]
