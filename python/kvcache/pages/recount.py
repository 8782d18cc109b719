# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reset of the prefix cache, which corrects what an interrupt has left of a call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from weakref import WeakValueDictionary

from .pool import PagePool
from .prefixes import Page, Prefix
from .tables import CachedSequence, SequenceTable


class PageReset:
    """The part of ``PagedKVCacheManager`` that resets the prefix cache."""

    _pool: PagePool
    _prefetches: dict[Hashable, CachedSequence]
    _roots: WeakValueDictionary[bytes, Prefix]
    _sequences: dict[Hashable, CachedSequence]
    _table: SequenceTable

    def _get_exchanged(self) -> dict[Hashable, CachedSequence]:
        raise NotImplementedError

    def _get_swapped(self) -> dict[Hashable, CachedSequence]:
        raise NotImplementedError

    def _publish_changed(self) -> None:
        raise NotImplementedError

    def reset_prefix_cache(self) -> None:
        """Drops the cached pages that no sequence uses.

        Also corrects what an interrupt has left of a call whose requests were released,
        unless a swap or a prefetch is unfinished.
        """
        if not self._prefetches and not self._get_swapped():
            sequences = [*self._sequences.values(), *self._get_exchanged().values()]
            recount(self._pool, self._table, sequences, [*self._roots.values()])
        self._pool.forget_unreferenced()
        self._publish_changed()


def recount(
    pool: PagePool,
    table: SequenceTable,
    sequences: Sequence[CachedSequence],
    roots: Iterable[Prefix],
) -> None:
    """Corrects counts, lists, and what is free, by what sequences and the tree have.

    Changes nothing unless an interrupt has left part of a call. No swap or prefetch may be
    unfinished.
    """
    table.reclaim(sequence.row for sequence in sequences)
    references, users = Counter[Page](), Counter[Page]()
    for sequence in sequences:
        pages = sequence.list_pages()
        references.update(pages)
        if sequence.is_resident:
            users.update(pages)
    cached = _correct_nodes(roots, Counter(sequence.prefix for sequence in sequences))
    known, listed = {*references, *cached}, pool.list_listed()
    for page in known:
        if page.prefix and page not in cached:
            page.prefix = None
        counts = references[page], users[page]
        is_unused = page in cached and not counts[0]
        if counts != (page.references, page.users) or (is_unused and page not in listed):
            pool.correct(page, *counts)
    pool.reclaim(known, listed - known)


def _correct_nodes(roots: Iterable[Prefix], visitors: Counter[Prefix]) -> set[Page]:
    """Corrects the visitors of nodes, and the nodes of pages; returns the cached pages."""
    cached: set[Page] = set()
    nodes = [*roots]
    while nodes:
        node = nodes.pop()
        nodes += node.list_children()
        node.visitors = visitors[node]
        for page in node.list_pages():
            page.prefix = node
            cached.add(page)
    return cached
