"""Modules in place of packages that an engine imports and does not use: their names exist, and calls raise errors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class AbsentError(RuntimeError):
    """The error of a call of a class or a function that is not in the pack."""


class _Name(type):
    """The class of names: a name of a name is one too, as members of an enumeration are."""

    def __getattr__(cls, name: str) -> Any:
        made = _make(cls.__module__, f"{cls.__qualname__}.{name}", name)
        setattr(cls, name, made)
        return made

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise AbsentError(f"{cls.__module__}.{cls.__qualname__} is not in the pack: install {cls.__module__.split('.')[0]}")


def _make(module: str, qualified: str, name: str) -> _Name:
    if name.startswith("__"):
        raise AttributeError(f"{module}.{qualified}")
    members = {"__module__": module, "__qualname__": qualified, "__get_pydantic_core_schema__": classmethod(_get_schema)}
    return _Name(name, (), members)


def _get_schema(cls: type, source: Any, handler: Any) -> Any:
    """The schema of a field with such a type, for pydantic: any value."""
    from pydantic_core import core_schema

    return core_schema.any_schema()


def make_getattr(module: str) -> Callable[[str], Any]:
    """Makes the ``__getattr__`` of a module: a name is one class each time."""
    return functools.cache(lambda name: _make(module, name, name))
