# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which pages hold which tokens: a tree with some tokens at each node."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field

from .snapshot import PageAddress, Place
from .tokens import count_common


@dataclass(eq=False, slots=True)
class Page:
    """A page's worth of a cache, which moves between the device and the host.

    Attributes:
        address: Where it is.
        references: Sequences that have it. While there is one, it is never dropped.
        users: Those of them that are resident, or on the way. While one is resident, it
            is on the device, and does not leave it.
        group: The number of the group of layers whose cache it holds.
        prefix: Its node in the tree of prefixes, where later sequences can find it.

    Who has a page of a group with full reach has all before it, so what is behind such a
    page in the tree has no more references, and no more users, than the page itself.
    """

    address: PageAddress
    references: int = 0
    users: int = 0
    group: int = 0
    prefix: Prefix | None = None

    def is_on(self, place: Place) -> bool:
        return self.address.place is place


@dataclass(eq=False, slots=True, weakref_slot=True)
class Prefix:
    """Some tokens, encoded, behind those of its ancestors.

    A node has as many tokens as the places where a prefix may end lie apart. It is in
    the tree while it has a page, or something behind it, or a sequence is there.

    Attributes:
        tokens: Its own; a root, which stands for no tokens, has none.
        parent: The node before it; None for a root, and for what is not in the tree.
        pages: For each group the page that ends with these tokens, if there is one.
        children: The nodes behind it, by their tokens.
        visitors: Sequences whose tokens in the cache end here.
    """

    tokens: bytes = b""
    parent: Prefix | None = None
    pages: list[Page | None] = field(default_factory=list)
    children: dict[bytes, Prefix] = field(default_factory=dict)
    visitors: int = 0
    _root: Prefix | None = None
    _order: list[bytes] = field(default_factory=list)  # the keys of children, sorted

    @property
    def root(self) -> Prefix:
        return self._root or self

    def extend(self, tokens: bytes) -> Prefix:
        """The node with these tokens behind this one; a new one if there is none."""
        known = self.children.get(tokens)
        if known is None:
            known = Prefix(tokens, self, [None] * len(self.pages), _root=self.root)
            self.children[tokens] = known
            insort(self._order, tokens)
        return known

    def attach(self, page: Page) -> None:
        """Makes a page findable as the one that ends here."""
        page.prefix = self
        self.pages[page.group] = page

    def detach(self, page: Page) -> None:
        page.prefix = None
        self.pages[page.group] = None

    def prune(self) -> None:
        """Takes this node out of the tree, and those before it, where nothing is left."""
        node = self
        while (parent := node.parent) and not (
            node.visitors or node.children or any(node.pages)
        ):
            node._leave(parent)
            node = parent

    def _leave(self, parent: Prefix) -> None:
        del parent.children[self.tokens]
        del parent._order[bisect_left(parent._order, self.tokens)]
        self.parent = None

    def remove(self) -> Iterator[Page]:
        """Takes this prefix and all behind it out of the tree; gives their pages."""
        if parent := self.parent:
            self._leave(parent)
        pending = [self]
        while pending:
            prefix = pending.pop()
            pending.extend(prefix.children.values())
            for page in prefix.pages:
                if page:
                    prefix.detach(page)
                    yield page
        if parent:
            parent.prune()

    def find_similar(self, tokens: bytes) -> tuple[Page | None, int]:
        """The page after this prefix that begins most like ``tokens``, and how many.

        In the order of tokens, that is one of the two that ``tokens`` would be between.
        Only for trees of one group.
        """
        best, common = None, 0
        i = bisect_left(self._order, tokens)
        for key in self._order[max(i - 1, 0) : i + 1]:
            if (count := count_common(key, tokens)) > common:
                best, common = self.children[key].pages[0], count
        return best, common if best else 0
