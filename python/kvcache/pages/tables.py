# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tokens, lengths and page tables of sequences, in arrays that change in place."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..cache.groups import LayerGroup
from .prefixes import Page, Prefix
from .retention import Retain
from .tokens import TOKEN, BatchTokens

_MULTIPLE = 8  # the lookup table's columns are rounded up to a multiple of it
_RECENT = 64  # the most tokens of a sequence that wait for their array
_PADDING = 16  # more columns, so that wide reads of a row stay inside


class GroupTable:
    """The pages of each sequence in a group of layers, one row per sequence.

    Attributes:
        number: The number of the group.
        page_size: Tokens per page of the pool.
        border: Tokens between two positions at which a prefix of the group can end.
        reach: The tokens that later tokens reach.
        open: Whether the partial page of the next token is known to belong to this
            sequence alone, bool [rows].
        freed: The first page after the sinks that may still be reached, int64 [rows].
        gone: The first token after the sinks that is in the cache, if its page lacks
            earlier tokens, else 0; int64 [rows].
        pages: The pages of resident sequences in the order of tokens, uint32
            [rows, columns]; unused entries name the null page.
    """

    def __init__(self, number: int, group: LayerGroup, null_page: int) -> None:
        self.number = number
        self.page_size = group.tokens
        self.border = group.border
        self.reach = group.reach
        self._split = group.split
        self._null_page = null_page
        self._sinks = -(-group.reach.sinks // self.page_size)
        self.is_state = group.reach.is_state
        self.is_bounded = group.reach.kind in ("window", "chunk")
        self.open = np.zeros(0, np.bool_)
        self.freed = np.zeros(0, np.int64)
        self.gone = np.zeros(0, np.int64)
        self.pages = np.zeros((0, _round(0)), np.uint32)

    def add_rows(self, count: int) -> None:
        more = np.full((count, self.pages.shape[1]), self._null_page, np.uint32)
        pages = np.concatenate([self.pages, more])
        is_open = np.concatenate([self.open, np.zeros(count, np.bool_)])
        freed, gone = (
            np.concatenate([values, np.zeros(count, np.int64)])
            for values in (self.freed, self.gone)
        )
        self.pages, self.open, self.freed, self.gone = pages, is_open, freed, gone

    def reserve(self, pages: int) -> None:
        """Makes room for rows of ``pages`` pages."""
        rows, columns = self.pages.shape
        if (needed := _round(pages)) > columns:
            shape = rows, max(needed, columns + columns // 2)
            wider = np.full(shape, self._null_page, np.uint32)
            wider[:, :columns] = self.pages
            self.pages = wider

    def put(self, row: int, start: int, pages: SequenceOf[Page | None]) -> None:
        """Writes pages of the device from column ``start`` on, after ``reserve``."""
        self.pages[row, start : start + len(pages)] = [
            page.address.index if page else self._null_page for page in pages
        ]

    def list_pages(self, row: int, start: int, stop: int) -> np.ndarray:
        """The pages of a row, int32 [pages]; -1 for pages that no token reaches now."""
        pages = self.pages[row, start:stop].astype(np.int32)
        if self.is_bounded:
            pages[pages == self._null_page] = -1
        return pages

    def clear(self, row: int, start: int, stop: int) -> None:
        self.pages[row, start:stop] = self._null_page

    def free_unreached(self, rows: np.ndarray, firsts: np.ndarray) -> np.ndarray:
        """Clears the pages before the first pages that are still reached.

        Returns the first cleared column of each row; the last is before ``firsts``.
        """
        starts = np.maximum(self.freed[rows], self._sinks)
        self.freed[rows] = firsts
        gone = list_ranges(starts, np.maximum(firsts - starts, 0))
        self.pages[rows[gone.row], gone.column] = self._null_page
        return starts

    def gather(self, rows: np.ndarray | slice, total: int) -> np.ndarray:
        """The lookup table of a batch whose longest sequence has ``total`` tokens.

        It may be a view of this table, to be copied before that changes.
        """
        pages = self.count_pages(total)
        if self._split == 1:
            return self.pages[:, : _round(pages)][rows]
        # The padding names the null page, all of which may be read.
        columns = _round(pages * self._split)
        taken = self.pages[rows, : -(-columns // self._split)]
        parts = np.arange(self._split, dtype=np.uint32)
        split = taken[:, :, None] * np.uint32(self._split) + parts
        return split.reshape(len(taken), -1)[:, :columns]

    def count_pages(self, tokens: int) -> int:
        return -(-tokens // self.page_size)

    def find_first(self, length: int) -> int:
        """The first page after the sinks that tokens from ``length`` on may reach."""
        return self.reach.first(length) // self.page_size

    def find_firsts(self, lengths: np.ndarray) -> np.ndarray:
        """Computes ``find_first`` for each length."""
        tokens = self.reach.tokens
        if self.reach.kind == "window":
            return np.maximum(lengths - (tokens - 1), 0) // self.page_size
        return lengths // tokens * tokens // self.page_size

    def find_needed(self, numbers: np.ndarray, length: int) -> np.ndarray:
        """Whether tokens from ``length`` on reach each page, bool [pages]."""
        if self.reach.is_full:
            return ~np.zeros(len(numbers), np.bool_)
        return (numbers >= self.find_first(length)) | (numbers < self._sinks)

    def has_gap(self, row: int, page: int) -> bool:
        """Whether a full page of a sequence lacks tokens."""
        if not self.is_bounded:
            return False
        start = page * self.page_size
        is_after_sinks = start + self.page_size > self.reach.sinks
        return is_after_sinks and start < int(self.gone[row])

    def list_sinks(self, first: int) -> range:
        """The pages before page ``first`` that are always reached."""
        return range(min(self._sinks, first))

    def find_gone(self, row: int, length: int) -> str | None:
        """Describes the missing tokens that tokens from ``length`` on would reach."""
        first, stop = self.find_first(length), self.count_pages(length)
        if max(first, self._sinks) < min(int(self.freed[row]), stop):
            return "pages"
        if self.reach.first(length) < min(int(self.gone[row]), length):
            return "tokens"
        return None

    def forget_gone(self, row: int, length: int) -> None:
        """Clears ``gone`` where a sequence was cut before it."""
        self.freed[row] = min(int(self.freed[row]), self.count_pages(length))
        self.gone[row] = min(int(self.gone[row]), length)


def as_slice(rows: np.ndarray) -> np.ndarray | slice:
    """Converts consecutive rows to a slice, which NumPy does not copy."""
    first, stop = int(rows[0]), int(rows[-1]) + 1
    if stop - first == len(rows) and (rows[1:] > rows[:-1]).all():
        return slice(first, stop)
    return rows


class Entries(NamedTuple):
    """Entries of a table: the index of each row in the given rows, and the column."""

    row: np.ndarray
    column: np.ndarray


def list_ranges(starts: np.ndarray, counts: np.ndarray) -> Entries:
    """Lists ``counts`` entries of each row from ``starts`` on, one row after another."""
    row = np.arange(len(counts)).repeat(counts)
    before = counts.cumsum() - counts
    return Entries(row, np.arange(len(row)) + (starts - before)[row])


def _round(pages: int) -> int:
    return -(-pages // _MULTIPLE) * _MULTIPLE + _PADDING


class SequenceTable:
    """The state of each sequence that a step reads for a whole batch, one row each.

    Attributes:
        lengths: Tokens in the cache, int64 [rows].
        totals: Tokens in the cache and pending tokens, int64 [rows].
        resident: Whether a sequence is not swapped out, bool [rows].
        given: Whether kernels got the pending tokens, if a group has states; bool
            [rows].
        recent: Tokens that steps of one token each added last, int64
            [rows, recent tokens].
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
        # As many as a page has, so that steps fill both at the same time.
        width = min(_RECENT, *(group.border for group in self.groups))
        self.recent = np.zeros((0, width), np.int64)
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
        self, batch: SequenceOf[Sequence], rows: np.ndarray, tokens: BatchTokens
    ) -> None:
        """Adds tokens to sequences of a batch; one each are added to all at once."""
        if not (tokens.counts == 1).all():
            tokens.add_to(sequence.tokens for sequence in batch)
        else:
            counts = self.num_recent[rows]
            for i in np.flatnonzero(counts == self.recent.shape[1]).tolist():
                batch[i].collect_recent()
                counts[i] = 0
            self.recent[rows, counts] = tokens.ids
            self.num_recent[rows] = counts + 1
        self.totals[rows] += tokens.counts

    def collect_recent(self, batch: Iterable[Sequence], rows: np.ndarray) -> list[bytes]:
        """Calls ``collect_recent`` of each sequence; returns these tokens, encoded."""
        recent, sizes = self.recent[rows], (8 * self.num_recent[rows]).tolist()
        width = 8 * self.recent.shape[1]
        native, encoded = recent.tobytes(), recent.astype(">i8").tobytes()
        start = 0
        for sequence, size in zip(batch, sizes, strict=True):
            sequence.extend_older(native[start : start + size])
            start += width
        self.num_recent[rows] = 0
        return [encoded[i * width : i * width + size] for i, size in enumerate(sizes)]

    def join_pending(
        self, batch: Iterable[Sequence], rows: np.ndarray, pending: np.ndarray
    ) -> np.ndarray:
        """Joins the pending tokens of a batch, at least one per sequence, int64."""
        if (pending == 1).all():
            counts = self.num_recent[rows]
            if counts.all():
                return self.recent[rows, counts - 1]
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

    def extend_older(self, tokens: bytes) -> None:
        """Adds bytes of tokens to those that are not in the table."""
        self._older.frombytes(tokens)

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
        own = self.tokens
        own += tokens
        self.table.totals[self.row] = len(own)

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
        wanted = self.tokens[:length] + tokens
        root = self.prefix.root
        for each in candidates:
            if each.prefix.root is root and each.tokens[: len(wanted)] == wanted:
                if each.find_obstacle(len(wanted), is_written=True) is None:
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
