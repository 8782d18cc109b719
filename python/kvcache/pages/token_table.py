# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tokens of sequences, to which a step adds one each for a whole batch."""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np

from .tokens import TOKEN, encode

_RECENT = 64  # tokens of a row that wait for their array, if a page is no larger
_ENCODED = np.dtype(">i8")  # the form of ``encode``


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


class TokenTable:
    """The tokens of each sequence, one row each.

    Steps of one token add to an array for all rows at once. From there, the tokens of a
    row reach its own array together.

    Args:
        base: The number of tokens of a node of the tree of prefixes.
    """

    def __init__(self, base: int) -> None:
        self._base = base
        self._older: list[array[int]] = []  # before the recent ones
        self._recent = np.zeros((0, _RECENT // base * base or _RECENT), np.int64)
        self._num_recent = np.zeros(0, np.int64)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._older)

    def add_rows(self, count: int) -> None:
        more = np.zeros((count, self._recent.shape[1]), np.int64)
        recent = np.concatenate([self._recent, more])
        num_recent = np.concatenate([self._num_recent, np.zeros(count, np.int64)])
        older = [*self._older, *(array(TOKEN) for _ in range(count))]
        self._recent, self._num_recent, self._older = recent, num_recent, older

    def get(self, row: int) -> array[int]:
        """Returns the tokens of a row, which the caller may change."""
        if self._num_recent.item(row):
            self._collect(np.array([row]))
        return self._older[row]

    def set(self, row: int, tokens: array[int]) -> None:
        """Replaces the tokens of a row; the array becomes the row's own."""
        self._num_recent[row] = 0
        self._older[row] = tokens

    def add_each(self, rows: BatchRows, ids: np.ndarray) -> None:
        """Adds one token to each row."""
        counts = self._num_recent[rows.selector]
        if counts.max(initial=0) == self._recent.shape[1]:
            self.make_room(rows.numbers, 1)
            counts = self._num_recent[rows.selector]
        self._recent.reshape(-1)[self._find_entries(rows, counts)] = ids
        self._num_recent[rows.selector] = counts + 1

    def get_last(self, rows: BatchRows) -> np.ndarray:
        """Returns the last token of each row, int64 [rows]."""
        counts = self._num_recent[rows.selector]
        if counts.all():
            return self._recent.reshape(-1)[self._find_entries(rows, counts) - 1]
        return np.array([self.get(row)[-1] for row in rows.numbers.tolist()], np.int64)

    def make_room(self, rows: np.ndarray, count: int) -> None:
        """Collects the recent tokens of rows without room for ``count`` more."""
        full = rows[self._num_recent[rows] > self._recent.shape[1] - count]
        if len(full):
            self._collect(full)

    def encode(
        self, rows: np.ndarray, starts: np.ndarray, stops: np.ndarray, totals: np.ndarray
    ) -> list[bytes]:
        """Encodes the tokens from a start to a stop of each row, which has ``totals``."""
        recent, base = self._num_recent[rows], self._base
        ends = rows * self._recent.shape[1] + recent
        last = self._recent.reshape(-1).take(ends[:, None] + np.arange(-base, 0))
        encoded: list[bytes] = last.astype(_ENCODED).view(f"V{8 * base}").ravel().tolist()
        # Mostly, steps of one token have filled one node.
        has_one = (stops - starts == base) & (stops == totals)
        for i in (~has_one | (recent < base)).nonzero()[0].tolist():
            row, start, stop = rows.item(i), starts.item(i), stops.item(i)
            if has_one[i] and (count := recent.item(i)):
                encoded[i] = encode(self._older[row], start) + encoded[i][-8 * count :]
            else:
                encoded[i] = encode(self.get(row), start, stop)
        return encoded

    def _find_entries(self, rows: BatchRows, columns: np.ndarray) -> np.ndarray:
        """Finds entries of the recent tokens by one index, which is faster than by two."""
        return rows.numbers * self._recent.shape[1] + columns

    def _collect(self, rows: np.ndarray) -> None:
        """Moves the recent tokens of rows to their arrays."""
        size = 8 * self._recent.shape[1]
        encoded, counts = self._recent[rows].tobytes(), self._num_recent[rows].tolist()
        for i, (row, count) in enumerate(zip(rows.tolist(), counts, strict=True)):
            self._older[row].frombytes(encoded[i * size : i * size + 8 * count])
        self._num_recent[rows] = 0
