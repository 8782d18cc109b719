# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cached pages in the order of their eviction, and hints to keep some longer."""

from __future__ import annotations

import heapq
import math
import time
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import chain, count
from operator import attrgetter
from typing import NamedTuple

from ..checks import check_instance, check_integer, check_positive, check_positive_real
from .prefixes import Page

_MOST = 100  # the highest priority
_FEW = 64  # entries out of date that a queue may have
_get_number = attrgetter("number")


class Retain(NamedTuple):
    """A hint to keep the cached pages of a sequence's first tokens longer.

    Attributes:
        stop: The number of these tokens; only full pages are kept.
        priority: 1 to 100. Pages with lower priorities are evicted first, those without
            a hint before all.
        seconds: The time that they are kept after their last use.
    """

    stop: int
    priority: int
    seconds: float


def parse_retain(retain: Iterable[Retain]) -> tuple[Retain, ...]:
    """Checks the hints of a sequence."""
    if isinstance(retain, Retain):
        raise TypeError(f"expects 'retain' to be a sequence of Retain, got one: {retain!r}")
    try:
        hints = tuple(retain)
    except TypeError:
        raise TypeError(f"expects 'retain' to be a sequence of Retain, got {retain!r}") from None
    for hint in hints:
        check_instance(Retain, retain=hint)
        check_positive(stop=hint.stop)
        check_integer(priority=hint.priority)
        check_positive_real(seconds=hint.seconds)
        if not 1 <= hint.priority <= _MOST:
            raise ValueError(f"expects 'priority' to be 1 to {_MOST}, got {hint.priority}")
    return hints


class Retention:
    """The hints of a page. Their clock runs while no sequence uses the page.

    Attributes:
        priority: The priority by which the page is listed; 0 without hints.
        order: The number of the page among those with hints, by their first ones.
        checked: The time of the page's next entry in an ``ExpiryQueue``.
    """

    __slots__ = ("_seconds", "_since", "checked", "order", "priority")

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}  # by priority
        self._since = self.checked = math.inf
        self.priority = self.order = 0

    def add(self, hint: Retain) -> None:
        before = self._seconds.get(hint.priority, 0.0)
        self._seconds[hint.priority] = max(float(hint.seconds), before)

    def covers(self, hints: Iterable[Retain]) -> bool:
        """Returns whether the page has all these hints."""
        return all(self._seconds.get(p, 0.0) >= float(each) for _, p, each in hints)

    def clear(self) -> None:
        """Removes all hints."""
        self._seconds = {}

    def begin_clock(self, now: float) -> None:
        """Begins the time after the last use."""
        self._since = now

    def end_clock(self) -> None:
        """Ends this time by another use, which renews hints that have not expired."""
        now = time.monotonic()
        left = {p: s for p, s in self._seconds.items() if self._since + s > now}
        self._seconds, self._since = left, math.inf

    def find_priority(self, now: float) -> int:
        """The highest priority that has not expired, or 0."""
        # Another thread may read it, so each attribute is read once.
        since, seconds = self._since, self._seconds
        return max((p for p, each in seconds.items() if since + each > now), default=0)

    def find_end(self, now: float) -> float:
        """The first time after ``now`` at which a hint expires, if the clock runs."""
        ends = (self._since + seconds for seconds in self._seconds.values())
        return min((end for end in ends if end > now), default=math.inf)


class ExpiryQueue:
    """Pages by the time at which the first of their hints may expire.

    Entries are checked only when they are due, so a use of a page leaves its entry.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, Page]] = []  # a heap
        self._numbers = count()
        self._limit = _FEW

    @property
    def first(self) -> float:
        """The time before which no hint expires; any thread may ask."""
        return next(iter(self._entries), (math.inf,))[0]

    def add(self, page: Page, end: float) -> None:
        """Adds a page that may lose a hint at ``end``, unless an entry is due before."""
        retention = page.retention
        assert retention
        if end >= retention.checked:
            return
        retention.checked = end
        heapq.heappush(self._entries, (end, next(self._numbers), page))
        if len(self._entries) > self._limit:
            self._entries = [entry for entry in self._entries if _is_next(entry)]
            heapq.heapify(self._entries)
            self._limit = 2 * len(self._entries) + _FEW

    def take(self, now: float) -> Iterator[Page]:
        """Removes the pages that are due, and yields them."""
        while self.first <= now:
            entry = heapq.heappop(self._entries)
            page = entry[-1]
            if _is_next(entry):
                assert page.retention
                page.retention.checked = math.inf
                yield page


def _is_next(entry: tuple[float, int, Page]) -> bool:
    """Returns whether an entry is the next one of its page, and not out of date."""
    end, _, page = entry
    return page.retention is not None and page.retention.checked == end


class EvictionOrder:
    """The unused cached pages of a place: by priority, then the least recently used.

    A page whose hints have expired is evicted as if it never had any. Sequences give
    hints only to prefixes, and use a page with all before it. So no page of a group with
    full reach is after its parent in this order.

    Args:
        retained: The pages with hints.

    Attributes:
        size: The number of pages; after an interrupt, at most that.
    """

    def __init__(self, retained: RetainedPages) -> None:
        self._retained = retained
        self._plain = OrderedDict[Page, None]()
        # Pages that have or had hints, by priority, in the order of their additions.
        self._hinted: dict[int, list[Page]] = {}
        self._numbers = count()
        self.size = 0

    def recount(self) -> None:
        self.size = len(self.list_all())

    def list_all(self) -> set[Page]:
        """Lists the pages in any order."""
        return {*self._plain}.union(*self._hinted.values())

    def __contains__(self, page: Page) -> bool:
        return page.order is self

    def __iter__(self) -> Iterator[Page]:
        if not self._hinted:
            return iter(self._plain)
        self._retained.drop_expired(time.monotonic())
        hinted = [self._hinted[priority] for priority in sorted(self._hinted)]
        if 0 not in self._hinted:
            return chain(self._plain, *hinted)
        expired, *others = hinted
        return chain(heapq.merge(self._plain, expired, key=_get_number), *others)

    def add(self, page: Page) -> None:
        """Adds a page as the most recently used."""
        page.number = next(self._numbers)
        page.order = self
        if page.retention:
            self._insert(page, page.retention)
        else:
            self._plain[page] = None
        self.size += 1

    def discard(self, page: Page) -> None:
        """Removes a page of this order."""
        self.size -= 1
        if page.retention:
            self._take(page, page.retention)
        else:
            self._plain.pop(page, None)  # an interrupt may have come before its addition
        page.order = None

    def relist(self, page: Page, priority: int) -> None:
        """Lists a page by another priority; its last use stays."""
        assert page.retention
        self._take(page, page.retention)
        page.retention.priority = priority
        self._insert(page, page.retention)

    def _insert(self, page: Page, retention: Retention) -> None:
        insort(self._hinted.setdefault(retention.priority, []), page, key=_get_number)

    def _take(self, page: Page, retention: Retention) -> None:
        pages = self._hinted.get(retention.priority, [])
        i = bisect_left(pages, page.number, key=_get_number)
        if pages[i : i + 1] == [page]:  # as above
            del pages[i]
        if not pages:
            self._hinted.pop(retention.priority, None)


class RetainedPages:
    """The pages with hints, at most a number of them.

    Where there is no room, a page with a higher priority takes that of a lower one: of
    the lowest, the page that was hinted last. So a page of a group with full reach has
    hints as long as any of its descendants has.

    Args:
        most: The most pages that have hints at a time.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._pages: set[Page] = set()
        self._listed: dict[int, list[Page]] = {}  # by priority, in the order of first hints
        self._numbers = count()
        self._queue = ExpiryQueue()

    def __len__(self) -> int:
        """The number of pages whose hints have not expired; any thread may ask."""
        now = time.monotonic()
        if now < self._queue.first:
            return len(self._pages)
        return sum(_has_hint(page, now) for page in list(self._pages))

    def retain(
        self, page: Page, hints: Iterable[Retain], end: int, parent: Page | None
    ) -> bool:
        """Gives a page that no ``EvictionOrder`` lists the hints that cover it.

        Returns False if there is no room, or its parent has lost one of these hints.

        Args:
            page: The page.
            hints: The hints of a sequence.
            end: The number of tokens up to the last one of the page.
            parent: The page before it in a group with full reach, if there is one.
        """
        chosen = [hint for hint in hints if end <= hint.stop]
        if not chosen:
            return True
        if parent and not (parent.retention and parent.retention.covers(chosen)):
            return False
        priority = max(hint.priority for hint in chosen)
        self.drop_expired(time.monotonic())
        is_new = page not in self._pages
        if is_new and not self._has_room(priority):
            return False
        retention = page.retention = page.retention or Retention()
        for hint in chosen:
            retention.add(hint)
        if is_new:
            retention.order = next(self._numbers)
        self._list(page, max(priority, retention.priority))
        return True

    def begin_clock(self, page: Page) -> None:
        """Begins the clock of a page's hints, after its last use."""
        assert page.retention
        now = time.monotonic()
        page.retention.begin_clock(now)
        self._queue.add(page, page.retention.find_end(now))

    def drop(self, page: Page) -> None:
        """Removes the hints of a page that no ``EvictionOrder`` lists."""
        self._list(page, 0)
        page.retention = None

    def drop_expired(self, now: float) -> None:
        """Lists the pages that are due by the priorities that they still have."""
        for page in self._queue.take(now):
            assert page.retention
            self._list(page, page.retention.find_priority(now))
            self._queue.add(page, page.retention.find_end(now))

    def _has_room(self, priority: int) -> bool:
        """Returns whether one more page has room; takes it from a lower priority."""
        if len(self._pages) < self._most:
            return True
        lowest = min(self._listed, default=priority)
        if lowest >= priority:
            return False
        page = self._listed[lowest][-1]
        assert page.retention
        page.retention.clear()
        self._list(page, 0)
        return True

    def _list(self, page: Page, priority: int) -> None:
        """Lists a page by a priority, or as one without hints by 0."""
        retention = page.retention
        assert retention
        before = retention.priority
        if priority == before:
            return
        if before:
            pages = self._listed[before]
            del pages[bisect_left(pages, retention.order, key=_get_order)]
            if not pages:
                del self._listed[before]
        if priority:
            insort(self._listed.setdefault(priority, []), page, key=_get_order)
            self._pages.add(page)
        else:
            self._pages.discard(page)
        if page.order:
            page.order.relist(page, priority)
        else:
            retention.priority = priority


_get_order = attrgetter("retention.order")


def _has_hint(page: Page, now: float) -> bool:
    retention = page.retention
    return bool(retention and retention.find_priority(now))
