# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The header before a value in a file or an object."""

from __future__ import annotations

import importlib
import struct
from typing import Any, NamedTuple

from ..pages.stores import KEY_BYTES

_MAGIC = b"kvcpage1"
_HEADER = struct.Struct(f"<8sQ16s{KEY_BYTES}s")  # magic, bytes, digest, key

HEADER_BYTES = _HEADER.size


class Header(NamedTuple):
    """A header of 64 bytes.

    Attributes:
        length: The bytes of the value.
        digest: Its xxh3-128.
        key: Its key.
    """

    length: int
    digest: bytes
    key: bytes

    def encode(self) -> bytes:
        """Returns the bytes of the header."""
        return _HEADER.pack(_MAGIC, *self)


def parse_header(encoded: bytes, key: bytes) -> Header | None:
    """Parses the header of a key's value; returns None for any other bytes."""
    if len(encoded) != HEADER_BYTES:
        return None
    magic, *fields = _HEADER.unpack(encoded)
    header = Header(*fields)
    return header if (magic, header.key) == (_MAGIC, key) else None


def import_xxhash() -> Any:
    """Imports the package of checksums."""
    try:
        return importlib.import_module("xxhash")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "stores need xxhash: pip install 'kvcache[stores]'", name="xxhash"
        ) from error


def make_name(key: bytes) -> str:
    """The name of a key's value."""
    if len(key) != KEY_BYTES:
        raise ValueError(f"expects keys of {KEY_BYTES} bytes, got {len(key)}")
    return key.hex()
