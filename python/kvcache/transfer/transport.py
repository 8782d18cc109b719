# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What moves bytes between machines, and how it goes wrong."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..checks import check_instance
from ..errors import Error
from ..pages.regions import Region


class TransferError(Error, RuntimeError):
    """Pages did not get from one machine to another.

    Attributes:
        peer: The machine that has the pages; empty if it is not known.
        request: The sequence; None if it is not known.
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
    """The transfer did not begin: the ends do not fit, or do not know each other."""


class TransferFailed(TransferError):
    """The transfer broke on the way: the peer is gone, or too slow."""


@runtime_checkable
class Transport(Protocol):
    """What reads the memory of other machines. No method waits for another machine.

    ``register`` comes first, for all memory that is read or written. ``address`` is what
    another machine's ``connect`` needs. ``post`` begins to read; ``poll`` drives it on,
    and tells when all bytes are there; ``cancel`` gives up, after which the transport
    writes to none of the bytes any more, or raises if it can't promise that yet.
    """

    name: str

    def register(self, regions: tuple[Region, ...]) -> None:
        """Makes memory known, to be read by others and to be written here."""

    @property
    def address(self) -> bytes:
        """What tells other machines how to reach the memory registered so far."""

    def connect(self, address: bytes) -> str:
        """Returns the name of the machine with this address.

        Raises:
            TransferRefused: The address is not one of this kind of transport.
        """

    def post(self, peer: str, source: np.ndarray, target: np.ndarray) -> Any:
        """Begins to read; returns a handle.

        Args:
            peer: The name of a machine, of ``connect``.
            source: int64 [n, 3]: addresses, lengths and devices of its memory; one row
                or more.
            target: The same of the memory here; the lengths are equal.

        Raises:
            TransferRefused: The peer or the memory is not known.
        """

    def poll(self, handle: Any) -> bool:
        """Whether all bytes are there.

        Raises:
            TransferFailed: They will not come.
        """

    def cancel(self, handle: Any) -> None:
        """Ends a transfer, done or not."""


class PageTransport(Transport, Protocol):
    """A transport that can also read pages by their numbers, without descriptors.

    It prepares what it needs of all pages of a cache once; ``fetch`` prefers it where both
    ends have the same format.
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
            peer: The name of a machine, of ``connect``.
            source: The regions of its cache.
            source_pages: int32: which of its pages, each in its regions; one or more.
            target: The regions here, of the same fingerprint and in the same order.
            target_pages: int32: where they go.

        Returns:
            None if it takes only descriptors of these caches: then ``post`` comes.

        Raises:
            TransferRefused: As for ``post``.
        """


_checked: set[type] = set()


def check_transport(transport: object) -> None:
    """Raises ``TypeError`` for what is no transport; looks at each class once."""
    if type(transport) not in _checked:
        check_instance(Transport, transport=transport)
        _checked.add(type(transport))
