# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The builder of functions, op by op."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias, overload

import numpy as np

from .. import _native
from .base import Attribute, Type, several

AttributeLike: TypeAlias = (
    Attribute | str | bool | int | float | np.number | Sequence[int] | None
)
"""A value of an attribute: MLIR text, a number, a sequence of integers, or True.

Numbers have 64 bits, or those of their NumPy type. None and False are left out.
"""

_OP = re.compile(r"[a-z_]\w*(\.[\w$]+)+", re.ASCII)


class Value:
    """A value of a function that is being built: an argument, or a result of an op."""

    type: Type

    def __init__(self) -> None:
        raise TypeError("Value has no constructor: a FunctionBuilder makes it")

    def __repr__(self) -> str:
        return f"<{self._text}: {self.type}>"

    _text: str
    _function: FunctionBuilder


class FunctionBuilder:
    """A function of straight-line code, for a module.

    Args:
        name: The name of the function.
        arguments: The types of the arguments, by name.
    """

    def __init__(self, name: str, /, **arguments: Type | str) -> None:
        self.name = _check_identifier(name)
        self._arguments = {
            _check_identifier(argument): self._make(f"%{argument}", type_)
            for argument, type_ in arguments.items()
        }
        self._lines: list[str] = []
        self._returned: tuple[Value, ...] | None = None
        self._count = 0

    def __getitem__(self, argument: str) -> Value:
        """The argument with a name."""
        return self._arguments[argument]

    @overload
    def op(
        self,
        name: str,
        /,
        *operands: Value,
        results: Type | str,
        **named: Value | AttributeLike,
    ) -> Value: ...

    @overload
    def op(
        self,
        name: str,
        /,
        *operands: Value,
        results: tuple[Type | str, ...] | list[Type | str] = (),
        **named: Value | AttributeLike,
    ) -> tuple[Value, ...]: ...

    def op(
        self,
        name: str,
        /,
        *operands: Value,
        results: Type | str | tuple[Type | str, ...] | list[Type | str] = (),
        **named: Value | AttributeLike,
    ) -> Value | tuple[Value, ...]:
        """Adds an op without regions, of any dialect.

        Args:
            name: The name with its dialect: ``"kvcache.append"``.
            operands: All operands in order, or none if they are named.
            results: The types of the results; for a whole-cache op, of its ``outs``
                that are tensors.
            named: Operands by their names in the reference of the dialect, and
                attributes. Operands that are None are left out. An enum of the dialect
                may be its word, such as ``role="key"``.

        Returns:
            The result if ``results`` is one type, else a tuple.

        Raises:
            ValueError: The op has no operand with a name, or one is missing, or an enum
                has no such word.
        """
        if self._returned is not None:
            raise ValueError("this function has returned: it takes no more ops")
        if not _OP.fullmatch(name):
            raise ValueError(
                f"expects the name of an op with its dialect, got {name!r}"
            )
        values = {key: it for key, it in named.items() if isinstance(it, Value)}
        attributes = {key: it for key, it in named.items() if not isinstance(it, Value)}
        if name.startswith("kvcache."):
            attributes = {key: _parse_word(key, it) for key, it in attributes.items()}
        if values:
            if operands:
                raise ValueError("expects either named operands or others")
            operands, segments = _order(name, values, attributes)
            if segments is not None:
                attributes["operandSegmentSizes"] = Attribute.parse(
                    f"array<i32: {', '.join(map(str, segments))}>"
                )
        is_one = isinstance(results, Type | str)
        types = [results] if isinstance(results, Type | str) else list(results)
        made = tuple(
            self._make(f"%{self._count + i}", type_) for i, type_ in enumerate(types)
        )
        self._count += len(made)
        left = ", ".join(value._text for value in made)
        self._lines.append(
            (f"{left} = " if made else "")
            + f'"{name}"({self._use(operands)}){_dictionary(attributes)}'
            + f" : ({_types(operands)}) -> ({_types(made)})"
        )
        return made[0] if is_one else made

    def returns(self, *values: Value) -> None:
        """Ends the function, which returns ``values``. Without it, it returns nothing."""
        if self._returned is not None:
            raise ValueError("this function has returned")
        self._use(values)
        self._returned = values

    def __str__(self) -> str:
        """MLIR text, which ``Module.build`` verifies."""
        arguments = ", ".join(
            f"{value._text}: {value.type}" for value in self._arguments.values()
        )
        returned = self._returned or ()
        end = f'"func.return"({self._use(returned)}) : ({_types(returned)}) -> ()'
        body = "".join(f"  {line}\n" for line in [*self._lines, end])
        return f"func.func @{self.name}({arguments}) -> ({_types(returned)}) {{\n{body}}}\n"

    def _make(self, text: str, type_: Type | str) -> Value:
        value = object.__new__(Value)
        value._text = text
        value._function = self
        value.type = type_ if isinstance(type_, Type) else Type.parse(type_)
        return value

    def _use(self, values: Sequence[Value]) -> str:
        for value in values:
            if not isinstance(value, Value):
                raise TypeError(f"expects values, got {value!r}")
            if value._function is not self:
                raise ValueError(f"expects values of this function, got {value!r}")
        return ", ".join(value._text for value in values)


def _order(
    op: str, values: dict[str, Value], others: dict[str, AttributeLike]
) -> tuple[tuple[Value, ...], list[int] | None]:
    """The operands of an op in order, and the number of each if the op needs it.

    Removes named operands from ``others``.
    """
    known = _native.extension().operand_names(op)
    if known is None:
        raise ValueError(f"expects an op of our dialect for named operands, got {op!r}")
    names, has_segments = known
    plain = {name.rstrip("?*"): name for name in names}
    for name in values:
        if name not in plain:
            raise ValueError(
                f"{op!r} has no operand {name!r}: it has {', '.join(plain)}"
            )
    for name, declared in plain.items():
        if name == declared and name not in values:
            raise ValueError(f"{op!r} expects an operand {name!r}")
        if others.get(name, ()) is None:
            del others[name]
    operands = tuple(values[name] for name in plain if name in values)
    segments = [int(name in values) for name in plain]
    return operands, segments if has_segments else None


def _parse_word(name: str, value: AttributeLike) -> AttributeLike:
    """The attribute that a word of an enum of the dialect means; other values as is."""
    if not (isinstance(value, str) and value.isidentifier()):
        return value
    words = _native.extension().enum_words(name)
    if words and value not in words:
        raise ValueError(
            f"expects {name!r} to be one of {', '.join(words)}, got {value!r}"
        )
    return Attribute.parse(words[value]) if words else value


def _types(values: Sequence[Value]) -> str:
    return ", ".join(str(value.type) for value in values)


def _dictionary(attributes: dict[str, AttributeLike]) -> str:
    given = {
        name: _attribute(name, value)
        for name, value in attributes.items()
        if value is not None and value is not False
    }
    if not given:
        return ""
    return " {" + ", ".join(f"{name} = {text}" for name, text in given.items()) + "}"


def _attribute(name: str, value: AttributeLike) -> str:
    """The text of an attribute."""
    if isinstance(value, Attribute):
        return str(value)
    if isinstance(value, str):
        return str(Attribute.parse(value))
    if value is True:
        return "unit"
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, np.integer):
        return f"{value} : i{8 * value.itemsize}"
    if isinstance(value, float | np.floating):
        bits = np.asarray(value)
        width = 8 * bits.dtype.itemsize
        return (
            f"0x{int(bits.view(f'u{bits.dtype.itemsize}')):0{width // 4}X} : f{width}"
        )
    numbers = [int(number) for number in several(name, value)]  # type: ignore[arg-type]
    return f"array<i64: {', '.join(map(str, numbers))}>" if numbers else "array<i64>"


def _check_identifier(name: str) -> str:
    if not (isinstance(name, str) and name.isascii() and name.isidentifier()):
        raise ValueError(f"expects an identifier, got {name!r}")
    return name
