# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A transport between caches of one process."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from weakref import WeakValueDictionary

import numpy as np

from ..checks import check_positive, check_string
from ..pages.regions import Region
from .transport import TransferFailed, TransferRefused

_transports: WeakValueDictionary[str, LocalTransport] = WeakValueDictionary()


@dataclass
class _Copy:
    peer: str
    source: np.ndarray
    target: np.ndarray
    row: int = 0
    copied: int = 0  # bytes of this row

    @property
    def is_done(self) -> bool:
        return self.row == len(self.source)

    def advance(self, limit: int) -> int:
        """Copies bytes of one row, ``limit`` at most; returns how many."""
        source, length, _ = map(int, self.source[self.row])
        target = int(self.target[self.row, 0])
        count = min(limit, length - self.copied)
        ctypes.memmove(target + self.copied, source + self.copied, count)
        self.copied += count
        if self.copied == length:
            self.row, self.copied = self.row + 1, 0
        return count


class LocalTransport:
    """Copies within the host memory of a process, for tests and for several caches.

    Args:
        name: The unique name of this transport in the process.
        chunk: The most bytes that one ``poll`` copies.

    Raises:
        ValueError: A transport of this name exists.
    """

    def __init__(self, name: str, *, chunk: int = 1 << 24) -> None:
        check_string(name=name)
        check_positive(chunk=chunk)
        if name in _transports:
            raise ValueError(f"there is a local transport {name!r} already")
        self.name = name
        self._chunk = int(chunk)
        self._regions: set[Region] = set()
        _transports[name] = self

    def register(self, regions: tuple[Region, ...]) -> None:
        """Registers regions, only to check accesses."""
        self._regions.update(regions)

    @property
    def address(self) -> bytes:
        return b"local:" + self.name.encode()

    def connect(self, address: bytes) -> str:
        kind, _, rest = address.partition(b":")
        name = rest.decode(errors="replace")
        if kind != b"local" or name not in _transports:
            raise TransferRefused("there is no such transport in this process")
        return name

    def post(self, peer: str, source: np.ndarray, target: np.ndarray) -> _Copy:
        other = _transports.get(peer)
        if other is None:
            raise TransferRefused("there is no such transport in this process", peer)
        other._check_known(source, peer)
        self._check_known(target, self.name)
        return _Copy(peer, source, target)

    def _check_known(self, table: np.ndarray, peer: str) -> None:
        for address, length, _ in table:
            if not any(region.contains(address, length) for region in self._regions):
                raise TransferRefused(f"no registered memory at {address:#x}", peer)

    def poll(self, handle: _Copy) -> bool:
        if handle.peer not in _transports:
            raise TransferFailed("the peer is gone", handle.peer)
        budget = self._chunk
        while not handle.is_done and budget:
            budget -= handle.advance(budget)
        return handle.is_done

    def cancel(self, handle: _Copy) -> None:
        handle.row = len(handle.source)
