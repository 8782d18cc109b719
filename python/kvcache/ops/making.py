# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the functions of this package make operations: once for equal arguments."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from .operations import Build, Operation

_forgetters: list[Callable[[], None]] = []

_Maker = TypeVar("_Maker", bound=Callable[..., Operation])


def remember(maker: _Maker) -> _Maker:
    """Makes a function return the operation of an earlier call with equal arguments.

    Arguments of other types are not equal: True is not 1. Functions may depend on more
    than their arguments, so they are traced again.
    """
    remembered = functools.lru_cache(maxsize=None, typed=True)(maker)
    _forgetters.append(remembered.cache_clear)

    @functools.wraps(maker)
    def make(*arguments: Any, **named: Any) -> Operation:
        for value in (*arguments, *named.values()):
            if isinstance(value, tuple) or callable(value) and not isinstance(value, type):
                return maker(*arguments, **named)
        try:
            return remembered(*arguments, **named)
        except TypeError:  # also for arguments without a hash
            return maker(*arguments, **named)

    return cast(_Maker, make)


_lock = threading.Lock()


def make(
    kind: Any,
    spec: Any,
    target: str,
    bounds_checks: bool = False,
    threads: int | None = None,
) -> Any:
    """Returns one operation for equal arguments, also to concurrent threads."""
    with _lock:
        made = _compile(kind, spec, Build(target, bool(bounds_checks), threads))
        _ = made.program
    return made


def forget() -> None:
    """Drops the operations of earlier calls: later ones have another tuning file."""
    with _lock:
        for clear in _forgetters:
            clear()
        _compile.cache_clear()


@functools.cache
def _compile(kind: Any, spec: Any, build: Build) -> Any:
    return kind(kind.write(spec, kind.mutates), build, spec)
