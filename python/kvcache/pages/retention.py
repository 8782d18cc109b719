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
        priority: The priority by which an ``EvictionOrder`` lists the page.
        order: The number of the page among those with hints, by their first ones.
    """

    __slots__ = ("_seconds", "_since", "order", "priority")

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}  # by priority
        self._since = math.inf
        self.priority = self.order = 0

    def add(self, hint: Retain) -> None:
        before = self._seconds.get(hint.priority, 0.0)
        self._seconds[hint.priority] = max(float(hint.seconds), before)

    def clear(self) -> None:
        """Removes all hints."""
        self._seconds = {}

    def begin_clock(self) -> None:
        """Begins the time after the last use."""
        self._since = time.monotonic()

    def end_clock(self) -> None:
        """Ends this time by another use, which renews hints that have not expired."""
        now = time.monotonic()
        left = {p: s for p, s in self._seconds.items() if self._since + s > now}
        self._seconds, self._since = left, math.inf

    def find_current(self, now: float) -> tuple[int, float]:
        """The highest priority that has not expired, or 0, and when it expires."""
        # Another thread may read it, so each attribute is read once.
        since, seconds = self._since, self._seconds
        for priority in sorted(seconds, reverse=True):
            if since + seconds[priority] > now:
                return priority, since + seconds[priority]
        return 0, math.inf

    def find_end(self, now: float) -> float:
        """The first time after ``now`` at which a hint may expire."""
        ends = (min(self._since, now) + seconds for seconds in self._seconds.values())
        return min((end for end in ends if end > now), default=math.inf)


class EvictionOrder:
    """The unused cached pages of a place: by priority, then the least recently used.

    A page whose hints have expired is evicted as if it never had any. Sequences give
    hints only to prefixes, and use a page with all before it. So no page is after its
    parent in this order.

    Attributes:
        size: The number of pages.
    """

    def __init__(self) -> None:
        self._plain = OrderedDict[Page, None]()
        # Pages that have or had hints, by priority, in the order of their additions.
        self._hinted: dict[int, list[Page]] = {}
        self._numbers = count()
        self._deadline = math.inf  # before it, no hint expires
        self.size = 0

    def __contains__(self, page: Page) -> bool:
        return page.order is self

    def __iter__(self) -> Iterator[Page]:
        if not self._hinted:
            return iter(self._plain)
        if self._deadline <= (now := time.monotonic()):
            self._lower_expired(now)
        hinted = [self._hinted[priority] for priority in sorted(self._hinted)]
        if 0 not in self._hinted:
            return chain(self._plain, *hinted)
        expired, *others = hinted
        return chain(heapq.merge(self._plain, expired, key=_get_number), *others)

    def add(self, page: Page) -> None:
        """Adds a page as the most recently used."""
        page.number = next(self._numbers)
        page.order = self
        self.size += 1
        if page.retention:
            self._insert(page, page.retention, time.monotonic())
        else:
            self._plain[page] = None

    def discard(self, page: Page) -> None:
        """Removes a page of this order."""
        page.order = None
        self.size -= 1
        if page.retention:
            self._take(page, page.retention)
        else:
            del self._plain[page]

    def relist(self, page: Page) -> None:
        """Lists a page anew, whose hints have changed; its last use stays."""
        assert page.retention
        self._take(page, page.retention)
        self._insert(page, page.retention, time.monotonic())

    def _insert(self, page: Page, retention: Retention, now: float) -> None:
        retention.priority, deadline = retention.find_current(now)
        self._deadline = min(self._deadline, deadline)
        pages = self._hinted.setdefault(retention.priority, [])
        pages.insert(bisect_left(pages, page.number, key=_get_number), page)

    def _take(self, page: Page, retention: Retention) -> None:
        pages = self._hinted[retention.priority]
        del pages[bisect_left(pages, page.number, key=_get_number)]
        if not pages:
            del self._hinted[retention.priority]

    def _lower_expired(self, now: float) -> None:
        """Lists each page by the highest priority that it still has."""
        pages = [page for each in self._hinted.values() for page in each]
        self._hinted, self._deadline = {}, math.inf
        for page in sorted(pages, key=_get_number):
            assert page.retention
            self._insert(page, page.retention, now)


class RetainedPages:
    """The pages with hints, at most a number of them.

    Where there is no room, a page with a higher priority takes that of a lower one: of
    the lowest, the page that was hinted last. So a page has hints as long as any of its
    descendants has.

    Args:
        most: The most pages that have hints at a time.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._pages: dict[Page, int] = {}  # with the priority that lists each
        self._listed: dict[int, list[Page]] = {}  # by priority, in the order of first hints
        self._numbers = count()
        self._deadline = math.inf  # before it, no hint expires

    def __len__(self) -> int:
        """The number of pages whose hints have not expired; any thread may ask."""
        now = time.monotonic()
        if now < self._deadline:
            return len(self._pages)
        return sum(_has_hint(page, now) for page in list(self._pages))

    def retain(self, page: Page, hints: Iterable[Retain], end: int) -> bool:
        """Gives a page the hints that cover it; returns False if there is no room.

        ``end`` is the number of tokens up to its last one.
        """
        chosen = [hint for hint in hints if end <= hint.stop]
        if not chosen:
            return True
        now, priority = time.monotonic(), max(hint.priority for hint in chosen)
        self._drop_expired(now)
        if page not in self._pages and not self._has_room(priority):
            return False
        retention = page.retention = page.retention or Retention()
        for hint in chosen:
            retention.add(hint)
        self._deadline = min(self._deadline, retention.find_end(now))
        if page not in self._pages:
            retention.order = next(self._numbers)
        if priority > self._pages.get(page, 0):
            self._unlist(page)
            self._list(page, priority)
        return True

    def drop(self, page: Page) -> None:
        """Removes the hints of a page that no ``EvictionOrder`` lists."""
        self._unlist(page)
        page.retention = None

    def _has_room(self, priority: int) -> bool:
        """Returns whether one more page has room; takes it from a lower priority."""
        if len(self._pages) < self._most:
            return True
        lowest = min(self._listed, default=priority)
        if lowest >= priority:
            return False
        page = self._listed[lowest][-1]
        assert page.retention
        self._unlist(page)
        page.retention.clear()
        if page.order:
            page.order.relist(page)
        return True

    def _list(self, page: Page, priority: int) -> None:
        self._pages[page] = priority
        insort(self._listed.setdefault(priority, []), page, key=_get_order)

    def _unlist(self, page: Page) -> None:
        if priority := self._pages.pop(page, 0):
            pages = self._listed[priority]
            del pages[bisect_left(pages, _get_order(page), key=_get_order)]
            if not pages:
                del self._listed[priority]

    def _drop_expired(self, now: float) -> None:
        """Lists the pages whose hints have not expired, by the priority they have."""
        if now < self._deadline:
            return
        pages, self._pages, self._listed, self._deadline = self._pages, {}, {}, math.inf
        for page in pages:
            assert page.retention
            if priority := page.retention.find_current(now)[0]:
                self._list(page, priority)
                self._deadline = min(self._deadline, page.retention.find_end(now))


_get_order = attrgetter("retention.order")


def _has_hint(page: Page, now: float) -> bool:
    retention = page.retention
    return bool(retention and retention.find_current(now)[0])
