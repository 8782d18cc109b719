# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled functions as operators of PyTorch, also for ``torch.compile``.

Needs PyTorch: ``pip install kvcache[torch]``.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable
from typing import Any

try:
    import torch
except ImportError as error:
    raise ImportError(
        f"kvcache.torch needs PyTorch: run 'pip install kvcache[torch]' ({error})"
    ) from error

from .checks import check_instance
from .ops import Operation
from .runtime import JitModule
from .signatures import Argument, Signature

__all__ = ["op"]

_NAMESPACE = "kvcache"
_SCHEMA_TYPES = {"integer": "SymInt", "float": "float"}


def op(
    function: Operation | JitModule,
    name: str | None = None,
    *,
    mutates: Iterable[str] | None = None,
) -> Any:
    """Makes an operator of PyTorch of a compiled function.

    The operator has the function's arguments in their order, and returns nothing:
    tensors for memrefs, ints and floats for numbers. It says which of them it changes, so
    that ``torch.compile`` keeps its place among others, also with ``fullgraph=True``, and
    copies no cache. Pass the whole cache, and the layer as an int: while
    ``torch.compile`` traces, a tensor that the operator changes must neither be a view
    nor begin behind its storage, because a compiled graph may lose the offset.

    Args:
        function: An operation of ``kvcache.ops``, or a module of ``kvcache.jit``.
        name: The function of the module; an operation has one.
        mutates: The arguments that the function writes to, by their names in the source.
            Known for an operation.

    Returns:
        The operator. The same arguments give the same one.

    Raises:
        ValueError: There is no such function, it returns something, an argument has no
            name, or it is for an emulated chip.
        TypeError: An argument of the function is neither a memref nor a number.
    """
    if isinstance(function, Operation):
        program, name = function.program, function.functions[0]
        if mutates is None:
            names = {argument.name for argument in program.signature(name).arguments}
            mutates = names.intersection(function.mutates)
    else:
        check_instance(JitModule, function=function)
        program = function
    if name is None:
        raise ValueError("expects 'name' to be one of a function of the module, got None")
    if mutates is None:
        raise ValueError("expects 'mutates' to name the arguments that the function changes")
    signature = program.signature(name)
    changed = frozenset(mutates)
    _check(signature, changed, program.target)
    return _define(program, signature, changed)


def _check(signature: Signature, mutates: frozenset[str], target: str) -> None:
    if target.startswith("emulator:"):
        raise ValueError(f"expects a function for target 'cpu', got one for {target!r}")
    if signature.num_results:
        raise ValueError(
            f"expects a function without results, {signature.name} has "
            f"{signature.num_results}"
        )
    for argument in signature.arguments:
        if argument.kind == "other":
            raise TypeError(f"{signature.name}: {argument} is a {argument.text}")
        if not argument.name:
            raise ValueError(f"{signature.name}: {argument} needs a name in the source")
    arrays = {each.name for each in signature.arguments if each.kind == "memref"}
    if unknown := sorted(mutates - arrays):
        raise ValueError(
            f"'mutates' has {', '.join(unknown)}; the arrays of {signature.name} are "
            f"{', '.join(sorted(arrays))}"
        )
    for argument in signature.arguments:
        if argument.readonly and argument.name in mutates:
            raise ValueError(f"{signature.name}: {argument} is read-only")


# Operators live as long as the process, with the programs that they call.
_operators: dict[str, Any] = {}


def _define(program: JitModule, signature: Signature, mutates: frozenset[str]) -> Any:
    schema = _schema(signature, mutates)
    digest = hashlib.sha256(f"{program.digest}{schema}".encode()).hexdigest()[:16]
    name = f"{signature.name}_{digest}"
    if name not in _operators:
        library = _library()
        library.define(f"{name}{schema}", tags=(torch.Tag.pt2_compliant_tag,))
        library.impl(name, _make_kernel(program, signature), "CPU")
        fake = _make_fake(signature, mutates)
        torch.library.register_fake(f"{_NAMESPACE}::{name}", fake, lib=library)
        _operators[name] = getattr(torch.ops.kvcache, name).default
    return _operators[name]


@functools.cache
def _library() -> Any:
    return torch.library.Library(_NAMESPACE, "FRAGMENT")


def _schema(signature: Signature, mutates: frozenset[str]) -> str:
    parts = []
    for argument in signature.arguments:
        kind = _SCHEMA_TYPES.get(argument.kind, "Tensor")
        if argument.name in mutates:
            kind = f"Tensor(a{argument.index}!)"
        parts.append(f"{kind} {argument.name}")
    return f"({', '.join(parts)}) -> ()"


def _make_kernel(program: JitModule, signature: Signature) -> Callable[..., None]:
    function = program.function(signature.name)
    arrays = [each.index for each in signature.arguments if each.kind == "memref"]

    def kernel(*args: Any) -> None:
        # PyTorch has resolved conjugate and negated views.
        if any([args[index].requires_grad for index in arrays]):
            program.call(signature.name, *args)  # which raises
        function(*args)

    return kernel


def _make_fake(signature: Signature, mutates: frozenset[str]) -> Callable[..., None]:
    changed = [each for each in signature.arguments if each.name in mutates]

    def fake(*args: Any) -> None:
        for argument in changed:
            _check_whole(signature.name, argument, args[argument.index])

    return fake


def _check_whole(function: str, argument: Argument, tensor: Any) -> None:
    if tensor._is_view() or tensor.storage_offset() != 0:
        raise ValueError(
            f"{function}: {argument} is changed, so torch.compile needs a whole tensor, got "
            "a view: pass the whole cache, and the layer as an int"
        )
