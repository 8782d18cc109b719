# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bindings of compiled functions, for frameworks that register them as operators."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from ..checks import check_instance
from ..execution.runtime import JitModule
from ..execution.signatures import Argument, Signature
from . import Operation


@dataclass(frozen=True)
class Binding:
    """A function without results, and the arrays that it changes."""

    program: JitModule
    signature: Signature
    changed: tuple[Argument, ...]

    @classmethod
    def of(
        cls, function: object, name: str | None, mutates: Iterable[str] | None
    ) -> Binding:
        """Binds a function of a module, or an operation, which lists its changes
        itself.

        Raises ``ValueError`` and ``TypeError`` for functions that frameworks can't
        call.
        """
        if isinstance(function, Operation):
            program, name = function.program, function.functions[0]
            if mutates is None:
                names = {each.name for each in program.signature(name).arguments}
                mutates = names.intersection(function.mutates)
        else:
            check_instance(JitModule, function=function)
            assert isinstance(function, JitModule)
            program = function
        if name is None:
            raise ValueError(
                "expects 'name' to be one of a function of the module, got None"
            )
        if mutates is None:
            raise ValueError(
                "expects 'mutates' to name the arguments that the function changes"
            )
        signature = program.signature(name)
        mutates = frozenset(mutates)
        _check(signature, mutates, program.target)
        changed = tuple(each for each in signature.arguments if each.name in mutates)
        return cls(program, signature, changed)

    @property
    def name(self) -> str:
        """The name, equal for equal functions and changes in all processes."""
        changed = [each.index for each in self.changed]
        described = f"{self.program.digest}{self.signature.text}{changed}"
        return f"{self.signature.name}_{hashlib.sha256(described.encode()).hexdigest()[:16]}"


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
        if argument.readonly and argument.name in mutates:
            raise ValueError(f"{signature.name}: {argument} is read-only")
    arrays = {each.name for each in signature.arguments if each.kind == "memref"}
    if unknown := sorted(mutates - arrays):
        raise ValueError(
            f"'mutates' has {', '.join(unknown)}; the arrays of {signature.name} are "
            f"{', '.join(sorted(arrays))}"
        )
