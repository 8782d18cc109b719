# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one machine tells another of pages that it lends."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..checks import check_instance
from ..pages.exchange import PageExchange
from ..pages.leases import Lease
from ..pages.regions import Region, describe_all
from .transport import TransferRefused, Transport

VERSION = 1
"""Of the messages; machines of different ones do not understand each other."""

_DIGEST_BYTES = 16


@dataclass(frozen=True)
class Offer:
    """A lease, as another machine sees it.

    Attributes:
        peer: The name of the machine.
        request: The name of the sequence there, as text.
        tokens: The ids of its tokens, int64.
        pages: Where they are, in the order of the tokens, int32.
        regions: The tensors.
        address: What a transport needs to reach them.
    """

    peer: str
    request: str
    tokens: np.ndarray
    pages: np.ndarray
    regions: tuple[Region, ...]
    address: bytes

    @property
    def fingerprint(self) -> str:
        """Of the format of its pages."""
        return self.regions[0].fingerprint

    def describe(self, first: int) -> np.ndarray:
        """The bytes of the pages from number ``first`` on, as ``descriptors`` has them."""
        return describe_all(self.regions, self.pages[first:])

    def to_bytes(self) -> bytes:
        """The message: a digest, and the fields as JSON."""
        text = json.dumps(
            {
                "version": VERSION,
                "peer": self.peer,
                "request": self.request,
                "tokens": self.tokens.tolist(),
                "pages": self.pages.tolist(),
                "regions": [asdict(region) for region in self.regions],
                "address": base64.b64encode(self.address).decode(),
            }
        ).encode()
        return _digest(text) + text

    @classmethod
    def from_bytes(cls, message: bytes) -> Offer:
        """Reads a message.

        Raises:
            TransferRefused: It is damaged or cut off, or of another version.
        """
        check_instance(bytes, message=message)
        text = message[_DIGEST_BYTES:]
        if len(message) <= _DIGEST_BYTES or message[:_DIGEST_BYTES] != _digest(text):
            raise TransferRefused("the offer is damaged or cut off")
        fields = json.loads(text)
        if fields.pop("version", None) != VERSION:
            raise TransferRefused(
                f"the offer has another version than {VERSION}, which is spoken here",
                fields.get("peer", ""),
                fields.get("request"),
            )
        regions = tuple(map(_parse_region, fields["regions"]))
        return cls(
            fields["peer"],
            fields["request"],
            np.array(fields["tokens"], np.int64),
            np.array(fields["pages"], np.int32),
            regions,
            base64.b64decode(fields["address"]),
        )


def _parse_region(fields: dict[str, Any]) -> Region:
    # JSON has lists where a region has tuples.
    parsed: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in fields.items()
    }
    return Region(**parsed)


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()[:_DIGEST_BYTES]


def offer(cache: PageExchange, lease: Lease, transport: Transport) -> bytes:
    """The message that lets another machine ``fetch`` the pages of a lease.

    Args:
        cache: The manager whose lease it is.
        lease: Of ``export``.
        transport: Registers the tensors of the cache, if it has not yet.

    Raises:
        ValueError: The lease has ended.
    """
    check_instance(PageExchange, cache=cache)
    check_instance(Lease, lease=lease)
    check_instance(Transport, transport=transport)
    if not lease.is_held:
        raise ValueError(f"the lease of {lease.request!r} has ended")
    regions = cache.regions()
    transport.register(regions)
    return Offer(
        transport.name,
        str(lease.request),
        lease.tokens,
        lease.pages,
        regions,
        transport.address,
    ).to_bytes()
