# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bytes in a folder that many processes share, below a limit."""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .count_file import CountFile

READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""The flags of files to read. A pipe under the name of a file makes no caller wait."""

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
    may die between a file and its count. A process also locks its temporary files, so
    others remove them once it is dead.

    Args:
        path: The folder, with values in folders of two letters, and temporary files in
            ``tmp``. It is made if it is not there.
        max_bytes: The most bytes of all files.
        deadline: The most seconds to wait for other processes and threads.

    Raises:
        TimeoutError: Another process holds the lock until the deadline; any method.
    """

    def __init__(self, path: Path, max_bytes: int, deadline: float) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._count = CountFile(path, deadline)
        with self._count.locked():
            self._count.write(self._sum_up())

    def close(self) -> None:
        """Closes the file of the count."""
        self._count.close()

    def reserve(self, path: str, size: int) -> int | None:
        """Creates a file of ``size`` bytes, and makes room for it.

        Returns its descriptor, or None if there is no room.
        """
        if size > self._max_bytes:
            return None
        with self._count.locked():
            used = self._read()
            if used + size > self._max_bytes:
                used = self._make_room(size)
            if used + size > self._max_bytes:
                return None
            file = self._create(path)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A scan counts it as whole, and later writes need not ask for blocks.
                os.posix_fallocate(file, 0, size)
                self._count.write(used + size)
            except BaseException:
                os.close(file)
                os.unlink(path)
                raise
            return file

    def _create(self, path: str) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            return os.open(path, flags, 0o600)
        except FileNotFoundError:  # the folder of temporary files was removed
            os.mkdir(os.path.dirname(path), 0o700)
            return os.open(path, flags, 0o600)

    def move(self, source: str, target: str) -> None:
        """Renames a file while no scan runs, so that each sees one of its names.

        Makes the folder of its target, unless it is there.
        """
        with self._count.locked():
            try:
                os.rename(source, target)
            except FileNotFoundError:
                os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
                os.rename(source, target)

    def remove(self, path: str) -> None:
        """Removes a file, and subtracts its bytes before another process scans."""
        with self._count.locked():
            state, used = os.lstat(path), self._read()
            os.unlink(path)
            if stat.S_ISREG(state.st_mode):
                self._count.write(max(used - state.st_size, 0))

    def _read(self) -> int:
        """Returns the bytes of all files, by the count if there is one."""
        used = self._count.read()
        return self._sum_up() if used is None else used

    def _sum_up(self) -> int:
        return sum(file.size for file in self._scan())

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
        """Yields the files of stores, and removes temporary ones of dead processes."""
        for folder in _list(self._path):
            if own := _find_names(folder.name):
                for entry in _list(folder.path):
                    if not own.fullmatch(entry.name):
                        continue  # not of a store
                    try:
                        state = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue  # another process has removed it
                    if not stat.S_ISREG(state.st_mode):
                        continue  # not of a store either
                    if folder.name == "tmp" and not _is_locked(entry.path):
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


def _is_locked(path: str) -> bool:
    """Returns whether a process that lives has locked a file."""
    try:
        file = os.open(path, READ_FLAGS)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # perhaps it is
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # another process has removed it
