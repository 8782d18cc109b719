# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tokens, lengths and pages of sequences, in arrays that change in place."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..cache.groups import LayerGroup
from .group_tables import GroupTable
from .prefixes import Page, Prefix
from .retention import Retain
from .tokens import TOKEN, BatchTokens

_RECENT = 64  # tokens of a sequence that wait for their array, if a page is no larger


class BatchRows(NamedTuple):
    """The rows of a batch.

    Attributes:
        numbers: The row of each sequence, intp [batch].
        selector: A slice if these are consecutive, else the same numbers. A slice
            selects a view, which NumPy does not copy.
    """

    numbers: np.ndarray
    selector: np.ndarray | slice

    @classmethod
    def of(cls, numbers: np.ndarray) -> BatchRows:
        """Finds a slice for rows, if there is one."""
        if not len(numbers):
            return cls(numbers, numbers)
        first, stop = int(numbers[0]), int(numbers[-1]) + 1
        if stop - first == len(numbers) and (numbers[1:] > numbers[:-1]).all():
            return cls(numbers, slice(first, stop))
        return cls(numbers, numbers)


class SequenceTable:
    """The state of each sequence that a step reads for a whole batch, one row each.

    Attributes:
        lengths: Tokens in the cache, int64 [rows].
        totals: Tokens in the cache and pending tokens, int64 [rows].
        resident: Whether a sequence is not swapped out, bool [rows].
        given: Whether kernels got the pending tokens, if a group has states; bool
            [rows].
        recent: Tokens that steps of one token each added last, int64
            [rows, recent tokens]; they reach their arrays together.
        num_recent: The number of these in each row, int64 [rows].
        groups: The table of each group.
        has_states: Whether a group has states.
    """

    def __init__(self, groups: SequenceOf[LayerGroup], null_page: int) -> None:
        self._free: list[int] = []
        self.lengths = np.zeros(0, np.int64)
        self.totals = np.zeros(0, np.int64)
        self.resident = np.zeros(0, np.bool_)
        self.given = np.zeros(0, np.bool_)
        self.groups = tuple(
            GroupTable(number, group, null_page) for number, group in enumerate(groups)
        )
        base = math.gcd(*(group.border for group in self.groups))
        self.recent = np.zeros((0, _RECENT // base * base or _RECENT), np.int64)
        self.num_recent = np.zeros(0, np.int64)
        self.has_states = any(group.reach.is_state for group in groups)
        self.bounded = tuple(group for group in self.groups if group.is_bounded)

    def add(self) -> int:
        """Adds a row for a resident sequence without tokens."""
        if not self._free:
            self._add_rows(max(len(self.lengths), 8))
        return self._free.pop()

    def remove(self, row: int) -> None:
        """Gives back the row of a sequence without pages."""
        self.lengths[row] = self.totals[row] = self.num_recent[row] = 0
        self.resident[row] = True
        self.given[row] = False
        for group in self.groups:
            group.open[row] = False
            group.freed[row] = group.gone[row] = 0
        self._free.append(row)

    def add_tokens(
        self, batch: SequenceOf[Sequence], rows: BatchRows, tokens: BatchTokens
    ) -> None:
        """Adds tokens to sequences of a batch; one each are added to all at once."""
        if not tokens.are_single:
            tokens.add_to(sequence.tokens for sequence in batch)
        else:
            counts = self.num_recent[rows.selector]
            if counts.max(initial=0) == self.recent.shape[1]:
                self.make_room(batch, rows.numbers, 1)
                counts = self.num_recent[rows.selector]
            self.recent[rows.numbers, counts] = tokens.ids
            self.num_recent[rows.selector] = counts + 1
        self.totals[rows.selector] += tokens.counts

    def make_room(
        self, batch: SequenceOf[Sequence], rows: np.ndarray, count: int
    ) -> None:
        """Collects the recent tokens of sequences without room for ``count`` more."""
        most = self.recent.shape[1] - count
        full = np.flatnonzero(self.num_recent[rows] > most).tolist()
        for i in full:
            batch[i].collect_recent()

    def encode_recent(self, rows: np.ndarray, count: int) -> list[bytes]:
        """Encodes the last tokens of each row, if its recent tokens are a multiple of them.

        Others are empty.
        """
        chunks, rest = divmod(self.recent.shape[1], count)
        if rest:
            return [b""] * len(rows)
        filled, rest = np.divmod(self.num_recent[rows], count)
        last = rows * chunks + np.maximum(filled - 1, 0)
        encoded = self.recent.reshape(-1, count)[last].astype(">i8").tobytes()
        size, are_there = 8 * count, ((filled > 0) & (rest == 0)).tolist()
        return [
            encoded[i * size : (i + 1) * size] if is_there else b""
            for i, is_there in enumerate(are_there)
        ]

    def join_pending(
        self, batch: Iterable[Sequence], rows: BatchRows, pending: np.ndarray
    ) -> np.ndarray:
        """Joins the pending tokens of a batch, at least one per sequence, int64."""
        if pending.max() == 1:
            counts = self.num_recent[rows.selector]
            if counts.all():
                return self.recent[rows.numbers, counts - 1]
            return np.array([sequence.tokens[-1] for sequence in batch], np.int64)
        joined = array(TOKEN)
        for sequence, count in zip(batch, pending.tolist(), strict=True):
            joined += sequence.tokens[-count:]
        return np.array(joined, np.int64)

    def _add_rows(self, count: int) -> None:
        rows = len(self.lengths)
        for group in self.groups:
            if (
                len(group.open) == rows
            ):  # otherwise an earlier attempt ran out of memory
                group.add_rows(count)
        lengths, totals, given, num_recent = (
            np.concatenate([values, np.zeros(count, values.dtype)])
            for values in (self.lengths, self.totals, self.given, self.num_recent)
        )
        more = np.zeros((count, self.recent.shape[1]), np.int64)
        recent = np.concatenate([self.recent, more])
        resident = np.concatenate([self.resident, np.ones(count, np.bool_)])
        self.lengths, self.totals = lengths, totals
        self.resident, self.given = resident, given
        self.recent, self.num_recent = recent, num_recent
        self._free += range(rows, rows + count)[::-1]


def _make_tokens() -> array[int]:
    return array(TOKEN)


@dataclass(eq=False, slots=True)
class Sequence:
    """The tokens and the pages of a request; its pages have room for all its tokens.

    ``pages`` has a list for each group, with None for pages that no token reaches any
    more. ``prefix`` is the node of the tree at which the tokens in the cache end.
    ``retain`` has the hints for its cached pages.
    """

    prefix: Prefix
    table: SequenceTable
    row: int
    pages: list[list[Page | None]] = field(init=False)
    retain: tuple[Retain, ...] = ()
    _older: array[int] = field(default_factory=_make_tokens)  # before the recent ones

    def __post_init__(self) -> None:
        self.prefix.visitors += 1
        self.pages = [[] for _ in self.table.groups]

    @property
    def rows(self) -> slice:
        """Its row of the tables, as the rows of a batch of one."""
        return slice(self.row, self.row + 1)

    @property
    def tokens(self) -> array[int]:
        """The tokens in the cache, and the pending ones after them."""
        if self.table.num_recent.item(self.row):
            self.collect_recent()
        return self._older

    def collect_recent(self) -> None:
        """Moves the recent tokens from the table to the others."""
        table, row = self.table, self.row
        count = table.num_recent.item(row)
        self._older.frombytes(table.recent[row, :count].tobytes())
        table.num_recent[row] = 0

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
        if len(self.pages) == 1 and not self.table.bounded:
            return self.pages[0]  # type: ignore[return-value]  # none is None
        return [page for pages in self.pages for page in pages if page]

    def add(self, group: GroupTable, pages: SequenceOf[Page | None]) -> None:
        """Adds pages of a group; the last one belongs to this sequence alone."""
        own = self.pages[group.number]
        group.put(self.row, len(own), pages)
        own += pages
        group.open[self.row] = True

    def add_tokens(self, tokens: array[int]) -> None:
        """Adds tokens; the array may become the sequence's own."""
        if self.tokens:
            self._older += tokens
        else:
            self._older = tokens
        self.table.totals[self.row] = len(self._older)

    def replace(self, group: GroupTable, i: int, page: Page) -> None:
        """Replaces a page by one of the device with the same contents."""
        self.pages[group.number][i] = page
        group.pages[self.row, i] = page.address.index

    def set_length(self, length: int) -> None:
        self.table.lengths[self.row] = length

    def move_to(self, prefix: Prefix) -> None:
        """Moves the end of the tokens in the cache to another node of the tree."""
        prefix.visitors += 1
        self.prefix.visitors -= 1
        self.prefix = prefix

    def take(self, other: Sequence) -> None:
        """Becomes a copy of another sequence; the pages of both are open no longer."""
        self._older = other.tokens[:]
        self.pages = [pages[:] for pages in other.pages]
        self.retain = other.retain
        rows = [self.row, other.row]
        for values in (self.table.lengths, self.table.totals, self.table.resident):
            values[self.row] = values[other.row]
        for group in self.table.groups:
            group.pages[self.row] = group.pages[other.row]
            group.freed[self.row] = group.freed[other.row]
            group.gone[self.row] = group.gone[other.row]
            group.open[rows] = False

    def exchange(self, other: Sequence) -> None:
        """Swaps the contents of two sequences of one root."""
        self.row, other.row = other.row, self.row
        self._older, other._older = other._older, self._older
        self.pages, other.pages = other.pages, self.pages
        self.prefix, other.prefix = other.prefix, self.prefix
        self.retain, other.retain = other.retain, self.retain

    def choose(
        self, candidates: SequenceOf[Sequence], tokens: array[int]
    ) -> Sequence | None:
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
            own = self.pages[group.number]
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
        for group, pages in zip(self.table.groups, self.pages, strict=True):
            group.clear(self.row, 0, len(pages))
        self.table.resident[self.row] = False

    def mark_resident(self) -> None:
        """Marks the sequence as resident: all its pages are on the device."""
        for group, pages in zip(self.table.groups, self.pages, strict=True):
            group.put(self.row, 0, pages)
        self.table.resident[self.row] = True
