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

_ANY = 1 << 62  # the tokens that a state has room for


class Place(Enum):
    """Where a page is."""

    DEVICE = "device"
    HOST = "host"
    DISK = "disk"

    __hash__ = object.__hash__  # that of Enum is a function in Python


@dataclass(frozen=True, slots=True)
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
        tokens: Tokens in it, of all that share it the most; 0 in a cached state.
        group: The number of the group of layers that it belongs to.
    """

    address: PageAddress
    references: int
    is_cached: bool
    tokens: int
    group: int = 0


@dataclass(frozen=True)
class SequenceState:
    """A sequence that has been claimed.

    Attributes:
        request: Its name.
        pages: Its pages in the order of its tokens, of one group after another.
        length: Tokens in the cache.
        pending: Tokens after those, which have room and come with the next step.
        is_resident: Whether it is not swapped out: all its pages are on the device then.
        groups: Its pages in each group of layers; None for those that no token reaches
            any more. Empty where there is one group with full reach: see ``pages``.
    """

    request: Hashable
    pages: tuple[PageAddress, ...]
    length: int
    pending: int
    is_resident: bool
    groups: tuple[tuple[PageAddress | None, ...], ...] = ()


@dataclass(frozen=True)
class CacheSnapshot:
    """The pages and the sequences of a manager.

    Attributes:
        page_size: Tokens in a page, of the first group of layers.
        num_pages: Pages on the device, without the null page.
        num_host_pages: Pages of the swap space.
        null_page: What unused entries of the lookup table name.
        pages: Those that are not free, the device's first, by index.
        sequences: In the order in which they were claimed.
        page_sizes: Tokens in a page of each group; any number, 2^62, in a state.
        num_disk_pages: Pages of the file behind the swap space.
    """

    page_size: int
    num_pages: int
    num_host_pages: int
    null_page: int
    pages: tuple[PageState, ...]
    sequences: tuple[SequenceState, ...]
    page_sizes: tuple[int, ...] = ()
    num_disk_pages: int = 0


@dataclass(frozen=True)
class CacheStats:
    """What a manager has done since it was made.

    Attributes:
        tokens_looked_up: Tokens that ``claim`` and ``grow`` got, with prefix caching.
        tokens_found: Those of them that were in the cache already.
        pages_evicted: Cached pages that were dropped because their room was needed.
        pages_to_host: Pages that moved to the host.
        pages_from_host: Pages that moved back, also from the disk.
        pages_to_disk: Pages that moved from the host to the disk.
    """

    tokens_looked_up: int
    tokens_found: int
    pages_evicted: int
    pages_to_host: int
    pages_from_host: int
    pages_to_disk: int = 0


def take_snapshot(
    page_sizes: tuple[int, ...],
    sizes: tuple[int, int, int],
    sequences: Mapping[Hashable, Sequence],
    unused: Iterable[Page],
) -> CacheSnapshot:
    """The snapshot of a manager with ``sizes`` pages on the device, the host and the disk.

    ``unused`` are the cached pages that no sequence has.
    """
    full = [size if size < _ANY else 0 for size in page_sizes]
    tokens = {page: full[page.group] for page in unused}
    states = []
    for request, sequence in sequences.items():
        length = sequence.length
        for pages, size in zip(sequence.pages, page_sizes, strict=True):
            for i, page in enumerate(pages):
                if page:
                    filled = min(max(length - i * size, 0), size)
                    filled = max(filled, full[page.group] if page.prefix else 0)
                    tokens[page] = max(tokens.get(page, 0), filled)
        groups = tuple(
            tuple(page.address if page else None for page in pages)
            for pages in sequence.pages
        )
        states.append(
            SequenceState(
                request,
                tuple(address for group in groups for address in group if address),
                length,
                sequence.pending,
                sequence.is_resident,
                groups if len(groups) > 1 or sequence.table.bounded else (),
            )
        )
    page_states = [
        PageState(
            page.address,
            page.references,
            page.prefix is not None,
            tokens[page],
            page.group,
        )
        for page in tokens
    ]
    places = list(Place)
    page_states.sort(key=lambda p: (places.index(p.address.place), p.address.index))
    num_pages, num_host_pages, num_disk_pages = sizes
    return CacheSnapshot(
        page_sizes[0],
        num_pages,
        num_host_pages,
        num_pages,  # the null page
        tuple(page_states),
        tuple(states),
        page_sizes,
        num_disk_pages,
    )
