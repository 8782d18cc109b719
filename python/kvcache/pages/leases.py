# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Leases of pages that another machine reads, and receptions of pages that it sends."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Self

import numpy as np

from .tables import CachedSequence


class Lease:
    """The pages of a sequence, pinned while another machine reads them.

    ``PagedKVCacheManager.export`` makes one. The pages stay as they are while the
    sequence grows, is released or is swapped out. A lease ends by ``end``, at the end
    of its ``with``, or when its time is up: the manager takes the pages back at its
    next call that looks for room. Data that was read is valid only if ``end`` returns
    True.

    Attributes:
        request: The name of the sequence.
        tokens: The ids of the tokens in the pages, int64 [tokens].
        pages: The pages of the device in the order of the tokens, int32 [pages], one
            group of layers after another; -1 for a page that no later token reaches.
        gone: The first token after the sinks in the pages of each group of layers, if
            its page lacks earlier tokens; else 0. A conversion from pages of another
            size can leave such pages. Empty if all are 0.
    """

    def __init__(
        self,
        request: Hashable,
        sequence: CachedSequence,
        seconds: float,
        end: Callable[[Lease], None],
    ) -> None:
        self.request = request
        self.tokens = np.array(sequence.tokens, np.int64)
        groups = zip(sequence.table.groups, sequence.pages, strict=True)
        self.pages = _join(
            [group.list_pages(sequence.row, 0, len(own)) for group, own in groups]
        )
        gone = tuple(int(group.gone[sequence.row]) for group in sequence.table.groups)
        self.gone = gone if any(gone) else ()
        self._is_open = True
        self._deadline = time.monotonic() + seconds
        self._end = end

    @property
    def seconds_left(self) -> float:
        """The seconds until the deadline; 0 when the lease has ended."""
        if not self._is_open:
            return 0.0
        return max(self._deadline - time.monotonic(), 0.0)

    @property
    def is_held(self) -> bool:
        """Whether the pages are still pinned."""
        return self.seconds_left > 0

    def end(self) -> bool:
        """Gives the pages back. Returns whether they were held until now."""
        was_held = self.is_held
        if self._is_open:
            self._is_open = False
            self._end(self)
        return was_held

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def __repr__(self) -> str:
        return f"<lease of {self.request!r}, {len(self.pages)} pages>"


class Reception:
    """Pages that a transfer fills, and that no sequence uses before ``commit``.

    ``PagedKVCacheManager.receive`` makes one. At the end of its ``with`` it is aborted,
    unless it was committed.

    Attributes:
        request: The name that the sequence will have; None for pages that only go to the
            cached prefixes.
        found: How many of the first tokens are in this cache already.
        first: The number of the first page to fill among the pages of the sequence. If
            the ``found`` tokens end within a page, the whole page is sent.
        pages: The pages of the device to fill, in the order of the tokens, int32
            [pages], one group of layers after another.
        numbers: The indices of the same pages in ``pages`` of the lease, int [pages].
        is_needed: Whether later tokens reach each page, bool [pages]; others need not
            be filled.
        num_pages: The number of pages of the lease.
        gone: As for a lease; a transfer may set it before ``commit``.
        is_filling: Whether a transfer writes to the pages.
    """

    def __init__(
        self,
        request: Hashable | None,
        sequence: CachedSequence,
        end: Callable[[Reception, bool], None],
    ) -> None:
        self.request = request
        self._tokens = sequence.tokens[:]
        self._table = sequence.table
        self.found = sequence.length
        self.first = self.found // self._table.groups[0].page_size
        self._parts: list[slice] = []
        filled, before = [], 0
        for group, own in zip(self._table.groups, sequence.pages, strict=True):
            first, stop = self.found // group.page_size, len(own)
            self._parts.append(slice(before + first, before + stop))
            filled.append(group.list_pages(sequence.row, first, stop))
            before += stop
        self.num_pages = before
        self.pages = _join(filled)
        self.gone: tuple[int, ...] = ()
        self.is_filling = False
        self._is_open = True
        self._end = end

    @cached_property
    def numbers(self) -> np.ndarray:
        return self._choose(np.arange(self.num_pages))

    @cached_property
    def is_needed(self) -> np.ndarray:
        length, parts = len(self._tokens), []
        for group in self._table.groups:
            numbers = np.arange(self.found // group.page_size, group.count_pages(length))
            parts.append(group.find_needed(numbers, length))
        return _join(parts)

    def pair(self, lent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lent pages that later tokens reach, and the pages here that they fill."""
        chosen, own = self._choose(lent), self.pages
        if self._table.bounded:  # otherwise all are reached
            chosen, own = chosen[self.is_needed], own[self.is_needed]
        return chosen, own

    def _choose(self, lent: np.ndarray) -> np.ndarray:
        """Selects the entries of the pages to fill from those of all lent pages."""
        if len(self._parts) == 1:
            return lent[self._parts[0]]
        return np.concatenate([lent[part] for part in self._parts])

    @property
    def is_open(self) -> bool:
        """Whether it was neither committed nor aborted."""
        return self._is_open

    def has_tokens(self, tokens: np.ndarray) -> bool:
        """Returns whether the sequence has these tokens, int64 [tokens]."""
        return self._tokens.tobytes() == tokens.tobytes()

    def commit(self) -> None:
        """Begins the sequence with all its tokens: the pages are filled.

        Raises ``ValueError`` if it was committed or aborted before.
        """
        if not self._is_open:
            raise ValueError(f"the reception of {self.request!r} has ended")
        self._finish(True)

    def abort(self) -> None:
        """Gives the pages back; does nothing if it has ended."""
        if self._is_open:
            self._finish(False)

    def _finish(self, is_filled: bool) -> None:
        self._is_open = False
        self._end(self, is_filled)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.abort()

    def __repr__(self) -> str:
        return f"<reception of {self.request!r}, {len(self.pages)} pages>"


def _join(arrays: list[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
