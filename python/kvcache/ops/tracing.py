# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traces functions of NumPy to ops of MLIR, by NumPy's own protocols.

A traced value stands for one number of a kernel: an ``index``, an ``f32`` or an ``i1``.
NumPy's functions and Python's operators emit ops for it, with NumPy's meaning: ``//`` and
``%`` round down, ``/`` is a division of floats. Integers have 64 bits, and floats 32.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes
from .append_options import float_text

_LEAST, _MOST = -(2**63), 2**63 - 1
_TYPES = {"bool": "i1", "int": "index", "float": "f32"}
_KINDS = tuple(_TYPES)  # in the order of promotion


class Trace:
    """The ops of one region, each of them once."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._names: dict[str, str] = {}

    @property
    def lines(self) -> list[str]:
        """The ops, one for each line."""
        return [f"{name} = {op}" for op, name in self._names.items()]

    def emit(self, op: str, kind: str, low: int = _LEAST, high: int = _MOST) -> Traced:
        """Returns the result of an op, which is one of a pure expression."""
        name = self._names.setdefault(op, f"%{self._prefix}_{len(self._names)}")
        return Traced(self, name, kind, *_clip_bounds(low, high))

    def constant(self, number: Any) -> Traced:
        """Returns a number as a value. Raises ``TypeError`` for what is no number."""
        if isinstance(number, bool | np.bool_):
            return self.emit(f"arith.constant {str(bool(number)).lower()}", "bool")
        if isinstance(number, int | np.integer):
            exact = int(number)
            if not _LEAST <= exact <= _MOST:
                raise TypeError(f"expects integers of 64 bits, got {exact}")
            return self.emit(f"arith.constant {exact} : index", "int", exact, exact)
        if isinstance(number, float | np.floating):
            return self.emit(f"arith.constant {_write_f32(number)} : f32", "float")
        raise TypeError(
            f"expects numbers, traced values and elements of named arrays, got "
            f"{type(number).__name__}: name arrays in 'arrays'"
        )

    def lift(self, value: Any) -> Traced:
        """Returns a traced value, or a number as one."""
        if isinstance(value, Traced):
            return value
        if isinstance(value, TracedArray):
            value.refuse()
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        return self.constant(value)


def _clip_bounds(low: int, high: int) -> tuple[int, int]:
    """Returns the bounds of an integer, or those of the type if it may wrap."""
    return (low, high) if _LEAST <= low and high <= _MOST else (_LEAST, _MOST)


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
        self, trace: Trace, name: str, kind: str, low: int = _LEAST, high: int = _MOST
    ) -> None:
        self.trace = trace
        self.name = name
        self.kind = kind
        self.low = low
        self.high = high

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> Traced:
        function = _UFUNCS.get(ufunc)
        if function is None or method != "__call__":
            name = ufunc.__name__ + ("" if method == "__call__" else f".{method}")
            raise TypeError(
                f"numpy.{name} can't be traced; possible are "
                f"{', '.join(sorted(known.__name__ for known in _UFUNCS))}"
            )
        if options:
            raise TypeError(f"numpy.{ufunc.__name__} takes no {', '.join(options)} here")
        return function(*map(self.trace.lift, inputs))

    def __array_function__(
        self, function: Any, types: Any, args: Any, options: Any
    ) -> Traced:
        traced = _FUNCTIONS.get(function)
        if traced is None:
            raise TypeError(f"numpy.{function.__name__} can't be traced")
        if options:
            raise TypeError(f"numpy.{function.__name__} takes no {', '.join(options)} here")
        return traced(*map(self.trace.lift, args))

    def astype(self, dtype: dtypes.DTypeLike) -> Traced:
        """Converts, as an array does: to f32, to 64 bits, or to bool."""
        kind = np.dtype(dtype).kind
        if kind not in "biuf":
            raise TypeError(f"expects a bool, an integer or a float, got {np.dtype(dtype)}")
        if kind == "f":
            return _to_float(self)
        return _to_bool(self) if kind == "b" else _to_int(self)

    def _refuse(self, *_: Any) -> Any:
        raise TypeError(
            "a traced value has no number yet: use numpy.where in place of 'if', and "
            "&, | and ~ in place of 'and', 'or' and 'not'"
        )

    __bool__ = __int__ = __float__ = __index__ = __len__ = __iter__ = _refuse


@dataclass(frozen=True)
class TracedArray:
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

    __bool__ = __len__ = __iter__ = __array__ = __array_ufunc__ = refuse

    def _get_size(self, axis: int) -> Traced:
        position = self.trace.constant(axis)
        op = f"memref.dim %{self.name}, {position.name} : {self.type}"
        return self.trace.emit(op, "int", 1, _MOST)

    def _clamp(self, axis: int, index: Any) -> Traced:
        """Returns an index that is in the array: it is read for excluded keys, too."""
        if isinstance(index, slice | type(None) | type(...)):
            raise TypeError(f"expects integers as indices of {self.name!r}, got {index!r}")
        lifted = self.trace.lift(index)
        if lifted.kind != "int":
            raise TypeError(
                f"expects integers as indices of {self.name!r}, got a {lifted.kind}"
            )
        size = self.sizes[axis]
        if lifted.low == lifted.high and not 0 <= lifted.low < (size or _MOST):
            raise IndexError(f"index {lifted.low} is out of bounds for {self.name!r}")
        last = self._get_size(axis) - 1 if size is None else self.trace.constant(size - 1)
        if lifted.low < 0:
            lifted = _apply(np.maximum, lifted, 0)
        return lifted if size and lifted.high < size else _apply(np.minimum, lifted, last)

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


# --- Conversions -----------------------------------------------------------------------


def _to_float(x: Traced) -> Traced:
    if x.kind == "float":
        return x
    if x.kind == "bool":
        return x.trace.emit(f"arith.uitofp {x.name} : i1 to f32", "float")
    narrow = "i32" if -(2**31) <= x.low and x.high < 2**31 else "i64"
    number = x.trace.emit(f"arith.index_cast {x.name} : index to {narrow}", "int")
    return x.trace.emit(f"arith.sitofp {number.name} : {narrow} to f32", "float")


def _to_int(x: Traced) -> Traced:
    if x.kind == "int":
        return x
    if x.kind == "bool":
        return x.trace.emit(f"arith.index_castui {x.name} : i1 to index", "int", 0, 1)
    # A conversion has no result for other numbers; NaN becomes the largest.
    most = x.trace.constant(2.0**62)
    for op, bound in (("minnumf", most), ("maxnumf", -most)):
        x = _emit(f"arith.{op}", x, bound, kind="float")
    number = x.trace.emit(f"arith.fptosi {x.name} : f32 to i64", "int")
    return x.trace.emit(f"arith.index_cast {number.name} : i64 to index", "int")


def _to_bool(x: Traced) -> Traced:
    return x if x.kind == "bool" else _UFUNCS[np.not_equal](x, x.trace.constant(0))


_CONVERSIONS = {"bool": _to_bool, "int": _to_int, "float": _to_float}


def _unify(*values: Traced, least: str = "bool") -> tuple[str, list[Traced]]:
    """Returns values of one kind, which holds all of them and is not below ``least``."""
    kind = max((*(value.kind for value in values), least), key=_KINDS.index)
    return kind, [_CONVERSIONS[kind](value) for value in values]


def _apply(ufunc: np.ufunc, *values: Any) -> Traced:
    """Calls a function of NumPy on traced values and numbers."""
    trace = next(value.trace for value in values if isinstance(value, Traced))
    return _UFUNCS[ufunc](*map(trace.lift, values))


def convert(value: Traced, kind: str) -> Traced:
    """Converts to ``"bool"``, ``"int"`` or ``"float"``."""
    return _CONVERSIONS[kind](value)


# --- Functions -------------------------------------------------------------------------


def _emit(op: str, *values: Traced, kind: str, low: int = _LEAST, high: int = _MOST) -> Traced:
    """Emits an op on values of one kind."""
    names = ", ".join(value.name for value in values)
    type_ = _TYPES[values[-1].kind]
    return values[0].trace.emit(f"{op} {names} : {type_}", kind, low, high)


def _arithmetic(name: str, exact: Callable[[int, int], int]) -> Callable[..., Traced]:
    """Makes a sum, difference or product; ``exact`` computes bounds of integers."""

    def function(x: Traced, y: Traced) -> Traced:
        if x.kind == y.kind == "bool":
            raise TypeError(f"expects numbers, got two bools: use & and | in place of {name}")
        kind, (x, y) = _unify(x, y)
        if kind == "float":
            return _emit(f"arith.{name}f", x, y, kind=kind)
        corners = [exact(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
        return _emit(f"arith.{name}i", x, y, kind=kind, low=min(corners), high=max(corners))

    return function


def _extremum(name: str, choose: Callable[[int, int], int]) -> Callable[..., Traced]:
    def function(x: Traced, y: Traced) -> Traced:
        kind, (x, y) = _unify(x, y)
        if kind == "bool":
            return _emit("arith.ori" if choose is max else "arith.andi", x, y, kind=kind)
        if kind == "float":
            return _emit(f"arith.{name}imumf", x, y, kind=kind)
        low, high = choose(x.low, y.low), choose(x.high, y.high)
        return _emit(f"arith.{name}si", x, y, kind=kind, low=low, high=high)

    return function


def _comparison(integers: str, floats: str) -> Callable[..., Traced]:
    def function(x: Traced, y: Traced) -> Traced:
        kind, (x, y) = _unify(x, y)
        if kind == "float":
            return _emit(f"arith.cmpf {floats},", x, y, kind="bool")
        if kind == "bool":
            # A set i1 is -1 where it has a sign.
            return _emit(f"arith.cmpi {integers.replace('s', 'u')},", x, y, kind="bool")
        return _emit(f"arith.cmpi {integers},", x, y, kind="bool")

    return function


def _bitwise(name: str) -> Callable[..., Traced]:
    def function(x: Traced, y: Traced) -> Traced:
        kind, (x, y) = _unify(x, y)
        if kind == "float":
            raise TypeError("expects bools or integers for &, | and ^, got a float")
        low, high = _LEAST, _MOST
        if x.low >= 0 and y.low >= 0:
            bits = max(x.high, y.high).bit_length()
            low, high = 0, min(x.high, y.high) if name == "andi" else 2**bits - 1
        return _emit(f"arith.{name}", x, y, kind=kind, low=low, high=high)

    return function


def _logical(name: str) -> Callable[..., Traced]:
    bitwise = _bitwise(name)
    return lambda x, y: bitwise(_to_bool(x), _to_bool(y))


def _invert(x: Traced) -> Traced:
    if x.kind == "float":
        raise TypeError("expects a bool or an integer for ~, got a float")
    ones = x.trace.constant(True if x.kind == "bool" else -1)
    return _emit("arith.xori", x, ones, kind=x.kind, low=~x.high, high=~x.low)


def _floor_divide(x: Traced, y: Traced) -> Traced:
    kind, (x, y) = _unify(x, y, least="int")
    if kind == "float":
        return _divide_floats(x, y)[0]
    if x.low >= 0 and y.low > 0:
        return _emit(
            "arith.divui", x, y, kind=kind, low=x.low // y.high, high=x.high // y.low
        )
    # As in NumPy, a division by 0 is 0; hardware may trap.
    if x.low == _LEAST:
        x = _apply(np.maximum, x, _LEAST + 1)
    size = max(abs(x.low), abs(x.high))
    if not y.low <= 0 <= y.high:
        return _emit("arith.floordivsi", x, y, kind=kind, low=-size, high=size)
    divisor = _where(y == 0, x.trace.constant(1), y)
    divided = _emit("arith.floordivsi", x, divisor, kind=kind, low=-size, high=size)
    return _where(y == 0, x.trace.constant(0), divided)


def _divide_floats(x: Traced, y: Traced) -> tuple[Traced, Traced]:
    """Returns quotient and remainder as NumPy computes them."""
    rest = _emit("arith.remf", x, y, kind="float")
    quotient = (x - rest) / y
    is_other = (rest != 0) & ((rest < 0) != (y < 0))
    quotient = _where(is_other, quotient - 1, quotient)
    floor = _apply(np.floor, quotient)
    floor = _where(quotient - floor > 0.5, floor + 1, floor)
    return floor, _where(is_other, rest + y, rest)


def _remainder(x: Traced, y: Traced) -> Traced:
    kind, (x, y) = _unify(x, y, least="int")
    rest: Traced
    if kind == "int" and x.low >= 0 and y.low > 0:
        return _emit("arith.remui", x, y, kind=kind, low=0, high=min(x.high, y.high - 1))
    if kind == "float":
        return _divide_floats(x, y)[1]
    if y.low > 0:
        # An index relies on these bounds, so nothing here may wrap for any x.
        rest = _emit("arith.remsi", x, y, kind=kind, low=1 - y.high, high=y.high - 1)
        return _bound(_where(rest < 0, rest + y, rest), 0, y.high - 1)
    rest = x - _floor_divide(x, y) * y
    return _where(y == 0, x.trace.constant(0), rest) if y.high >= 0 else rest


def _bound(x: Traced, low: int, high: int) -> Traced:
    """Returns the value with closer bounds."""
    return Traced(x.trace, x.name, x.kind, low, high)


def _true_divide(x: Traced, y: Traced) -> Traced:
    _, (x, y) = _unify(x, y, least="float")
    return _emit("arith.divf", x, y, kind="float")


def _shift(name: str) -> Callable[..., Traced]:
    def function(x: Traced, y: Traced) -> Traced:
        kind, (x, y) = _unify(x, y, least="int")
        if kind == "float" or not 0 <= y.low <= y.high < 64:
            raise TypeError("expects an integer to be shifted by 0 to 63 bits")
        if name == "shrsi":
            return _emit("arith.shrsi", x, y, kind=kind, low=min(x.low, 0), high=max(x.high, 0))
        bounds = [bound << y.high for bound in (min(x.low, 0), max(x.high, 0))]
        return _emit("arith.shli", x, y, kind=kind, low=bounds[0], high=bounds[1])

    return function


def _power(x: Traced, y: Traced) -> Traced:
    if x.kind != "float" and y.kind != "float":
        if not (y.low == y.high and 0 <= y.low <= 16):
            raise TypeError("expects a constant exponent of an integer, from 0 to 16")
        result = x.trace.constant(1)
        for _ in range(y.low):
            result = result * _to_int(x)
        return result
    if y.kind == "int" and y.low == y.high == 2:
        return _square(x)
    _, (x, y) = _unify(x, y, least="float")
    return _emit("math.powf", x, y, kind="float")


def _square(x: Traced) -> Traced:
    product: Traced = x * x
    return _bound(product, 0, product.high) if product.high < _MOST else product


def _negative(x: Traced) -> Traced:
    if x.kind == "bool":
        raise TypeError("expects a number for -, got a bool: use ~")
    return _emit("arith.negf", x, kind="float") if x.kind == "float" else 0 - x


def _absolute(x: Traced) -> Traced:
    if x.kind == "float":
        return _emit("math.absf", x, kind="float")
    x = _to_int(x)
    larger = _apply(np.maximum, x, 0 - x)
    return larger if x.low == _LEAST else _bound(larger, 0, larger.high)


def _sign(x: Traced) -> Traced:
    kind, (x,) = _unify(x, least="int")
    zero = convert(x.trace.constant(0), kind)
    one, minus = (convert(x.trace.constant(number), kind) for number in (1, -1))
    # NaN stays NaN.
    return _where(x > zero, one, _where(x < zero, minus, x if kind == "float" else zero))


def _unary(op: str) -> Callable[..., Traced]:
    return lambda x: _emit(op, _to_float(x), kind="float")


def _rounding(op: str) -> Callable[..., Traced]:
    return lambda x: _emit(op, x, kind="float") if x.kind == "float" else _to_int(x)


def _where(condition: Traced, x: Traced, y: Traced) -> Traced:
    kind, (x, y) = _unify(x, y)
    condition = _to_bool(condition)
    low, high = min(x.low, y.low), max(x.high, y.high)
    op = f"arith.select {condition.name}, {x.name}, {y.name} : {_TYPES[kind]}"
    return x.trace.emit(op, kind, low, high)


def _clip(x: Traced, low: Traced, high: Traced) -> Traced:
    return _apply(np.minimum, _apply(np.maximum, x, low), high)


def _is_nan(x: Traced) -> Traced:
    x = _to_float(x)
    return _emit("arith.cmpf uno,", x, x, kind="bool")


_UFUNCS: dict[Any, Callable[..., Traced]] = {
    np.add: _arithmetic("add", operator.add),
    np.subtract: _arithmetic("sub", operator.sub),
    np.multiply: _arithmetic("mul", operator.mul),
    np.true_divide: _true_divide,
    np.floor_divide: _floor_divide,
    np.remainder: _remainder,
    np.power: _power,
    np.square: _square,
    np.negative: _negative,
    np.positive: lambda x: x,
    np.absolute: _absolute,
    np.sign: _sign,
    np.minimum: _extremum("min", min),
    np.maximum: _extremum("max", max),
    np.less: _comparison("slt", "olt"),
    np.less_equal: _comparison("sle", "ole"),
    np.greater: _comparison("sgt", "ogt"),
    np.greater_equal: _comparison("sge", "oge"),
    np.equal: _comparison("eq", "oeq"),
    np.not_equal: _comparison("ne", "une"),
    np.bitwise_and: _bitwise("andi"),
    np.bitwise_or: _bitwise("ori"),
    np.bitwise_xor: _bitwise("xori"),
    np.logical_and: _logical("andi"),
    np.logical_or: _logical("ori"),
    np.logical_xor: _logical("xori"),
    np.invert: _invert,
    np.logical_not: lambda x: _invert(_to_bool(x)),
    np.left_shift: _shift("shli"),
    np.right_shift: _shift("shrsi"),
    np.floor: _rounding("math.floor"),
    np.ceil: _rounding("math.ceil"),
    np.trunc: _rounding("math.trunc"),
    np.rint: _rounding("math.roundeven"),
    np.isnan: _is_nan,
    np.isinf: lambda x: _absolute(_to_float(x)) == np.inf,
    np.isfinite: lambda x: _absolute(_to_float(x)) < np.inf,
    **{
        getattr(np, name): _unary(f"math.{op}")
        for name, op in {
            **{same: same for same in ("exp", "exp2", "expm1", "log", "log2", "log1p")},
            **{same: same for same in ("log10", "tanh", "sin", "cos", "tan", "sqrt")},
        }.items()
    },
}

_FUNCTIONS: dict[Any, Callable[..., Traced]] = {
    np.where: _where,
    np.clip: _clip,
    np.round: _rounding("math.roundeven"),
}


def arguments(trace: Trace, names: Sequence[str]) -> list[Traced]:
    """Returns the block arguments of a region: a score first if there are five."""
    kinds = ["float"] * (len(names) - 4) + ["int"] * 4
    return [
        Traced(trace, f"%{name}", kind, *((0, 2**31 - 1) if kind == "int" else ()))
        for name, kind in zip(names, kinds)
    ]
