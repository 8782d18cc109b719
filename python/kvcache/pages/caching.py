# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Full pages as cached ones, which later sequences share."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import numpy as np

from .collection import pause_collection
from .group_tables import GroupTable
from .matches import Finder, Match
from .pool import PagePool
from .prefixes import Page
from .tables import CachedSequence, SequenceTable


class PageCaching:
    """Adds full pages to the tree, and gives them the hints of sequences.

    Args:
        pool: The pages.
        table: The rows of sequences.
        finder: The search for prefixes in the tree.
    """

    def __init__(self, pool: PagePool, table: SequenceTable, finder: Finder) -> None:
        self._pool = pool
        self._table = table
        self._groups = table.groups
        self._finder = finder

    def cache(
        self, batch: Sequence[CachedSequence], rows: np.ndarray | slice, totals: np.ndarray
    ) -> None:
        """Caches the pages that are full when sequences have ``totals`` tokens."""
        base = self._finder.base
        full = totals // base
        first = self._table.lengths[rows] // base
        passing = (full > first).nonzero()[0]
        if len(passing):
            numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
            firsts, stops = first[passing], full[passing]
            with pause_collection(int((stops - firsts).sum())):
                self._cache_all([batch[i] for i in passing.tolist()], numbers[passing], firsts, stops)

    def _cache_all(
        self,
        batch: Sequence[CachedSequence],
        rows: np.ndarray,
        firsts: np.ndarray,
        stops: np.ndarray,
    ) -> None:
        """Caches the new full pages of some sequences."""
        table, base, cache = self._table, self._finder.base, self._pool.cache
        prefixes, lists = table.prefixes, self._groups[0].lists
        is_simple = self._finder.is_plain and not table.hints
        tokens = table.tokens.encode(rows, base * firsts, base * stops, table.totals[rows])
        entries = zip(batch, rows.tolist(), firsts.tolist(), stops.tolist(), tokens, strict=True)
        for sequence, row, first, stop, encoded in entries:
            before = prefixes[row]
            if not is_simple or stop - first > 1 or before.find_child(encoded):
                self._cache(sequence, first, stop, encoded)
                continue
            # Mostly, there is one page, and no other has its tokens.
            page, prefix = lists[row][first], before.add_child(encoded)
            assert page
            cache(page, prefix)
            prefix.visitors += 1
            before.visitors -= 1
            prefixes[row] = prefix
        # At the end of a page, so that the table has all tokens of the next one.
        table.tokens.make_room(rows, base)

    def _cache(self, sequence: CachedSequence, first: int, stop: int, encoded: bytes) -> None:
        """Caches new full pages of a sequence."""
        if self._finder.is_plain and not sequence.retain:
            self._cache_plain(sequence, first, encoded)
        else:
            self._cache_groups(sequence, first, stop, encoded)

    def _cache_groups(
        self, sequence: CachedSequence, first: int, stop: int, encoded: bytes
    ) -> None:
        """Caches pages for later sequences, or replaces them by equal ones."""
        base = self._finder.base
        prefix, size = sequence.prefix, 8 * base
        is_at_end = stop * base == sequence.total
        for i in range(first, stop):
            start = (i - first) * size
            prefix = prefix.extend(encoded[start : start + size])
            end = (i + 1) * base
            for number, group in enumerate(self._groups):
                if end % group.border:
                    continue
                at = end // group.page_size - 1
                if group.is_state:
                    if i + 1 < stop or not is_at_end:
                        continue
                    at = 0
                    group.open[sequence.row] = False
                page, known = group.lists[sequence.row][at], prefix.get_page(number)
                if page is None or page is known or group.has_gap(sequence.row, at):
                    continue
                if known is None:
                    self._pool.cache(page, prefix)
                else:
                    self._pool.merge(page, known)
                    sequence.replace(group, at, known)
                    self._pool.release(page, was_resident=True)
                if sequence.retain:
                    parent = _find_parent(group, group.lists[sequence.row], at)
                    self._retain(sequence, prefix.get_page(number), end, parent)
        sequence.move_to(prefix)  # a descendant, so the node before it stays

    def _cache_plain(self, sequence: CachedSequence, first: int, encoded: bytes) -> None:
        """Caches pages of one group that reaches all tokens, from page ``first`` on."""
        size, cache = 8 * self._finder.base, self._pool.cache
        pages = self._groups[0].lists[sequence.row]
        prefix, i = sequence.prefix, first
        for start in range(0, len(encoded), size):
            prefix = prefix.extend(encoded[start : start + size])
            page, known = pages[i], prefix.page
            assert page
            if known is None:
                cache(page, prefix)
            elif known is not page:
                self._pool.merge(page, known)
                sequence.replace(self._groups[0], i, known)
                self._pool.release(page, was_resident=True)
            i += 1
        sequence.move_to(prefix)

    def retain_match(self, sequence: CachedSequence, match: Match) -> None:
        """Gives the hints of a sequence to the cached pages that it finds.

        A prefix needs its pages in all groups, so the pages up to its first tokens get
        the hints before others.
        """
        found: list[tuple[int, Page | None, Page | None]] = []
        for group, pages in zip(self._groups, match.pages, strict=True):
            own = group.lists[sequence.row]
            row = [*own, *pages]
            for i in range(len(own), len(row)):
                found.append(((i + 1) * group.border, row[i], _find_parent(group, row, i)))
            snapshot = match.snapshots.get(group.number)
            found.append((sequence.length + match.length, snapshot, None))
        for end, page, parent in sorted(found, key=itemgetter(0)):
            self._retain(sequence, page, end, parent)

    def _retain(
        self, sequence: CachedSequence, page: Page | None, end: int, parent: Page | None
    ) -> None:
        """Gives a page of a prefix the hints of a sequence, until one is refused."""
        hints = sequence.retain
        if page and hints and not self._pool.retain(page, hints, end, parent):
            sequence.retain = ()


def _find_parent(group: GroupTable, row: Sequence[Page | None], at: int) -> Page | None:
    """The page before one of a row, without which the tree drops it."""
    return row[at - 1] if at and group.reach.is_full else None
