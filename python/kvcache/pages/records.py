# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The form of pages in a store: their keys, their headers, and their bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..cache.groups import MultiKVCacheParams, as_layer_groups
from ..cache.params import KVCacheParams
from .prefixes import Page
from .regions import make_fingerprint
from .snapshot import PageAddress
from .storage import PageStore
from .stores import KEY_BYTES

_VERSION = b"kvcache page 2"
_GROUP_BYTES = 4
_ALIGNMENT = 64  # of records, and of the bytes of a page in one
_MOST_SPARE = 32  # records, for two calls of the store


class StoredPage(NamedTuple):
    """A page in a store.

    Attributes:
        key: Its key.
        header: The first bytes of its record.
        group: The number of its group of layers.
        end: The tokens up to its end.
    """

    key: bytes
    header: bytes
    group: int
    end: int


class Records:
    """The form of pages in a store: a header, and the bytes of a page.

    The digest of a node is the hash of its parent's and its tokens. That of a root covers
    the name of the model, the format of pages, and the salt. The key of a page is the
    digest of its node with the number of the group in the last bytes. The header has the
    digest of the node's parent, the tokens of the node, and the number of the group.

    Args:
        name: The name of the model and of its part of the cache.
        params: The parameters of the cache.
        stores: The tensors.
        base: The number of tokens of a node.

    Attributes:
        size: Bytes of a record.
    """

    def __init__(
        self,
        name: str,
        params: KVCacheParams | MultiKVCacheParams,
        stores: list[PageStore],
        base: int,
    ) -> None:
        fields = _VERSION, make_fingerprint(params).encode(), name.encode()
        self._root = hashlib.sha256(b"\0".join(fields)).digest()
        self._stores = stores
        self._base = base
        count = len(as_layer_groups(params))
        self._numbers = [group.to_bytes(_GROUP_BYTES, "big") for group in range(count)]
        self._header = KEY_BYTES + 8 * base + _GROUP_BYTES
        self._start = -(-self._header // _ALIGNMENT) * _ALIGNMENT
        self.size = self._start + sum(store.page_bytes for store in stores)

    def make_root_digest(self, salt: bytes) -> bytes:
        """The digest of a root."""
        return hashlib.sha256(self._root + salt).digest()

    def make_digest(self, parent: bytes, tokens: bytes) -> bytes:
        """The digest of a node with these tokens."""
        return hashlib.sha256(parent + tokens).digest()

    def describe(
        self, parent: bytes, digest: bytes, tokens: bytes, group: int, end: int
    ) -> StoredPage:
        """Describes the page of a group that ends with a node."""
        number = self._numbers[group]
        key = digest[:-_GROUP_BYTES] + number
        return StoredPage(key, parent + tokens + number, group, end)

    def describe_cached(self, page: Page) -> StoredPage:
        """Describes a cached page; digests are computed once, from the first node on."""
        prefix = page.prefix
        assert prefix and prefix.parent
        path, node = [], prefix
        while node.parent and not node.key:
            path.append(node)
            node = node.parent
        digest = node.key = node.key or self.make_root_digest(node.salt)
        for child in reversed(path):
            digest = child.key = self.make_digest(digest, child.tokens)
        end = prefix.depth * self._base
        return self.describe(prefix.parent.key, digest, prefix.tokens, page.group, end)

    def allocate(self) -> np.ndarray:
        """Allocates the bytes of a record, aligned so that systems copy them fast."""
        memory = np.zeros(self.size + _ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % _ALIGNMENT
        return memory[start : start + self.size]

    def fill(self, record: np.ndarray, stored: StoredPage, page: PageAddress) -> None:
        """Copies a page to a record."""
        record[: self._header] = np.frombuffer(stored.header, np.uint8)
        record[self._header : self._start] = 0
        start = self._start
        for store in self._stores:
            store.save(page, record[start : start + store.page_bytes])
            start += store.page_bytes

    def has(self, record: np.ndarray, stored: StoredPage) -> bool:
        """Returns whether a record has the page."""
        return record[: self._header].tobytes() == stored.header

    def load(self, record: np.ndarray, page: int) -> None:
        """Copies a record to a page of the device."""
        start = self._start
        for store in self._stores:
            store.restore(record[start : start + store.page_bytes], page)
            start += store.page_bytes


class SpareRecords:
    """Records that no copy uses, to be used again.

    Args:
        records: Allocates more of them.
    """

    def __init__(self, records: Records) -> None:
        self._records = records
        self._free: list[np.ndarray] = []

    def take(self) -> np.ndarray:
        """Takes a record that no copy uses."""
        return self._free.pop() if self._free else self._records.allocate()

    def give_back(self, records: Iterable[np.ndarray]) -> None:
        """Gives records back for other copies."""
        self._free = [*self._free, *records][:_MOST_SPARE]
