# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pages that come from a store to pages of the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Self

import numpy as np

from .guarded_store import GuardedCopy
from .prefixes import Page
from .records import StoredPage
from .tables import CachedSequence

if TYPE_CHECKING:
    from .store_tier import StoreTier

WAVE = 16
"""The most pages that a call of the store copies."""


class Prefetch:
    """Pages that come from a store, while a request waits.

    ``PagedKVCacheManager.prefetch`` makes one. When ``poll`` has returned True, the
    pages are cached prefixes, which ``claim`` finds. At the end of its ``with`` it is
    cancelled, unless it has ended.
    """

    def __init__(
        self,
        tier: StoreTier,
        sequence: CachedSequence | None = None,
        wanted: list[tuple[Page, StoredPage]] | None = None,
        end: Callable[[Prefetch, CachedSequence], None] | None = None,
    ) -> None:
        self._tier = tier
        self.sequence = sequence  # has the pages, until the prefetch ends
        self._wanted = wanted or []  # in the order of their tokens
        self._end = end
        self._copied = 0  # pages that have come, the first ones
        self._copy: GuardedCopy | None = None
        self._records: list[np.ndarray] = []
        self._begin_wave(0)

    def poll(self) -> bool:
        """Returns whether all pages are there that the store has; never waits."""
        if self.sequence is None:
            return True
        if self._copy and not self._copy.poll():
            return False
        if self._copy and self._take_wave() and self._copy:
            return False
        self._finish()
        return True

    def wait(self) -> None:
        """Waits until ``poll`` returns True, at most the store's deadline for each wave."""
        while not self.poll():
            if self._copy:
                self._copy.wait()

    def cancel(self) -> None:
        """Keeps the pages that are there and of use, and gives the others back."""
        if self.sequence:
            self._finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.cancel()

    def _begin_wave(self, first: int) -> None:
        """Begins to read some pages from the one with number ``first`` on."""
        pages = [stored for _, stored in self._wanted[first : first + WAVE]]
        self._records = [self._tier.spare.take() for _ in pages]
        self._copy = self._tier.begin_get(pages, self._records) if pages else None

    def _take_wave(self) -> bool:
        """Copies what came to the device, while the store reads the next pages.

        Returns whether all of it came.
        """
        assert self._copy
        records, copy = self._records, self._copy
        self._records, self._copy = [], None
        if all(copy.done):
            self._begin_wave(self._copied + len(records))
        first = self._copied
        for record, is_done in zip(records, copy.done, strict=True):
            page, stored = self._wanted[self._copied]
            if not (is_done and self._tier.load(record, stored, page.index)):
                break
            self._copied += 1
        if copy.is_late:
            self._tier.rest.begin()
        elif not copy.is_abandoned:
            self._tier.rest.reset()
            self._tier.spare.give_back(records)
        return self._copied - first == len(records)

    def _finish(self) -> None:
        # The store may still write to the records, so no other copy uses them.
        self._records, self._copy = [], None
        sequence, self.sequence = self.sequence, None
        assert sequence and self._end
        self._tier.end(sequence, self._wanted, self._copied)
        self._end(self, sequence)
