# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bytes in a folder that many processes share, below a limit."""

from __future__ import annotations

import fcntl
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_STALE_SECONDS = 60.0  # after which a temporary file is one of a process that died
# A value has the name of its key in hexadecimal, of which two letters are the folder's.
_PREFIX, _VALUE = re.compile("[0-9a-f]{2}"), re.compile("[0-9a-f]{62}")
_TEMPORARY = re.compile("[0-9a-f]{16}-[0-9]+")
_SLACK = 16  # one of so many bytes is freed besides, so that scans are rare


class StoredFile(NamedTuple):
    """A file of the folder.

    Attributes:
        used: When it was last used, in seconds since 1970.
        size: Its bytes.
        path: Its path.
    """

    used: float
    size: int
    path: str


class Usage:
    """Counts the bytes of files, and removes those that were not used for longest.

    The count is in a file that processes lock. A scan corrects it, because a process
    may die between a file and its count.

    Args:
        path: The folder, with values in folders of two letters, and temporary files in
            ``tmp``.
        max_bytes: The most bytes of all files.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._file = open(os.open(path / "usage", flags, 0o600), "r+b", buffering=0)
        with self._locked():
            self._write(sum(file.size for file in self._scan()))

    def reserve(self, path: str, size: int) -> int | None:
        """Creates a file of ``size`` bytes, and makes room for it.

        Returns its descriptor, or None if there is no room.
        """
        if size > self._max_bytes:
            return None
        with self._locked():
            used = self._read()
            if used + size > self._max_bytes:
                used = self._make_room(size)
            if used + size > self._max_bytes:
                return None
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            file = os.open(path, flags, 0o600)
            try:
                # A scan counts it as whole, and later writes need not ask for blocks.
                os.posix_fallocate(file, 0, size)
                self._write(used + size)
            except BaseException:
                os.close(file)
                os.unlink(path)
                raise
            return file

    def remove(self, path: str) -> None:
        """Removes a file, and subtracts its bytes before another process scans."""
        with self._locked():
            size = os.stat(path, follow_symlinks=False).st_size
            os.unlink(path)
            self._write(max(self._read() - size, 0))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _read(self) -> int:
        return int.from_bytes(os.pread(self._file.fileno(), 8, 0), "little")

    def _write(self, used: int) -> None:
        os.pwrite(self._file.fileno(), used.to_bytes(8, "little"), 0)

    def _make_room(self, size: int) -> int:
        """Removes files until there is room; returns the bytes of the others."""
        files = sorted(self._scan())
        used = sum(file.size for file in files)
        wanted = self._max_bytes - size - self._max_bytes // _SLACK
        for file in files:
            if used <= max(wanted, 0):
                break
            if os.path.dirname(file.path) != str(self._path / "tmp"):
                _remove(file.path)
                used -= file.size
        return used

    def _scan(self) -> Iterator[StoredFile]:
        """Yields the files of stores, and removes stale temporary ones."""
        now = time.time()
        for folder in _list(self._path):
            if own := _find_names(folder.name):
                for entry in _list(folder.path):
                    if not own.fullmatch(entry.name):
                        continue  # not of a store
                    try:
                        state = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue  # another process has removed it
                    if folder.name == "tmp" and now - state.st_mtime > _STALE_SECONDS:
                        _remove(entry.path)
                    else:
                        yield StoredFile(state.st_mtime, state.st_size, entry.path)


def _find_names(folder: str) -> re.Pattern[str] | None:
    """The names of a store's files in a folder; None for folders of others."""
    if folder == "tmp":
        return _TEMPORARY
    return _VALUE if _PREFIX.fullmatch(folder) else None


def _list(path: Path | str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except OSError:
        return []


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # another process has removed it
