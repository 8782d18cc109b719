# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of models that call a ``PagedCache`` in place of their own ``forward``."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import transformers

from .attention import graph_break


def replace_forward(
    config: Any, names: Sequence[str], cache: type, function: Callable[..., Any]
) -> None:
    """Replaces ``forward`` of classes of a model for calls with one kind of cache.

    Calls with other caches, and without one, are as before. A class that is replaced
    already stays as it is.

    Args:
        config: The configuration of the model.
        names: The ends of the names of the classes.
        cache: The class of the caches.
        function: The function, with the arguments of ``forward`` by name and the module
            as ``module``.
    """
    model = transformers.MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    if model is None:
        return
    for name, kind in vars(sys.modules[model.__module__]).items():
        if not name.endswith(tuple(names)):
            continue
        original = kind.forward
        if not hasattr(original, "_kvcache_function"):
            kind.forward = _make_forward(original, cache, function)


def _make_forward(
    original: Callable[..., Any], cache: type, function: Callable[..., Any]
) -> Callable[..., Any]:
    signature = inspect.signature(original)
    outside = graph_break(function)

    @functools.wraps(original)
    def forward(module: Any, *arguments: Any, **named: Any) -> Any:
        given = signature.bind(module, *arguments, **named).arguments
        if not isinstance(given.get("past_key_values"), cache):
            return original(module, *arguments, **named)
        _, *names = given
        return outside(module, **{name: given[name] for name in names})

    forward._kvcache_function = function  # type: ignore[attr-defined]
    return forward
