# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Salts of a manager that events show as vLLM's cache salts and adapters."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import NamedTuple

from ..checks import check_string
from .hashes import ExtraKey, parse_keys

_MARK = b"\0kvcache-salt:"


def make_salt(
    *, cache_salt: str | None = None, adapter: str | None = None, adapter_path: str = ""
) -> bytes:
    """Makes a ``salt`` for ``claim`` of which events show each part.

    Events show a plain text salt as a cache salt. An adapter needs this function,
    because routers keep adapters apart by a field of their own.

    Args:
        cache_salt: The ``cache_salt`` of the request.
        adapter: The name of the request's LoRA adapter.
        adapter_path: The path of the adapter, which vLLM's hashes cover as well.
    """
    parts = {"cache_salt": cache_salt, "adapter": adapter}
    check_string(adapter_path=adapter_path)
    check_string(**{name: part for name, part in parts.items() if part is not None})
    if adapter is None:
        if adapter_path:
            raise ValueError(f"expects 'adapter' with 'adapter_path', got {adapter_path!r}")
        return (cache_salt or "").encode()
    return _MARK + json.dumps([cache_salt, adapter, adapter_path]).encode()


class Salt(NamedTuple):
    """The cache salt and the adapter that a salt of a manager stands for.

    Attributes:
        cache_salt: The cache salt, or None.
        adapter: The name of the adapter, or None.
        adapter_path: The path of the adapter.
    """

    cache_salt: str | None = None
    adapter: str | None = None
    adapter_path: str = ""

    def make_keys(self) -> list[ExtraKey]:
        """The extra keys of hashes."""
        keys: list[ExtraKey] = []
        if self.adapter is not None:
            keys.append(("lora", self.adapter, self.adapter_path))
        if self.cache_salt is not None:
            keys.append(("cache_salt", self.cache_salt))
        return parse_keys(keys)


@lru_cache(1024)
def parse_salt(salt: bytes) -> Salt:
    """Parses a salt: one of ``make_salt``, or any bytes. Different salts differ."""
    if not salt:
        return Salt()
    if salt.startswith(_MARK):
        try:
            parsed = Salt(*json.loads(salt[len(_MARK) :]))
            if make_salt(**parsed._asdict()) == salt:
                return parsed
        except (ValueError, TypeError, RecursionError):
            pass  # bytes that begin like a salt of make_salt
    try:
        text = salt.decode()
    except UnicodeDecodeError:
        return Salt("bytes:" + salt.hex())
    return Salt("bytes:" + salt.hex() if text.startswith("bytes:") else text)
