# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The attention backend ``kvcache`` of SGLang, on SGLang's own pools.

SGLang loads ``register`` as a plugin. Choose the backend with ``--attention-backend
kvcache``, and set its options in an environment variable: see ``Options``. Needs SGLang,
in the version of ``SGLANG_VERSION``.
"""

from __future__ import annotations

import logging
from importlib import metadata
from typing import Any

__all__ = ["NAME", "SGLANG_VERSION", "create_backend", "register"]

NAME = "kvcache"
"""The name of the backend in SGLang's options."""

SGLANG_VERSION = "0.5.23"
"""The version of SGLang that the backend is tested with."""

_LOGGER = logging.getLogger("sglang.kvcache")


def register() -> None:
    """Registers the backend: SGLang calls it in each of its processes.

    It never raises: a failure is one line of the log.
    """
    try:
        from sglang.srt.arg_groups.choices import (
            ATTENTION_BACKEND_CHOICES,
            add_attention_backend_choices,
        )
        from sglang.srt.layers.attention.attention_registry import (
            register_attention_backend,
        )

        register_attention_backend(NAME)(create_backend)
        if NAME not in ATTENTION_BACKEND_CHOICES:
            add_attention_backend_choices([NAME])
    except Exception as error:  # SGLang runs without the backend
        _LOGGER.warning("kvcache: the backend %s is not registered: %s", NAME, error)


def check_version() -> None:
    """Raises ``ImportError`` for a version of SGLang that is not the tested one."""
    found = metadata.version("sglang").partition("+")[0]
    if found != SGLANG_VERSION:
        raise ImportError(
            f"kvcache.sglang needs SGLang {SGLANG_VERSION}, whose interface it "
            f"implements, got {found}: run 'pip install sglang=={SGLANG_VERSION}'"
        )


def create_backend(runner: Any) -> Any:
    """Makes the backend of a model runner of SGLang.

    Raises:
        ImportError: The version of SGLang is not the tested one.
        NotImplementedError: The model or an option is not supported.
        TypeError: An option of the backend has the wrong type.
        ValueError: An option of the backend is unknown, or out of range.
    """
    check_version()
    from .backend import Backend

    return Backend(runner)
