# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The writer of cached pages to a store, after steps."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np

from .guarded_store import GuardedCopy, GuardedStore
from .prefetch import WAVE
from .prefixes import Page
from .records import Records, SpareRecords
from .rest import Rest

_STEP_BYTES = 8 << 20  # that a step copies to records, in some milliseconds
_AGAIN_SECONDS = 60.0  # after which pages that the store refused are offered again
_FEW = 1024  # waiting pages, of which dropped ones are not looked for


class StoreWriter:
    """Writes cached pages of a manager to a store; only ``flush`` waits for it.

    A store gets copies of pages. It may use those of a put that was given up for ever.
    So no other put begins after one for a time, which grows until a put ends.

    Args:
        store: The store.
        records: The form of pages in it.
        spare: Records that no copy uses.

    Attributes:
        written: The number of pages that were written.
    """

    def __init__(self, store: GuardedStore, records: Records, spare: SpareRecords) -> None:
        self._store = store
        self._records = records
        self._spare = spare
        self._pending: dict[Page, None] = {}
        self._most_pending = _FEW
        self._refused: dict[Page, None] = {}
        self._again = 0.0  # when these are offered
        self._rest = Rest()
        self._puts: list[tuple[GuardedCopy, list[Page], list[np.ndarray]]] = []
        self.written = 0

    def add(self, changed: Iterable[Page]) -> None:
        """Notes cached pages that are not in the store, for ``save``."""
        for page in changed:
            if page.prefix and not page.is_stored:
                self._pending[page] = None

    def save(self) -> None:
        """Begins to write the pages that were noted."""
        self._poll_puts()
        if self._refused and time.monotonic() >= self._again:
            self._offer_refused()
        if len(self._pending) > self._most_pending:
            self._pending = {page: None for page in self._pending if page.prefix}
            self._most_pending = 2 * len(self._pending) + _FEW
        if not self._rest.is_on():
            self._begin_puts(max(_STEP_BYTES // self._records.size, 1))

    def _begin_puts(self, most: int) -> None:
        """Begins to write at most some of the pages that wait.

        They wait until the put has begun, so that an interrupt loses none.
        """
        room = min(WAVE - sum(len(records) for _, _, records in self._puts), most)
        passed: list[Page] = []
        unread: list[Page] = []
        chosen: list[tuple[bytes, Page, np.ndarray]] = []
        for page in self._pending:
            if len(chosen) >= room:
                break
            passed.append(page)
            if not page.prefix or page.is_stored:
                continue
            record = self._spare.take()
            stored = self._records.describe_cached(page)
            try:
                self._records.fill(record, stored, page.address)
            except Exception:  # of the memory or the disk: the page is only not stored
                self._spare.give_back([record])
                unread.append(page)
            else:
                chosen.append((stored.key, page, record))
        if chosen:
            keys = [key for key, _, _ in chosen]
            pages = [page for _, page, _ in chosen]
            records = [record for _, _, record in chosen]
            copy = self._store.begin_put(keys, [record.data for record in records])
            self._puts.append((copy, pages, records))
            for page in pages:
                page.is_stored = True  # until the store refuses it
        self._note_refused(unread)
        for page in passed:
            del self._pending[page]

    def flush(self) -> None:
        """Waits until no page is left to write; offers refused ones once more."""
        self._finish_puts()
        self._offer_refused()
        self._rest.cancel()
        while self._pending or self._puts:
            self._begin_puts(WAVE)
            self._finish_puts()
            if self._rest.is_on():
                self._note_refused(self._pending)
                self._pending = {}

    def _finish_puts(self) -> None:
        for copy, *_ in self._puts:
            copy.wait()
        self._poll_puts()

    def _offer_refused(self) -> None:
        self._pending |= self._refused
        self._refused = {}

    def _poll_puts(self) -> None:
        for put in self._puts[:]:
            copy, pages, records = put
            if not copy.poll():
                continue
            self._note_refused([page for page, is_done in zip(pages, copy.done) if not is_done])
            self._puts.remove(put)
            self.written += sum(copy.done)
            if copy.is_abandoned:
                self._rest.begin()
            else:
                self._rest.reset()
                self._spare.give_back(records)

    def _note_refused(self, pages: Iterable[Page]) -> None:
        """Notes pages that the store has refused, to offer those still cached later."""
        if not self._refused:
            self._again = time.monotonic() + _AGAIN_SECONDS
        for page in pages:
            page.is_stored = False
            if page.prefix:
                self._refused[page] = None
