# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The file of a count that processes and threads share."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

_PAUSE = 5e-4  # seconds between two attempts to lock


class CountFile:
    """A count of bytes in the file ``usage`` of a folder, which its users lock.

    Args:
        path: The folder. It and its folder ``tmp`` are made if they are not there, also
            later.
        deadline: The most seconds to wait for the lock.

    Raises:
        NotADirectoryError: There is a file instead of a folder.
        OSError: There is a pipe or a device instead of the file.
    """

    def __init__(self, path: Path, deadline: float) -> None:
        self._path = path
        self._deadline = deadline
        self._lock = threading.Lock()
        self._file = self._open()

    def _open(self) -> FileIO:
        """Opens the file of the count; makes it and the folders unless they are there."""
        for folder in (self._path, self._path / "tmp"):
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except FileExistsError:
                text = "expects a store's path to be a folder"
                raise NotADirectoryError(errno.ENOTDIR, text, str(folder)) from None
        path = self._path / "usage"
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(path, flags, 0o600)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError(errno.EINVAL, "expects the count of a store to be a file", str(path))
        return FileIO(file, "r+")

    def close(self) -> None:
        """Closes the file of the count, unless a thread hangs in it."""
        if self._lock.acquire(timeout=min(self._deadline, threading.TIMEOUT_MAX)):
            self._file.close()
            self._lock.release()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the file for this thread, and against other processes."""
        end = time.monotonic() + self._deadline
        if not self._lock.acquire(timeout=min(self._deadline, threading.TIMEOUT_MAX)):
            raise TimeoutError("another thread uses the folder until the deadline")
        try:
            try:
                self._lock_file(end)
                yield
            finally:  # also where an error follows the lock
                fcntl.flock(self._file, fcntl.LOCK_UN)
        finally:
            self._lock.release()

    def _lock_file(self, end: float) -> None:
        """Locks the file of the count; opens it again if the folder was removed."""
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= end:
                    text = "another process locks the folder until the deadline"
                    raise TimeoutError(errno.ETIMEDOUT, text, str(self._path)) from None
                time.sleep(_PAUSE)
                continue
            if self._is_current():
                return
            file = self._open()
            self._file.close()
            self._file = file

    def _is_current(self) -> bool:
        """Returns whether the open file of the count is still in the folder."""
        try:
            known = os.lstat(self._path / "usage")
        except FileNotFoundError:
            return False
        return os.path.samestat(known, os.fstat(self._file.fileno()))

    def read(self) -> int | None:
        """Reads the count; returns None if there is none yet."""
        encoded = os.pread(self._file.fileno(), 8, 0)
        return int.from_bytes(encoded, "little") if encoded else None

    def write(self, count: int) -> None:
        """Writes the count."""
        os.pwrite(self._file.fileno(), count.to_bytes(8, "little"), 0)
