# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Questions of schedulers to a page manager, and its counts."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from ..cache.groups import MultiKVCacheParams
from ..cache.params import KVCacheParams
from ..checks import check_integer
from .growth import Growth, Plan
from .pool import PagePool
from .snapshot import CacheStats, Place, Source
from .store_tier import StoreTier
from .token_table import BatchRows
from .tables import CachedSequence
from .tokens import BatchTokens, TokensOfBatch


class PageQuestions:
    """The part of ``PagedKVCacheManager`` that answers questions; it changes nothing."""

    _growth: Growth
    _pool: PagePool
    _sequences: dict[Hashable, CachedSequence]
    _tier: StoreTier | None
    params: KVCacheParams | MultiKVCacheParams

    def __init__(self) -> None:
        super().__init__()
        self._looked_up = 0

    def _get(self, request: Hashable) -> CachedSequence:
        raise NotImplementedError

    def _begin(
        self, tokens: npt.ArrayLike, salt: bytes
    ) -> tuple[CachedSequence, array[int]]:
        raise NotImplementedError

    def _parse_batch(
        self, requests: Sequence[Hashable], tokens: TokensOfBatch
    ) -> tuple[list[CachedSequence], BatchRows, BatchTokens]:
        raise NotImplementedError

    def _end_expired(self) -> None:
        raise NotImplementedError

    @property
    def num_free_pages(self) -> int:
        """The number of pages that are free, or cached and not in use by a sequence."""
        self._end_expired()
        return self._pool.count_available()

    @property
    def num_retained_pages(self) -> int:
        """The number of pages with hints that have not expired."""
        return len(self._pool.retained)

    def match(self, tokens: npt.ArrayLike, *, salt: bytes = b"") -> int:
        """The number of tokens that ``claim`` would find cached; changes nothing."""
        plan = self._plan_claim(tokens, salt)
        return plan.found if plan.fits else 0

    def pages_needed(self, tokens: npt.ArrayLike, *, salt: bytes = b"") -> int:
        """The number of ``num_free_pages`` that ``claim`` would use; changes nothing.

        Cached pages that no sequence uses count as well. ``claim`` has no room if it is
        more than ``num_free_pages``.
        """
        return self._growth.count_taken(self._plan_claim(tokens, salt))

    def can_claim(self, tokens: npt.ArrayLike, *, salt: bytes = b"") -> bool:
        """Whether ``claim`` has room for these tokens; changes nothing.

        ``match``, ``pages_needed`` and this raise for tokens and salts as ``claim``
        does.
        """
        return self._plan_claim(tokens, salt).fits

    def can_grow_batch(
        self, requests: Sequence[Hashable], tokens: TokensOfBatch
    ) -> bool:
        """Whether ``grow_batch`` has room; changes nothing, and raises as it does."""
        batch = self._parse_batch(requests, tokens)
        _, needed, available = self._growth.plan_batch(*batch)
        return needed <= available

    def pages_evicted(self, pages: int) -> int:
        """The number of cached pages that are evicted when ``pages`` pages are needed.

        Pages that no sequence uses move to the host, or are dropped, the least recently
        used first. Pages of swapped-out sequences follow. Raises ``ValueError`` for
        more than ``num_free_pages``.
        """
        check_integer(pages=pages)
        if not 0 <= pages <= self.num_free_pages:
            raise ValueError(
                f"expects 'pages' to be 0 to {self.num_free_pages}, got {pages}"
            )
        return max(int(pages) - self._pool.count_unused(), 0)

    @property
    def stats(self) -> CacheStats:
        """Counts since the manager was made, and its current state.

        Any thread may read it while another one calls the manager.
        """
        found = self._growth.found  # another step replaces it
        return CacheStats(
            self._looked_up,
            sum(found.values()),
            self._pool.evicted,
            self._pool.moved[Place.HOST],
            self._pool.moved[Place.DEVICE],
            self._pool.moved[Place.DISK],
            found[Source.HOST],
            found[Source.DISK],
            self._pool.count_available(),
            len(self._pool.retained),
            len(self._sequences),
            *self._count_stored(found[Source.STORE]),
        )

    def _count_stored(self, found: int) -> tuple[int, ...]:
        """The counts of the store, in the order of ``CacheStats``."""
        if not self._tier:
            return ()
        return self._tier.missed + found, found, self._tier.read, self._tier.writer.written

    def tokens(self, request: Hashable) -> np.ndarray:
        """The ids of a sequence's tokens, int64, the pending ones last."""
        return np.array(self._get(request).tokens, np.int64)

    def __contains__(self, request: Hashable) -> bool:
        return request in self._sequences

    def __len__(self) -> int:
        return len(self._sequences)

    def _count_looked_up(self, tokens: int) -> None:
        if self.params.enable_prefix_caching:
            self._looked_up += tokens

    def _plan_claim(self, tokens: npt.ArrayLike, salt: bytes) -> Plan:
        sequence, ids = self._begin(tokens, salt)
        try:
            return self._growth.plan(sequence, ids)
        finally:
            self._growth.drop(sequence)
