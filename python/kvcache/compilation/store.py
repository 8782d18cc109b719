# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The store of compiled code on disk, by its inputs.

A file is written under another name and then renamed, so other threads and processes
read all of it or nothing. Its first bytes are the hash of the others: a damaged file
counts as missing. A write that exceeds the size of the folder removes the files that
were not read for longest.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import stat
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from .. import _native
from .._version import __version__

_VARIABLE = "KVCACHE_CACHE"
_SIZE_VARIABLE = "KVCACHE_CACHE_SIZE"
_DEFAULT_MIB = 1024
_OFF = "off"


@dataclass(frozen=True)
class Entry:
    """The place of a result by its inputs; None if nothing is stored.

    ``stacklevel`` of warnings counts from the caller of a method, which is 1.
    """

    path: Path | None

    @classmethod
    def of(cls, *content: object) -> Entry:
        """The entry of inputs, this compiler, and this kind of machine."""
        folder = find_folder()
        if folder is None:
            return cls(None)
        described = repr((_describe_compiler(__version__), *content))
        return cls(folder / hashlib.sha256(described.encode()).hexdigest())

    def read(self, stacklevel: int = 1) -> bytes | None:
        """Reads the stored contents; None if they are missing or damaged."""
        if self.path is None:
            return None
        try:
            stored = _read_own(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            _warn(self.path, error.strerror or str(error), stacklevel + 1)
            return None
        with contextlib.suppress(OSError):
            os.utime(self.path)  # the time of the last read
        digest, contents = stored[:_DIGEST_BYTES], stored[_DIGEST_BYTES:]
        return contents if digest == _hash(contents) else None

    def write(self, contents: bytes, stacklevel: int = 1) -> None:
        """Stores the contents, if possible: the folder may be read-only."""
        if self.path is None:
            return
        most = find_size()
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if reason := _find_others(os.stat(self.path.parent)):
                return _warn(self.path.parent, reason, stacklevel + 1)
            with replacing(self.path, _UNFINISHED) as file:
                file.write(_hash(contents) + contents)
            _prune(self.path, most)


@contextlib.contextmanager
def replacing(path: Path, prefix: str) -> Iterator[BinaryIO]:
    """Opens a file under another name, which becomes ``path`` unless writing fails.

    Args:
        path: The path of the file.
        prefix: The first letters of the other name, in the same folder.
    """
    import tempfile  # not where a file is read

    handle, name = tempfile.mkstemp(prefix=prefix, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _read_own(path: Path) -> bytes:
    """Reads a regular file of this user, in a folder that only they can write to.

    Raises ``OSError`` for other files, because the contents are run. Opening never
    waits, as a FIFO would without ``O_NONBLOCK``.
    """
    flags = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(path, "rb", opener=lambda name, own: os.open(name, own | flags)) as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise OSError(0, "it is not a regular file")
        for part in (state, os.stat(path.parent)):
            if reason := _find_others(part):
                raise OSError(0, reason)
        return file.read()


def _find_others(state: os.stat_result) -> str:
    """Describes why others can write to a file or a folder; empty if they can't."""
    if state.st_uid != os.geteuid():
        return f"it is of user {state.st_uid}, and this process of {os.geteuid()}"
    if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to it (mode {stat.S_IMODE(state.st_mode):o})"
    return ""


def _warn(path: Path, reason: str, stacklevel: int) -> None:
    """Warns that stored code of a place is not used."""
    warnings.warn(
        f"compiled code in {str(path)!r} is not used: {reason}",
        RuntimeWarning,
        stacklevel=stacklevel + 1,
    )


def find_folder() -> Path | None:
    """The folder of the store: ``KVCACHE_CACHE``, or the user's; None if off."""
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


def find_size() -> int:
    """The most bytes that are stored.

    Raises ``ValueError`` if ``KVCACHE_CACHE_SIZE`` is not a number of MiB.
    """
    given = os.environ.get(_SIZE_VARIABLE) or str(_DEFAULT_MIB)
    if not (given.isascii() and given.isdigit()):
        raise ValueError(
            f"expects {_SIZE_VARIABLE} to be a number of MiB, got {given!r}"
        )
    return int(given) << 20


def _prune(written: Path, most: int) -> None:
    """Removes the least recently read files, until the rest is small enough.

    The file just written stays. Other processes may remove the same files, or still
    read a removed one.
    """
    found = []
    for file in written.parent.iterdir():
        with contextlib.suppress(FileNotFoundError):
            state = file.stat()
            if file.name.startswith(_UNFINISHED):
                if time.time() - state.st_mtime > _ABANDONED_SECONDS:
                    file.unlink()
            elif _NAME.fullmatch(file.name):
                found.append((file != written, -state.st_mtime_ns, file, state.st_size))
    kept = 0
    for is_other, _, file, size in sorted(found):
        kept += size
        if is_other and kept > most:
            file.unlink(missing_ok=True)


@functools.cache
def _describe_compiler(version: str) -> str:
    """The inputs of compiled code besides its source and its options."""
    extension = _native.extension()
    # Equal builds have equal identifiers; to hash the file takes 100 ms.
    build = extension.build_id() or _hash(Path(extension.__file__ or "").read_bytes())
    return repr((version, build.hex(), *extension.host()))


def _hash(contents: bytes) -> bytes:
    return hashlib.sha256(contents).digest()


_DIGEST_BYTES = len(_hash(b""))
_NAME = re.compile(r"[0-9a-f]{64}")
_UNFINISHED = "unfinished-"
# Longer than a write takes: the process has ended.
_ABANDONED_SECONDS = 3600
