# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a page manager holds at one moment, for people, pictures and tests."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum


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
