# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Snapshots of a page manager's state, for pictures and tests."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .prefixes import Page
    from .tables import CachedSequence

_ANY = 1 << 62  # the number of tokens that a state can hold


class Place(Enum):
    """The memory that a page is in: ``DEVICE``, ``HOST`` or ``DISK``."""

    DEVICE = "device"
    HOST = "host"
    DISK = "disk"

    __hash__ = object.__hash__  # Enum's is a Python function, and slow


class Source(Enum):
    """The place from which the tokens of a sequence came, or the store."""

    DEVICE = "device"
    HOST = "host"
    DISK = "disk"
    STORE = "store"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class PageAddress:
    """A page of a place, by its number from 0 on."""

    place: Place
    index: int


@dataclass(frozen=True)
class PageState:
    """A page that holds something; all others are free.

    Attributes:
        address: Its address; the lookup table has the index of a page of the device.
        references: The number of sequences that use it.
        is_cached: Whether later sequences can find it by its tokens.
        tokens: The number of tokens in it, the largest over its sequences; 0 in a
            cached state.
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
        pages: Its pages in the order of its tokens, one group after another.
        length: Tokens in the cache.
        pending: Tokens after these, which have room and enter the cache with the next
            step.
        is_resident: Whether all its pages are on the device: it is not swapped out.
        groups: Its pages in each group of layers; None for pages that no token reaches
            any more. Empty for one group with full reach: see ``pages``.
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
        null_page: The page that unused entries of the lookup table name.
        pages: The pages in use or cached, the device's first, by index.
        sequences: The sequences in the order in which they were claimed.
        page_sizes: Tokens per page of each group; 2^62 for states, which hold any
            number.
        num_disk_pages: Pages of the file that extends the swap space.
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
    """The counts of a manager since it was made, and its current state.

    Attributes:
        tokens_looked_up: Tokens passed to ``claim`` and ``grow``, with prefix caching.
        tokens_found: The number of these that were in the cache already.
        pages_evicted: Cached pages that were dropped because their room was needed.
        pages_to_host: Pages that moved to the host.
        pages_from_host: Pages that moved back, also from the disk.
        pages_to_disk: Pages that moved from the host to the disk.
        tokens_found_on_host: The number of found tokens that were on the host.
        tokens_found_on_disk: The number of found tokens that were on the disk.
        pages_available: Pages of the device that are free now, or cached and unused.
        pages_retained: Pages that have hints now.
        sequences: The number of sequences now.
        tokens_looked_up_in_store: Tokens that ``claim`` looked up in the store.
        tokens_found_in_store: The number of found tokens that came from the store, and
            that no sequence had before.
        pages_from_store: Pages that came from the store.
        pages_to_store: Pages that were written to the store.
    """

    tokens_looked_up: int
    tokens_found: int
    pages_evicted: int
    pages_to_host: int
    pages_from_host: int
    pages_to_disk: int = 0
    tokens_found_on_host: int = 0
    tokens_found_on_disk: int = 0
    pages_available: int = 0
    pages_retained: int = 0
    sequences: int = 0
    tokens_looked_up_in_store: int = 0
    tokens_found_in_store: int = 0
    pages_from_store: int = 0
    pages_to_store: int = 0


def take_snapshot(
    page_sizes: tuple[int, ...],
    sizes: tuple[int, int, int],
    sequences: Mapping[Hashable, CachedSequence],
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
