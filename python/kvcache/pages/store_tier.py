# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A store as a tier of a manager: claims find its pages, and bring them back."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from itertools import compress
from operator import attrgetter, itemgetter
from typing import TypeAlias

import numpy as np

from ..cache.groups import MultiKVCacheParams
from ..cache.params import KVCacheParams
from ..checks import check_instance, check_string
from .group_tables import GroupTable
from .guarded_store import GuardedCopy, GuardedStore
from .matches import Finder, Rows, sum_up
from .pool import PagePool
from .prefetch import Prefetch
from .prefixes import Page, Prefix
from .records import Records, SpareRecords, StoredPage
from .rest import Rest
from .storage import PageStore
from .store_writer import StoreWriter
from .stores import Store
from .tables import CachedSequence
from .tokens import encode

CachedOrStored: TypeAlias = Page | StoredPage
EndOfPrefetch: TypeAlias = Callable[[Prefetch, CachedSequence], None]


class StoreTier:
    """Brings cached pages of a manager back from a store.

    Nothing here raises for a store: a page that it loses is computed again.

    Attributes:
        writer: Writes cached pages to the store.
        spare: Records that no copy uses.
        rest: The time without reads after one that did not end.
        missed: The number of tokens that were looked up and did not come.
        read: The number of pages that came from the store.
    """

    def __init__(
        self, store: Store, records: Records, pool: PagePool, groups: tuple[GroupTable, ...]
    ) -> None:
        self._store = GuardedStore(store)
        self._records = records
        self._pool = pool
        self._groups = groups
        self._finder = Finder(groups)
        self.spare = SpareRecords(records)
        self.rest = Rest()
        self.writer = StoreWriter(self._store, records, self.spare)
        self.missed = self.read = 0

    def begin(
        self, sequence: CachedSequence, tokens: array[int], end: EndOfPrefetch
    ) -> Prefetch | None:
        """Begins to bring pages of tokens to a sequence without any.

        ``end`` is called when the prefetch has ended. Returns None if no page comes.
        """
        if self.rest.is_on():
            return None
        rows = self._list_pages(sequence.prefix, encode(tokens))
        base = self._finder.base
        stop = max(len(tokens) - 1, 0) // base * base
        cached = [[_as_cached(page) for page in row] for row in rows]
        length = next(self._finder.list_served(0, stop, cached), 0)
        served = self._find_served(rows, length, stop)
        if not served:
            return None
        sequence.add_tokens(tokens[:served])
        wanted = self._reserve(sequence, self._finder.list_reached(0, served, rows))
        try:
            return Prefetch(self, sequence, wanted, end)
        except BaseException:
            self._release(sequence, wanted)
            raise

    def count_missed(self, tokens: int, found: int) -> None:
        """Counts the tokens of a claim that were looked up and did not come."""
        base = self._finder.base
        self.missed += max(tokens - 1, 0) // base * base - found // base * base

    def _list_pages(self, root: Prefix, encoded: bytes) -> list[list[CachedOrStored | None]]:
        """The pages of each group at its borders before the last token."""
        size, base = 8 * self._finder.base, self._finder.base
        digest = self._records.make_root_digest(root.salt)
        node: Prefix | None = root
        rows: list[list[CachedOrStored | None]] = [[] for _ in self._groups]
        for start in range(0, len(encoded) - size, size):
            part, end = encoded[start : start + size], start // 8 + base
            node = node.find_child(part) if node else None
            parent, known = digest, node.key if node else b""
            digest = known or self._records.make_digest(parent, part)
            for number, group in enumerate(self._groups):
                if end % group.border == 0:
                    page = node.get_page(number) if node else None
                    rows[number].append(
                        page or self._records.describe(parent, digest, part, number, end)
                    )
        return rows

    def _find_served(
        self, rows: list[list[CachedOrStored | None]], cached: int, stop: int
    ) -> int:
        """Finds the longest prefix that the store completes, and that has room; 0 if none.

        Replaces the pages in ``rows`` that the store lacks by None.
        """
        stored = [page for row in rows for page in row if isinstance(page, StoredPage)]
        keys = [page.key for page in stored]
        found = {*compress(keys, self._find(keys))}
        if not found:
            return 0
        for row in rows:
            for i, page in enumerate(row):
                if isinstance(page, StoredPage) and page.key not in found:
                    row[i] = None
        kept = [page for row in rows for page in row if isinstance(page, Page)]
        room = self._pool.count_available(kept)
        sums = [sum_up(row, _is_stored) for row in rows]
        for length in self._finder.list_served(0, stop, rows):
            if length <= cached:
                break
            if self._finder.count_reached(0, length, sums) <= room:
                return length
        return 0

    def _find(self, keys: list[bytes]) -> list[bool]:
        """Looks keys up in the store; rests if it gives no answer in time."""
        answers = self._store.find(keys) if keys else []
        if keys and self._store.is_late:
            self.rest.begin()
        return answers

    def _reserve(
        self, sequence: CachedSequence, rows: Rows[CachedOrStored]
    ) -> list[tuple[Page, StoredPage]]:
        """Gives a sequence the pages of rows, with new ones for those of the store.

        Returns the new ones in the order of their tokens.
        """
        stored = [page for row in rows for page in row if isinstance(page, StoredPage)]
        stored.sort(key=_get_end)
        kept = [page for row in rows for page in row if isinstance(page, Page)]
        new = self._pool.provide(len(stored), kept=kept)
        for page, each in zip(new, stored, strict=True):
            page.group = each.group
        for page in kept:
            self._pool.refer(page, is_resident=False)
        places = dict(zip(stored, new, strict=True))
        for group, row in zip(self._groups, rows, strict=True):
            group.lists[sequence.row] = [
                places[page] if isinstance(page, StoredPage) else page for page in row
            ]
        return [*zip(new, stored, strict=True)]

    def end(
        self, sequence: CachedSequence, wanted: list[tuple[Page, StoredPage]], copied: int
    ) -> None:
        """Adds pages to the tree, of which the first have come; releases all.

        Groups that reach all tokens keep the prefix that came. Others have the pages of
        no shorter prefix.
        """
        if copied == len(wanted):
            length = sequence.total
        elif all(group.reach.is_full for group in self._groups):
            first = wanted[copied][1]
            length = self._finder.align(first.end - self._groups[first.group].border)
        else:
            length = 0
        self._cache(sequence, [each for each in wanted if each[1].end <= length])
        self._release(sequence, wanted)

    def _cache(self, sequence: CachedSequence, pages: list[tuple[Page, StoredPage]]) -> None:
        """Adds pages to the tree, in the order of their tokens."""
        base, node = self._finder.base, sequence.prefix
        encoded = encode(sequence.tokens)
        for page, stored in pages:
            for start in range(node.depth * base, stored.end, base):
                node = node.extend(encoded[8 * start : 8 * (start + base)])
            if node.get_page(page.group) is None:
                page.is_stored = page.is_fetched = True
                self._pool.cache(page, node)
        self.read += len(pages)

    def begin_get(self, pages: list[StoredPage], records: list[np.ndarray]) -> GuardedCopy:
        """Begins to read pages into records."""
        return self._store.begin_get(
            [page.key for page in pages], [record.data for record in records]
        )

    def load(self, record: np.ndarray, page: StoredPage, target: int) -> bool:
        """Copies a record to a page of the device, if it has the page's tokens."""
        if not self._records.has(record, page):
            return False
        try:
            self._records.load(record, target)
        except Exception:  # of the memory: the page is only not found
            return False
        return True

    def _release(
        self, sequence: CachedSequence, wanted: list[tuple[Page, StoredPage]]
    ) -> None:
        """Releases all pages of a sequence."""
        new = {page for page, _ in wanted}
        starts = (
            (i * group.border, page)
            for group, row in zip(self._groups, sequence.pages, strict=True)
            for i, page in enumerate(row)
            if page
        )
        # The last page first: it must not outlive the pages before it.
        for _, page in sorted(starts, key=itemgetter(0), reverse=True):
            self._pool.release(page, was_resident=page in new)


_get_end = attrgetter("end")


def _as_cached(page: CachedOrStored | None) -> Page | None:
    return page if isinstance(page, Page) else None


def _is_stored(page: CachedOrStored | None) -> bool:
    return isinstance(page, StoredPage)


def make_tier(
    store: Store,
    name: str,
    params: KVCacheParams | MultiKVCacheParams,
    stores: list[PageStore],
    pool: PagePool,
    groups: tuple[GroupTable, ...],
) -> StoreTier:
    """Makes the tier of a manager with these parameters and tensors."""
    check_instance(Store, store=store)
    check_string(store_name=name)
    if not name:
        raise ValueError("'store' needs 'store_name', which names the model")
    if not params.enable_prefix_caching:
        raise ValueError("'store' needs 'enable_prefix_caching'")
    base = math.gcd(*(group.border for group in groups))
    return StoreTier(store, Records(name, params, stores, base), pool, groups)
