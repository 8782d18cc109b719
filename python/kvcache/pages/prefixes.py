# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tree of prefixes, which maps tokens to the pages that hold them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .snapshot import PageAddress, Place
from .tokens import count_common

if TYPE_CHECKING:
    from .retention import EvictionOrder, Retention


@dataclass(eq=False, slots=True)
class Page:
    """A page of a cache and its contents, which move between the device and the host.

    Attributes:
        place: The memory that it is in.
        index: Its number there.
        references: The number of sequences that use it. It is never dropped while there
            is one.
        users: The number of these that are resident or being swapped in. While there is
            one, the page stays on the device.
        group: The number of the group of layers whose cache it holds.
        prefix: Its node in the tree of prefixes, by which later sequences find it.
        retention: The hints to keep it, if it has any.
        order: The list of unused pages that it is in.
        number: Its number there.
        is_stored: Whether it was written to a store, or came from there.
        is_fetched: Whether it came from a store, and no sequence has used all of it
            since.

    A sequence with a page of a group with full reach has all pages before it. So the
    descendants of such a page in the tree have at most its references and its users.
    """

    place: Place
    index: int
    references: int = 0
    users: int = 0
    group: int = 0
    prefix: Prefix | None = None
    retention: Retention | None = None
    order: EvictionOrder | None = None
    number: int = 0
    is_stored: bool = False
    is_fetched: bool = False

    @property
    def address(self) -> PageAddress:
        return PageAddress(self.place, self.index)


class Prefix:
    """A node of the tree: encoded tokens that follow those of its ancestors.

    The tokens of a node are those between two positions at which a prefix can end. A
    node is in the tree while it has a page, a child or a visitor.

    Attributes:
        tokens: The tokens of this node; empty for a root.
        parent: The node before it; None for a root, and outside of the tree.
        before: The node before it, also outside of the tree. It never changes, so other
            threads may read it, ``tokens`` and ``depth``.
        page: The page of the first group that ends with these tokens, or None.
        latest: The child that was added last, if it is still there.
        children: The nodes after it, by their tokens; None before there are two, since
            most nodes have one.
        visitors: The number of sequences whose tokens in the cache end here.
        depth: The number of nodes from the first one to this; 0 for a root.
        salt: The salt of the tree.
        digest: The hash of all tokens up to here, once events have computed it.
        key: The digest of its tokens in a store, once it is needed.
    """

    __slots__ = (
        "__weakref__",
        "_others",
        "_similar",
        "before",
        "children",
        "depth",
        "digest",
        "key",
        "latest",
        "page",
        "parent",
        "salt",
        "tokens",
        "visitors",
    )

    def __init__(
        self,
        tokens: bytes = b"",
        parent: Prefix | None = None,
        groups: int = 1,
        salt: bytes = b"",
    ) -> None:
        self.tokens = tokens
        self.parent = self.before = parent
        self.page: Page | None = None
        # The pages of other groups. Most trees have one group, whose nodes need no list.
        self._others: list[Page | None] | None = [None] * (groups - 1) if groups > 1 else None
        self.latest: Prefix | None = None
        self.children: dict[bytes, Prefix] | None = None
        self.visitors = 0
        self.depth: int = parent.depth + 1 if parent else 0
        self.salt: bytes = parent.salt if parent else salt
        self.digest = self.key = b""
        # The keys of children by their first token, sorted, once they are needed.
        self._similar: dict[bytes, list[bytes]] | None = None

    def get_page(self, group: int) -> Page | None:
        """Returns the page of a group that ends with these tokens, or None."""
        return self._others[group - 1] if group and self._others else self.page

    def set_page(self, group: int, page: Page | None) -> None:
        if group and self._others:
            self._others[group - 1] = page
        else:
            self.page = page

    def list_pages(self) -> list[Page]:
        """Lists the pages of all groups."""
        return [page for page in (self.page, *(self._others or ())) if page]

    def has_children(self) -> bool:
        return bool(self.latest or self.children)

    def list_children(self) -> list[Prefix]:
        if self.children is not None:
            return [*self.children.values()]
        return [self.latest] if self.latest else []

    def find_child(self, tokens: bytes) -> Prefix | None:
        """Finds the child with these tokens."""
        latest = self.latest
        if latest and latest.tokens == tokens:
            return latest
        return self.children.get(tokens) if self.children else None

    def extend(self, tokens: bytes) -> Prefix:
        """Returns the child with these tokens, which is made if there is none."""
        return self.find_child(tokens) or self.add_child(tokens)

    def add_child(self, tokens: bytes) -> Prefix:
        """Adds a child with tokens that no other child has."""
        child = Prefix(tokens, self, len(self._others) + 1 if self._others else 1)
        if self.children is not None:
            self.children[tokens] = child
        elif self.latest:
            self.children = {self.latest.tokens: self.latest, tokens: child}
        self.latest = child
        if self._similar is not None:
            insort(self._similar.setdefault(tokens[:8], []), tokens)
        return child

    def detach(self, page: Page) -> None:
        page.prefix = None
        page.is_stored = page.is_fetched = False
        self.set_page(page.group, None)

    def prune(self) -> None:
        """Removes this node and its ancestors from the tree where nothing is left."""
        node = self
        while (parent := node.parent) and not (
            node.visitors or node.page or node.has_children() or node.list_pages()
        ):
            node._leave_tree(parent)
            node = parent

    def _leave_tree(self, parent: Prefix) -> None:
        if parent.children is not None:
            del parent.children[self.tokens]
        if parent.latest is self:
            parent.latest = None
        if parent._similar is not None:
            similar = parent._similar[self.tokens[:8]]
            del similar[bisect_left(similar, self.tokens)]
            if not similar:
                del parent._similar[self.tokens[:8]]
        self.parent = None

    def remove(self) -> Iterator[Page]:
        """Removes this node and its descendants from the tree; yields their pages."""
        if parent := self.parent:
            self._leave_tree(parent)
        pending = [self]
        while pending:
            prefix = pending.pop()
            pending += prefix.list_children()
            for page in prefix.list_pages():
                prefix.detach(page)
                yield page
        if parent:
            parent.prune()

    def find_similar(self, tokens: bytes) -> tuple[Page | None, int]:
        """Finds the page after this prefix that has the most first tokens in common.

        Returns it, and how many. It is one of the two neighbours of ``tokens`` in
        sorted order. Only for trees of one group.
        """
        if not self.has_children():
            return None, 0
        if self._similar is None:
            self._similar = {}
            for key in sorted(child.tokens for child in self.list_children()):
                self._similar.setdefault(key[:8], []).append(key)
        similar = self._similar.get(tokens[:8])
        if not similar:
            return None, 0
        best, common = None, 0
        i = bisect_left(similar, tokens)
        for key in similar[max(i - 1, 0) : i + 1]:
            if (count := count_common(key, tokens)) > common:
                child = self.find_child(key)
                best, common = child.page if child else None, count
        return best, common if best else 0
