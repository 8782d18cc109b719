# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interface of transports, which move bytes between machines, and its errors."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..checks import check_instance
from ..errors import Error
from ..pages.regions import Region


class TransferError(Error, RuntimeError):
    """The base of errors of transfers between machines.

    Attributes:
        peer: The machine with the pages; empty if unknown.
        request: The sequence; None if unknown.
    """

    def __init__(
        self, reason: str, peer: str = "", request: Hashable | None = None
    ) -> None:
        where = f" of peer {peer!r}" if peer else ""
        what = "transfer" if request is None else f"transfer of request {request!r}"
        super().__init__(f"{what}{where}: {reason}")
        self.reason = reason
        self.peer = peer
        self.request = request


class TransferRefused(TransferError):
    """The transfer did not begin: the ends do not fit, or are not connected."""


class TransferFailed(TransferError):
    """The transfer failed after it began: the peer has ended, or is too slow."""


@runtime_checkable
class Transport(Protocol):
    """The interface that reads the memory of other machines.

    No method waits for another machine. Call ``register`` first, for all memory that is
    read or written. Pass ``address`` to another machine's ``connect``. ``post`` begins
    to read. ``poll`` makes progress, and returns whether all bytes have arrived. After
    ``cancel``, the transport writes to the memory no more; it raises if it can't stop
    yet.
    """

    name: str

    def register(self, regions: tuple[Region, ...]) -> None:
        """Registers memory that other machines read, or that is written here."""

    @property
    def address(self) -> bytes:
        """The address by which other machines reach the memory registered so far."""

    def connect(self, address: bytes) -> str:
        """Returns the name of the machine with this address.

        Raises:
            TransferRefused: The address belongs to another kind of transport.
        """

    def post(self, peer: str, source: np.ndarray, target: np.ndarray) -> Any:
        """Begins to read; returns a handle.

        Args:
            peer: The name of a machine, from ``connect``.
            source: Descriptors of its memory, int64 [n, 3], n >= 1: addresses, lengths
                and devices.
            target: Descriptors of the memory here, likewise, of the same lengths.

        Raises:
            TransferRefused: The peer or the memory is unknown.
        """

    def poll(self, handle: Any) -> bool:
        """Returns whether all bytes have arrived.

        Raises:
            TransferFailed: The transfer has failed.
        """

    def cancel(self, handle: Any) -> None:
        """Ends a transfer, done or not."""


class PageTransport(Transport, Protocol):
    """A transport that can also read pages by their numbers, without descriptors.

    It prepares all pages of a cache once. ``fetch`` prefers it if both ends have the
    same format.
    """

    def post_pages(
        self,
        peer: str,
        source: tuple[Region, ...],
        source_pages: np.ndarray,
        target: tuple[Region, ...],
        target_pages: np.ndarray,
    ) -> Any:
        """Begins to read pages in all of their regions; returns a handle.

        Args:
            peer: The name of a machine, from ``connect``.
            source: The regions of its cache.
            source_pages: The pages to read, int32 [n], n >= 1.
            target: The regions here, of the same fingerprint and in the same order.
            target_pages: The pages to fill, int32 [n].

        Returns:
            The handle; None if these caches need descriptors and ``post``.

        Raises:
            TransferRefused: As for ``post``.
        """


_checked: set[type] = set()


def check_transport(transport: object) -> None:
    """Raises ``TypeError`` unless an object is a transport; checks each class once."""
    if type(transport) not in _checked:
        check_instance(Transport, transport=transport)
        _checked.add(type(transport))
