# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a page manager holds at one moment, for people, pictures and tests."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .prefixes import Page
    from .tables import Sequence


class Place(Enum):
    """Where a page is."""

    DEVICE = "device"
    HOST = "host"


@dataclass(frozen=True)
class PageAddress:
    """One of a place's pages, which are numbered from 0 on."""

    place: Place
    index: int


@dataclass(frozen=True)
class PageState:
    """A page that holds something; all others are free.

    Attributes:
        address: Where it is; the index of a device's page is what the lookup table has.
        references: Sequences that it belongs to.
        is_cached: Whether later sequences can find it by its tokens.
        tokens: Tokens in it, of all that share it the most.
    """

    address: PageAddress
    references: int
    is_cached: bool
    tokens: int


@dataclass(frozen=True)
class SequenceState:
    """A sequence that has been claimed.

    Attributes:
        request: Its name.
        pages: Its pages in the order of its tokens.
        length: Tokens in the cache.
        pending: Tokens after those, which have room and come with the next step.
        is_resident: Whether it is not swapped out: all its pages are on the device then.
    """

    request: Hashable
    pages: tuple[PageAddress, ...]
    length: int
    pending: int
    is_resident: bool


@dataclass(frozen=True)
class CacheSnapshot:
    """The pages and the sequences of a manager.

    Attributes:
        page_size: Tokens in a page.
        num_pages: Pages on the device, without the null page.
        num_host_pages: Pages of the swap space.
        null_page: What unused entries of the lookup table name.
        pages: Those that are not free, the device's first, by index.
        sequences: In the order in which they were claimed.
    """

    page_size: int
    num_pages: int
    num_host_pages: int
    null_page: int
    pages: tuple[PageState, ...]
    sequences: tuple[SequenceState, ...]


@dataclass(frozen=True)
class CacheStats:
    """What a manager has done since it was made.

    Attributes:
        tokens_looked_up: Tokens that ``claim`` and ``grow`` got, with prefix caching.
        tokens_found: Those of them that were in the cache already.
        pages_evicted: Cached pages that were dropped because their room was needed.
        pages_to_host: Pages that moved to the host.
        pages_from_host: Pages that moved back.
    """

    tokens_looked_up: int
    tokens_found: int
    pages_evicted: int
    pages_to_host: int
    pages_from_host: int


def take_snapshot(
    page_size: int,
    sizes: tuple[int, int],
    sequences: Mapping[Hashable, Sequence],
    unused: Iterable[Page],
) -> CacheSnapshot:
    """The snapshot of a manager with ``sizes`` pages on the device and on the host.

    ``unused`` are the cached pages that no sequence has.
    """
    tokens = dict.fromkeys(unused, page_size)
    states = []
    for request, sequence in sequences.items():
        for i, page in enumerate(sequence.pages):
            filled = min(max(sequence.length - i * page_size, 0), page_size)
            filled = page_size if page.prefix else filled
            tokens[page] = max(tokens.get(page, 0), filled)
        addresses = tuple(page.address for page in sequence.pages)
        is_resident = sequence.is_resident
        states.append(
            SequenceState(
                request, addresses, sequence.length, sequence.pending, is_resident
            )
        )
    pages = [
        PageState(page.address, page.references, page.prefix is not None, tokens[page])
        for page in tokens
    ]
    pages.sort(key=lambda page: (page.address.place is Place.HOST, page.address.index))
    null_page = sizes[0]
    return CacheSnapshot(page_size, *sizes, null_page, tuple(pages), tuple(states))
