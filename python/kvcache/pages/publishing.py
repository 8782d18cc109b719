# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cached pages of a manager that others see: routers by events, processes by a store."""

from __future__ import annotations

from array import array
from collections.abc import Hashable

import numpy.typing as npt

from ..cache.groups import LayerGroup, MultiKVCacheParams
from ..cache.params import KVCacheParams
from ..checks import check_instance
from .growth import Growth
from .listeners import PageListener
from .pool import PagePool
from .storage import PageStore
from .prefetch import Prefetch
from .store_tier import StoreTier, make_tier
from .stores import Store
from .tables import CachedSequence, SequenceTable


class PagePublishing:
    """The part of ``PagedKVCacheManager`` that publishes and stores cached pages."""

    params: KVCacheParams | MultiKVCacheParams
    _groups: tuple[LayerGroup, ...]
    _growth: Growth
    _pool: PagePool
    _table: SequenceTable

    def __init__(self) -> None:
        super().__init__()
        self._events: PageListener | None = None
        self._tier: StoreTier | None = None
        self._prefetches: dict[Hashable, CachedSequence] = {}

    def _begin(self, tokens: npt.ArrayLike, salt: bytes) -> tuple[CachedSequence, array[int]]:
        raise NotImplementedError

    def _begin_publishing(
        self,
        store: Store | None,
        store_name: str,
        stores: list[PageStore],
        events: PageListener | None,
    ) -> None:
        """Begins to store and to publish cached pages, where asked."""
        if store is not None:
            self._tier = make_tier(
                store, store_name, self.params, stores, self._pool, self._table.groups
            )
        if events is not None:
            self._begin_events(events)
        if store is not None or events is not None:
            self._pool.take_changed()

    def _begin_events(self, events: PageListener) -> None:
        """Begins to publish cached pages."""
        check_instance(PageListener, events=events)
        if not self.params.enable_prefix_caching:
            raise ValueError("'events' needs 'enable_prefix_caching'")
        events.begin(self._groups)
        self._events = events

    def _publish_changed(self) -> None:
        """Publishes and stores pages that changed; after kernels have put data there."""
        changed = self._pool.changed
        if changed is None:
            return
        if self._tier:
            self._tier.writer.add(changed)
        if self._events and changed:
            self._events.publish(changed)
        self._pool.take_changed()  # last: after an interrupt, all are published again
        if self._tier:
            self._tier.writer.save()

    def prefetch(self, tokens: npt.ArrayLike, *, salt: bytes = b"") -> Prefetch:
        """Begins to bring pages of first tokens from the store, while a request waits.

        ``claim`` does it as well, and waits for it. Pages that are evicted to make room
        move as for ``claim``.

        Raises:
            ValueError: The manager has no store, or there are more than
                ``max_seq_len`` tokens.
            TypeError: As for ``claim``.
        """
        if not self._tier:
            raise ValueError("'prefetch' needs a manager with 'store'")
        sequence, ids = self._begin(tokens, salt)
        try:
            prefetch = self._tier.begin(sequence, ids, self._end_prefetch)
        except BaseException:
            self._growth.drop(sequence)
            raise
        if prefetch is None:
            self._growth.drop(sequence)
            return Prefetch(self._tier)
        self._prefetches[prefetch] = sequence
        return prefetch

    def _end_prefetch(self, prefetch: Prefetch, sequence: CachedSequence) -> None:
        del self._prefetches[prefetch]
        self._growth.drop(sequence)
        self._publish_changed()

    def flush(self) -> None:
        """Waits until all cached pages are in the store, as far as it takes them."""
        if self._tier:
            self._tier.writer.flush()
