# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tokens, lengths and pages of sequences, in arrays that change in place."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..cache.groups import LayerGroup
from .group_tables import GroupTable
from .prefixes import Page, Prefix
from .retention import Retain
from .token_table import BatchRows, TokenTable
from .tokens import TOKEN, BatchTokens

_NOWHERE = Prefix()  # the node of rows that no sequence uses


class SequenceTable:
    """The state of each sequence that a step reads for a whole batch, one row each.

    Attributes:
        lengths: Tokens in the cache, int64 [rows].
        totals: Tokens in the cache and pending tokens, int64 [rows].
        resident: Whether a sequence is not swapped out, bool [rows].
        given: Whether kernels got the pending tokens, if a group has states; bool
            [rows].
        tokens: The tokens of each sequence.
        prefixes: The node of the tree at which the tokens in the cache end, by row.
        hints: The hints for the cached pages of sequences that have some, by row.
        groups: The table of each group.
        has_states: Whether a group has states.
    """

    def __init__(self, groups: Sequence[LayerGroup], null_page: int) -> None:
        self._free: list[int] = []
        self.lengths = np.zeros(0, np.int64)
        self.totals = np.zeros(0, np.int64)
        self.resident = np.zeros(0, np.bool_)
        self.given = np.zeros(0, np.bool_)
        self.groups = tuple(
            GroupTable(number, group, null_page) for number, group in enumerate(groups)
        )
        base = math.gcd(*(group.border for group in self.groups))
        self.tokens = TokenTable(base)
        self.prefixes: list[Prefix] = []
        self.hints: dict[int, tuple[Retain, ...]] = {}
        self.has_states = any(group.reach.is_state for group in groups)
        self.bounded = tuple(group for group in self.groups if group.is_bounded)

    def add(self, root: Prefix) -> int:
        """Adds a row for a resident sequence without tokens."""
        if not self._free:
            self._add_rows(max(len(self.lengths), 8))
        row = self._free.pop()
        self.prefixes[row] = root
        root.visitors += 1
        return row

    def remove(self, row: int) -> None:
        """Gives back the row of a sequence, after it has released its pages."""
        self.prefixes[row].visitors -= 1
        self.prefixes[row] = _NOWHERE
        self.hints.pop(row, None)
        self.lengths[row] = self.totals[row] = 0
        self.tokens.set(row, array(TOKEN))
        self.resident[row] = True
        self.given[row] = False
        for group in self.groups:
            group.open[row] = False
            group.freed[row] = group.gone[row] = 0
            group.lists[row] = []
        self._free.append(row)

    def reclaim(self, used: Iterable[int]) -> None:
        """Gives back the rows that are neither free nor in ``used``."""
        for row in {*range(len(self.lengths))}.difference(used, self._free):
            self.remove(row)

    def add_tokens(self, rows: BatchRows, tokens: BatchTokens) -> None:
        """Adds tokens to rows; one each are added to all at once."""
        if tokens.are_single:
            self.tokens.add_each(rows, tokens.ids)
        else:
            tokens.add_to(map(self.tokens.get, rows.numbers.tolist()))
        self.totals[rows.selector] += tokens.counts

    def join_pending(self, rows: BatchRows, pending: np.ndarray) -> np.ndarray:
        """Joins the pending tokens of rows, at least one each, int64."""
        if pending.max() == 1:
            return self.tokens.get_last(rows)
        joined = array(TOKEN)
        for row, count in zip(rows.numbers.tolist(), pending.tolist(), strict=True):
            joined += self.tokens.get(row)[-count:]
        return np.array(joined, np.int64)

    def _add_rows(self, count: int) -> None:
        rows = len(self.lengths)
        tables: list[GroupTable | TokenTable] = [*self.groups, self.tokens]
        for each in tables:
            if len(each) == rows:  # otherwise an earlier attempt ran out of memory
                each.add_rows(count)
        lengths, totals, given = (
            np.concatenate([values, np.zeros(count, values.dtype)])
            for values in (self.lengths, self.totals, self.given)
        )
        resident = np.concatenate([self.resident, np.ones(count, np.bool_)])
        self.lengths, self.totals = lengths, totals
        self.resident, self.given = resident, given
        self.prefixes += [_NOWHERE] * (rows + count - len(self.prefixes))
        self._free += range(rows, rows + count)[::-1]


def _copy_with_room(pages: Sequence[Page | None]) -> list[Page | None]:
    """Copies pages to a list that has room for some more.

    Python makes a list without room, so the first steps of a sequence would move it.
    """
    copied = [*pages, *pages[: len(pages) // 8]]
    del copied[len(pages) :]
    return copied


@dataclass(eq=False, slots=True)
class CachedSequence:
    """The tokens and the pages of a request, which are in a row of the tables.

    Its pages have room for all its tokens.
    """

    table: SequenceTable
    row: int

    @property
    def prefix(self) -> Prefix:
        """The node of the tree at which the tokens in the cache end."""
        return self.table.prefixes[self.row]

    @property
    def pages(self) -> list[list[Page | None]]:
        """The pages of each group, in the order of tokens."""
        return [group.lists[self.row] for group in self.table.groups]

    @property
    def retain(self) -> tuple[Retain, ...]:
        """The hints for its cached pages."""
        return self.table.hints.get(self.row, ())

    @retain.setter
    def retain(self, hints: tuple[Retain, ...]) -> None:
        if hints:
            self.table.hints[self.row] = hints
        else:
            self.table.hints.pop(self.row, None)

    @property
    def rows(self) -> slice:
        """Its row of the tables, as the rows of a batch of one."""
        return slice(self.row, self.row + 1)

    @property
    def tokens(self) -> array[int]:
        """The tokens in the cache, and the pending ones after them."""
        return self.table.tokens.get(self.row)

    @property
    def total(self) -> int:
        """The number of tokens in the cache and pending ones."""
        return self.table.totals.item(self.row)

    @property
    def length(self) -> int:
        """The number of tokens in the cache, the first of the sequence."""
        return self.table.lengths.item(self.row)

    @property
    def pending(self) -> int:
        return self.total - self.length

    @property
    def is_resident(self) -> bool:
        return self.table.resident.item(self.row)

    def list_pages(self) -> list[Page]:
        """The pages of all groups, each in the order of tokens."""
        if len(self.table.groups) == 1 and not self.table.bounded:
            return self.table.groups[0].lists[self.row]  # type: ignore[return-value]  # none is None
        return [page for pages in self.pages for page in pages if page]

    def add(self, group: GroupTable, pages: Sequence[Page | None]) -> None:
        """Adds pages of a group; the last one belongs to this sequence alone."""
        own = group.lists[self.row]
        group.put(self.row, len(own), pages)
        if own:
            own += pages
        else:
            group.lists[self.row] = _copy_with_room(pages)
        group.open[self.row] = True

    def add_tokens(self, tokens: array[int]) -> None:
        """Adds tokens; the array may become the sequence's own."""
        table, row = self.table, self.row
        if total := table.totals.item(row):
            table.tokens.get(row).extend(tokens)
        else:
            table.tokens.set(row, tokens)
        table.totals[row] = total + len(tokens)

    def replace(self, group: GroupTable, i: int, page: Page) -> None:
        """Replaces a page by one of the device with the same contents."""
        group.lists[self.row][i] = page
        group.pages[self.row, i] = page.index

    def set_length(self, length: int) -> None:
        self.table.lengths[self.row] = length

    def move_to(self, prefix: Prefix) -> None:
        """Moves the end of the tokens in the cache to another node of the tree."""
        prefixes, row = self.table.prefixes, self.row
        prefix.visitors += 1
        prefixes[row].visitors -= 1
        prefixes[row] = prefix

    def take(self, other: CachedSequence) -> None:
        """Becomes a copy of another sequence; the pages of both are open no longer."""
        self.table.tokens.set(self.row, other.tokens[:])
        self.retain = other.retain
        rows = [self.row, other.row]
        for values in (self.table.lengths, self.table.totals, self.table.resident):
            values[self.row] = values[other.row]
        for group in self.table.groups:
            group.lists[self.row] = group.lists[other.row][:]
            group.pages[self.row] = group.pages[other.row]
            group.freed[self.row] = group.freed[other.row]
            group.gone[self.row] = group.gone[other.row]
            group.open[rows] = False

    def exchange(self, other: CachedSequence) -> None:
        """Swaps the contents of two sequences of one root."""
        self.row, other.row = other.row, self.row

    def choose(
        self, candidates: Sequence[CachedSequence], tokens: array[int]
    ) -> CachedSequence | None:
        """Chooses the first candidate that continues this sequence's cache by
        ``tokens``.

        It must also be possible to cut it to them."""
        length = self.length
        stop = length + len(tokens)
        for each in candidates:
            if each.prefix.salt != self.prefix.salt or each.tokens[length:stop] != tokens:
                continue
            if each is not self and each.tokens[:length] != self.tokens[:length]:
                continue
            if each.find_obstacle(stop, is_written=True) is None:
                return each
        return None

    def find_obstacle(self, length: int, is_written: bool = False) -> str | None:
        """The reason why the sequence can't be cut to ``length`` tokens, or None.

        ``is_written`` means that kernels have put all of them in the cache.
        """
        if length in (0, self.total):
            return None
        if self.table.has_states:
            is_given = is_written or self.table.given[self.row]
            if is_given or length < self.length:
                return "its state already includes later tokens"
        for group in self.table.bounded:
            if gone := group.find_gone(self.row, length):
                return f"{gone} that group {group.number} reaches from there are gone"
        return None

    def cut(self, length: int) -> list[Page]:
        """Drops the tokens from ``length`` on; returns their pages, the last first."""
        table = self.table
        gone: list[tuple[int, Page]] = []
        for group in table.groups:
            count = group.count_pages(length)
            own = group.lists[self.row]
            group.clear(self.row, count, len(own))
            if len(table.groups) == 1 and not table.bounded:
                result: list[Page] = own[count:][::-1]  # type: ignore[assignment]
            else:
                gone += (
                    (i * group.border, page)
                    for i, page in enumerate(own[count:], count)
                    if page
                )
            del own[count:]
            group.open[self.row] = False
            if group.is_bounded:
                group.forget_gone(self.row, length)
        del self.tokens[length:]
        table.totals[self.row] = length
        if not length:
            table.given[self.row] = False
        self.set_length(min(self.length, length))
        if len(table.groups) == 1 and not table.bounded:
            return result
        gone.sort(key=lambda each: each[0], reverse=True)
        return [page for _, page in gone]

    def mark_swapped_out(self) -> None:
        """Marks the sequence as swapped out."""
        for group in self.table.groups:
            group.clear(self.row, 0, len(group.lists[self.row]))
        self.table.resident[self.row] = False

    def mark_resident(self) -> None:
        """Marks the sequence as resident: all its pages are on the device."""
        for group in self.table.groups:
            group.put(self.row, 0, group.lists[self.row])
        self.table.resident[self.row] = True
