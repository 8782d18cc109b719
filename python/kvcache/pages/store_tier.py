# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A store as a tier of a manager: written after steps, and found by claims."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable
from typing import NamedTuple, Self

import numpy as np

from ..cache.groups import MultiKVCacheParams
from ..cache.params import KVCacheParams
from ..checks import check_instance, check_string
from ..errors import OutOfPagesError
from .growth import Growth
from .prefixes import Page, Prefix
from .regions import make_fingerprint
from .snapshot import PageAddress
from .storage import PageStore
from .stores import KEY_BYTES, Store, StoreCopy
from .tables import Sequence
from .tokens import encode

_VERSION = b"kvcache page 1"
_WAVE = 16  # pages that one call of the store copies
_STEP_BYTES = 8 << 20  # that a step copies to records, in some milliseconds
_PENDING = 1024  # pages that wait to be written; more are not stored
_ALIGNMENT = 64  # of the bytes of a page in a record


class Records:
    """The form of pages in a store: the key of the parent, the tokens, and the bytes.

    A key is the hash of the parent's key and the tokens of a page. The key of a first
    page's parent covers the name of the model, the format of pages, and the salt.

    Args:
        name: The name of the model and of its part of the cache.
        params: The parameters of the cache.
        stores: The tensors.

    Attributes:
        size: Bytes of a record.
    """

    def __init__(self, name: str, params: KVCacheParams, stores: list[PageStore]) -> None:
        assert params.page_size
        fields = _VERSION, make_fingerprint(params).encode(), name.encode()
        self._root = hashlib.sha256(b"\0".join(fields)).digest()
        self._stores = stores
        self._token_bytes = 8 * params.page_size
        header = KEY_BYTES + self._token_bytes
        self._start = -(-header // _ALIGNMENT) * _ALIGNMENT
        self.size = self._start + sum(store.page_bytes for store in stores)

    def make_root_key(self, salt: bytes) -> bytes:
        """The key of the parent of a first page."""
        return hashlib.sha256(self._root + salt).digest()

    def make_key(self, parent: bytes, tokens: bytes) -> bytes:
        return hashlib.sha256(parent + tokens).digest()

    def allocate(self) -> np.ndarray:
        """Allocates the bytes of a record."""
        return np.zeros(self.size, np.uint8)

    def fill(self, record: np.ndarray, parent: bytes, tokens: bytes, page: PageAddress) -> None:
        """Copies a page to a record."""
        record[: self._start] = 0
        header = np.frombuffer(parent + tokens, np.uint8)
        record[: len(header)] = header
        start = self._start
        for store in self._stores:
            store.save(page, record[start : start + store.page_bytes])
            start += store.page_bytes

    def has(self, record: np.ndarray, parent: bytes, tokens: bytes) -> bool:
        """Returns whether a record has the page with these tokens."""
        return record[: KEY_BYTES + self._token_bytes].tobytes() == parent + tokens

    def load(self, record: np.ndarray, page: int) -> None:
        """Copies a record to a page of the device."""
        start = self._start
        for store in self._stores:
            store.restore(record[start : start + store.page_bytes], page)
            start += store.page_bytes


class StoredPage(NamedTuple):
    """A page in a store.

    Attributes:
        key: Its key.
        parent: The key of its parent.
        tokens: Its tokens, encoded.
    """

    key: bytes
    parent: bytes
    tokens: bytes


class StoreTier:
    """Writes cached pages of a manager to a store, and brings them back.

    Nothing here raises for a store: a page that it loses is computed again.

    Attributes:
        counts: The tokens looked up in the store, the pages that came from it, and those
            that were written to it.
    """

    def __init__(self, store: Store, records: Records, growth: Growth, page_size: int) -> None:
        self._store = store
        self._records = records
        self._growth = growth
        self._page_size = page_size
        self._pending: dict[Page, None] = {}
        self._puts: list[tuple[StoreCopy, list[np.ndarray]]] = []
        self._free: list[np.ndarray] = []
        self._looked_up = self._read = self._written = 0

    @property
    def counts(self) -> tuple[int, int, int]:
        return self._looked_up, self._read, self._written

    # --- Writing ------------------------------------------------------------------

    def save(self, changed: Iterable[Page]) -> None:
        """Begins to write cached pages that are not in the store."""
        self._poll_puts()
        for page in changed:
            if page.prefix and not page.prefix.is_stored and len(self._pending) < _PENDING:
                self._pending[page] = None
        self._begin_puts(max(_STEP_BYTES // self._records.size, 1))

    def _begin_puts(self, most: int) -> None:
        """Begins to write at most some of the pages that wait."""
        room = min(_WAVE - sum(len(records) for _, records in self._puts), most)
        keys: list[bytes] = []
        records: list[np.ndarray] = []
        while self._pending and len(keys) < room:
            page = next(iter(self._pending))
            del self._pending[page]
            if not page.prefix or page.prefix.is_stored:
                continue
            page.prefix.is_stored = True  # also if the store refuses it
            record = self.take()
            stored = self._describe(page.prefix)
            try:
                self._records.fill(record, stored.parent, stored.tokens, page.address)
            except Exception:  # of the memory or the disk: the page is only not stored
                self.give_back([record])
                continue
            keys.append(stored.key)
            records.append(record)
        if keys:
            copy = self._store.begin_put(keys, [record.data for record in records])
            self._puts.append((copy, records))

    def flush(self) -> None:
        """Waits until no page is left to write."""
        while self._pending or self._puts:
            self._begin_puts(_WAVE)
            for copy, _ in self._puts:
                copy.wait()
            self._poll_puts()

    def _poll_puts(self) -> None:
        for put in self._puts[:]:
            copy, records = put
            if copy.poll():
                self._puts.remove(put)
                self._written += sum(copy.done)
                self.give_back(records)

    def _describe(self, prefix: Prefix) -> StoredPage:
        """The keys of a node's page; computed once, from the first node on."""
        path = []
        node = prefix
        while node.parent and not node.key:
            path.append(node)
            node = node.parent
        if not node.key:
            node.key = self._records.make_root_key(node.salt)
        for child in reversed(path):
            assert child.parent
            child.key = self._records.make_key(child.parent.key, child.tokens)
        assert prefix.parent
        parent = prefix.parent.key or self._describe(prefix.parent).key
        return StoredPage(prefix.key, parent, prefix.tokens)

    # --- Reading ------------------------------------------------------------------

    def begin(
        self, sequence: Sequence, tokens: array[int], end: Callable[[Prefetch], None]
    ) -> Prefetch:
        """Begins to bring the pages of tokens; takes a sequence without tokens.

        ``end`` is called when the sequence has ended, unless no page comes.
        """
        wanted, local = self._list_wanted(sequence, tokens)
        self._looked_up += len(wanted[local:]) * self._page_size
        keys = [page.key for page in wanted[local:]]
        found = self._store.find(keys) if keys else []
        run = found.index(False) if False in found else len(keys)
        while run > 0:
            count = local + run
            try:
                self._growth.grow(sequence, tokens[: count * self._page_size])
            except OutOfPagesError as error:
                run -= max(error.needed - error.available, 1)
            else:
                return Prefetch(self, sequence, wanted[:count], end)
        self._growth.drop(sequence)
        return Prefetch(self)

    def _list_wanted(
        self, sequence: Sequence, tokens: array[int]
    ) -> tuple[list[StoredPage], int]:
        """The full pages before the last token, and how many the tree has."""
        encoded, size = encode(tokens), 8 * self._page_size
        key = self._records.make_root_key(sequence.prefix.salt)
        node: Prefix | None = sequence.prefix
        pages, local = [], 0
        for start in range(0, 8 * (len(tokens) - 1) - size + 1, size):
            part = encoded[start : start + size]
            node = node.children.get(part) if node else None
            local += bool(node and node.pages[0])
            parent, key = key, self._records.make_key(key, part)
            pages.append(StoredPage(key, parent, part))
        return pages, local

    def end(self, sequence: Sequence, count: int) -> None:
        """Adds the first pages of a sequence to the tree, and ends it."""
        first = sequence.length // self._page_size
        self._growth.cut(sequence, max(count * self._page_size, sequence.length))
        self._growth.finish([sequence], sequence.rows)
        node = sequence.prefix
        for _ in range(count - first):
            node.is_stored = True
            assert node.parent
            node = node.parent
        self._read += max(count - first, 0)
        self._growth.end(sequence)

    def begin_get(self, pages: list[StoredPage], records: list[np.ndarray]) -> StoreCopy:
        """Begins to read pages into records."""
        return self._store.begin_get(
            [page.key for page in pages], [record.data for record in records]
        )

    def load(self, record: np.ndarray, page: StoredPage, target: int) -> bool:
        """Copies a record to a page of the device, if it has the page's tokens."""
        if not self._records.has(record, page.parent, page.tokens):
            return False
        try:
            self._records.load(record, target)
        except Exception:  # of the memory: the page is only not found
            return False
        return True

    # --- Records ------------------------------------------------------------------

    def take(self) -> np.ndarray:
        """Takes a record that no copy uses."""
        return self._free.pop() if self._free else self._records.allocate()

    def give_back(self, records: Iterable[np.ndarray]) -> None:
        """Gives records back for other copies."""
        self._free = [*self._free, *records][: 2 * _WAVE]


def make_tier(
    store: Store,
    name: str,
    params: KVCacheParams | MultiKVCacheParams,
    stores: list[PageStore],
    growth: Growth,
) -> StoreTier:
    """Makes the tier of a manager with these parameters and tensors."""
    check_instance(Store, store=store)
    check_string(store_name=name)
    if not name:
        raise ValueError("'store' needs 'store_name', which names the model")
    if not params.enable_prefix_caching:
        raise ValueError("'store' needs 'enable_prefix_caching'")
    if isinstance(params, MultiKVCacheParams) or not params.reach.is_full:
        raise ValueError("expects one group that reaches all tokens for 'store'")
    assert params.page_size
    return StoreTier(store, Records(name, params, stores), growth, params.page_size)


class Prefetch:
    """Pages that come from a store, while a request waits.

    ``PagedKVCacheManager.prefetch`` makes one. When ``poll`` has returned True, the
    pages are cached prefixes, which ``claim`` finds. At the end of its ``with`` it is
    cancelled, unless it has ended.
    """

    def __init__(
        self,
        tier: StoreTier,
        sequence: Sequence | None = None,
        pages: list[StoredPage] | None = None,
        end: Callable[[Prefetch], None] | None = None,
    ) -> None:
        self._tier = tier
        self.sequence = sequence
        self._pages = pages or []
        self._end = end
        self._copied = 0  # pages that are in the cache, the first ones
        self._copy: StoreCopy | None = None
        self._records: list[np.ndarray] = []
        if sequence:
            group = sequence.table.groups[0]
            self._copied = sequence.length // group.page_size
            self._begin_wave(self._copied)

    def poll(self) -> bool:
        """Returns whether all pages are there that the store has; never waits."""
        if self.sequence is None:
            return True
        if self._copy and not self._copy.poll():
            return False
        if self._copy and self._take_wave() and self._copy:
            return False
        self._finish()
        return True

    def wait(self) -> None:
        """Waits until ``poll`` returns True, at most the store's deadline for each wave."""
        while not self.poll():
            if self._copy:
                self._copy.wait()

    def cancel(self) -> None:
        """Keeps the pages that are there, and gives the others back."""
        if self.sequence:
            self._finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.cancel()

    def _begin_wave(self, first: int) -> None:
        """Begins to read some pages from the one with number ``first`` on."""
        pages = self._pages[first : first + _WAVE]
        self._records = [self._tier.take() for _ in pages]
        self._copy = self._tier.begin_get(pages, self._records) if pages else None

    def _take_wave(self) -> bool:
        """Copies what came to the device, while the store reads the next pages.

        Returns whether all of it came.
        """
        assert self._copy and self.sequence
        records, done = self._records, self._copy.done
        self._records, self._copy = [], None
        if all(done):
            self._begin_wave(self._copied + len(records))
        own, first = self.sequence.pages[0], self._copied
        for record, is_done in zip(records, done, strict=True):
            page = own[self._copied]
            assert page
            stored = self._pages[self._copied]
            if not (is_done and self._tier.load(record, stored, page.address.index)):
                break
            self._copied += 1
        self._tier.give_back(records)
        return self._copied - first == len(records)

    def _finish(self) -> None:
        # The store may still write to the records, so no other copy uses them.
        self._records, self._copy = [], None
        sequence, self.sequence = self.sequence, None
        assert sequence and self._end
        self._tier.end(sequence, self._copied)
        self._end(self)
