# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Offers: messages that describe the pages of a lease to another machine."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
import struct
from collections.abc import Callable
from dataclasses import asdict
from dataclasses import fields as dataclass_fields
from typing import Any, NamedTuple

import numpy as np

from ..cache.layouts import DIMS
from ..cache.params import KVCacheParams
from ..checks import check_instance, check_integer
from ..pages.exchange import PageExchange
from ..pages.leases import Lease
from ..pages.regions import Region, describe_all, describe_groups
from .transport import TransferRefused, Transport, check_transport

VERSION = 6
"""The version of the messages; different versions are incompatible."""

_DIGEST_BYTES = 16
_ENCODING = "utf-8", "surrogatepass"  # of names
# The version, the bytes of the two names and of the object, the number of tokens and
# pages, and the number of groups with ``gone``: all or none. The version and the sizes
# of the names have the same places in all versions from 6 on.
_HEADER = struct.Struct("<4I3Q")
_MOST_OBJECT_BYTES = 4 << 20  # a region and its address take about a kilobyte
_MOST_NESTING = 4  # fields, regions, a region, its shape
# Strings too, so that brackets in them do not count; the last may be unterminated.
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)
_TOKEN = np.dtype("<i8")
_PAGE = np.dtype("<i4")


class Offer(NamedTuple):
    """The contents of an offer: a lease, described to another machine.

    Attributes:
        peer: The name of the machine.
        request: The name of the sequence there, as text.
        tokens: The ids of its tokens, int64 [tokens].
        pages: The pages of the tokens, as in the lease, int32 [pages].
        regions: The regions of the tensors.
        address: The address by which a transport reaches them.
        type: The type of the collection of a device; empty for several groups of
            layers.
        heads: The number of heads of keys and values, over all devices.
        layers: The layers of the model in the pages.
        groups: The description of the format of each group of layers.
        gone: The first tokens present, as in the lease.
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
    groups: tuple[str, ...] = ()
    gone: tuple[int, ...] = ()

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the format of its pages."""
        return self.regions[0].fingerprint

    def describe(self, numbers: np.ndarray) -> np.ndarray:
        """The bytes of some pages, as from ``descriptors``, not merged."""
        return describe_all(self.regions, self.pages[numbers])

    def to_bytes(self) -> bytes:
        """Writes the message.

        It begins with a digest, the version and all sizes. Then come the names of the
        peer and the request, a JSON object, and the bytes of tokens, pages and
        ``gone``. The object is equal in all offers of a cache.
        """
        model = self.type, self.heads, self.layers, self.groups
        parts = [
            self.peer.encode(*_ENCODING),
            self.request.encode(*_ENCODING),
            _write_common(self.regions, self.address, *model),
        ]
        counts = len(self.tokens), len(self.pages), len(self.gone)
        arrays = (
            self.tokens.astype(_TOKEN),
            self.pages.astype(_PAGE),
            np.array(self.gone, _TOKEN),
        )
        header = _HEADER.pack(VERSION, *map(len, parts), *counts)
        text = b"".join([header, *parts, *(each.tobytes() for each in arrays)])
        return _digest(text) + text

    @classmethod
    def from_bytes(cls, message: bytes) -> Offer:
        """Reads a message.

        Raises:
            TransferRefused: It is damaged or cut off, of another version, or a field is
                missing or wrong; the message names it.
        """
        check_instance(bytes, message=message)
        start = _DIGEST_BYTES + _HEADER.size
        if len(message) < start or message[:_DIGEST_BYTES] != _digest(
            memoryview(message)[_DIGEST_BYTES:]
        ):
            raise TransferRefused("the offer is damaged or cut off")
        version, *sizes, tokens, pages, gone = _HEADER.unpack_from(message, _DIGEST_BYTES)
        if start + sum(sizes) > len(message):  # possible in another version
            sizes = [0, 0, 0]
        middle = start + sizes[0]
        end = middle + sizes[1]
        stop = end + sizes[2]
        peer, request = message[start:middle], message[middle:end]
        try:
            if version != VERSION:
                raise TransferRefused(
                    f"the offer has another version than {VERSION}, which is spoken here"
                )
            _check_numbers(len(message) - stop, tokens, pages, gone)
            if sizes[2] > _MOST_OBJECT_BYTES:
                raise TransferRefused(
                    f"the offer has an object of {sizes[2]} bytes, more than "
                    f"{_MOST_OBJECT_BYTES}"
                )
            after = stop + tokens * _TOKEN.itemsize
            offer = cls(
                _read_name("peer", peer),
                _read_name("request", request),
                np.frombuffer(message, _TOKEN, tokens, stop),
                np.frombuffer(message, _PAGE, pages, after),
                *_read_common(message[end:stop]),
            )
            if (least := int(offer.tokens.min())) < 0:
                raise TransferRefused(f"the offer has a negative token, {least}")
            return offer._replace(gone=_read_gone(message, offer, gone)) if gone else offer
        except Exception as error:
            sender = peer.decode(errors="replace"), request.decode(errors="replace")
            if isinstance(error, TransferRefused):
                raise TransferRefused(error.reason, *sender) from None
            reason = f"the offer can't be read: {error!r}"
            raise TransferRefused(reason, *sender) from error


def _read_name(field: str, name: bytes) -> str:
    try:
        return name.decode(*_ENCODING)
    except UnicodeDecodeError as error:
        raise TransferRefused(f"the offer has no valid {field!r}: {error}") from None


def _check_numbers(size: int, tokens: int, pages: int, gone: int) -> None:
    if not tokens:
        raise TransferRefused("the offer has no tokens")
    if size != (tokens + gone) * _TOKEN.itemsize + pages * _PAGE.itemsize:
        raise TransferRefused(
            f"the offer of {tokens} tokens and {pages} pages has {size} bytes of them"
        )


def _read_gone(message: bytes, offer: Offer, count: int) -> tuple[int, ...]:
    start = len(message) - count * _TOKEN.itemsize
    gone = tuple(np.frombuffer(message, _TOKEN, count, start).tolist())
    total = len(offer.tokens)
    if count != len(offer.groups) or not 0 <= min(gone) <= max(gone) <= total:
        raise TransferRefused(
            f"the offer has no valid 'gone': expects {len(offer.groups)} tokens of "
            f"{total}, got {list(gone)}"
        )
    return gone


# Offers of one cache share it.
@functools.lru_cache(maxsize=256)
def _write_common(
    regions: tuple[Region, ...],
    address: bytes,
    type_: str,
    heads: int,
    layers: tuple[int, ...],
    groups: tuple[str, ...],
) -> bytes:
    fields = {
        "regions": [asdict(region) for region in regions],
        "address": base64.b64encode(address).decode(),
        "type": type_,
        "heads": heads,
        "layers": layers,
        "groups": groups,
    }
    return json.dumps(fields).encode()


@functools.lru_cache(maxsize=256)
def _read_common(message: bytes) -> tuple[Any, ...]:
    """The fields of an offer from ``regions`` on."""
    try:
        text = message.decode()  # json.loads would guess another encoding of bytes
        _check_nesting(text)
        fields = json.loads(text)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise TransferRefused("the offer is not a JSON object")
    return tuple(_take(fields, name, read) for name, read in _READERS.items())


def _check_nesting(text: str) -> None:
    """Raises ``TransferRefused`` for deep nesting, since the parser recurs."""
    depth = 0
    for match in _BRACKETS.finditer(text):
        token = match.group()
        if token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
        if depth > _MOST_NESTING:
            raise TransferRefused(
                f"the offer nests lists and objects more than {_MOST_NESTING} deep"
            )


def _take(fields: dict[str, Any], name: str, read: Callable[[Any], Any]) -> Any:
    if name not in fields:
        raise TransferRefused(f"the offer lacks {name!r}")
    try:
        return read(fields[name])
    except (TypeError, ValueError, OverflowError) as error:
        raise TransferRefused(f"the offer has no valid {name!r}: {error}") from None


def _read_text(value: Any) -> str:
    check_instance(str, value=value)
    return value


def _read_number(value: Any) -> int:
    check_integer(value=value)
    return int(value)


def _read_layers(value: Any) -> tuple[int, ...]:
    check_instance(list, value=value)
    return tuple(map(_read_number, value))


def _read_groups(value: Any) -> tuple[str, ...]:
    check_instance(list, value=value)
    return tuple(map(_read_text, value))


def _read_regions(value: Any) -> tuple[Region, ...]:
    check_instance(list, value=value)
    if not value:
        raise ValueError("expects at least one region")
    regions = tuple(map(_parse_region, value))
    devices = {region.device for region in regions}
    if devices != set(range(len(devices))):
        raise ValueError(
            f"expects regions of devices from 0 on, got devices {sorted(devices)[:8]}"
        )
    return regions


def _parse_region(fields: Any) -> Region:
    check_instance(dict, region=fields)
    # JSON's lists become tuples in a region.
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
    "regions": _read_regions,
    "address": lambda value: base64.b64decode(value, validate=True),
    "type": _read_text,
    "heads": _read_number,
    "layers": _read_layers,
    "groups": _read_groups,
}


def _digest(text: bytes | memoryview) -> bytes:
    return hashlib.sha256(text).digest()[:_DIGEST_BYTES]


def offer(cache: PageExchange, lease: Lease, transport: Transport) -> bytes:
    """Makes the message by which another machine can ``fetch`` the pages of a lease.

    Args:
        cache: The manager of the lease.
        lease: The result of ``export``.
        transport: The transport, with which the tensors of the cache are registered.

    Raises:
        ValueError: The lease has ended.
    """
    check_instance(PageExchange, cache=cache)
    check_instance(Lease, lease=lease)
    check_transport(transport)
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
        describe_groups(params),
        lease.gone,
    ).to_bytes()
