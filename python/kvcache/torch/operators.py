# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled functions as operators of PyTorch, also for ``torch.compile``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch

from ..execution.runtime import JitModule
from ..execution.signatures import Argument
from ..ops.operations import Operation
from ..ops.bindings import Binding

_NAMESPACE = "kvcache"
_SCHEMA_TYPES = {"integer": "SymInt", "float": "float"}


def op(
    function: Operation | JitModule,
    name: str | None = None,
    *,
    mutates: Iterable[str] | None = None,
) -> Any:
    """Wraps a compiled function as an operator of PyTorch.

    The operator has the function's arguments in their order, tensors for memrefs and
    ints and floats for numbers, and returns nothing. It declares the arguments that it
    changes, so that ``torch.compile`` keeps its order, also with ``fullgraph=True``,
    and copies no cache.

    Pass the whole cache, and the layer as an int. While ``torch.compile`` traces, a
    tensor that the operator changes must not be a view, and must begin at the start of
    its storage: graphs for dynamic shapes may lose the offset. A function for
    ``"cuda"`` takes tensors of a GPU, and runs on PyTorch's current stream.

    Args:
        function: An operation of ``kvcache.ops``, or a module of ``kvcache.jit``.
        name: The function of the module; an operation has one.
        mutates: The arguments that the function writes to, by their names in the
            source. Not needed for an operation.

    Returns:
        The operator, the same one for equal arguments.

    Raises:
        ValueError: There is no such function, it returns something, an argument has no
            name, or it is for an emulated chip.
        TypeError: An argument of the function is neither a memref nor a number.
    """
    return _define(Binding.of(function, name, mutates))


# Operators, and the programs that they call, live as long as the process.
_operators: dict[str, Any] = {}


def _define(binding: Binding) -> Any:
    name = binding.name
    if name not in _operators:
        library = _library()
        library.define(f"{name}{_schema(binding)}", tags=(torch.Tag.pt2_compliant_tag,))
        on_gpu = binding.program.target.startswith("cuda")
        library.impl(name, _make_kernel(binding), "CUDA" if on_gpu else "CPU")
        fake = _make_fake(binding)
        torch.library.register_fake(f"{_NAMESPACE}::{name}", fake, lib=library)
        _operators[name] = getattr(torch.ops.kvcache, name).default
    return _operators[name]


@functools.cache
def _library() -> Any:
    return torch.library.Library(_NAMESPACE, "FRAGMENT")


def _schema(binding: Binding) -> str:
    parts = []
    for argument in binding.signature.arguments:
        kind = _SCHEMA_TYPES.get(argument.kind, "Tensor")
        if argument in binding.changed:
            kind = f"Tensor(a{argument.index}!)"
        parts.append(f"{kind} {argument.name}")
    return f"({', '.join(parts)}) -> ()"


def _make_kernel(binding: Binding) -> Callable[..., None]:
    name, program = binding.signature.name, binding.program
    function = program.function(name)
    arrays = [
        each.index for each in binding.signature.arguments if each.kind == "memref"
    ]

    def kernel(*args: Any) -> None:
        # PyTorch has resolved conjugate and negated views.
        if any([args[index].requires_grad for index in arrays]):
            program.call(name, *args)  # which raises
        function(*args)

    return kernel


def _make_fake(binding: Binding) -> Callable[..., None]:
    def fake(*args: Any) -> None:
        for argument in binding.changed:
            _check_whole(binding.signature.name, argument, args[argument.index])

    return fake


def _check_whole(function: str, argument: Argument, tensor: Any) -> None:
    if tensor._is_view() or tensor.storage_offset() != 0:
        raise ValueError(
            f"{function}: {argument} is changed, so torch.compile needs a whole tensor, got "
            "a view: pass the whole cache, and the layer as an int"
        )
