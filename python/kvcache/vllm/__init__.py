# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The attention backend ``CUSTOM`` of vLLM, and a store as a tier of its offloading.

The backend computes attention on vLLM's own KV cache. vLLM loads ``register`` as a
plugin. Choose the backend with ``--attention-backend CUSTOM``, and set its options with
``--additional-config '{"kvcache": {...}}'``: see ``Options``. ``StoreTier`` keeps what
vLLM offloads in any store, such as ``kvcache.stores.Folder``. Needs vLLM, in the version
of ``VLLM_VERSION``.
"""

from __future__ import annotations

import logging
from importlib import metadata
from typing import Any

__all__ = ["VLLM_VERSION", "Backend", "StoreTier", "register"]

VLLM_VERSION = "0.33.0"
"""The version of vLLM that the backend is tested with."""

_LOGGER = logging.getLogger("vllm.kvcache")


def register() -> None:
    """Registers the backend ``CUSTOM``: vLLM calls it in each of its processes.

    It never raises: a failure is one line of the log.
    """
    try:
        from vllm.v1.attention.backends.registry import (
            AttentionBackendEnum,
            register_backend,
        )

        custom, path = AttentionBackendEnum.CUSTOM, f"{__name__}.Backend"
        if custom.is_overridden() and custom.get_path() != path:
            raise ValueError(f"it is {custom.get_path()} already")
        register_backend(custom, path)
    except Exception as error:  # vLLM runs without the backend
        _LOGGER.warning("kvcache: the backend CUSTOM is not registered: %s", error)


def check_version() -> None:
    """Raises ``ImportError`` for a version of vLLM that is not the tested one."""
    found = metadata.version("vllm").partition("+")[0]
    if found != VLLM_VERSION:
        raise ImportError(
            f"kvcache.vllm needs vLLM {VLLM_VERSION}, whose interface it implements, got "
            f"{found}: run 'pip install vllm=={VLLM_VERSION}'"
        )


def __getattr__(name: str) -> Any:
    """Loads what vLLM asks for: ``register`` stays cheap."""
    if name not in ("Backend", "StoreTier"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_version()
    if name == "StoreTier":
        from .store_tier import StoreTier

        return StoreTier
    from .selection import make_selection

    return make_selection()
