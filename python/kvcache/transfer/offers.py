# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one machine tells another of pages that it lends."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
from typing import Any

import numpy as np

from ..cache.layouts import DIMS
from ..cache.params import KVCacheParams
from ..checks import check_instance, check_integer
from ..pages.exchange import PageExchange
from ..pages.leases import Lease
from ..pages.regions import Region, describe_all
from .transport import TransferRefused, Transport

VERSION = 2
"""Of the messages; machines of different ones do not understand each other."""

_DIGEST_BYTES = 16


@dataclass(frozen=True)
class Offer:
    """A lease, as another machine sees it.

    Attributes:
        peer: The name of the machine.
        request: The name of the sequence there, as text.
        tokens: The ids of its tokens, int64.
        pages: Where they are, as a lease has them, int32.
        regions: The tensors.
        address: What a transport needs to reach them.
        type: That of the collection of a device; empty for several groups of layers.
        heads: Of keys and values, over all devices.
        layers: Those of the model that are in the pages.
    """

    peer: str
    request: str
    tokens: np.ndarray
    pages: np.ndarray
    regions: tuple[Region, ...]
    address: bytes
    type: str = ""
    heads: int = 0
    layers: tuple[int, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Of the format of its pages."""
        return self.regions[0].fingerprint

    def describe(self, numbers: np.ndarray) -> np.ndarray:
        """The bytes of some of the pages, as ``descriptors`` has them."""
        return describe_all(self.regions, self.pages[numbers])

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
                "type": self.type,
                "heads": self.heads,
                "layers": self.layers,
            }
        ).encode()
        return _digest(text) + text

    @classmethod
    def from_bytes(cls, message: bytes) -> Offer:
        """Reads a message.

        Raises:
            TransferRefused: It is damaged or cut off, of another version, or a field is
                missing or wrong; the message names it.
        """
        check_instance(bytes, message=message)
        text = message[_DIGEST_BYTES:]
        if len(message) <= _DIGEST_BYTES or message[:_DIGEST_BYTES] != _digest(text):
            raise TransferRefused("the offer is damaged or cut off")
        fields = _parse_object(text)
        if fields.pop("version", None) != VERSION:
            raise TransferRefused(
                f"the offer has another version than {VERSION}, which is spoken here",
                *_find_sender(fields),
            )
        return cls(
            **{name: _take(fields, name, read) for name, read in _READERS.items()}
        )


def _parse_object(text: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise TransferRefused("the offer is no object of JSON")
    return fields


def _find_sender(fields: dict[str, Any]) -> tuple[str, str | None]:
    """The peer and the request of a message that is refused, as far as it has them."""
    request = fields.get("request")
    return str(fields.get("peer", "")), None if request is None else str(request)


def _take(fields: dict[str, Any], name: str, read: Callable[[Any], Any]) -> Any:
    sender = _find_sender(fields)
    if name not in fields:
        raise TransferRefused(f"the offer lacks {name!r}", *sender)
    try:
        return read(fields[name])
    except (TypeError, ValueError, OverflowError) as error:
        raise TransferRefused(
            f"the offer has no valid {name!r}: {error}", *sender
        ) from None


def _read_text(value: Any) -> str:
    check_instance(str, value=value)
    return value


def _read_number(value: Any) -> int:
    check_integer(value=value)
    return int(value)


def _read_ids(dtype: type[np.integer]) -> Callable[[Any], np.ndarray]:
    def read(value: Any) -> np.ndarray:
        given = np.array(value)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise ValueError("expects a list of integers")
        ids = given.astype(dtype)
        if not np.array_equal(ids, given):
            raise OverflowError(f"expects integers of {8 * ids.itemsize} bits")
        return ids

    return read


def _read_regions(value: Any) -> tuple[Region, ...]:
    check_instance(list, value=value)
    if not value:
        raise ValueError("expects at least one region")
    return tuple(map(_parse_region, value))


def _parse_region(fields: Any) -> Region:
    check_instance(dict, region=fields)
    # JSON has lists where a region has tuples.
    parsed: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in fields.items()
    }
    known = {field.name: field for field in dataclass_fields(Region)}
    for name in (*known, *parsed):
        if name not in parsed:
            raise ValueError(f"a region lacks {name!r}")
        if name not in known:
            raise ValueError(f"a region has no field {name!r}")
        kind = {"int": int, "str": str}.get(str(known[name].type), tuple)
        check_instance(kind, **{name: parsed[name]})
    region = Region(**parsed)
    for name, kind in (("order", str), ("shape", int), ("strides", int)):
        for entry in parsed[name]:
            check_instance(kind, **{name: entry})
    sizes = region.shape, region.strides
    if sorted(region.order) != sorted(DIMS) or {*map(len, sizes)} != {len(DIMS)}:
        raise ValueError(f"expects a region of the dimensions {', '.join(DIMS)}")
    return region


_READERS: dict[str, Callable[[Any], Any]] = {
    "peer": _read_text,
    "request": _read_text,
    "tokens": _read_ids(np.int64),
    "pages": _read_ids(np.int32),
    "regions": _read_regions,
    "address": lambda value: base64.b64decode(value, validate=True),
    "type": _read_text,
    "heads": _read_number,
    "layers": lambda value: tuple(_read_ids(np.int64)(value).tolist()),
}


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
    params = cache.params
    described: tuple[str, int, tuple[int, ...]] = "", 0, ()
    if isinstance(params, KVCacheParams):
        described = params.collection_type, params.n_kv_heads, tuple(params.layers)
    return Offer(
        transport.name,
        str(lease.request),
        lease.tokens,
        lease.pages,
        regions,
        transport.address,
        *described,
    ).to_bytes()
