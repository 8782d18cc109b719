# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tree of prefixes, which maps tokens to the pages that hold them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .snapshot import PageAddress, Place
from .tokens import count_common

if TYPE_CHECKING:
    from .retention import EvictionOrder, Retention


@dataclass(eq=False, slots=True)
class Page:
    """A page of a cache and its contents, which move between the device and the host.

    Attributes:
        address: Its current address.
        references: The number of sequences that use it. It is never dropped while there
            is one.
        users: The number of these that are resident or being swapped in. While there is
            one, the page stays on the device.
        group: The number of the group of layers whose cache it holds.
        prefix: Its node in the tree of prefixes, by which later sequences find it.
        retention: The hints to keep it, if it has any.
        order: The list of unused pages that it is in.
        number: Its number there.

    A sequence with a page of a group with full reach has all pages before it. So the
    descendants of such a page in the tree have at most its references and its users.
    """

    address: PageAddress
    references: int = 0
    users: int = 0
    group: int = 0
    prefix: Prefix | None = None
    retention: Retention | None = None
    order: EvictionOrder | None = None
    number: int = 0

    def is_on(self, place: Place) -> bool:
        return self.address.place is place


@dataclass(eq=False, slots=True, weakref_slot=True)
class Prefix:
    """A node of the tree: encoded tokens that follow those of its ancestors.

    The tokens of a node are those between two positions at which a prefix can end. A
    node is in the tree while it has a page, a child or a visitor.

    Attributes:
        tokens: The tokens of this node; empty for a root.
        parent: The node before it; None for a root, and outside of the tree.
        pages: The page of each group that ends with these tokens, or None.
        children: The nodes after it, by their tokens.
        visitors: The number of sequences whose tokens in the cache end here.
        depth: The number of nodes from the first one to this; 0 for a root.
        salt: The salt of the tree, in its root.
        digest: The hash of all tokens up to here, once events need it.
        key: The key of its page in a store, once it is needed.
        is_stored: Whether its page was written to a store, or came from there.
    """

    tokens: bytes = b""
    parent: Prefix | None = None
    pages: list[Page | None] = field(default_factory=list)
    children: dict[bytes, Prefix] = field(default_factory=dict)
    visitors: int = 0
    depth: int = 0
    salt: bytes = b""
    digest: bytes = b""
    key: bytes = b""
    is_stored: bool = False
    _root: Prefix | None = None
    _order: list[bytes] = field(default_factory=list)  # the keys of children, sorted

    @property
    def root(self) -> Prefix:
        return self._root or self

    def extend(self, tokens: bytes) -> Prefix:
        """Returns the child with these tokens, which is made if there is none."""
        known = self.children.get(tokens)
        if known is None:
            pages: list[Page | None] = [None] * len(self.pages)
            known = Prefix(tokens, self, pages, depth=self.depth + 1, _root=self.root)
            self.children[tokens] = known
            insort(self._order, tokens)
        return known

    def attach(self, page: Page) -> None:
        """Adds a page that ends here."""
        page.prefix = self
        self.pages[page.group] = page

    def detach(self, page: Page) -> None:
        page.prefix = None
        self.pages[page.group] = None

    def prune(self) -> None:
        """Removes this node and its ancestors from the tree where nothing is left."""
        node = self
        while (parent := node.parent) and not (
            node.visitors or node.children or any(node.pages)
        ):
            node._leave_tree(parent)
            node = parent

    def _leave_tree(self, parent: Prefix) -> None:
        del parent.children[self.tokens]
        del parent._order[bisect_left(parent._order, self.tokens)]
        self.parent = None

    def remove(self) -> Iterator[Page]:
        """Removes this node and its descendants from the tree; yields their pages."""
        if parent := self.parent:
            self._leave_tree(parent)
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
        """Finds the page after this prefix that has the most first tokens in common.

        Returns it, and how many. It is one of the two neighbours of ``tokens`` in
        sorted order. Only for trees of one group.
        """
        best, common = None, 0
        i = bisect_left(self._order, tokens)
        for key in self._order[max(i - 1, 0) : i + 1]:
            if (count := count_common(key, tokens)) > common:
                best, common = self.children[key].pages[0], count
        return best, common if best else 0
