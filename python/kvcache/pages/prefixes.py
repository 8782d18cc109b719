# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which pages hold which tokens: a tree with a page of tokens at each node."""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from .snapshot import PageAddress, Place
from .tokens import count_common, encode


@dataclass(eq=False, slots=True)
class Page:
    """A page's worth of a cache, which moves between the device and the host.

    Attributes:
        address: Where it is.
        references: Sequences that have it. While there is one, it is never dropped.
        users: Those of them that are resident. While there is one, it is on the device.
        prefix: Its node in the tree of prefixes, where later sequences can find it.

    Who has a page has all before it, so what is behind a page in the tree has no more
    references, and no more users, than the page itself.
    """

    address: PageAddress
    references: int = 0
    users: int = 0
    prefix: Prefix | None = None

    def is_on(self, place: Place) -> bool:
        return self.address.place is place


@dataclass(eq=False, slots=True, weakref_slot=True)
class Prefix:
    """The tokens of a full page, encoded, behind those of its ancestors.

    ``page`` holds them; only a root, which stands for no tokens, has none.
    """

    tokens: bytes = b""
    parent: Prefix | None = None
    page: Page | None = None
    children: dict[bytes, Prefix] = field(default_factory=dict)
    _order: list[bytes] = field(default_factory=list)  # the keys of children, sorted

    def add(self, tokens: bytes, page: Page) -> None:
        """Makes ``page`` findable as the one that comes after this prefix."""
        page.prefix = self.children[tokens] = Prefix(tokens, self, page)
        insort(self._order, tokens)

    def remove(self) -> Iterator[Page]:
        """Takes this prefix and all behind it out of the tree; gives their pages."""
        if self.parent:
            del self.parent.children[self.tokens]
            del self.parent._order[bisect_left(self.parent._order, self.tokens)]
        pending = [self]
        while pending:
            prefix = pending.pop()
            pending.extend(prefix.children.values())
            if prefix.page:
                prefix.page.prefix = None
                yield prefix.page

    def find_similar(self, tokens: bytes) -> tuple[Page | None, int]:
        """The page after this prefix that begins most like ``tokens``, and how many.

        In the order of tokens, that is one of the two that ``tokens`` would be between.
        """
        best, common = None, 0
        i = bisect_left(self._order, tokens)
        for key in self._order[max(i - 1, 0) : i + 1]:
            if (count := count_common(key, tokens)) > common:
                best, common = self.children[key].page, count
        return best, common


class Match(NamedTuple):
    """What of some tokens is in pages already.

    Attributes:
        pages: Those that hold a whole page of them, in order.
        partial: The page that begins with most of the tokens after those, if any.
        common: How many it begins with.
    """

    pages: list[Page]
    partial: Page | None = None
    common: int = 0

    @property
    def kept(self) -> list[Page]:
        """The pages that must stay for the match to be used."""
        return [*self.pages, self.partial] if self.partial else self.pages


def find(prefix: Prefix, tokens: array[int], page_size: int) -> Match:
    """Finds the pages with ``tokens`` behind ``prefix``.

    The tokens of a page are looked up by their hash, and compared: equal hashes of other
    tokens find nothing.
    """
    pages = []
    encoded = encode(tokens)
    size = 8 * page_size
    start = 0
    while start + size <= len(encoded):
        child = prefix.children.get(encoded[start : start + size])
        if not (child and child.page):
            break
        pages.append(child.page)
        prefix, start = child, start + size
    return Match(pages, *prefix.find_similar(encoded[start : start + size]))
