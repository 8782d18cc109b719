# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled code on disk, found by what it was made of.

A file is written under another name and then renamed, so other threads and processes see
all of it or nothing. Its first bytes are the hash of the others: what is damaged counts
as missing.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .. import _native
from .._version import __version__

_VARIABLE = "KVCACHE_CACHE"
_OFF = "off"


@dataclass(frozen=True)
class Entry:
    """The place of what is made of some content; none if nothing is kept."""

    path: Path | None

    @classmethod
    def of(cls, *content: object) -> Entry:
        """The place for the content, this compiler, and this kind of machine."""
        folder = find_folder()
        if folder is None:
            return cls(None)
        described = repr((_describe_compiler(__version__), *content))
        return cls(folder / hashlib.sha256(described.encode()).hexdigest())

    def read(self) -> bytes | None:
        """What was written, or None if there is nothing, or something else."""
        if self.path is None:
            return None
        try:
            stored = self.path.read_bytes()
        except OSError:
            return None
        digest, contents = stored[:_DIGEST_BYTES], stored[_DIGEST_BYTES:]
        return contents if digest == _hash(contents) else None

    def write(self, contents: bytes) -> None:
        """Keeps the contents, if that is possible: the folder may be read-only."""
        if self.path is None:
            return
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_hash(contents) + contents)
                os.replace(name, self.path)
            except BaseException:
                os.unlink(name)
                raise


def find_folder() -> Path | None:
    """The folder of what is kept: that of ``KVCACHE_CACHE``, or the user's; None if off."""
    given = os.environ.get(_VARIABLE)
    if given == _OFF:
        return None
    if given:
        return Path(given)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base, "kvcache")
    try:
        return Path.home() / ".cache" / "kvcache"
    except RuntimeError:  # the user has no home folder
        return None


@functools.cache
def _describe_compiler(version: str) -> str:
    """What compiled code depends on besides its source and its options."""
    extension = _native.extension()
    digest = _hash(Path(extension.__file__ or "").read_bytes()).hex()
    return repr((version, digest, *extension.host()))


def _hash(contents: bytes) -> bytes:
    return hashlib.sha256(contents).digest()


_DIGEST_BYTES = len(_hash(b""))
