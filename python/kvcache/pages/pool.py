# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pages on a device, in host memory and on a disk: who has them, where they are, which may go."""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter

from ..cache.groups import LayerGroup
from .memory import Copy
from .prefixes import Page
from .snapshot import PageAddress, Place
from .storage import PageStore


class FreeAddresses:
    """The addresses of a place that no page has.

    Those that were given back last are taken first, then those that no page has had.
    """

    def __init__(self, place: Place, size: int) -> None:
        self._place = place
        self._size = size
        self._begun = 0  # addresses that a page has had
        self._returned: list[PageAddress] = []

    def __len__(self) -> int:
        return len(self._returned) + self._size - self._begun

    def take(self, count: int) -> list[PageAddress]:
        """Takes so many addresses, of which there are enough."""
        returned = self._returned
        taken = returned[: -count - 1 : -1]
        del returned[len(returned) - len(taken) :]
        if len(taken) < count:
            first = self._begun
            self._begun += count - len(taken)
            taken += [PageAddress(self._place, i) for i in range(first, self._begun)]
        return taken

    def add(self, address: PageAddress) -> None:
        self._returned.append(address)


class PagePool:
    """The pages of a cache: which are free, and which go when room is needed.

    A page without users stays where it is until its room is needed. Those without
    references go first, the least recently used before the others: to the host, or out
    where that has no room. Then those that only swapped-out sequences have go to the
    host. From the host, pages without references go to the disk in the same order, if
    there is one. In the tree, a page goes no later than the page that it is behind.

    ``provide`` and ``move`` are all that needs room, or the memory of a device, which may
    raise anything. They raise before they have done any of what they are for: contents
    are copied to addresses that no page has, and only when all of them are there, pages
    get these addresses. What may have gone by then are pages without users, by evictions
    that were complete. Everything else only looks, or changes tables, and does not raise.
    So a method of a manager that calls one of the two, once, and changes nothing before,
    is done as a whole or not at all.
    """

    def __init__(
        self,
        num_pages: int,
        num_host_pages: int,
        num_disk_pages: int,
        stores: Sequence[PageStore],
        groups: Sequence[LayerGroup],
    ) -> None:
        counts = num_pages, num_host_pages, num_disk_pages
        sizes = dict(zip(Place, counts, strict=True))
        self._stores = stores
        self._is_full = [group.reach.is_full for group in groups]
        self._free = {place: FreeAddresses(place, size) for place, size in sizes.items()}
        # Without references, the least recently used first.
        self._cached = {place: OrderedDict[Page, None]() for place in Place}
        # On the device, without users, but with references.
        self._waiting = OrderedDict[Page, None]()
        self.evicted = 0  # cached pages that were dropped to make room
        self.moved = dict.fromkeys(Place, 0)  # pages that were brought to a place

    # --- Room ---------------------------------------------------------------------

    def count_available(self, kept: Iterable[Page] = ()) -> int:
        """Pages of the device that can be had while those in ``kept`` stay."""
        available = self._count(Place.DEVICE, kept)
        if not self._waiting:
            return available
        waiting = len(self._waiting) - sum(page in self._waiting for page in kept)
        return available + min(waiting, self.count_available_host(kept))

    def count_available_host(self, kept: Iterable[Page] = ()) -> int:
        """Pages of the host that can be had while those in ``kept`` stay."""
        return self._count(Place.HOST, kept)

    def count_unused(self) -> int:
        """Pages of the device with nothing in them."""
        return len(self._free[Place.DEVICE])

    def _count(self, place: Place, kept: Iterable[Page]) -> int:
        cached = self._cached[place]
        count = len(self._free[place]) + len(cached)
        return count - sum(p in cached for p in kept) if cached else count

    def _take_addresses(
        self,
        place: Place,
        count: int,
        kept: set[Page],
        contents: Sequence[PageAddress] = (),
    ) -> list[PageAddress]:
        """Addresses that no page has, the first ones with what is at those of ``contents``.

        The callers know that there is room while the pages in ``kept`` stay.
        """
        free = self._free[place]
        while len(free) < count:
            self._make_room(place, kept)
        taken = free.take(count)
        try:
            for source, target in zip(contents, taken, strict=False):
                self._copy(source, target)
        except BaseException:
            for address in reversed(taken):
                self._add_free(address)
            raise
        return taken

    def _make_room(self, place: Place, kept: set[Page]) -> None:
        """Frees a page, or more; none that is in ``kept``."""
        if place is Place.DISK:
            last = self._find_last(place, kept)
            assert last
            self.evicted += self.forget(last)
            return
        if place is Place.HOST:
            page = next(page for page in self._cached[place] if page not in kept)
            if self._has_disk(kept, page):
                self.move([page], Place.DISK, kept)
            else:
                self.evicted += self.forget(self._find_last(place, kept) or page)
            return
        candidates = chain(self._cached[place], self._waiting)
        page = next(page for page in candidates if page not in kept)
        if page.references or self._has_host(kept, page):
            self.move([page], Place.HOST, kept)
        else:
            self.evicted += self.forget(page)

    def _has_host(self, kept: set[Page], page: Page) -> bool:
        """Whether the host has room for a page without losing one that it is before."""
        if self._free[Place.HOST] or self._find_last(Place.HOST, kept, page):
            return True
        cached = (p for p in self._cached[Place.HOST] if p not in kept)
        spilled = next(cached, None)
        return spilled is not None and self._has_disk({*kept, page}, spilled)

    def _has_disk(self, kept: set[Page], page: Page) -> bool:
        """Whether the disk has room for a page, or can drop one for it."""
        if self._free[Place.DISK]:
            return True
        return self._find_last(Place.DISK, kept, page) is not None

    def _find_last(
        self, place: Place, kept: set[Page], moving: Page | None = None
    ) -> Page | None:
        """The page to drop from a place: the least recently used with none behind it.

        Swapping out a sequence leaves pages that are behind its own on the device. To
        drop those with it would free room that nothing needs. Without a group that
        reaches all tokens, pages do not need those before them. ``moving`` stays too.
        """
        for page in self._cached[place]:
            prefix = page.prefix
            if not prefix or page in kept:
                continue
            if not self._is_full[page.group]:
                return page
            with_it = prefix.pages  # what ends with it goes with it
            if not prefix.children and not any(
                each is moving or each in kept for each in with_it if each
            ):
                return page
        return None

    def _copy(self, source: PageAddress, target: PageAddress) -> None:
        for store in self._stores:
            store.copy(source, target)

    # --- Pages --------------------------------------------------------------------

    def provide(
        self,
        count: int,
        copied: Iterable[Page] = (),
        brought: Sequence[Page] = (),
        kept: Iterable[Page] = (),
    ) -> list[Page]:
        """Brings pages to the device, and makes new ones, each for one resident sequence.

        Args:
            count: How many new ones.
            copied: What the first ones are copies of; the others hold anything.
            brought: Pages that are on the host.
            kept: Pages that must not go to make room; those brought and copied too.
        """
        contents = [*map(_get_address, (*brought, *copied))]
        kept = {*kept, *brought, *copied}
        count += len(brought)
        addresses = self._take_addresses(Place.DEVICE, count, kept, contents)
        if brought:
            self._readdress(brought, addresses[: len(brought)])
            del addresses[: len(brought)]
        return [Page(address, 1, 1) for address in addresses]

    def move(
        self, pages: Sequence[Page], place: Place, kept: Iterable[Page] = ()
    ) -> None:
        """Moves pages from another place to this one, while those in ``kept`` stay."""
        sources = [page.address for page in pages]
        kept = {*kept, *pages}
        taken = self._take_addresses(place, len(pages), kept, sources)
        self._readdress(pages, taken)

    def begin_move(
        self, pages: Sequence[Page], place: Place, kept: Iterable[Page] = ()
    ) -> tuple[list[PageAddress], list[Copy]]:
        """Takes addresses for pages that move between the device and the host, and begins
        to copy; ``end_move`` comes when all copies have ended.

        Pages stay where they are until then. The caller keeps them from going.
        """
        taken = self._take_addresses(place, len(pages), {*kept, *pages})
        # In order at both ends, so that a memory may copy neighbours as one.
        ordered = sorted(pages, key=lambda page: page.address.index)
        free = sorted(taken, key=lambda address: address.index)
        places = dict(zip(ordered, free, strict=True))
        addresses = [places[page] for page in pages]
        copies: list[Copy] = []
        try:
            if pages:
                sources = [page.address.index for page in pages]
                targets = [address.index for address in addresses]
                for store in self._stores:
                    copies.append(store.begin_copies(place, sources, targets))
        except BaseException:
            _drain(copies)
            for address in reversed(taken):
                self._add_free(address)
            raise
        return addresses, copies

    def end_move(
        self,
        pages: Sequence[Page],
        addresses: Sequence[PageAddress],
        moves: Callable[[Page], bool],
    ) -> None:
        """Moves those pages for which ``moves`` says so, and frees the addresses of others."""
        for page, address in zip(pages, addresses, strict=True):
            if moves(page):
                self._readdress([page], [address])
            else:
                self._add_free(address)

    def refer(self, page: Page, is_resident: bool) -> None:
        """Gives a page to one more sequence, on the device if that is resident."""
        page.references += 1
        page.users += is_resident
        self._settle(page)

    def release(self, page: Page, was_resident: bool) -> None:
        """Takes a page from a sequence."""
        page.references -= 1
        page.users -= was_resident
        self._settle(page)

    def begin_use(self, page: Page) -> None:
        """Makes one of the sequences that have a page, on the device, resident."""
        page.users += 1
        self._settle(page)

    def end_use(self, page: Page) -> None:
        """Makes one of the sequences that have a page not resident."""
        page.users -= 1
        self._settle(page)

    def merge(self, page: Page, into: Page) -> None:
        """Gives the only user of a page another one with the same contents for it."""
        if not into.is_on(Place.DEVICE):
            self._unlist(into)
            page.address, into.address = into.address, page.address
        self.refer(into, is_resident=True)
        self.release(page, was_resident=True)

    def forget(self, page: Page) -> int:
        """Hides a page from later sequences, with those that are of no use without it.

        These are all behind a page of a group with full reach. Those that no sequence
        has are free then. Returns how many.
        """
        prefix = page.prefix
        if not prefix:
            return 0
        if not self._is_full[page.group]:
            prefix.detach(page)
            prefix.prune()
            self._settle(page)
            return not page.references
        freed = 0
        for forgotten in prefix.remove():
            self._settle(forgotten)
            freed += not forgotten.references
        return freed

    def forget_unreferenced(self) -> None:
        """Frees all pages that only later sequences might have used."""
        for pages in self._cached.values():
            while pages:
                self.forget(next(iter(pages)))

    def get_unused(self) -> Iterator[Page]:
        """The pages that no sequence has."""
        for pages in self._cached.values():
            yield from pages

    def _readdress(
        self, pages: Sequence[Page], addresses: Sequence[PageAddress]
    ) -> None:
        """Says that the contents of pages are at other addresses now."""
        for page, address in zip(pages, addresses, strict=True):
            self.moved[address.place] += 1
            self._unlist(page)
            self._add_free(page.address)
            page.address = address
            self._settle(page)

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
        self._waiting.pop(page, None)
        self._cached[page.address.place].pop(page, None)

    def _add_free(self, address: PageAddress) -> None:
        self._free[address.place].add(address)


_get_address = attrgetter("address")


def _drain(copies: Sequence[Copy]) -> None:
    """Waits until copies write no more, whether they fail or not."""
    for copy in copies:
        with contextlib.suppress(Exception):
            while not copy.poll():
                time.sleep(1e-5)
