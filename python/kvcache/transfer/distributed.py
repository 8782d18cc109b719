# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A transport in a process group of ``torch.distributed``, by gloo."""

from __future__ import annotations

import ctypes
import importlib
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..checks import check_positive, check_string
from ..pages.regions import Region
from .transport import TransferFailed, TransferRefused

_REQUESTS = 1  # the tag of requests; each request has a pair of tags for later messages
_HEADER = 3  # the number of a request, its rows, and bytes of a message; 0 at the end
_REFUSED, _GRANTED = 0, 1
_KIND = b"torch:"


class _Reading:
    """An unfinished transfer: a thread receives, and ``poll`` copies to the cache."""

    def __init__(self, peer: str, target: np.ndarray) -> None:
        self.peer = peer
        self.target = target
        self.staged = np.empty(int(target[:, 1].sum()), np.uint8)
        self.error: Exception | None = None
        self.is_cancelled = False
        self.has_arrived = threading.Event()
        self.is_done = False


class TorchTransport:
    """Requests the memory of other processes of a process group, which send it.

    Messages of ``torch.distributed`` need a sender and a receiver, and can't be probed.
    So each process has a thread that answers, and each transfer has a thread at each
    end. Bytes are received outside of the cache, and ``poll`` copies them to it.

    Create a transport after ``init_process_group``, in each process, with the backend
    ``gloo``. It uses the group's tags from 1 on. All processes of the group can read
    registered memory.

    Args:
        name: The name of this process.
        group: The group of processes; all by default.
        chunk: The most bytes of a message.

    Raises:
        ModuleNotFoundError: PyTorch is not installed: ``pip install kvcache[torch]``.
        TransferRefused: There is no such group, or it has another backend.
    """

    def __init__(self, name: str, *, group: Any = None, chunk: int = 1 << 24) -> None:
        check_string(name=name)
        check_positive(chunk=chunk)
        self._torch = importlib.import_module("torch")
        self._distributed = distributed = self._torch.distributed
        if not (distributed.is_available() and distributed.is_initialized()):
            raise TransferRefused("there is no process group: init_process_group", name)
        backend = str(distributed.get_backend(group))
        if "gloo" not in backend:
            raise TransferRefused(f"its process group is of {backend}, not gloo", name)
        self.name = name
        self._group = group
        self._chunk = int(chunk)
        self._regions: set[Region] = set()
        self._peers: dict[str, int] = {}
        self._numbers = itertools.count()
        self._left = distributed.get_world_size(group) - 1
        threading.Thread(target=self._answer, daemon=True).start()

    # --- Transport ----------------------------------------------------------------

    def register(self, regions: tuple[Region, ...]) -> None:
        """Registers regions; other processes can read only these."""
        self._regions = self._regions | set(regions)

    @property
    def address(self) -> bytes:
        rank = self._distributed.get_rank()
        return _KIND + f"{rank}:{self.name}".encode()

    def connect(self, address: bytes) -> str:
        rank, _, name = (
            address.removeprefix(_KIND).decode(errors="replace").partition(":")
        )
        is_valid = address.startswith(_KIND) and rank.isdigit()
        if not is_valid or int(rank) >= self._distributed.get_world_size():
            raise TransferRefused("the peer is not of this process group")
        if int(rank) == self._distributed.get_rank():
            raise TransferRefused("the peer is this process itself", name)
        self._peers[name] = int(rank)
        return name

    def post(self, peer: str, source: np.ndarray, target: np.ndarray) -> _Reading:
        if peer not in self._peers:
            raise TransferRefused("the peer is not connected", peer)
        if not self._is_registered(target):
            raise TransferRefused("the memory here is not registered", self.name)
        reading = _Reading(peer, target)
        arguments = (
            reading,
            self._peers[peer],
            next(self._numbers),
            source[:, :2].copy(),
        )
        threading.Thread(target=self._receive, args=arguments, daemon=True).start()
        return reading

    def poll(self, handle: _Reading) -> bool:
        if handle.is_done:
            return True
        if not handle.has_arrived.is_set():
            return False
        if handle.error is not None:
            raise TransferFailed(str(handle.error), handle.peer) from handle.error
        start = 0
        for address, length, _ in handle.target.tolist():
            _view(address, length)[:] = handle.staged[start : start + length]
            start += length
        handle.is_done = True
        return True

    def cancel(self, handle: _Reading) -> None:
        """Ends a transfer: its thread may continue, but never writes to the cache."""
        handle.is_cancelled = True

    def close(self) -> None:
        """Announces to the others that this process sends no more requests."""
        farewell = self._torch.zeros(_HEADER, dtype=self._torch.int64)
        own = self._distributed.get_rank()
        for rank in range(self._distributed.get_world_size()):
            if rank != own:
                self._send(farewell, rank, _REQUESTS)

    # --- Threads ------------------------------------------------------------------

    def _receive(
        self, reading: _Reading, rank: int, number: int, table: np.ndarray
    ) -> None:
        """Requests the bytes of a table, and receives them."""
        try:
            header = self._torch.tensor([number, len(table), self._chunk])
            self._send(header, rank, _REQUESTS)
            asked, answered = _get_tags(number)
            self._send(self._torch.from_numpy(table), rank, asked)
            status = self._torch.zeros(1, dtype=self._torch.int64)
            self._recv(status, rank, answered)
            if int(status) != _GRANTED:
                raise TransferFailed("the peer does not lend this memory", reading.peer)
            for part in _cut(reading.staged, self._chunk):
                self._recv(self._torch.from_numpy(part), rank, answered)
        except TransferFailed as error:
            reading.error = ValueError(error.reason)
        except Exception as error:  # any error of the group
            reading.error = error
        reading.has_arrived.set()

    def _answer(self) -> None:
        """Answers requests until all other processes have closed or ended."""
        while self._left > 0:
            header = self._torch.zeros(_HEADER, dtype=self._torch.int64)
            try:
                rank = self._distributed.recv(header, tag=_REQUESTS, group=self._group)
            except Exception:  # a process has ended, or a timeout without requests
                self._left -= 1
                continue
            number, rows, chunk = header.tolist()
            if not chunk:
                self._left -= 1
                continue
            arguments = rank, number, rows, chunk
            threading.Thread(target=self._lend, args=arguments, daemon=True).start()

    def _lend(self, rank: int, number: int, rows: int, chunk: int) -> None:
        """Sends requested bytes to another process."""
        asked, answered = _get_tags(number)
        table = np.empty((rows, 2), np.int64)
        try:
            self._recv(self._torch.from_numpy(table), rank, asked)
            is_registered = self._is_registered(table)
            status = self._torch.tensor([_GRANTED if is_registered else _REFUSED])
            self._send(status, rank, answered)
            if is_registered:
                parts = [_view(address, length) for address, length in table.tolist()]
                joined = np.concatenate(parts) if parts else np.empty(0, np.uint8)
                for part in _cut(joined, chunk):
                    self._send(self._torch.from_numpy(part), rank, answered)
        except Exception:  # the other end has ended, or will time out
            return

    def _send(self, tensor: Any, rank: int, tag: int) -> None:
        self._distributed.send(tensor, rank, tag=tag, group=self._group)

    def _recv(self, tensor: Any, rank: int, tag: int) -> None:
        self._distributed.recv(tensor, rank, tag=tag, group=self._group)

    def _is_registered(self, table: np.ndarray) -> bool:
        regions = self._regions
        return all(
            length >= 0 and any(region.contains(address, length) for region in regions)
            for address, length in table[:, :2].tolist()
        )


def _cut(bytes_: np.ndarray, chunk: int) -> Iterator[np.ndarray]:
    for start in range(0, len(bytes_), chunk):
        yield bytes_[start : start + chunk]


def _get_tags(number: int) -> tuple[int, int]:
    """The tags of the table and of the answer of a request."""
    return 2 * number + 2, 2 * number + 3


def _view(address: int, length: int) -> np.ndarray:
    """Views bytes of this process."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * length).from_address(address))
