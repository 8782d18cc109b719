# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pages on a device, in host memory and on a disk, with users and eviction."""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from ..cache.groups import LayerGroup
from .memory import Copy
from .prefixes import Page, Prefix
from .retention import EvictionOrder, Retain, RetainedPages
from .snapshot import PageAddress, Place
from .storage import PageStore


class FreeIndices:
    """The indices of a place that no page uses.

    Indices that were given back last are taken first, then those never used.

    Attributes:
        size: The number of pages of the place.
        count: The number of unused ones; after an interrupt, at most that.
    """

    def __init__(self, size: int) -> None:
        self._begun = 0  # indices that were ever in use
        self._returned: list[int] = []
        self.size = size
        self.count = size

    def take(self, count: int) -> list[int]:
        """Takes ``count`` indices; the caller checks that there are enough."""
        self.count -= count
        returned = self._returned
        taken = returned[: -count - 1 : -1]
        del returned[len(returned) - len(taken) :]
        if len(taken) < count:
            first = self._begun
            self._begun += count - len(taken)
            taken += range(first, self._begun)
        return taken

    def add(self, index: int) -> None:
        self._returned.append(index)
        self.count += 1

    def reclaim(self, used: set[int]) -> None:
        """Adds the indices that are neither unused nor in ``used``."""
        lost = {*range(self._begun)}.difference(used, self._returned)
        self._returned = [*sorted(lost), *self._returned]
        self.count = self.size - self._begun + len(self._returned)


class PagePool:
    """The pages of a cache: which are free, and which are evicted when room is needed.

    A page without users stays where it is until its room is needed. Pages without
    references are evicted first, by the hints of sequences, and the least recently used
    before the others. They move
    to the host, or are dropped if the host has no room. Then pages that only
    swapped-out sequences use move to the host. From the host, pages without references
    move to the disk in the same order, if there is one. In the tree, a page is evicted
    no later than its ancestors.

    Only ``provide`` and ``move`` need room, or access the memory of a device, which may
    raise anything. They raise before they change a page: contents are copied to unused
    addresses, and only after all copies do pages get these addresses. By then, complete
    evictions may have removed pages without users. All other methods only read, or
    change tables, and do not raise. So a method of a manager that calls one of the two,
    once, and changes nothing before, has its whole effect or none.
    """

    def __init__(
        self,
        num_pages: int,
        num_host_pages: int,
        num_disk_pages: int,
        stores: Sequence[PageStore],
        groups: Sequence[LayerGroup],
        most_retained: int = 0,
    ) -> None:
        counts = num_pages, num_host_pages, num_disk_pages
        sizes = dict(zip(Place, counts, strict=True))
        self._stores = stores
        self._has_host_pages = num_host_pages > 0
        self._is_full = [group.reach.is_full for group in groups]
        self._free = {place: FreeIndices(size) for place, size in sizes.items()}
        self._slower = self._free[Place.HOST], self._free[Place.DISK]
        self.retained = RetainedPages(most_retained)
        # Pages without references, in the order of their eviction.
        self._cached = {place: EvictionOrder(self.retained) for place in Place}
        # Pages on the device, without users, but with references.
        self._waiting = OrderedDict[Page, None]()
        self.evicted = 0  # cached pages that were dropped to make room
        self.moved = dict.fromkeys(Place, 0)  # pages that were brought to a place
        # Pages that were cached, moved or dropped; None if nothing publishes them.
        self.changed: dict[Page, None] | None = None

    # --- Room ---------------------------------------------------------------------

    def count_available(self, kept: Sequence[Page] = ()) -> int:
        """Counts the available pages of the device while those in ``kept`` stay."""
        available = self._count(Place.DEVICE, kept)
        if not self._waiting:
            return available
        waiting = len(self._waiting) - sum(page in self._waiting for page in kept)
        return available + min(waiting, self.count_available_host(kept))

    def count_available_host(self, kept: Sequence[Page] = ()) -> int:
        """Counts the available pages of the host while those in ``kept`` stay."""
        return self._count(Place.HOST, kept)

    def count_unused(self) -> int:
        """Counts the empty pages of the device."""
        return self._free[Place.DEVICE].count

    def list_elsewhere(self, pages: Sequence[Page]) -> list[Page]:
        """Lists the pages that are not on the device."""
        if not pages or all([free.count == free.size for free in self._slower]):
            return []
        return [page for page in pages if page.place is not Place.DEVICE]

    def _count(self, place: Place, kept: Sequence[Page]) -> int:
        cached = self._cached[place]
        count = self._free[place].count + cached.size
        if kept and cached.size:
            count -= sum([page.order is cached for page in kept])
        return count

    def _take_indices(
        self,
        place: Place,
        count: int,
        kept: Iterable[Page],
        contents: Sequence[Page] = (),
    ) -> list[int]:
        """Takes ``count`` unused pages of a place, and copies ``contents`` to the first
        of them.

        The callers check that there is room while the pages in ``kept`` stay.
        """
        free = self._free[place]
        if free.count < count:
            staying = {*kept}
            while free.count < count:
                self._make_room(place, staying)
        taken = free.take(count)
        try:
            for source, target in zip(contents, taken, strict=False):
                self._copy(source.address, PageAddress(place, target))
        except BaseException:
            for index in reversed(taken):
                free.add(index)
            raise
        return taken

    def _make_room(self, place: Place, kept: set[Page]) -> None:
        """Frees at least one page that is not in ``kept``."""
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
        """Returns whether the host has room for a page without dropping its
        descendants."""
        if not self._has_host_pages:
            return False
        if self._free[Place.HOST].count or self._find_last(Place.HOST, kept, page):
            return True
        cached = (p for p in self._cached[Place.HOST] if p not in kept)
        spilled = next(cached, None)
        return spilled is not None and self._has_disk({*kept, page}, spilled)

    def _has_disk(self, kept: set[Page], page: Page) -> bool:
        """Returns whether the disk has room for a page, or can drop one for it."""
        if self._free[Place.DISK].count:
            return True
        return self._find_last(Place.DISK, kept, page) is not None

    def _find_last(
        self, place: Place, kept: set[Page], moving: Page | None = None
    ) -> Page | None:
        """The page to drop from a place: the least recently used one without
        descendants.

        Swapping out a sequence leaves descendants of its pages on the device. Dropping
        these with it would free room that nothing needs. Without a group that reaches
        all tokens, pages do not need their ancestors. ``moving`` stays too.
        """
        for page in self._cached[place]:
            prefix = page.prefix
            if not prefix or page in kept:
                continue
            if not self._is_full[page.group]:
                return page
            with_it = prefix.list_pages()  # dropped together with it
            if not prefix.has_children() and not any(
                each is moving or each in kept for each in with_it
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
        copied: Sequence[Page] = (),
        brought: Sequence[Page] = (),
        kept: Iterable[Page] = (),
    ) -> list[Page]:
        """Brings pages to the device, and makes ``count`` new ones, one sequence each.

        Args:
            count: The number of new pages.
            copied: The sources of the first new pages; the others hold anything.
            brought: Pages that move from the host to the device.
            kept: Pages that must not be evicted, besides those brought and copied.
        """
        if not brought and not copied:
            indices = self._take_indices(Place.DEVICE, count, kept)
            return [Page(Place.DEVICE, index, 1, 1) for index in indices]
        contents = [*brought, *copied]
        count += len(brought)
        indices = self._take_indices(Place.DEVICE, count, [*kept, *contents], contents)
        if brought:
            self._readdress(brought, Place.DEVICE, indices[: len(brought)])
            del indices[: len(brought)]
        return [Page(Place.DEVICE, index, 1, 1) for index in indices]

    def move(
        self, pages: Sequence[Page], place: Place, kept: Iterable[Page] = ()
    ) -> None:
        """Moves pages to ``place``, while those in ``kept`` stay."""
        taken = self._take_indices(place, len(pages), [*kept, *pages], pages)
        self._readdress(pages, place, taken)

    def begin_move(
        self, pages: Sequence[Page], place: Place, kept: Iterable[Page] = ()
    ) -> tuple[list[int], list[Copy]]:
        """Begins to move pages between the device and the host; ``end_move`` follows.

        Takes the indices of unused pages, and begins the copies. Pages keep their old
        addresses until all copies have ended. The caller keeps them from being evicted.
        """
        taken = self._take_indices(place, len(pages), [*kept, *pages])
        # Sorted at both ends, so that a memory can copy neighbours at once.
        ordered = sorted(pages, key=lambda page: page.index)
        targets = sorted(taken)
        chosen = dict(zip(ordered, targets, strict=True))
        copies: list[Copy] = []
        try:
            if pages:
                sources = [page.index for page in ordered]
                for store in self._stores:
                    copies.append(store.begin_copies(place, sources, targets))
        except BaseException:
            _drain(copies)
            for index in reversed(taken):
                self._free[place].add(index)
            raise
        return [chosen[page] for page in pages], copies

    def end_move(
        self,
        pages: Sequence[Page],
        place: Place,
        indices: Sequence[int],
        moves: Callable[[Page], bool],
    ) -> None:
        """Moves the pages that ``moves`` accepts; frees the indices of others."""
        for page, index in zip(pages, indices, strict=True):
            if moves(page):
                self._readdress([page], place, [index])
            else:
                self._free[place].add(index)

    def refer(self, page: Page, is_resident: bool) -> None:
        """Adds a sequence to the references of a page, and to its users if resident."""
        if page.retention and not page.references:
            page.retention.end_clock()
        page.references += 1
        page.users += is_resident
        self._settle(page)

    def refer_all(self, pages: Iterable[Page]) -> None:
        """Calls ``refer`` for pages of a resident sequence."""
        for page in pages:
            if page.users:  # so it is in no list, and its hints have no clock
                page.references += 1
                page.users += 1
            else:
                self.refer(page, is_resident=True)

    def release(self, page: Page, was_resident: bool) -> None:
        """Removes a sequence from the references and users of a page."""
        page.references -= 1
        page.users -= was_resident
        if page.retention and not page.references:
            self.retained.begin_clock(page)
        self._settle(page)

    def retain(
        self, page: Page, hints: Iterable[Retain], end: int, parent: Page | None
    ) -> bool:
        """Calls ``RetainedPages.retain`` for a page in any list."""
        self._unlist(page)
        is_retained = self.retained.retain(page, hints, end, parent)
        if page.retention and not page.references:
            self.retained.begin_clock(page)
        self._settle(page)
        return is_retained

    def begin_use(self, page: Page) -> None:
        """Adds a user to a page of the device, one of its sequences."""
        page.users += 1
        self._settle(page)

    def end_use(self, page: Page) -> None:
        """Removes a user from a page, one of its sequences."""
        page.users -= 1
        self._settle(page)

    def merge(self, page: Page, into: Page) -> None:
        """Refers to a page with the contents of another, whose only user releases it."""
        if into.place is not Place.DEVICE:
            self._unlist(into)
            page.place, page.index, into.place, into.index = into.place, into.index, page.place, page.index
            self._note(into)
        into.is_fetched = False
        self.refer(into, is_resident=True)

    def cache(self, page: Page, prefix: Prefix) -> None:
        """Adds a page to the tree, so that later sequences find it."""
        page.prefix = prefix
        if page.group:
            prefix.set_page(page.group, page)
        else:
            prefix.page = page
        if self.changed is not None:
            self.changed[page] = None

    def forget(self, page: Page) -> int:
        """Withholds a page from later sequences, and its descendants, useless without it.

        Only pages of a group with full reach have such descendants. Pages without
        references are free then. Returns how many.
        """
        prefix = page.prefix
        if not prefix:
            return 0
        if not self._is_full[page.group]:
            prefix.detach(page)
            prefix.prune()
            self._note(page)
            self._settle(page)
            return not page.references
        freed = 0
        for forgotten in prefix.remove():
            if self.changed is not None:
                self.changed[forgotten] = None
            self._settle(forgotten)
            freed += not forgotten.references
        return freed

    def forget_unreferenced(self) -> None:
        """Frees all pages without references."""
        for pages in self._cached.values():
            while page := next(iter(pages), None):
                self.forget(page)

    def list_listed(self) -> set[Page]:
        """Lists the pages that are waiting, or in an order of eviction."""
        return {*self._waiting}.union(*(pages.list_all() for pages in self._cached.values()))

    def correct(self, page: Page, references: int, users: int) -> None:
        """Corrects the counts of a page, and lists it by them."""
        page.references, page.users = references, users
        self._settle(page)

    def reclaim(self, used: Iterable[Page], lost: Iterable[Page]) -> None:
        """Frees the indices that no page uses, and unlists pages that are lost."""
        for page in lost:
            self._unlist(page)
        indices: dict[Place, set[int]] = {place: set() for place in Place}
        for page in used:
            indices[page.place].add(page.index)
        for place, free in self._free.items():
            free.reclaim(indices[place])
            self._cached[place].recount()

    def get_unused(self) -> Iterator[Page]:
        """Yields the pages without references."""
        for pages in self._cached.values():
            yield from pages

    def _readdress(
        self, pages: Sequence[Page], place: Place, indices: Sequence[int]
    ) -> None:
        """Records the new addresses of pages."""
        for page, index in zip(pages, indices, strict=True):
            self.moved[place] += 1
            self._unlist(page)
            before = page.place, page.index
            page.place, page.index = place, index
            self._free[before[0]].add(before[1])  # last: an interrupt frees no page in use
            if page.prefix:
                self._note(page)
            self._settle(page)

    def _note(self, page: Page) -> None:
        """Notes a page whose presence or place changed."""
        if self.changed is not None:
            self.changed[page] = None

    def take_changed(self) -> dict[Page, None]:
        """Takes the pages noted since the last call, which are noted from then on."""
        changed, self.changed = self.changed or {}, {}
        return changed

    def _settle(self, page: Page) -> None:
        """Lists a page as evictable, or frees it, by its counts."""
        self._unlist(page)
        if page.users:
            return
        if page.references:
            if page.place is Place.DEVICE:
                self._waiting[page] = None
        elif page.prefix:
            self._cached[page.place].add(page)
        else:
            if page.retention:
                self.retained.drop(page)
            self._free[page.place].add(page.index)

    def _unlist(self, page: Page) -> None:
        if page.order:
            page.order.discard(page)
        else:
            self._waiting.pop(page, None)



def _drain(copies: Sequence[Copy]) -> None:
    """Waits until copies have ended, whether they fail or not."""
    for copy in copies:
        with contextlib.suppress(Exception):
            while not copy.poll():
                time.sleep(1e-5)
