# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled functions in JAX, on the CPU and GPUs, with caches that are changed in place.

Needs JAX and jax-tvm-ffi: ``pip install kvcache[jax]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

try:
    import jax
    import jax_tvm_ffi
    import tvm_ffi
except ImportError as error:
    raise ImportError(
        "kvcache.jax needs JAX and jax-tvm-ffi: run 'pip install kvcache[jax]' "
        f"({error})"
    ) from error

from .execution.runtime import JitModule
from .execution.signatures import Argument
from .ops.operations import Operation
from .ops.bindings import Binding

__all__ = ["op"]

_NUMBERS = {"integer": np.int64, "float": np.float64}


def op(
    function: Operation | JitModule,
    name: str | None = None,
    *,
    mutates: Iterable[str] | None = None,
) -> Callable[..., Any]:
    """Wraps a compiled function as a function of JAX's arrays.

    It has the function's arguments in their order: arrays for memrefs, and Python
    numbers, which are constants of the traced program. JAX's arrays are values, so it
    returns the arrays that the function changes, in the order of the arguments: one, or
    a tuple. Under ``jax.jit`` with the cache among ``donate_argnums``, the result is in
    the memory of the argument. An array that is not donated is copied before, and stays
    unchanged.

    A function for ``"cuda"`` takes arrays of a GPU, and runs on XLA's stream.

    Args:
        function: An operation of ``kvcache.ops``, or a module of ``kvcache.jit``.
        name: The function of the module; an operation has one.
        mutates: The arguments that the function writes to, by their names in the
            source. Not needed for an operation.

    Raises:
        ValueError: There is no such function, it returns something, changes nothing, an
            argument has no name, or it is for an emulated chip. In a call: an array is
            on another platform than the function.
        TypeError: An argument of the function is neither a memref nor a number.
    """
    binding = Binding.of(function, name, mutates)
    if not binding.changed:
        raise ValueError(f"expects {binding.signature.name} to change an array")
    arguments = binding.signature.arguments
    arrays = [each for each in arguments if each.kind == "memref"]
    target = f"kvcache.{binding.name}"
    _register(target, binding, arrays)
    positions = {each.index: place for place, each in enumerate(arrays)}
    aliases = {positions[each.index]: i for i, each in enumerate(binding.changed)}

    def call(*values: Any) -> Any:
        if len(values) != len(arguments):
            raise ValueError(
                f"{binding.signature.name} expects {len(arguments)} arguments, got "
                f"{len(values)}"
            )
        numbers = {
            _attribute(each): _to_number(each, values[each.index])
            for each in arguments
            if each.kind != "memref"
        }
        operands = [jax.numpy.asarray(values[each.index]) for each in arrays]
        _check_platform(binding, operands)
        results = [
            jax.ShapeDtypeStruct(values[each.index].shape, values[each.index].dtype)
            for each in binding.changed
        ]
        changed = jax.ffi.ffi_call(target, results, input_output_aliases=aliases)(
            *operands, **numbers
        )
        return tuple(changed) if len(changed) > 1 else changed[0]

    call.__name__ = binding.signature.name
    return call


def _get_platform(binding: Binding) -> str:
    """The platform of JAX that a function is for."""
    return "gpu" if binding.program.target.startswith("cuda") else "cpu"


def _check_platform(binding: Binding, arrays: list[Any]) -> None:
    """Raises ``ValueError`` for an array of another platform; XLA does for traced ones."""
    wanted = _get_platform(binding)
    for array in arrays:
        if isinstance(array, jax.core.Tracer):
            continue
        for device in array.devices():
            found = "cpu" if device.platform == "cpu" else "gpu"
            if found != wanted:
                raise ValueError(
                    f"{binding.signature.name} is for {binding.program.target!r}: expects "
                    f"arrays of a {wanted.upper()}, got one on {device}"
                )


_registered: set[str] = set()


def _register(target: str, binding: Binding, arrays: list[Argument]) -> None:
    """Registers a function with JAX, once. Results are in the memory of operands."""
    if target in _registered:
        return
    function = binding.program.function(binding.signature.name)
    arguments = binding.signature.arguments
    numbers = [each for each in arguments if each.kind != "memref"]
    # JAX passes the arrays first.
    given = [each.index for each in (*arrays, *numbers)]
    order = [given.index(index) for index in range(len(arguments))]

    def in_order(*values: Any) -> None:
        function(*[values[place] for place in order])

    jax_tvm_ffi.register_ffi_target(
        target,
        tvm_ffi.convert(in_order),
        ["args", *(f"attrs.{_attribute(each)}" for each in numbers)],
        platform=_get_platform(binding),
        pass_owned_tensor=True,
    )
    _registered.add(target)


def _attribute(argument: Argument) -> str:
    return f"a{argument.index}"


def _to_number(argument: Argument, value: Any) -> Any:
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{argument} is a constant of the program: pass a Python number, or mark it as "
            "static for jax.jit"
        )
    return _NUMBERS[argument.kind](value)
