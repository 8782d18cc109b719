# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page tables of sequences in a group of layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..cache.groups import LayerGroup
from .prefixes import Page

_MULTIPLE = 8  # the lookup table's columns are rounded up to a multiple of it
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
        lists: The pages of each row in the order of tokens, None for those that no
            token reaches any more.
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
        self.lists: list[list[Page | None]] = []

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.lists)

    def add_rows(self, count: int) -> None:
        more = np.full((count, self.pages.shape[1]), self._null_page, np.uint32)
        pages = np.concatenate([self.pages, more])
        is_open = np.concatenate([self.open, np.zeros(count, np.bool_)])
        freed, gone = (
            np.concatenate([values, np.zeros(count, np.int64)])
            for values in (self.freed, self.gone)
        )
        lists = [*self.lists, *([] for _ in range(count))]
        self.pages, self.open, self.freed, self.gone = pages, is_open, freed, gone
        self.lists = lists

    def reserve(self, pages: int) -> None:
        """Makes room for rows of ``pages`` pages."""
        rows, columns = self.pages.shape
        if (needed := _round(pages)) > columns:
            shape = rows, max(needed, columns + columns // 2)
            wider = np.full(shape, self._null_page, np.uint32)
            wider[:, :columns] = self.pages
            self.pages = wider

    def put(self, row: int, start: int, pages: Sequence[Page | None]) -> None:
        """Writes pages of the device from column ``start`` on, after ``reserve``."""
        self.pages[row, start : start + len(pages)] = [
            page.index if page else self._null_page for page in pages
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


class Entries(NamedTuple):
    """Entries of a table: the index of each row in the given rows, and the column."""

    row: np.ndarray
    column: np.ndarray


def list_ranges(starts: np.ndarray, counts: np.ndarray) -> Entries:
    """Lists ``counts`` entries of each row from ``starts`` on, one row after another."""
    rows = counts.nonzero()[0]  # mostly few
    starts, counts = starts[rows], counts[rows]
    before = counts.cumsum() - counts
    row = rows.repeat(counts)
    return Entries(row, np.arange(len(row)) + (starts - before).repeat(counts))


def _round(pages: int) -> int:
    return -(-pages // _MULTIPLE) * _MULTIPLE + _PADDING
