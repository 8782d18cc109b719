# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of NumPy that can be traced, and the ops that each emits."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .tracing import CONVERSIONS, FUNCTIONS, LEAST, MOST, UFUNCS, Traced

_TYPES = {"bool": "i1", "int": "index", "float": "f32"}
_KINDS = tuple(_TYPES)  # in the order of promotion


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
    return x if x.kind == "bool" else UFUNCS[np.not_equal](x, x.trace.constant(0))


CONVERSIONS |= {"bool": _to_bool, "int": _to_int, "float": _to_float}


def _unify(*values: Traced, least: str = "bool") -> tuple[str, list[Traced]]:
    """Returns values of one kind, which holds all of them and is not below ``least``."""
    kind = max((*(value.kind for value in values), least), key=_KINDS.index)
    return kind, [CONVERSIONS[kind](value) for value in values]


def _apply(ufunc: np.ufunc, *values: Any) -> Traced:
    """Calls a function of NumPy on traced values and numbers."""
    trace = next(value.trace for value in values if isinstance(value, Traced))
    return UFUNCS[ufunc](*map(trace.lift, values))


def convert(value: Traced, kind: str) -> Traced:
    """Converts to ``"bool"``, ``"int"`` or ``"float"``."""
    return CONVERSIONS[kind](value)


# --- Functions -------------------------------------------------------------------------


def _emit(op: str, *values: Traced, kind: str, low: int = LEAST, high: int = MOST) -> Traced:
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
        low, high = LEAST, MOST
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
    # As in NumPy, a division by 0 is 0, and one by -1 may wrap; hardware may trap.
    special = [number for number in (0, -1) if y.low <= number <= y.high]
    divisor = y
    for number in special:
        divisor = _where(y == number, x.trace.constant(1), divisor)
    size = max(abs(x.low), abs(x.high))
    result = _emit("arith.floordivsi", x, divisor, kind=kind, low=-size, high=size)
    for number in special:
        result = _where(y == number, number * x, result)
    return result


def _divide_floats(x: Traced, y: Traced) -> tuple[Traced, Traced]:
    """Returns quotient and remainder as NumPy computes them, also of 0 and by 0."""
    rest = _emit("arith.remf", x, y, kind="float")
    quotient = (x - rest) / y
    is_other = (rest != 0) & ((rest < 0) != (y < 0))
    quotient = _where(is_other, quotient - 1, quotient)
    floor = _apply(np.floor, quotient)
    floor = _where(quotient - floor > 0.5, floor + 1, floor)
    floor = _where(floor == 0, x / y * 0.0, floor)
    floor = _where(y == 0, x / y, floor)
    zero = _where(y < 0, x.trace.constant(-0.0), x.trace.constant(0.0))
    return floor, _where(rest == 0, zero, _where(is_other, rest + y, rest))


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
    x = _to_int(x) if x.kind == "bool" else x
    product: Traced = x * x
    return _bound(product, 0, product.high) if product.high < MOST else product


def _negative(x: Traced) -> Traced:
    if x.kind == "bool":
        raise TypeError("expects a number for -, got a bool: use ~")
    return _emit("arith.negf", x, kind="float") if x.kind == "float" else 0 - x


def _absolute(x: Traced) -> Traced:
    if x.kind == "float":
        return _emit("math.absf", x, kind="float")
    x = _to_int(x)
    larger = _apply(np.maximum, x, 0 - x)
    return larger if x.low == LEAST else _bound(larger, 0, larger.high)


def _sign(x: Traced) -> Traced:
    kind, (x,) = _unify(x, least="int")
    zero = convert(x.trace.constant(0), kind)
    one, minus = (convert(x.trace.constant(number), kind) for number in (1, -1))
    # NaN stays NaN, and -0 becomes 0.
    rest = _where(x == zero, zero, x) if kind == "float" else zero
    return _where(x > zero, one, _where(x < zero, minus, rest))


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


def _clip(a: Traced, a_min: Traced | None = None, a_max: Traced | None = None) -> Traced:
    if a_min is not None:
        a = _apply(np.maximum, a, a_min)
    return a if a_max is None else _apply(np.minimum, a, a_max)


def _round(a: Traced, decimals: Traced | None = None) -> Traced:
    if decimals is not None and not decimals.low == decimals.high == 0:
        raise TypeError("expects no decimals")
    return UFUNCS[np.rint](a)


def _is_nan(x: Traced) -> Traced:
    x = _to_float(x)
    return _emit("arith.cmpf uno,", x, x, kind="bool")


UFUNCS |= {
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

FUNCTIONS |= {
    np.where: _where,
    np.clip: _clip,
    np.round: _round,
}
