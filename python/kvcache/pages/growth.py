# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The growth of sequences: plans, new pages for more tokens, and shared full pages."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from collections.abc import Sequence
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from ..errors import OutOfPagesError
from .batch_plans import BatchPlan, choose_copies, get_written, plan_batch
from .caching import PageCaching
from .collection import pause_collection
from .group_tables import Entries, GroupTable
from .matches import Finder, Match
from .pool import PagePool
from .prefixes import Page, Prefix
from .snapshot import Place, Source
from .tables import CachedSequence, SequenceTable
from .token_table import BatchRows
from .tokens import BatchTokens


class Plan(NamedTuple):
    """A plan of how a sequence gets its next tokens.

    It has a match only if the sequence ends at a page's end in each group.

    Attributes:
        match: The cached tokens to share or copy; None if nothing is looked up.
        missing: The number of pages for the tokens in each group, shared or not.
        written: The partial pages that the tokens are written to.
        needed: The number of pages of the device that it takes.
        available: The number of pages available for it.
    """

    match: Match | None
    missing: list[int]
    written: dict[GroupTable, Page]
    needed: int
    available: int

    @property
    def fits(self) -> bool:
        return self.needed <= self.available

    @property
    def found(self) -> int:
        """The number of tokens in the cache already."""
        return self.match.found if self.match else 0


class Growth:
    """Plans and executes the growth of sequences.

    Methods that raise change nothing before, except by evictions; see ``PagePool``.
    """

    def __init__(
        self, pool: PagePool, table: SequenceTable, has_prefixes: bool
    ) -> None:
        self._pool = pool
        self._table = table
        self._groups = table.groups
        self._finder = Finder(table.groups)
        self._caching = PageCaching(pool, table, self._finder)
        self._has_prefixes = has_prefixes
        self.found = dict.fromkeys(Source, 0)  # cached tokens, by their source

    def make_root(self, salt: bytes) -> Prefix:
        """Makes the root of the tree of prefixes of a salt."""
        return self._finder.make_root(salt)

    # --- One sequence -------------------------------------------------------------

    def plan(self, sequence: CachedSequence, tokens: array[int]) -> Plan:
        """The plan that shares most and fits; the last plan if none fits."""
        row, length, before = sequence.row, sequence.length, sequence.total
        total = before + len(tokens)
        missing = [group.count_pages(total) - len(group.lists[row]) for group in self._groups]
        written = self._list_written(sequence) if length else {}
        needed = sum(missing)
        if written:
            needed += sum(map(self._is_copied, written.values()))
        plan = Plan(None, missing, written, needed, self._pool.count_available())
        if not self._has_prefixes or length < before or not self._is_at_end(length):
            return plan
        match = self._finder.find(sequence, tokens)
        if match is None:
            return plan
        for each in self._list_matches(sequence, tokens, match):
            matched = self._use_match(plan, each) if each else plan
            if matched.fits:
                break
        return matched

    def _use_match(self, plan: Plan, match: Match) -> Plan:
        kept = match.kept
        passed = sum(map(len, match.pages))  # shared, or reached by no token
        needed = plan.needed - passed + len(self._pool.list_elsewhere(match.shared))
        available = self._pool.count_available(kept) if kept else plan.available
        return Plan(match, plan.missing, plan.written, needed, available)

    def _is_at_end(self, length: int) -> bool:
        """Whether the last page of each group is full, so that the next may be cached."""
        return not length or not any(length % group.page_size for group in self._groups)

    def _list_matches(
        self, sequence: CachedSequence, tokens: array[int], match: Match
    ) -> Iterator[Match | None]:
        """Yields the best match of tokens, then others that need less room."""
        yield match
        if match.partial:
            yield Match(match.prefix, match.length, match.pages)
        on_device = self._finder.find(
            sequence, tokens, lambda page: page.place is Place.DEVICE
        )
        if on_device:
            on_device.partial, on_device.common = None, 0
            yield on_device
        if not on_device or on_device.snapshots:
            yield None

    def count_taken(self, plan: Plan) -> int:
        """The number of available pages that a plan uses."""
        free = self._pool.count_available()
        shared = plan.match.shared if plan.match else ()
        return plan.needed + free - self._pool.count_available(shared)

    def grow(self, sequence: CachedSequence, tokens: array[int]) -> int:
        """Adds tokens to a sequence. Returns how many are in the cache already."""
        if not tokens:
            return 0
        if self._has_room(sequence, len(tokens)):
            sequence.add_tokens(tokens)
            return 0
        plan = self.plan(sequence, tokens)
        if plan.needed > plan.available:
            raise OutOfPagesError("out of pages", plan.needed, plan.available)
        for group, count in zip(self._groups, plan.missing, strict=True):
            group.reserve(len(group.lists[sequence.row]) + count)
        with pause_collection(sum(plan.missing)):
            return self._execute(sequence, tokens, plan)

    def _execute(self, sequence: CachedSequence, tokens: array[int], plan: Plan) -> int:
        """Adds tokens by a plan that fits, after the tables have room."""
        if plan.match:
            return self._grow_by_match(sequence, tokens, plan.match, plan.missing)
        count = sum(plan.missing)
        if plan.written:
            copies = self._choose_copied(plan.written, plan.available - plan.needed)
            new = self._pool.provide(count + len(copies), copied=[*copies.values()])
            own, new = new[: len(copies)], new[len(copies) :]
            for group, page in plan.written.items():
                copy = own.pop(0) if group in copies else None
                self._make_sole_user(sequence, group, page, copy)
        else:
            new = self._pool.provide(count)
        if len(self._groups) == 1:
            sequence.add(self._groups[0], new)
        else:
            pages = iter(new)
            for group, count in zip(self._groups, plan.missing, strict=True):
                self._add(sequence, group, [], islice(pages, count))
        sequence.add_tokens(tokens)
        return 0

    def _has_room(self, sequence: CachedSequence, count: int) -> bool:
        """Whether tokens fit in the pages that the sequence alone uses."""
        total, row = sequence.total + count, sequence.row
        for group in self._groups:
            if not group.open.item(row) or group.count_pages(total) > len(group.lists[row]):
                return False
        return True

    def _grow_by_match(
        self, sequence: CachedSequence, tokens: array[int], match: Match, missing: list[int]
    ) -> int:
        """Adds tokens by a plan with a match."""
        sources = match.list_sources()
        count = sum(missing) - sum(map(len, match.pages))
        shared = match.shared
        brought = self._pool.list_elsewhere(shared)
        fetched = [page for page in match.whole if page.is_fetched]
        is_slow = brought or fetched or self._pool.list_elsewhere([*sources.values()])
        elsewhere = match.count_elsewhere(self._groups) if is_slow else {}
        before = sequence.prefix
        sequence.move_to(match.prefix)  # keeps it in the tree while others make room
        try:
            provided = self._pool.provide(
                count, copied=[*sources.values()], brought=brought, kept=match.kept
            )
        except BaseException:
            self._move(sequence, before)
            raise
        self._count(match.found, elsewhere)
        for page in sources.values():  # a use, as of shared pages
            self._pool.refer(page, is_resident=False)
            self._pool.release(page, was_resident=False)
        for page in fetched:
            page.is_fetched = False
        new = iter(provided)
        begun = {number: next(new) for number in sources}
        self._pool.refer_all(shared)
        if sequence.retain:
            self._caching.retain_match(sequence, match)
        for group, pages, count in zip(
            self._groups, match.pages, missing, strict=True
        ):
            first = [begun[group.number]] if group.number in begun else []
            more = islice(new, count - len(pages) - len(first))
            self._add(sequence, group, pages, chain(first, more))
        sequence.add_tokens(tokens)
        if match.found:
            length = sequence.length + match.found
            sequence.set_length(length)
            self.free_unreached(sequence, length)
        return match.found

    def _count(self, found: int, elsewhere: dict[Source, int]) -> None:
        """Counts tokens that were found, all sources at once for other threads."""
        counts = self.found.copy()
        counts[Source.DEVICE] += found - sum(elsewhere.values())
        for source, count in elsewhere.items():
            counts[source] += count
        self.found = counts

    def _add(
        self,
        sequence: CachedSequence,
        group: GroupTable,
        shared: Sequence[Page | None],
        new: Iterable[Page],
    ) -> None:
        """Adds pages of a group to a sequence: shared ones, then new ones."""
        own = [*new]
        if group.number:
            for page in own:
                page.group = group.number
        sequence.add(group, [*shared, *own] if shared else own)

    def _list_written(self, sequence: CachedSequence) -> dict[GroupTable, Page]:
        """The partial pages that the next tokens are written to."""
        pages = ((group, get_written(sequence, group)) for group in self._groups)
        return {group: page for group, page in pages if page}

    def _choose_copied(
        self, written: dict[GroupTable, Page], spare: int
    ) -> dict[GroupTable, Page]:
        """Chooses the pages to copy: shared ones, and snapshots if there is room."""
        copies = {}
        for group, page in written.items():
            is_copied = self._is_copied(page)
            if is_copied or self._keeps(page, spare):
                copies[group] = page
                spare -= not is_copied
        return copies

    def _is_copied(self, written: Page) -> bool:
        return written.references > 1

    def _keeps(self, written: Page, spare: int) -> bool:
        """Whether a page of one sequence is copied to keep a snapshot cached."""
        is_state = self._groups[written.group].is_state
        return is_state and written.prefix is not None and spare > 0

    def _make_sole_user(
        self, sequence: CachedSequence, group: GroupTable, written: Page, copy: Page | None
    ) -> None:
        """Gives a sequence sole use of the page that it writes next, or of its copy."""
        if copy:
            copy.group = group.number
            sequence.replace(group, sequence.length // group.page_size, copy)
            self._pool.release(written, was_resident=True)
        else:
            self._pool.forget(written)

    def _move(self, sequence: CachedSequence, prefix: Prefix) -> None:
        """Moves a sequence to another node of the tree."""
        before = sequence.prefix
        if before is not prefix:
            sequence.move_to(prefix)
            before.prune()

    def free_unreached(self, sequence: CachedSequence, length: int) -> None:
        """Releases the pages that no token from ``length`` on reaches."""
        if self._table.bounded:
            self._free_all_unreached([sequence], sequence.rows, np.array([length]))

    def _free_all_unreached(
        self,
        batch: Sequence[CachedSequence],
        rows: np.ndarray | slice,
        lengths: np.ndarray,
    ) -> None:
        for group in self._table.bounded:
            firsts = group.find_firsts(lengths)
            passing = np.flatnonzero(firsts > group.freed[rows])
            if not len(passing):
                continue
            stops = firsts[passing]
            sequences = [batch[each] for each in passing]
            starts = group.free_unreached(np.array([each.row for each in sequences]), stops)
            for each, start, stop in zip(
                sequences, starts.tolist(), stops.tolist(), strict=True
            ):
                own = group.lists[each.row]
                for i in range(start, stop):
                    if page := own[i]:
                        own[i] = None
                        self._pool.release(page, True)

    # --- Ends ---------------------------------------------------------------------

    def copy(self, sequence: CachedSequence, count: int = 1) -> list[CachedSequence]:
        """Copies a sequence without pending tokens; the copies share its pages."""
        copies: list[CachedSequence] = []
        try:
            for _ in range(count):
                copies.append(self._begin_copy(sequence))
        except BaseException:
            for copy in copies:
                for group, pages in zip(self._groups, copy.pages, strict=True):
                    group.clear(copy.row, 0, len(pages))
                self._table.remove(copy.row)
            raise
        is_resident = sequence.is_resident
        for page in sequence.list_pages():
            for _ in copies:
                self._pool.refer(page, is_resident)
        return copies

    def _begin_copy(self, sequence: CachedSequence) -> CachedSequence:
        """Copies a sequence without adding references to its pages."""
        new = CachedSequence(self._table, self._table.add(sequence.prefix))
        try:
            new.take(sequence)
        except BaseException:
            self._table.remove(new.row)
            raise
        return new

    def cut(self, sequence: CachedSequence, length: int) -> None:
        """Drops the tokens from ``length`` on."""
        is_resident, before = sequence.is_resident, sequence.length
        # The last page first: it must not outlive the pages before it.
        for page in sequence.cut(length):
            self._pool.release(page, is_resident)
        if self._has_prefixes and length < before:
            prefix, base = sequence.prefix, self._finder.base
            for _ in range(before // base - length // base):
                assert prefix.parent
                prefix = prefix.parent
            self._move(sequence, prefix)

    def commit(self, sequence: CachedSequence, source: CachedSequence, length: int) -> None:
        """Gives a sequence the first tokens of ``source``, all written.

        The source gets the contents of the sequence.
        """
        if source is not sequence:
            sequence.exchange(source)
        self.cut(sequence, length)
        self.finish([sequence], sequence.rows)

    def end(self, sequence: CachedSequence) -> None:
        self.cut(sequence, 0)
        self.drop(sequence)

    def drop(self, sequence: CachedSequence) -> None:
        """Ends a sequence that has released its pages."""
        self._table.remove(sequence.row)

    # --- A batch ------------------------------------------------------------------

    def grow_batch(
        self, batch: Sequence[CachedSequence], rows: BatchRows, tokens: BatchTokens
    ) -> None:
        """Adds tokens to each sequence, without looking them up in the cache."""
        plans, needed, available = self.plan_batch(batch, rows, tokens)
        if needed > available:
            raise OutOfPagesError("out of pages", needed, available)
        if needed:
            totals = self._table.totals[rows.selector] + tokens.counts
            longest = int(totals.max(initial=0))
            for group in self._groups:
                group.reserve(group.count_pages(longest))
        copies = choose_copies(plans, available - needed)
        copied = [page for each in copies for page in each.values()]
        new: list[Page] = []
        if needed or copied:
            count = sum(len(plan.missing.row) for plan in plans) + len(copied)
            new = self._pool.provide(count, copied=copied)
        own, new = new[: len(copied)], new[len(copied) :]
        if tokens.are_single:
            growing = rows.selector
        else:
            growing = rows.numbers[tokens.counts > 0]
        for group, plan, sources in zip(self._groups, plans, copies, strict=True):
            for sequence in plan.closed:
                if written := get_written(sequence, group):
                    copy = own.pop(0) if sequence in sources else None
                    self._make_sole_user(sequence, group, written, copy)
            self._place(rows.numbers, group, plan.missing, new)
            group.open[growing] = True
        self._table.add_tokens(rows, tokens)

    def plan_batch(
        self, batch: Sequence[CachedSequence], rows: BatchRows, tokens: BatchTokens
    ) -> tuple[list[BatchPlan], int, int]:
        """Plans the growth of a batch by group; counts needed and available pages."""
        plans, needed = plan_batch(self._table, batch, rows, tokens)
        is_asked = needed or any(plan.snapshots for plan in plans)
        return plans, needed, self._pool.count_available() if is_asked else 0

    def _place(
        self,
        rows: np.ndarray,
        group: GroupTable,
        missing: Entries,
        new: list[Page],
    ) -> None:
        """Adds the missing pages of a group to rows, from the first of ``new``."""
        count, lists = len(missing.row), group.lists
        pages, new[:count] = new[:count], []
        if not count:
            return
        if group.number:
            for page in pages:
                page.group = group.number
        growing = rows[missing.row]
        for row, page in zip(growing.tolist(), pages, strict=True):
            lists[row].append(page)
        group.pages[growing, missing.column] = [page.index for page in pages]

    # --- Full pages ---------------------------------------------------------------

    def finish(
        self, batch: Sequence[CachedSequence], rows: np.ndarray | slice
    ) -> None:
        """Marks pending tokens as in the cache, and caches full pages."""
        table = self._table
        totals = table.totals[rows]
        if self._has_prefixes:
            self._caching.cache(batch, rows, totals)
        table.lengths[rows] = totals
        if table.has_states:
            table.given[rows] = False
        self._free_all_unreached(batch, rows, totals)
