# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transfers of pages from another machine into a cache of this one."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Hashable
from typing import Any

import numpy as np

from ..checks import check_instance
from ..pages.leases import Reception
from ..pages.manager import PagedKVCacheManager
from ..pages.regions import Region, describe_all, pair
from .offers import Offer
from .staging import Staging
from .transport import (
    TransferError,
    TransferFailed,
    TransferRefused,
    Transport,
    check_transport,
)


class Transfer:
    """A transfer that has begun; ``fetch`` makes one.

    It ends by ``finish`` or ``cancel``, or by an error of ``poll``. Then its pages
    belong to a sequence, or are free.

    Attributes:
        offer: The offer that is fetched.
        reception: The reserved pages.
        bytes: The number of bytes to transfer.
    """

    def __init__(
        self,
        offer: Offer,
        reception: Reception,
        transport: Transport,
        handle: Any,
        size: int,
        staging: Staging | None = None,
    ) -> None:
        self.offer = offer
        self.reception = reception
        self.bytes = size
        self._transport = transport
        self._handle = handle
        self._has_arrived = not size  # nothing was posted
        self._staging = staging

    def poll(self) -> bool:
        """Returns whether all bytes have arrived; never waits.

        Raises:
            TransferFailed: The transfer has failed, and ended. If the transport can't
                stop yet, its pages stay reserved: while ``reception.is_open``, until
                ``cancel`` succeeds.
            ValueError: The transfer has ended before.
        """
        self._check_open()
        if self._has_arrived:
            return True
        try:
            self._has_arrived = self._transport.poll(self._handle)
        except Exception as error:
            with contextlib.suppress(Exception):
                self.cancel()
            raise self._fail(error) from error
        return self._has_arrived

    def finish(self, was_held: bool) -> None:
        """Begins the sequence, if the lease was held until all bytes had arrived.

        Args:
            was_held: The result of the other machine's ``lease.end()``, called after
                ``poll`` returned True. After an earlier end of the lease, its pages may
                have been overwritten.

        Raises:
            TransferFailed: The lease was not held, or pages of another format could not
                be converted; the pages are free.
            ValueError: Not all bytes have arrived, or the transfer has ended.
        """
        self._check_open()
        if not self._has_arrived:
            raise ValueError("expects 'poll' to have returned True before 'finish'")
        self._end_reading()
        if not was_held:
            self.reception.abort()
            raise self._fail("the lease ran out before all bytes were here")
        if self._staging:
            try:
                self._staging.convert()
            except BaseException as error:
                self.reception.abort()
                if not isinstance(error, Exception):
                    raise
                raise self._fail(error) from error
        self.reception.commit()

    def cancel(self) -> None:
        """Cancels the transfer, and frees its pages; does nothing if it has ended.

        Raises the transport's error if it can't stop yet. The pages stay reserved then,
        and ``cancel`` may be called again.
        """
        if self.reception.is_open:
            self._end_reading()
            self.reception.abort()

    def _end_reading(self) -> None:
        if self.bytes:
            self._transport.cancel(self._handle)

    def _check_open(self) -> None:
        if not self.reception.is_open:
            raise ValueError(f"the transfer of {self.offer.request!r} has ended")

    def _fail(self, reason: object) -> TransferFailed:
        text = reason.reason if isinstance(reason, TransferError) else str(reason)
        return TransferFailed(text, self.offer.peer, self.offer.request)


def fetch(
    cache: PagedKVCacheManager,
    message: bytes,
    transport: Transport,
    *,
    request: Hashable | None = None,
    salt: bytes = b"",
    reception: Reception | None = None,
    convert: str = "cpu",
) -> Transfer:
    """Begins to read the pages of an offer into a cache.

    Pages whose tokens are cached here already are not read. If the formats of the two
    caches differ, pages are read to other memory, and ``finish`` converts them. Dtypes,
    scales, layouts, page sizes, and the number of devices that share the heads may
    differ.

    Args:
        cache: The manager that gets the pages.
        message: The result of ``offer`` on the other machine.
        transport: The transport that reads them.
        request: As for ``PagedKVCacheManager.receive``.
        salt: As for ``PagedKVCacheManager.claim``.
        reception: The result of ``cache.receive`` with the tokens of the offer, if
            pages were reserved before the offer came. Then it has the name and the
            salt. It ends with the transfer, even if this raises ``TransferRefused``.
        convert: The target for which conversions are compiled, as in ``jit``.

    Raises:
        TransferRefused: The message is damaged, of another version, has negative
            tokens, more than ``max_seq_len`` or others than ``reception``, or pages
            that can't be converted; or the peer is unknown to the transport.
        ValueError: As for ``receive``; or the reception belongs to another cache, has
            ended, is filled by another transfer, or is given with a name or a salt.
        OutOfPagesError: As for ``receive``.
    """
    check_instance(PagedKVCacheManager, cache=cache)
    check_transport(transport)
    if reception is not None:
        check_instance(Reception, reception=reception)
        if request is not None or salt:
            raise ValueError("'reception' has the name and the salt: expects no others")
        cache.begin_filling(reception)
        offer = _read_for(message, reception)
    else:
        offer = Offer.from_bytes(message)
        if (count := len(offer.tokens)) > cache.max_seq_len:
            raise TransferRefused(
                f"it has {count} tokens, more than the {cache.max_seq_len} of "
                "'max_seq_len' here",
                offer.peer,
                offer.request,
            )
        reception = cache.receive(offer.tokens, request, salt=salt)
        reception.is_filling = True
    is_equal, staging = True, None
    try:
        own = cache.regions()
        is_equal = offer.fingerprint == own[0].fingerprint
        if not is_equal:
            staging = Staging(cache, offer, reception, convert)
            own = staging.regions
        page_bytes = _count_bytes(offer.regions, own)
        transport.register(own)
        peer = transport.connect(offer.address)
        if staging:
            tables = offer.describe(staging.numbers), staging.describe()
            handle, count = _post(transport, peer, *tables), len(staging.numbers)
        else:
            handle, count = _post_equal(transport, peer, offer, own, reception)
    except BaseException as error:
        reception.abort()
        if not isinstance(error, Exception):
            raise
        text = error.reason if isinstance(error, TransferError) else str(error)
        if not is_equal:
            text = f"its pages have another format than those here: {text}"
        raise TransferRefused(text, offer.peer, offer.request) from error
    return Transfer(offer, reception, transport, handle, count * page_bytes, staging)


def _read_for(message: bytes, reception: Reception) -> Offer:
    """Reads an offer; aborts the reception if it does not fit."""
    try:
        offer = Offer.from_bytes(message)
        if not reception.has_tokens(offer.tokens):
            raise TransferRefused(
                "its tokens differ from those of the reserved pages",
                offer.peer,
                offer.request,
            )
        return offer
    except BaseException:
        reception.abort()
        raise


def _post_equal(
    transport: Transport,
    peer: str,
    offer: Offer,
    own: tuple[Region, ...],
    reception: Reception,
) -> tuple[Any, int]:
    """Begins to read the pages of a reception from an offer of the same format.

    Returns the handle, and the number of pages to read. Raises ``ValueError`` unless
    the offer has all pages that later tokens reach.
    """
    if len(offer.pages) != reception.num_pages:
        raise ValueError(
            f"expects {reception.num_pages} pages for its tokens, got {len(offer.pages)}"
        )
    if offer.gone:
        reception.gone = tuple(g if g > reception.found else 0 for g in offer.gone)
    lent, pages = reception.pair(offer.pages)
    if not len(lent):
        return None, 0
    numbers = lent.tolist()
    if min(numbers) < 0:
        raise ValueError("it lacks pages that later tokens reach")
    if (last := max(numbers)) >= offer.regions[0].pages:
        raise ValueError(f"it has no page {last}")
    post_pages = getattr(transport, "post_pages", None)
    if post_pages is not None:
        handle = post_pages(peer, offer.regions, lent, own, pages)
        if handle is not None:
            return handle, len(pages)
    tables = describe_all(offer.regions, lent), describe_all(own, pages)
    return _post(transport, peer, *tables), len(pages)


def _post(
    transport: Transport, peer: str, source: np.ndarray, target: np.ndarray
) -> Any:
    """Begins to read descriptors of the same bytes; returns the handle.

    Does nothing without descriptors, which engines do not accept."""
    return transport.post(peer, *pair(source, target)) if len(source) else None


@functools.lru_cache(maxsize=256)
def _count_bytes(given: tuple[Region, ...], own: tuple[Region, ...]) -> int:
    """Counts the bytes of a page in all tensors.

    Raises ``ValueError`` unless tensors have the sizes of the format."""
    sizes, expected = (
        [(each.tensor, each.shape[1:], each.itemsize) for each in regions]
        for regions in (given, own)
    )
    if sizes != expected:
        raise ValueError(f"expects tensors of {expected}, got {sizes}")
    return sum(region.page_bytes for region in own)
