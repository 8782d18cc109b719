# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A store in a folder of files."""

from __future__ import annotations

import itertools
import os
import secrets
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeAlias

from ..checks import check_flag, check_path, check_positive, check_positive_real
from .usage import READ_FLAGS, Usage
from .values import HEADER_BYTES, Header, import_xxhash, make_name, parse_header
from .workers import Batch, Workers

_CHUNK = 1 << 21  # bytes read or written at a time
_numbers = itertools.count()

Buffer: TypeAlias = bytearray | memoryview


class Folder:
    """A store in a folder, which survives restarts, and which many processes share.

    A value is a file with a checksum. It is written under another name first, so no
    process finds half a file. A file that is short or whose checksum is wrong is
    removed. When ``max_bytes`` is reached, the least recently used files are removed.

    Args:
        path: The folder, which is made if it is not there.
        max_bytes: The most bytes of all files of the folder.
        deadline: The most seconds of a call's copies, and of ``find``.
        fsync: Whether a value is on the disk before its copy has ended. Without it, a
            power failure may lose values, but never makes a wrong one.
        threads: The number of threads that copy.

    Attributes:
        deadline: As given.

    Raises:
        OSError: The folder can't be made or written.
        TimeoutError: Another process locks the folder until the deadline.
        ModuleNotFoundError: ``pip install kvcache[stores]`` is missing.
    """

    keeps_deadline = True  # of each call

    def __init__(
        self,
        path: str | os.PathLike[str],
        max_bytes: int,
        *,
        deadline: float,
        fsync: bool = False,
        threads: int = 2,
    ) -> None:
        check_path(path=path)
        if not os.fspath(path):
            raise ValueError("expects 'path' to be the path of a folder, got an empty one")
        check_positive(max_bytes=max_bytes, threads=threads)
        check_positive_real(deadline=deadline)
        check_flag(fsync=fsync)
        self._xxhash = import_xxhash()
        self._root = os.path.abspath(os.fsdecode(path))
        self._usage = Usage(Path(self._root), int(max_bytes), float(deadline))
        self._name = secrets.token_hex(8)  # of temporary files of this process
        self.deadline = float(deadline)
        self._fsync = bool(fsync)
        self._workers = Workers(int(threads))

    # --- Calls --------------------------------------------------------------------

    def find(self, keys: Sequence[bytes]) -> list[bool]:
        """Returns whether each key has a file; its content may still be wrong."""
        found: list[bool] = []

        def look_up(batch: Batch) -> bool:
            found.extend([_is_file(self._locate(key)) for key in keys])
            return True

        batch = self._workers.begin([look_up], self.deadline)
        batch.wait()
        return found if batch.done[0] else [False] * len(keys)

    def begin_put(self, keys: Sequence[bytes], buffers: Sequence[memoryview]) -> Batch:
        """Begins to write values. Those that are there already count as written."""
        return self._workers.begin_copies(self._put, keys, buffers, self.deadline)

    def begin_get(self, keys: Sequence[bytes], buffers: Sequence[memoryview]) -> Batch:
        """Begins to read values into buffers of their sizes."""
        return self._workers.begin_copies(self._get, keys, buffers, self.deadline)

    def remove(self, keys: Sequence[bytes]) -> None:
        """Removes values, if they are there."""
        self._workers.remove(self._drop, keys, self.deadline)

    def close(self) -> None:
        """Ends all copies, at the latest at their deadline."""
        self._workers.close()
        self._usage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- Files --------------------------------------------------------------------

    def _locate(self, key: bytes) -> str:
        name = make_name(key)
        return f"{self._root}/{name[:2]}/{name[2:]}"

    def _put(self, key: bytes, buffer: memoryview, batch: Batch) -> bool:
        path = self._locate(key)
        with suppress(FileNotFoundError):
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode):
                os.utime(path)
                return True
            if stat.S_ISDIR(mode):
                return False  # of others; a file replaces anything else
        data = memoryview(buffer).cast("B")
        size = HEADER_BYTES + len(data)
        temporary = f"{self._root}/tmp/{self._name}-{next(_numbers)}"
        file = self._usage.reserve(temporary, size)
        if file is None:
            return False
        try:
            digest = self._write(file, data)
            _write_all(file, Header(len(data), digest, key).encode(), 0)
            if self._fsync:
                os.fsync(file)
            if batch.is_over:
                raise TimeoutError
            self._usage.move(temporary, path)
        except BaseException:
            self._usage.remove(temporary)
            raise
        finally:
            os.close(file)
        return True

    def _get(self, key: bytes, buffer: memoryview, batch: Batch) -> bool:
        path = self._locate(key)
        data = memoryview(buffer).cast("B")
        try:
            file = os.open(path, READ_FLAGS)
        except PermissionError:  # no put would replace it
            self._drop(key, batch)
            return False
        try:
            encoded, digest = self._read(file, data, batch)  # raises for a pipe or a folder
            header = parse_header(encoded, key)
            if header == (len(data), digest, key):
                os.utime(file)
                return True
            size = os.fstat(file).st_size - HEADER_BYTES
            if header and header.length == size != len(data):
                return False  # another size than the caller's
        finally:
            os.close(file)
        self._drop(key, batch)
        return False

    def _write(self, file: int, data: memoryview) -> bytes:
        """Writes a value after the room for its header; returns its digest."""
        hasher, offset = self._xxhash.xxh3_128(), 0
        while offset < len(data):
            part = data[offset : offset + _CHUNK]
            count = os.pwrite(file, part, HEADER_BYTES + offset)
            hasher.update(part[:count])
            offset += count
        return hasher.digest()

    def _read(self, file: int, data: memoryview, batch: Batch) -> tuple[bytes, bytes]:
        """Reads a header and a value; returns the header and the value's digest.

        A read from the disk may hang until after the deadline. So it fills a buffer of
        its own first. Memory of the system is read at once.
        """
        header = bytearray(HEADER_BYTES)
        hasher, offset = self._xxhash.xxh3_128(), -HEADER_BYTES
        while offset < len(data):
            start = max(offset, 0)
            part = data[start : start + _CHUNK]
            parts: list[Buffer] = [part] if offset >= 0 else [header, part]
            count = _read_cached(file, parts, offset, batch) or _read_disk(file, parts, offset, batch)
            offset += count
            if not count or offset < 0:
                return bytes(header), b""  # the file is short
            hasher.update(part[: offset - start])
        return bytes(header), hasher.digest()

    def _drop(self, key: bytes, batch: Batch) -> None:
        self._usage.remove(self._locate(key))


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _read_cached(file: int, parts: Sequence[Buffer], offset: int, batch: Batch) -> int:
    """Reads bytes that the system has in memory; returns 0 if it has none."""
    with batch.lock:
        if batch.is_over:
            raise TimeoutError
        try:
            return os.preadv(file, parts, HEADER_BYTES + offset, os.RWF_NOWAIT)
        except OSError:  # the bytes are not there, or the file system can't tell
            return 0


def _read_disk(file: int, parts: Sequence[Buffer], offset: int, batch: Batch) -> int:
    """Reads bytes by buffers in between; returns 0 at the end of the file."""
    buffers = [bytearray(len(part)) for part in parts]
    count = os.preadv(file, buffers, HEADER_BYTES + offset)
    with batch.lock:
        if batch.is_over:
            raise TimeoutError
        for part, buffer in zip(parts, buffers, strict=True):
            part[:] = buffer
    return count


def _write_all(file: int, data: bytes, offset: int) -> None:
    left = memoryview(data)
    while left:
        count = os.pwrite(file, left, offset)
        left, offset = left[count:], offset + count
