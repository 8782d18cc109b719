# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How sequences get pages for more tokens, and share those that are full."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as SequenceOf
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from ..errors import OutOfPagesError
from .pool import PagePool
from .prefixes import Match, Page, find
from .snapshot import Place
from .tables import Sequence, SequenceTable
from .tokens import TOKEN, BatchTokens, encode


class Plan(NamedTuple):
    """How a sequence would get its next tokens.

    Attributes:
        match: What of them it shares or copies.
        needed: Pages of the device that it takes.
        available: Pages that there are for it.
    """

    match: Match
    needed: int
    available: int

    @property
    def fits(self) -> bool:
        return self.needed <= self.available


class Growth:
    """Plans how sequences grow, and does it.

    What raises does so before it has changed anything but by evictions; see ``PagePool``.
    """

    def __init__(
        self, pool: PagePool, table: SequenceTable, has_prefixes: bool
    ) -> None:
        self._pool = pool
        self._table = table
        self._page_size = table.page_size
        self._has_prefixes = has_prefixes

    # --- One sequence -------------------------------------------------------------

    def plan(self, sequence: Sequence, tokens: array[int]) -> Plan:
        """The first plan that fits, of those that share most; the last one if none does."""
        total = self._table.count_pages(len(sequence.tokens) + len(tokens))
        more = total - len(sequence.pages) + self._is_copied(sequence)
        plans = self._make_plans(sequence, tokens, more)
        best = next(plans)
        while not best.fits and (other := next(plans, None)):
            best = other
        return best

    def _make_plans(
        self, sequence: Sequence, tokens: array[int], more: int
    ) -> Iterator[Plan]:
        for match in self._find_matches(sequence, tokens):
            on_host = sum(page.is_on(Place.HOST) for page in match.pages)
            available = self._pool.count_available(match.kept)
            yield Plan(match, more - len(match.pages) + on_host, available)

    def _find_matches(self, sequence: Sequence, tokens: array[int]) -> Iterable[Match]:
        """The best match of tokens, then others that need less room."""
        length = sequence.length
        count, rest = divmod(length, self._page_size)
        if not self._has_prefixes or rest or length < len(sequence.tokens):
            yield Match([])
            return
        parent = sequence.pages[count - 1].prefix if count else sequence.root
        assert parent
        match = find(parent, tokens[:-1], self._page_size)
        yield match
        yield Match(match.pages)
        on_device = takewhile(lambda page: page.is_on(Place.DEVICE), match.pages)
        yield Match(list(on_device))

    def count_found(self, match: Match) -> int:
        """How many tokens a match has."""
        return len(match.pages) * self._page_size + match.common

    def count_taken(self, plan: Plan) -> int:
        """By how many fewer pages can be had at once when a plan is done."""
        free = self._pool.count_available()
        return plan.needed + free - self._pool.count_available(plan.match.pages)

    def grow(self, sequence: Sequence, tokens: array[int]) -> int:
        """Adds tokens to a sequence. Returns how many are in the cache already."""
        if not tokens:
            return 0
        match, needed, available = plan = self.plan(sequence, tokens)
        if not plan.fits:
            raise OutOfPagesError("out of pages", needed, available)
        written = self._get_written(sequence)
        is_copied = self._is_copied(sequence)
        total = self._table.count_pages(len(sequence.tokens) + len(tokens))
        missing = total - len(sequence.pages) - len(match.pages)
        self._table.reserve(total)
        copied = written if is_copied else match.partial
        new = self._pool.provide(
            missing + is_copied,
            copied=[copied] if copied else [],
            brought=[page for page in match.pages if page.is_on(Place.HOST)],
            kept=match.kept,
        )
        if written:
            self._make_own(sequence, written, new.pop(0) if is_copied else None)
        for page in match.pages:
            self._pool.refer(page, is_resident=True)
        found = self.count_found(match)
        sequence.add(tokens, match.pages + new)
        sequence.set_length(sequence.length + found)
        return found

    def _get_written(self, sequence: Sequence) -> Page | None:
        """The page with tokens in it that the next ones come into."""
        count, rest = divmod(sequence.length, self._page_size)
        return sequence.pages[count] if rest else None

    def _is_copied(self, sequence: Sequence) -> bool:
        page = self._get_written(sequence)
        return page is not None and page.references > 1

    def _make_own(self, sequence: Sequence, written: Page, copy: Page | None) -> None:
        """Makes the page that is written next, or its copy, that of the sequence alone."""
        if copy:
            sequence.replace(sequence.length // self._page_size, copy)
            self._pool.release(written, was_resident=True)
        else:
            self._pool.forget(written)

    # --- Ends ---------------------------------------------------------------------

    def copy(self, sequence: Sequence, count: int = 1) -> list[Sequence]:
        """Sequences with the tokens and the pages of one that has none pending."""
        copies: list[Sequence] = []
        try:
            for _ in range(count):
                copies.append(self._begin_copy(sequence))
        except BaseException:
            for copy in copies:
                self._table.clear(copy.row, 0, len(copy.pages))
                self._table.remove(copy.row)
            raise
        is_resident = sequence.is_resident
        for page in sequence.pages:
            for _ in copies:
                self._pool.refer(page, is_resident)
        return copies

    def _begin_copy(self, sequence: Sequence) -> Sequence:
        """A copy whose pages do not count it yet."""
        new = Sequence(sequence.root, self._table, self._table.add(), array(TOKEN), [])
        try:
            new.take(sequence)
        except BaseException:
            self._table.remove(new.row)
            raise
        return new

    def cut(self, sequence: Sequence, length: int) -> None:
        """Forgets the tokens from ``length`` on."""
        # The last page first: it must not outlive those that it is behind.
        for page in sequence.cut(length):
            self._pool.release(page, sequence.is_resident)

    def commit(self, sequence: Sequence, source: Sequence, length: int) -> None:
        """Makes the first tokens of ``source``, all written, those of a sequence.

        The source has what the sequence had.
        """
        if source is not sequence:
            sequence.exchange(source)
        self.cut(sequence, length)
        self.finish([sequence], np.array([sequence.row]))

    def end(self, sequence: Sequence) -> None:
        self.cut(sequence, 0)
        self._table.remove(sequence.row)

    # --- A batch ------------------------------------------------------------------

    def grow_batch(
        self, batch: SequenceOf[Sequence], rows: np.ndarray, tokens: BatchTokens
    ) -> None:
        """Adds tokens to each sequence, without a look into the cache."""
        table, size = self._table, self._page_size
        before = table.totals[rows]
        totals = before + tokens.counts
        pages = -(-totals // size)
        missing = pages - -(-before // size)
        is_closed = ~table.open[rows] & (table.lengths[rows] % size > 0)
        closed = [batch[i] for i in np.flatnonzero(is_closed & (tokens.counts > 0))]
        copied = self._find_copied(closed)
        needed, available = int(missing.sum()) + len(copied), 0
        if needed and needed > (available := self._pool.count_available()):
            raise OutOfPagesError("out of pages", needed, available)
        table.reserve(int(pages.max(initial=0)))
        new = self._pool.provide(needed, copied=list(copied.values())) if needed else []
        for sequence in closed:
            if written := self._get_written(sequence):
                copy = new.pop(0) if sequence in copied else None
                self._make_own(sequence, written, copy)
        for i in np.flatnonzero(missing):
            sequence, count = batch[i], missing[i]
            table.put(sequence.row, len(sequence.pages), new[:count])
            sequence.pages += new[:count]
            del new[:count]
        for sequence, chunk in zip(batch, tokens.chunks, strict=True):
            sequence.tokens.extend(chunk)
        table.totals[rows] = totals
        table.open[rows] |= tokens.counts > 0

    def _find_copied(self, closed: Iterable[Sequence]) -> dict[Sequence, Page]:
        """The pages that sequences copy before they write: the last that has one does not."""
        left: dict[Page, int] = {}
        copied = {}
        for sequence in closed:
            if written := self._get_written(sequence):
                left[written] = left.get(written, written.references) - 1
                if left[written]:
                    copied[sequence] = written
        return copied

    # --- Full pages ---------------------------------------------------------------

    def finish(self, batch: SequenceOf[Sequence], rows: np.ndarray) -> None:
        """Counts the pending tokens as in the cache, and lets later sequences find them."""
        table = self._table
        totals = table.totals[rows]
        if self._has_prefixes:
            full = totals // self._page_size
            first = table.lengths[rows] // self._page_size
            for i in np.flatnonzero(full > first):
                self._publish(batch[i], int(first[i]), int(full[i]))
        table.lengths[rows] = totals

    def _publish(self, sequence: Sequence, first: int, stop: int) -> None:
        """Lets later sequences find pages, or takes equal ones that they find already."""
        size = self._page_size
        encoded = encode(sequence.tokens[first * size : stop * size])
        for i in range(first, stop):
            parent = sequence.pages[i - 1].prefix if i else sequence.root
            assert parent
            start = (i - first) * size * 8
            tokens = encoded[start : start + size * 8]
            known = parent.children.get(tokens)
            if known and known.page:
                self._pool.merge(sequence.pages[i], known.page)
                sequence.replace(i, known.page)
            else:
                parent.add(tokens, sequence.pages[i])
