# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pages of another machine, on their way into a cache of this one."""

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

    It ends by ``finish`` or ``cancel``, or by any error that ``poll`` raises. Then its
    pages are those of a sequence, or free.

    Attributes:
        offer: What is fetched.
        reception: The pages here.
        bytes: How many bytes are on their way.
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
        self._has_arrived = not size  # then nothing was posted
        self._staging = staging

    def poll(self) -> bool:
        """Whether all bytes are here; never waits.

        Raises:
            TransferFailed: They will not come. The transfer has ended, unless the
                transport can't stop yet: while ``reception.is_open``, its pages are
                reserved, until ``cancel`` succeeds.
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
        """Begins the sequence, if what has arrived is what was lent.

        Args:
            was_held: What the other machine's ``lease.end()`` said, after ``poll`` did
                say that all is here. A lease that ran out earlier may have lent pages
                that somebody else has written to since.

        Raises:
            TransferFailed: The lease was not held, or pages of another format could not
                be converted; the pages are free.
            ValueError: Not all bytes are here, or the transfer has ended.
        """
        self._check_open()
        if not self._has_arrived:
            raise ValueError("finish comes after poll has returned True")
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
        """Gives up, and gives the pages back; does nothing if the transfer has ended.

        Raises whatever the transport raises if it can't stop yet: the pages are still
        reserved then, and ``cancel`` may be called again.
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

    Pages whose tokens are in the cache here already are not read. Where the two caches
    have other formats, pages are read beside the cache, and ``finish`` converts them: other
    dtypes, scales, layouts, page sizes, and heads shared by other numbers of devices.

    Args:
        cache: The manager that gets them.
        message: Of ``offer``, on the other machine.
        transport: Reads them.
        request: As for ``PagedKVCacheManager.receive``.
        salt: As for ``PagedKVCacheManager.claim``.
        reception: Of ``cache.receive`` with the tokens of the offer, where the pages were
            reserved before the offer came; then it has the name and the salt. It ends
            with the transfer, also where this raises ``TransferRefused``.
        convert: What the conversion of other formats is compiled for, as in ``jit``.

    Raises:
        TransferRefused: The message is damaged, of another version, or describes pages
            that can't be converted to those here, or other tokens than ``reception``; or
            the transport does not know the peer.
        ValueError: As for ``receive``; or the reception is one of another cache, has ended,
            is filled by another transfer, or comes with a name or a salt.
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
    """The offer that a reception is for; ends that if it is another one."""
    try:
        offer = Offer.from_bytes(message)
        if not reception.has_tokens(offer.tokens):
            raise TransferRefused(
                "its tokens are not those that pages are reserved for",
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
    """Begins to read the pages of a reception, from those of an offer of the same format.

    Returns the handle, and how many pages are on their way. Raises ``ValueError`` unless
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
    """Begins to read descriptors of the same bytes, unless there are none, which engines
    do not take. Returns the handle."""
    return transport.post(peer, *pair(source, target)) if len(source) else None


@functools.lru_cache(maxsize=256)
def _count_bytes(given: tuple[Region, ...], own: tuple[Region, ...]) -> int:
    """The bytes of a page in all tensors. Raises ``ValueError`` unless tensors have the
    sizes that follow from the format."""
    sizes, expected = (
        [(each.tensor, each.shape[1:], each.itemsize) for each in regions]
        for regions in (given, own)
    )
    if sizes != expected:
        raise ValueError(f"expects tensors of {expected}, got {sizes}")
    return sum(region.page_bytes for region in own)
