# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Signatures of compiled functions, which adapt Python values to their arguments.

A function is called through TVM-FFI, and its wrapper checks the arguments. Values that
TVM-FFI does not accept are converted here: arrays that NumPy does not export, and
numbers that are not Python numbers. Properties that only Python can check are checked
here: whether an array is read-only, and whether the memory of a tensor is its value.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._native import extension
from ..devices import tensors
from ..errors import CheckError

if TYPE_CHECKING:
    from .._kvcache import JIT, NativeFunction

TYPES: dict[type, bool] = {
    int: False,
    float: False,
    bool: False,
    np.ndarray: False,
    **dict.fromkeys((np.int8, np.int16, np.int32, np.int64), False),
    **dict.fromkeys((np.uint8, np.uint16, np.uint32, np.uint64), False),
    **dict.fromkeys((np.float16, np.float32, np.float64), False),
}
"""The types of values that TVM-FFI accepts directly; True for PyTorch's tensors."""


_MOST_NATIVE = 32
"""The most arguments of a function that is called without TVM-FFI."""


@functools.cache
def _register_native() -> None:
    """Makes the dtypes of arrays known to the extension."""
    plain = [np.dtype(code) for code in "?bBhHiIlLqQefd"]
    codes = {"b": 6, "i": 0, "u": 1, "f": 2}
    dtypes = {dtype.num: (codes[dtype.kind], 8 * dtype.itemsize) for dtype in plain}
    for dtype, code in tensors.CODES.items():
        dtypes[dtype.num] = code, 8 * dtype.itemsize
    extension().register_native(np.ndarray, dtypes, CheckError)


@dataclass(frozen=True)
class Argument:
    """An argument of a function. ``name`` is empty if the source has none.

    ``kind`` is ``"memref"``, ``"integer"``, ``"float"``, or ``"other"`` for an argument
    that can't be passed. For ``precision`` see ``_kvcache.needs_adapting``.
    """

    index: int
    name: str
    text: str
    kind: str
    precision: int
    readonly: bool

    def __str__(self) -> str:
        return f"argument {self.index}" + (f" ({self.name!r})" if self.name else "")


@dataclass
class Signature:
    """The name, arguments and results of a function of a module."""

    name: str
    text: str
    arguments: tuple[Argument, ...]
    num_results: int

    @staticmethod
    def parse(description: dict[str, Any]) -> Signature:
        """Makes a signature from the extension's description of a function."""
        arguments = [
            Argument(index, **fields)
            for index, fields in enumerate(description["arguments"])
        ]
        return Signature(
            description["name"],
            description["text"],
            tuple(arguments),
            description["num_results"],
        )

    def make_native(self, compiled: JIT, *, is_on_gpu: bool) -> NativeFunction | None:
        """Makes a function that is called without TVM-FFI.

        None for a function with results, or with arguments that can't be passed so.
        """
        kinds = [argument.kind[0] for argument in self.arguments]
        if self.num_results or "o" in kinds or len(kinds) > _MOST_NATIVE:
            return None
        _register_native()
        return extension().native_function(
            compiled,
            self.name,
            "".join(kinds).encode(),
            self.precisions,
            bytes(not argument.readonly for argument in self.arguments),
            is_on_gpu,
        )

    @functools.cached_property
    def precisions(self) -> bytes:
        """The checks of PyTorch's tensors, by argument: see ``Argument.precision``."""
        return bytes(argument.precision for argument in self.arguments)

    def adapt(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Converts values that TVM-FFI doesn't accept.

        Raises:
            TypeError: A value is neither an array nor a number, or an array has another
                byte order.
            OverflowError: This TVM-FFI has no integers as large as a value.
            ValueError: An array is read-only and its argument is not, or the memory of
                a tensor is not its value.
        """
        if len(values) != len(self.arguments):
            # The function checks the number of arguments before their values.
            return (None,) * len(values)
        return tuple(
            adapter.adapt(value)
            for adapter, value in zip(self._adapters, values, strict=True)
        )

    @functools.cached_property
    def _adapters(self) -> list[_Adapter]:
        return [_Adapter(self.name, argument) for argument in self.arguments]


@functools.cache
def _has_long_integers() -> bool:
    """Whether TVM-FFI has integers of more than 64 bits, as from 0.1.15 on."""
    import tvm_ffi

    try:
        tvm_ffi.convert([2**63])
    except OverflowError:
        return False
    return True


@dataclass(frozen=True)
class _Adapter:
    """Adapts the value of one argument."""

    function: str
    argument: Argument

    def adapt(self, value: Any) -> Any:
        if self.argument.kind == "integer":
            return self._adapt_integer(value)
        if self.argument.kind == "float":
            return self._adapt_float(value)
        if self.argument.kind == "other":
            return value
        if isinstance(value, np.ndarray):
            return self._adapt_array(value)
        if not hasattr(value, "__dlpack__"):
            if hasattr(value, "__cuda_array_interface__"):
                return tensors.from_cuda_array(value)
            raise TypeError(self._expects("an array", _kind(value)))
        if _is_from("torch", value):
            self._check_tensor(value)
            TYPES[type(value)] = True
        elif _is_from("jaxlib", value) and value.__dlpack_device__()[0] == 1:
            return self._adapt_array(np.asarray(value))
        return value

    def _adapt_integer(self, value: Any) -> int:
        try:
            is_bool = isinstance(value, np.bool_)
            number = int(value) if is_bool else operator.index(value)
        except TypeError:
            raise TypeError(self._expects("an int", _kind(value))) from None
        if not -(2**63) <= number < 2**63 and not _has_long_integers():
            wanted = "an int from -2^63 to 2^63 - 1 with apache-tvm-ffi before 0.1.15"
            raise OverflowError(self._expects(wanted, str(number)))
        return number

    def _adapt_float(self, value: Any) -> float:
        try:
            if not isinstance(value, int | float | np.generic):
                raise TypeError
            return float(value)
        except (TypeError, ValueError):
            raise TypeError(self._expects("a float", _kind(value))) from None

    def _adapt_array(self, array: np.ndarray) -> Any:
        if not array.dtype.isnative:
            wanted = "an array in this machine's byte order"
            got = f"one of {array.dtype.name} in another byte order"
            raise TypeError(self._expects(wanted, got))
        if not (array.flags.writeable or self.argument.readonly):
            got = (
                "a read-only one; an argument that the function only reads can be "
                "marked {llvm.readonly}"
            )
            raise ValueError(self._expects("a writeable array", got))
        if not array.flags.c_contiguous and any(
            stride % array.itemsize
            for size, stride in zip(array.shape, array.strides, strict=True)
            if size > 1
        ):
            wanted = "strides of whole numbers of elements"
            got = f"strides {array.strides} in bytes"
            raise ValueError(self._expects(wanted, got))
        code = tensors.CODES.get(array.dtype)
        if code is None and array.dtype.kind not in "biufc":
            got = f"one of {array.dtype.name}"
            raise TypeError(self._expects("an array of numbers", got))
        if code is None and array.flags.writeable:
            return array
        return tensors.export(array, code)

    def _check_tensor(self, tensor: Any) -> None:
        wanted, got = "a tensor whose memory is its value", ""
        if tensor.requires_grad:
            wanted = "a tensor outside of autograd"
            got = "one that requires a gradient: pass tensor.detach()"
        elif tensor.is_conj():
            got = "a conjugate view: pass tensor.resolve_conj()"
        elif tensor.is_neg():
            got = "a negated view: pass tensor.resolve_neg()"
        if got:
            raise ValueError(self._expects(wanted, got))

    def _expects(self, wanted: str, got: str) -> str:
        return (
            f"{self.function}: {self.argument} expects {wanted} for "
            f"{self.argument.text}, got {got}"
        )


def _is_from(module: str, value: Any) -> bool:
    """Whether the class of a value, or a base of it, is from a loaded module."""
    return module in sys.modules and any(
        base.__module__.partition(".")[0] == module for base in type(value).__mro__
    )


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"{name} ({value!r:.40})" if np.isscalar(value) else name
