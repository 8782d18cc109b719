# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The longest prefix of tokens that all groups of layers have in the cache."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, repeat
from typing import TypeAlias, TypeVar

import numpy as np

from .group_tables import GroupTable
from .prefixes import Page, Prefix
from .snapshot import Place, Source
from .tables import CachedSequence
from .tokens import encode

_Entry = TypeVar("_Entry")

Rows: TypeAlias = Sequence[Sequence[_Entry | None]]
"""The pages of each group at its borders."""

_CHUNK = 128  # nodes whose tokens are encoded together, because a prompt may miss

_SOURCES = (*Source,)
"""The sources of tokens, the slowest last."""

_RANKS = {place: _SOURCES.index(Source(place.value)) for place in Place}
"""The number of the source of pages in each place, except fetched ones."""


@dataclass
class Match:
    """The pages that hold the first of some tokens.

    Attributes:
        prefix: The node of the tree at which they end.
        length: The number of tokens in whole pages, or states.
        pages: The pages of each group that a sequence shares, in order; None for a page
            that no later token reaches.
        snapshots: The page with the state after these tokens, by the number of a group
            with states.
        partial: The page that begins with most of the tokens after those, if any.
        common: The number of these tokens.
    """

    prefix: Prefix
    length: int = 0
    pages: list[list[Page | None]] = field(default_factory=list)
    snapshots: dict[int, Page] = field(default_factory=dict)
    partial: Page | None = None
    common: int = 0

    @property
    def found(self) -> int:
        """The number of tokens in the cache."""
        return self.length + self.common

    @cached_property
    def shared(self) -> list[Page]:
        """The pages that the sequence shares, once all are known."""
        return [page for pages in self.pages for page in pages if page]

    def count_elsewhere(self, groups: tuple[GroupTable, ...]) -> dict[Source, int]:
        """Counts the tokens by the slowest source of their pages, except the device.

        Tokens of a partial page come from where it is: from a store come whole pages.
        """
        ranks = np.zeros(self.found, np.int8)
        for group, pages in zip(groups, self.pages, strict=True):
            for i, page in enumerate(pages):
                if page:
                    _raise_ranks(ranks[i * group.border : (i + 1) * group.border], page)
        for snapshot in self.snapshots.values():  # of all tokens
            _raise_ranks(ranks, snapshot)
        if self.partial:
            ranks[self.length :] = _RANKS[self.partial.place]
        counts = np.bincount(ranks, minlength=len(_SOURCES)).tolist()
        return dict(zip(_SOURCES[1:], counts[1:], strict=True))

    def list_sources(self) -> dict[int, Page]:
        """The page whose copy a sequence begins with, by the number of a group."""
        return {0: self.partial} if self.partial else self.snapshots

    @property
    def whole(self) -> list[Page]:
        """The pages of which all tokens are used."""
        return [*self.shared, *self.snapshots.values()]

    @property
    def kept(self) -> list[Page]:
        """The pages that must stay for the match to be used."""
        return [*self.whole, self.partial] if self.partial else self.whole


def _raise_ranks(ranks: np.ndarray, page: Page) -> None:
    """Raises the ranks of tokens to that of a page's source, unless they are higher."""
    rank = len(_SOURCES) - 1 if page.is_fetched else _RANKS[page.place]
    if rank:
        np.maximum(ranks, rank, out=ranks)


def _list_path(
    node: Prefix, tokens: array[int], base: int
) -> tuple[list[Prefix], bytes]:
    """Lists the nodes after a node that have the next tokens, ``base`` each.

    Returns them, and the encoded tokens after them, at most those of a node. Neither
    has the last token.
    """
    path: list[Prefix] = []
    add, size, last = path.append, 8 * base, len(tokens) - 1
    for first in range(0, last, _CHUNK * base):
        encoded = encode(tokens, first, first + _CHUNK * base)
        has_tokens = encoded.startswith
        for start in range(0, min(len(encoded), 8 * (last - first)) - size + 1, size):
            # Most nodes have one child, which a comparison finds faster than a hash.
            child = node.latest
            if child is None or not has_tokens(child.tokens, start):
                part = encoded[start : start + size]
                child = node.find_child(part)
                if child is None:
                    return path, part
            add(child)
            node = child
    stop = len(path) * base
    return path, encode(tokens, stop, last) if stop < last else b""


class Finder:
    """Finds matches in the tree of prefixes of some groups.

    Attributes:
        base: The number of tokens of a node.
        is_plain: Whether there is one group, which reaches all tokens. Then a sequence
            can begin with a copy of a page with some of the tokens.
    """

    def __init__(self, groups: tuple[GroupTable, ...]) -> None:
        borders = [group.border for group in groups]
        self.base = math.gcd(*borders)
        self.is_plain = len(groups) == 1 and groups[0].reach.is_full
        self._groups = groups
        self._step = math.lcm(*borders)

    def make_root(self, salt: bytes) -> Prefix:
        return Prefix(groups=len(self._groups), salt=salt)

    def find(
        self,
        sequence: CachedSequence,
        tokens: array[int],
        accepts: Callable[[Page], bool] | None = None,
    ) -> Match | None:
        """Finds tokens but the last, after those of a sequence, in accepted pages.

        Returns None for no tokens.

        The tokens of a node are looked up by their hash, and compared, so equal hashes
        of other tokens match nothing. The sequence must end at a page's end in each
        group.
        """
        path, left = _list_path(sequence.prefix, tokens, self.base)
        if not self.is_plain:
            return self._find_common_prefix(sequence, path, accepts)
        pages = [child.page for child in path]
        if accepts:
            pages = [page if page and accepts(page) else None for page in pages]
        if None in pages:
            first = pages.index(None)
            pages, left = pages[:first], path[first].tokens
        node = path[len(pages) - 1] if pages else sequence.prefix
        partial, common = node.find_similar(left)
        if not pages and not partial:
            return None
        return Match(node, len(pages) * self.base, [pages], {}, partial, common)

    def _find_common_prefix(
        self,
        sequence: CachedSequence,
        path: list[Prefix],
        accepts: Callable[[Page], bool] | None,
    ) -> Match | None:
        """The longest prefix of a path that each group can serve."""
        start = sequence.length
        rows = [self._list_pages(group, path, start, accepts) for group in self._groups]
        stop = start + len(path) * self.base
        length = next(self.list_served(start, stop, rows), start)
        if length == start:
            return None
        prefix = path[(length - start) // self.base - 1]
        match = Match(prefix, length - start)
        for group, pages in zip(
            self._groups, self.list_reached(start, length, rows), strict=True
        ):
            if group.is_state:
                (snapshot,) = pages
                assert snapshot
                match.snapshots[group.number] = snapshot
            match.pages.append([] if group.is_state else pages)
        return match

    def align(self, length: int) -> int:
        """Rounds a length down to one at which a prefix can end in all groups."""
        return length // self._step * self._step

    def list_served(
        self, start: int, stop: int, rows: Rows[_Entry]
    ) -> Iterator[int]:
        """Yields the lengths up to ``stop`` that each group can serve, the longest first.

        ``rows`` has the pages of each group at its borders after ``start``, or None.
        """
        for group, row in zip(self._groups, rows, strict=True):
            if group.reach.is_full and None in row:
                stop = min(stop, (start // group.border + row.index(None)) * group.border)
        gaps = [sum_up(row, lambda page: not page) for row in rows]
        for length in range(self.align(stop), start, -self._step):
            if not self.count_reached(start, length, gaps):
                yield length

    def count_reached(self, start: int, length: int, sums: list[list[int]]) -> int:
        """Counts pages that tokens from ``length`` on reach, from ``sum_up`` of rows."""
        return sum(map(_count_reached, self._groups, repeat(start), repeat(length), sums))

    def list_reached(
        self, start: int, length: int, rows: Rows[_Entry]
    ) -> list[list[_Entry | None]]:
        """The pages of each group up to ``length``; None where no later token reaches.

        A state has one page.
        """
        return [
            _list_reached(group, start, length, row)
            for group, row in zip(self._groups, rows, strict=True)
        ]

    def _list_pages(
        self,
        group: GroupTable,
        path: list[Prefix],
        start: int,
        accepts: Callable[[Page], bool] | None,
    ) -> list[Page | None]:
        """The pages of a group at each of its borders on the path."""
        first = group.border - start % group.border
        row = []
        for end in range(first, len(path) * self.base + 1, group.border):
            page = path[end // self.base - 1].get_page(group.number)
            row.append(page if page and (not accepts or accepts(page)) else None)
        return row


def sum_up(row: Iterable[_Entry], counts: Callable[[_Entry], bool]) -> list[int]:
    """The number of entries that count among the first n, for each n."""
    return [*accumulate(map(counts, row), initial=0)]


def _count_reached(group: GroupTable, start: int, length: int, sums: list[int]) -> int:
    begin, stop = start // group.border, length // group.border
    if group.is_state:
        return sums[stop - begin] - sums[stop - begin - 1]
    first = max(group.find_first(length), begin)
    sinks = max(group.list_sinks(first).stop, begin)
    return sums[stop - begin] - sums[first - begin] + sums[sinks - begin]


def _list_reached(
    group: GroupTable, start: int, length: int, row: Sequence[_Entry | None]
) -> list[_Entry | None]:
    begin, stop = start // group.border, length // group.border
    if group.is_state:
        return [row[stop - begin - 1]]
    first = group.find_first(length)
    sinks = group.list_sinks(first)
    return [
        row[i - begin] if i >= first or i in sinks else None for i in range(begin, stop)
    ]
