# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that NumPy's functions trace to ops of MLIR, by NumPy's own protocols.

A traced value stands for one number of a kernel: an ``index``, an ``f32`` or an ``i1``.
NumPy's functions and Python's operators emit ops for it, with NumPy's meaning: ``//`` and
``%`` round down, ``/`` is a division of floats. Integers have 64 bits, and floats 32.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes
from .append_options import float_text

LEAST, MOST = -(2**63), 2**63 - 1
_KINDS_OF_DTYPES = {
    **{np.dtype(name): "float" for name in ("float32", "float64")},
    np.dtype("int64"): "int",
    np.dtype("bool"): "bool",
}

# The functions of NumPy, and conversions by kind: ``traced_functions`` adds them.
UFUNCS: dict[Any, Callable[..., Traced]] = {}
FUNCTIONS: dict[Any, Callable[..., Traced]] = {}
CONVERSIONS: dict[str, Callable[[Traced], Traced]] = {}


class Trace:
    """The ops of one region, each of them once."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._names: dict[str, str] = {}

    @property
    def lines(self) -> list[str]:
        """The ops, one for each line."""
        return [f"{name} = {op}" for op, name in self._names.items()]

    def emit(self, op: str, kind: str, low: int = LEAST, high: int = MOST) -> Traced:
        """Returns the result of an op, which is one of a pure expression."""
        name = self._names.setdefault(op, f"%{self._prefix}_{len(self._names)}")
        return Traced(self, name, kind, *_clip_bounds(low, high))

    def constant(self, number: Any) -> Traced:
        """Returns a number as a value. Raises ``TypeError`` for what is no number."""
        if isinstance(number, bool | np.bool_):
            return self.emit(f"arith.constant {str(bool(number)).lower()}", "bool")
        if isinstance(number, int | np.integer):
            exact = int(number)
            if not LEAST <= exact <= MOST:
                raise TypeError(f"expects integers of 64 bits, got {exact}")
            return self.emit(f"arith.constant {exact} : index", "int", exact, exact)
        if isinstance(number, float | np.floating):
            return self.emit(f"arith.constant {_write_f32(number)} : f32", "float")
        raise TypeError(
            f"expects numbers, traced values and elements of named arrays, got "
            f"{type(number).__name__}: name arrays in 'arrays'"
        )

    def lift(self, value: Any) -> Traced:
        """Returns a traced value, or a number as one.

        Raises ``TypeError`` for what is neither, and for a value of another trace.
        """
        if isinstance(value, Traced):
            if value.trace is not self:
                raise TypeError("got a value of another function: compute it again in this one")
            return value
        if isinstance(value, TracedArray):
            value.refuse()
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        return self.constant(value)


def _clip_bounds(low: int, high: int) -> tuple[int, int]:
    """Returns the bounds of an integer, or those of the type if it may wrap."""
    return (low, high) if LEAST <= low and high <= MOST else (LEAST, MOST)


def _write_f32(number: Any) -> str:
    single = np.float32(number)
    if np.isfinite(single):
        return float_text(float(single))
    return f"0x{int(single.view(np.uint32)):08X}"


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """A number of a kernel, on which NumPy's functions emit ops.

    Attributes:
        trace: The ops of the region.
        name: The SSA value.
        kind: ``"bool"``, ``"int"`` or ``"float"``.
        low: A lower bound of an integer.
        high: An upper bound of an integer.
    """

    def __init__(
        self, trace: Trace, name: str, kind: str, low: int = LEAST, high: int = MOST
    ) -> None:
        self.trace = trace
        self.name = name
        self.kind = kind
        self.low = low
        self.high = high

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> Traced:
        function = UFUNCS.get(ufunc)
        if function is None or method != "__call__":
            name = ufunc.__name__ + ("" if method == "__call__" else f".{method}")
            raise TypeError(
                f"numpy.{name} can't be traced; possible are "
                f"{', '.join(sorted(known.__name__ for known in UFUNCS))}"
            )
        if options:
            raise TypeError(f"numpy.{ufunc.__name__} takes no {', '.join(options)} here")
        return function(*map(self.trace.lift, inputs))

    def __array_function__(
        self, function: Any, types: Any, args: Any, options: Any
    ) -> Traced:
        traced = FUNCTIONS.get(function)
        if traced is None:
            raise TypeError(f"numpy.{function.__name__} can't be traced")
        signature = inspect.signature(traced)
        try:
            given = signature.bind(*args, **options).arguments
        except TypeError as error:
            possible = ", ".join(signature.parameters)
            raise TypeError(f"numpy.{function.__name__} takes ({possible}) here") from error
        lifted = {
            name: None if value is None else self.trace.lift(value)
            for name, value in given.items()
        }
        return traced(**lifted)

    def astype(self, dtype: dtypes.DTypeLike) -> Traced:
        """Converts to a bool, an integer of 64 bits, or a float, which has 32 bits."""
        kind = _KINDS_OF_DTYPES.get(np.dtype(dtype))
        if kind is None:
            raise TypeError(
                f"expects bool, int64, float32 or float64, got {np.dtype(dtype)}: numbers "
                "have no other types here"
            )
        return CONVERSIONS[kind](self)

    def __pow__(self, exponent: Any, modulus: Any = None) -> Traced:
        if modulus is not None:
            raise TypeError("pow takes no modulus here: use %")
        return self.__array_ufunc__(np.power, "__call__", self, exponent)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a traced value has no {name!r}: use functions of NumPy")

    def __bool__(self) -> Any:
        raise TypeError(
            "a traced value has no number yet: use numpy.where in place of 'if', and "
            "&, | and ~ in place of 'and', 'or' and 'not'"
        )

    def _refuse(self, *_: Any) -> Any:
        raise TypeError(
            "a traced value has no number yet: use functions of NumPy in place of those "
            "of Python and 'math', and named arrays in place of lists"
        )

    __int__ = __float__ = __index__ = __len__ = __iter__ = __hash__ = _refuse
    __round__ = __floor__ = __ceil__ = __trunc__ = _refuse


@dataclass(frozen=True, eq=False)
class TracedArray(np.lib.mixins.NDArrayOperatorsMixin):
    """A named array, whose elements are traced values.

    Attributes:
        trace: The ops of the region.
        name: The array's name, also of the SSA value.
        element: MLIR's name of the elements' type.
        sizes: The sizes; None for those that are known at run time.
    """

    trace: Trace
    name: str
    element: str
    sizes: tuple[int | None, ...]

    @property
    def type(self) -> str:
        """The type of the memref."""
        sizes = "".join(f"{'?' if size is None else size}x" for size in self.sizes)
        return f"memref<{sizes}{self.storage}>"

    @property
    def storage(self) -> str:
        """The type of the memref's elements, which has no sign."""
        return self.element.lstrip("su") if self.element[:2] in ("si", "ui") else self.element

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes, as integers or traced values."""
        return tuple(
            self._get_size(axis) if size is None else size
            for axis, size in enumerate(self.sizes)
        )

    def __getitem__(self, indices: Any) -> Traced:
        indices = indices if isinstance(indices, tuple) else (indices,)
        if len(indices) != len(self.sizes):
            raise TypeError(
                f"expects {len(self.sizes)} indices of {self.name!r}, got {len(indices)}"
            )
        names = [self._clamp(axis, index).name for axis, index in enumerate(indices)]
        loaded = f"memref.load %{self.name}[{', '.join(names)}] : {self.type}"
        return self._convert(loaded)

    def refuse(self, *_: Any, **__: Any) -> Any:
        """Raises ``TypeError`` for the array in place of an element."""
        raise TypeError(f"expects elements of {self.name!r}: index it")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a named array has no {name!r}: index it")

    __bool__ = __len__ = __iter__ = __contains__ = __hash__ = refuse
    __array__ = __array_ufunc__ = __array_function__ = refuse

    def _get_size(self, axis: int) -> Traced:
        position = self.trace.constant(axis)
        op = f"memref.dim %{self.name}, {position.name} : {self.type}"
        return self.trace.emit(op, "int", 1, MOST)

    def _clamp(self, axis: int, index: Any) -> Traced:
        """Returns an index that is in the array: it is read for excluded keys, too."""
        if isinstance(index, slice | type(None) | type(...)):
            raise TypeError(f"expects integers as indices of {self.name!r}, got {index!r}")
        lifted: Any = self.trace.lift(index)
        if lifted.kind != "int":
            raise TypeError(
                f"expects integers as indices of {self.name!r}, got a {lifted.kind}"
            )
        size = self.sizes[axis]
        if lifted.low == lifted.high and not 0 <= lifted.low < (size or MOST):
            raise IndexError(f"index {lifted.low} is out of bounds for {self.name!r}")
        last: Any = self._get_size(axis) - 1 if size is None else self.trace.constant(size - 1)
        if lifted.low < 0:
            lifted = np.maximum(lifted, 0)
        return lifted if size and lifted.high < size else np.minimum(lifted, last)

    def _convert(self, loaded: str) -> Traced:
        """Converts an element to the type that is computed with."""
        element, trace = self.storage, self.trace
        if element == "i1":
            return trace.emit(loaded, "bool")
        if element == "f32":
            return trace.emit(loaded, "float")
        name = trace.emit(loaded, "int").name
        if element.startswith(("f", "bf")):
            cast = "truncf" if element == "f64" else "extf"
            return trace.emit(f"arith.{cast} {name} : {element} to f32", "float")
        limits = np.iinfo(dtypes.dtype(self.element))
        cast = "index_castui" if limits.min == 0 else "index_cast"
        op = f"arith.{cast} {name} : {element} to index"
        return trace.emit(op, "int", int(limits.min), int(limits.max))


def arguments(trace: Trace, names: Sequence[str]) -> list[Traced]:
    """Returns the block arguments of a region: a score first if there are five."""
    kinds = ["float"] * (len(names) - 4) + ["int"] * 4
    return [
        Traced(trace, f"%{name}", kind, *((0, 2**31 - 1) if kind == "int" else ()))
        for name, kind in zip(names, kinds)
    ]
