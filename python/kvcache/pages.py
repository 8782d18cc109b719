# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pages on a device and in host memory: who has them, where they are, which may go."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .memory import Memory, NumPyMemory
from .prefixes import Prefix
from .snapshot import PageAddress, Place


@dataclass(eq=False)
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


class PageStore:
    """One tensor's pages: on the device, followed by the null page, and on the host."""

    def __init__(
        self,
        memory: Memory,
        shape: tuple[int, ...],
        dtype: np.dtype,
        num_pages: int,
        num_host_pages: int,
    ) -> None:
        self._memory = memory
        self.tensor = memory.allocate((num_pages + 1, *shape), dtype)
        self._host = NumPyMemory().allocate((num_host_pages, *shape), dtype)

    def copy(self, source: PageAddress, target: PageAddress) -> None:
        """Copies a page, to or from the device."""
        if target.place is Place.HOST:
            into = self._host[target.index]
            self._memory.read_page(self.tensor, source.index, into)
        elif source.place is Place.HOST:
            values = self._host[source.index]
            self._memory.write_page(self.tensor, target.index, values)
        else:
            self._memory.copy_page(self.tensor, source.index, target.index)


class PagePool:
    """The pages of a cache: which are free, and which go when room is needed.

    A page without users stays where it is until its room is needed. Those without
    references go first, the least recently used before the others: to the host, or out
    where that has no room. Then those that only swapped-out sequences have go to the
    host. In the tree, a page goes no later than the page that it is behind.
    """

    def __init__(
        self, num_pages: int, num_host_pages: int, stores: Sequence[PageStore]
    ) -> None:
        sizes = {Place.DEVICE: num_pages, Place.HOST: num_host_pages}
        self._stores = stores
        self._free = {place: list(range(size))[::-1] for place, size in sizes.items()}
        # Without references, the least recently used first.
        self._cached = {place: OrderedDict[Page, None]() for place in Place}
        # On the device, without users, but with references.
        self._waiting = OrderedDict[Page, None]()

    # --- Room ---------------------------------------------------------------------

    def count_available(self, kept: Iterable[Page] = ()) -> int:
        """Pages of the device that can be had while those in ``kept`` stay."""
        waiting = len(self._waiting) - sum(page in self._waiting for page in kept)
        room = self.count_available_host(kept)
        return self._count(Place.DEVICE, kept) + min(waiting, room)

    def count_available_host(self, kept: Iterable[Page] = ()) -> int:
        """Pages of the host that can be had while those in ``kept`` stay."""
        return self._count(Place.HOST, kept)

    def _count(self, place: Place, kept: Iterable[Page]) -> int:
        cached = self._cached[place]
        return len(self._free[place]) + len(cached) - sum(p in cached for p in kept)

    def _take_address(self, place: Place) -> PageAddress:
        """A page that is free, or has been made so; the callers know that there is one."""
        while not self._free[place]:
            if place is Place.HOST:
                self.forget(self._find_last() or next(iter(self._cached[place])))
            else:
                self._evict()
        return PageAddress(place, self._free[place].pop())

    def _evict(self) -> None:
        """Frees a page of the device."""
        page = next(iter(self._cached[Place.DEVICE] or self._waiting))
        if page.references or self._free[Place.HOST] or self._find_last():
            self._move(page, self._take_address(Place.HOST))
        else:
            self.forget(page)

    def _find_last(self) -> Page | None:
        """The page to drop from the host: the least recently used with none behind it.

        Swapping out a sequence leaves pages that are behind its own on the device. To
        drop those with it would free room that nothing needs.
        """
        cached = self._cached[Place.HOST]
        return next((p for p in cached if p.prefix and not p.prefix.children), None)

    # --- Pages --------------------------------------------------------------------

    def take(self) -> Page:
        """A page of the device for one resident sequence, with anything in it."""
        return Page(self._take_address(Place.DEVICE), references=1, users=1)

    def refer(self, page: Page, is_resident: bool) -> None:
        """Gives a page to one more sequence; ``bring`` it if that is resident."""
        page.references += 1
        page.users += is_resident
        self._settle(page)

    def release(self, page: Page, was_resident: bool) -> None:
        """Takes a page from a sequence."""
        page.references -= 1
        page.users -= was_resident
        self._settle(page)

    def bring(self, page: Page) -> None:
        """Moves a page with users to the device, if it isn't there."""
        if page.is_on(Place.HOST):
            self._move(page, self._take_address(Place.DEVICE))

    def swap_out(self, page: Page) -> None:
        """Ends the use by one sequence that keeps the page, on the host if it is the last."""
        page.users -= 1
        if not page.users:
            self._move(page, self._take_address(Place.HOST))

    def swap_in(self, page: Page) -> None:
        """Begins the use by a sequence that has the page; ``bring`` it afterwards."""
        page.users += 1
        self._settle(page)

    def copy(self, page: Page) -> Page:
        """A copy of a page, for one resident sequence."""
        # The original must not go to make room for its copy.
        self.refer(page, is_resident=True)
        copied = self.take()
        self._copy(page.address, copied.address)
        self.release(page, was_resident=True)
        return copied

    def merge(self, page: Page, into: Page) -> None:
        """Gives the only user of a page another one with the same contents for it."""
        if into.is_on(Place.HOST):
            page.address, into.address = into.address, page.address
        self.refer(into, is_resident=True)
        self.release(page, was_resident=True)

    def forget(self, page: Page) -> None:
        """Hides a page, and those behind it, from later sequences.

        Those that no sequence has are free then.
        """
        if page.prefix:
            for forgotten in page.prefix.remove():
                self._settle(forgotten)

    def forget_unreferenced(self) -> None:
        """Frees all pages that only later sequences might have used."""
        for pages in self._cached.values():
            while pages:
                self.forget(next(iter(pages)))

    def get_unused(self) -> Iterator[Page]:
        """The pages that no sequence has."""
        for pages in self._cached.values():
            yield from pages

    def _move(self, page: Page, target: PageAddress) -> None:
        self._copy(page.address, target)
        self._unlist(page)
        self._add_free(page.address)
        page.address = target
        self._settle(page)

    def _copy(self, source: PageAddress, target: PageAddress) -> None:
        for store in self._stores:
            store.copy(source, target)

    def _settle(self, page: Page) -> None:
        """Puts a page among those that may go, or frees it, as its counts say."""
        self._unlist(page)
        if page.users:
            return
        if page.references:
            if page.is_on(Place.DEVICE):
                self._waiting[page] = None
        elif page.prefix:
            self._cached[page.address.place][page] = None
        else:
            self._add_free(page.address)

    def _unlist(self, page: Page) -> None:
        for pages in (self._waiting, *self._cached.values()):
            pages.pop(page, None)

    def _add_free(self, address: PageAddress) -> None:
        self._free[address.place].append(address.index)
