# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which pages hold which tokens: a tree with a page of tokens at each node."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from .pages import Page

TOKEN = "q"
"""The type code of arrays of token ids."""


@dataclass(eq=False)
class Prefix:
    """The tokens of a full page, behind those of its ancestors.

    ``page`` holds them; only a root, which stands for no tokens, has none.
    """

    tokens: bytes = b""
    parent: Prefix | None = None
    page: Page | None = None
    children: dict[bytes, Prefix] = field(default_factory=dict)

    def add(self, tokens: bytes, page: Page) -> None:
        """Makes ``page`` findable as the one that comes after this prefix."""
        page.prefix = self.children[tokens] = Prefix(tokens, self, page)

    def remove(self) -> Iterator[Page]:
        """Takes this prefix and all behind it out of the tree; gives their pages."""
        if self.parent:
            del self.parent.children[self.tokens]
        pending = [self]
        while pending:
            prefix = pending.pop()
            pending.extend(prefix.children.values())
            if prefix.page:
                prefix.page.prefix = None
                yield prefix.page


class Match(NamedTuple):
    """What of some tokens is in pages already.

    Attributes:
        pages: Those that hold a whole page of them, in order.
        partial: The page that begins with most of the tokens after those, if any.
        common: How many it begins with.
    """

    pages: list[Page]
    partial: Page | None = None
    common: int = 0

    @property
    def kept(self) -> list[Page]:
        """The pages that must stay for the match to be used."""
        return [*self.pages, self.partial] if self.partial else self.pages


def find(prefix: Prefix, tokens: array[int], page_size: int) -> Match:
    """Finds the pages with ``tokens`` behind ``prefix``. Tokens are compared, not hashed."""
    pages = []
    start = 0
    while start + page_size <= len(tokens):
        child = prefix.children.get(tokens[start : start + page_size].tobytes())
        if not (child and child.page):
            break
        pages.append(child.page)
        prefix, start = child, start + page_size
    rest = np.asarray(tokens[start : start + page_size])
    partial, common = None, 0
    for child in prefix.children.values():
        if (count := _count_common(child.tokens, rest)) > common:
            partial, common = child.page, count
    return Match(pages, partial, common)


def _count_common(tokens: bytes, wanted: np.ndarray) -> int:
    """How many of ``wanted`` are the first ones of ``tokens``."""
    same = np.frombuffer(tokens, TOKEN)[: len(wanted)] == wanted
    return len(same) if same.all() else int(same.argmin())
