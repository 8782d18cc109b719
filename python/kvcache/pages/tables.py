# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tokens, lengths and page tables of sequences, in arrays that are changed in place."""

from __future__ import annotations

from array import array
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

import numpy as np

from .prefixes import Page, Prefix

_MULTIPLE = 8  # what the lookup table's columns are rounded up to
_PADDING = 16  # columns more, so that wide reads of a row stay inside


class SequenceTable:
    """A row for each sequence: what a step reads of a whole batch at once.

    Attributes:
        lengths: Tokens in the cache, int64 [rows].
        totals: Those and the pending ones, int64 [rows].
        resident: Whether a sequence is not swapped out, bool [rows].
        open: Whether the page that the next token comes into is known to be of this
            sequence alone, if that is not a new page; bool [rows].
        pages: Pages of resident sequences in the order of tokens, uint32
            [rows, columns]; unused entries name the null page.
    """

    def __init__(self, page_size: int, null_page: int) -> None:
        self.page_size = page_size
        self._null_page = null_page
        self._free: list[int] = []
        self.lengths = np.zeros(0, np.int64)
        self.totals = np.zeros(0, np.int64)
        self.resident = np.zeros(0, np.bool_)
        self.open = np.zeros(0, np.bool_)
        self.pages = np.zeros((0, self._round(0)), np.uint32)

    @staticmethod
    def _round(pages: int) -> int:
        return -(-pages // _MULTIPLE) * _MULTIPLE + _PADDING

    def add(self) -> int:
        """A row for a resident sequence without tokens."""
        if not self._free:
            self._add_rows(max(len(self.lengths), 8))
        row = self._free.pop()
        self.lengths[row] = self.totals[row] = 0
        self.resident[row] = True
        self.open[row] = False
        return row

    def remove(self, row: int) -> None:
        """Gives back the row of a sequence without pages."""
        self._free.append(row)

    def _add_rows(self, count: int) -> None:
        rows, columns = self.pages.shape
        more = np.full((count, columns), self._null_page, np.uint32)
        pages = np.concatenate([self.pages, more])
        lengths, totals, resident, is_open = (
            np.concatenate([values, np.zeros(count, values.dtype)])
            for values in (self.lengths, self.totals, self.resident, self.open)
        )
        self.lengths, self.totals, self.pages = lengths, totals, pages
        self.resident, self.open = resident, is_open
        self._free += range(rows, rows + count)[::-1]

    def reserve(self, pages: int) -> None:
        """Makes room for rows of so many pages."""
        rows, columns = self.pages.shape
        if (needed := self._round(pages)) > columns:
            shape = rows, max(needed, columns + columns // 2)
            wider = np.full(shape, self._null_page, np.uint32)
            wider[:, :columns] = self.pages
            self.pages = wider

    def put(self, row: int, start: int, pages: SequenceOf[Page]) -> None:
        """Writes pages of the device from a column on; ``reserve`` has made room."""
        self.pages[row, start : start + len(pages)] = [p.address.index for p in pages]

    def clear(self, row: int, start: int, stop: int) -> None:
        self.pages[row, start:stop] = self._null_page

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """The lookup table of a batch, with the columns of its longest sequence."""
        pages = self.count_pages(int(self.totals[rows].max()))
        return self.pages[rows, : self._round(pages)]

    def count_pages(self, tokens: int) -> int:
        return -(-tokens // self.page_size)


@dataclass(eq=False, slots=True)
class Sequence:
    """The tokens and the pages of a request; there is room for all its tokens."""

    root: Prefix
    table: SequenceTable
    row: int
    tokens: array[int]
    pages: list[Page]

    @property
    def length(self) -> int:
        """Tokens in the cache, the first ones."""
        return int(self.table.lengths[self.row])

    @property
    def pending(self) -> int:
        return len(self.tokens) - self.length

    @property
    def is_resident(self) -> bool:
        return bool(self.table.resident[self.row])

    def add(self, tokens: array[int], pages: SequenceOf[Page]) -> None:
        """Adds tokens, with the pages that they need, the last one its own."""
        self.table.put(self.row, len(self.pages), pages)
        self.pages += pages
        self.tokens += tokens
        self.table.totals[self.row] = len(self.tokens)
        self.table.open[self.row] = True

    def replace(self, i: int, page: Page) -> None:
        """Takes a page of the device with the same contents."""
        self.pages[i] = page
        self.table.pages[self.row, i] = page.address.index

    def set_length(self, length: int) -> None:
        self.table.lengths[self.row] = length

    def take(self, other: Sequence) -> None:
        """Becomes a copy of another sequence; the pages of both are open no longer."""
        self.tokens, self.pages = other.tokens[:], other.pages[:]
        for values in (
            self.table.pages,
            self.table.lengths,
            self.table.totals,
            self.table.resident,
        ):
            values[self.row] = values[other.row]
        self.table.open[[self.row, other.row]] = False

    def exchange(self, other: Sequence) -> None:
        """Swaps the contents of two sequences of one root."""
        self.row, other.row = other.row, self.row
        self.tokens, other.tokens = other.tokens, self.tokens
        self.pages, other.pages = other.pages, self.pages

    def choose(
        self, candidates: SequenceOf[Sequence], tokens: array[int]
    ) -> Sequence | None:
        """The first that has ``tokens`` behind those that this one has in the cache."""
        length = self.length
        wanted = self.tokens[:length] + tokens
        for each in candidates:
            if each.root is self.root and each.tokens[: len(wanted)] == wanted:
                return each
        return None

    def cut(self, length: int) -> list[Page]:
        """Forgets the tokens from ``length`` on; gives the pages of those, the last first."""
        count = self.table.count_pages(length)
        pages = self.pages[count:][::-1]
        self.table.clear(self.row, count, len(self.pages))
        del self.pages[count:], self.tokens[length:]
        self.table.totals[self.row] = length
        self.set_length(min(self.length, length))
        self.table.open[self.row] = False
        return pages

    def leave(self) -> None:
        """Says that the sequence is swapped out."""
        self.table.clear(self.row, 0, len(self.pages))
        self.table.resident[self.row] = False

    def come_back(self) -> None:
        """Says that all its pages are on the device again."""
        self.table.put(self.row, 0, self.pages)
        self.table.resident[self.row] = True
