# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cached pages of a manager as blocks of vLLM's events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..cache.groups import LayerGroup
from ..pages.prefixes import Page, Prefix
from ..pages.snapshot import Place
from .hashes import BlockHasher, ExtraKey, choose_keys, wire_hash
from .salts import Salt, parse_salt

Event: TypeAlias = dict[str, Any]
"""An event with the names of its fields, and only those that are not their default."""

MEDIA = {Place.DEVICE: "GPU", Place.HOST: "CPU", Place.DISK: "STORAGE"}
"""The medium of vLLM's events for each place."""

CLEARED: Event = {"type": "AllBlocksCleared"}

_logger = logging.getLogger(__name__)
_RUN = 32  # blocks that are hashed at a time, in about 0.1 ms

_KINDS = {
    "full": "full_attention",
    "window": "sliding_window",
    "chunk": "chunked_local_attention",
    "state": "mamba",
}


class Block(NamedTuple):
    """A page that routers can find.

    Attributes:
        hash: Its hash in events.
        parent: The hash of the block before it; None for the first one.
        group: The number of its group of layers.
        place: Where it is.
        start: The position of its first token.
        tokens: The ids of its tokens, encoded, 8 bytes each.
        keys: Its extra keys.
        salt: The cache salt and the adapter of its sequence.
    """

    hash: int
    parent: int | None
    group: int
    place: Place
    start: int
    tokens: bytes
    keys: tuple[ExtraKey, ...]
    salt: Salt

    @property
    def key(self) -> tuple[int, int, Place]:
        """Its identity for routers."""
        return self.hash, self.group, self.place

    def is_followed_by(self, other: Block) -> bool:
        """Whether one event can have this block and then ``other``."""
        return other.parent == self.hash and other[2:4] == self[2:4]


class Change(NamedTuple):
    """A page that was cached, moved or dropped, as it was then.

    Attributes:
        page: The page.
        prefix: Its node, or None if it was dropped.
        place: Where it was.
    """

    page: Page
    prefix: Prefix | None
    place: Place


class BlockIndex:
    """The blocks that were published, and their changes as events.

    A thread of its own may call it: it reads only what never changes.

    Args:
        groups: The groups of layers of the manager.
        hasher: The hash of blocks.
    """

    def __init__(self, groups: tuple[LayerGroup, ...], hasher: BlockHasher) -> None:
        self._groups = groups
        self._hasher = hasher
        self._is_plain = len(groups) == 1 and groups[0].reach.is_full
        self._published: dict[Page, Block] = {}

    def update(
        self, changes: Sequence[Change], pause: Callable[[], None] = lambda: None
    ) -> list[Event]:
        """The events of pages that were cached, moved or dropped.

        Calls ``pause`` after some blocks, so that other threads can run.

        Blocks are stored before others are removed, and parents before children. Blocks
        that the engine's hash can't cover are left out, as SGLang's has no salts.
        """
        removed, stored = {}, {}
        for number, (page, prefix, place) in enumerate(changes, 1):
            if number % _RUN == 0:
                pause()
            if before := self._published.pop(page, None):
                removed[before.key] = before
            if not prefix:
                continue
            try:
                block = self._describe(page.group, prefix, place)
            except ValueError:  # the hash can't cover its tokens or its salt
                continue
            except Exception:
                _logger.exception("a block is not published")
                continue
            self._published[page] = block
            stored[block.key] = block
        for key in removed.keys() & stored.keys():  # an equal page, or moved and back
            del removed[key], stored[key]
        return [*self._list_stored(_sort(stored)), *_list_removed(removed.values(), self._tag)]

    def clear(self) -> None:
        """Forgets all blocks."""
        self._published.clear()

    def list_blocks(self) -> list[Block]:
        """The published blocks, parents before children."""
        return list(_sort({block.key: block for block in self._published.values()}))

    def make_snapshot(self, blocks: Iterable[Block], size: int) -> Iterator[list[Event]]:
        """Yields the events that store blocks, in lists of ``size`` blocks."""
        blocks = list(blocks)
        for first in range(0, len(blocks), size):
            yield list(self._list_stored(blocks[first : first + size]))

    # --- Blocks -------------------------------------------------------------------

    def _describe(self, number: int, prefix: Prefix, place: Place) -> Block:
        group = self._groups[number]
        digest, nodes = self._digest(prefix), [prefix]
        base = len(prefix.tokens) // 8
        while base * len(nodes) < group.border:
            assert nodes[-1].before
            nodes.append(nodes[-1].before)
        before = nodes[-1].before
        assert before
        parent = wire_hash(before.digest, self._hasher.style) if before.before else None
        start = before.depth * base
        salt = parse_salt(prefix.salt)
        keys = choose_keys(salt.make_keys(), start, start + group.border)
        return Block(
            wire_hash(digest, self._hasher.style),
            parent,
            number,
            place,
            start,
            b"".join(node.tokens for node in reversed(nodes)),
            tuple(keys),
            salt,
        )

    def _digest(self, prefix: Prefix) -> bytes:
        """The hash of a node, computed once, from the first node on."""
        path = []
        node: Prefix | None = prefix
        while node and node.before and not node.digest:
            path.append(node)
            node = node.before
        assert node
        digest = node.digest or self._hasher.first
        keys = parse_salt(prefix.salt).make_keys() if path else []
        for node in reversed(path):
            ids = decode(node.tokens)
            stop = node.depth * len(ids)
            chosen = choose_keys(keys, stop - len(ids), stop) if keys else ()
            digest = node.digest = self._hasher.hash(digest, ids, chosen)
        return digest

    # --- Events -------------------------------------------------------------------

    def _list_stored(self, blocks: Iterable[Block]) -> Iterator[Event]:
        """Yields the events that store blocks; one for each chain of them."""
        chain: list[Block] = []
        for block in blocks:
            if chain and not chain[-1].is_followed_by(block):
                yield self._store(chain)
                chain = []
            chain.append(block)
        if chain:
            yield self._store(chain)

    def _store(self, chain: list[Block]) -> Event:
        first = chain[0]
        event: Event = {
            "type": "BlockStored",
            "block_hashes": [block.hash for block in chain],
            "parent_block_hash": first.parent,
            "token_ids": decode(b"".join(block.tokens for block in chain)),
            "block_size": len(first.tokens) // 8,
            "lora_id": None,
            "medium": MEDIA[first.place],
            "lora_name": first.salt.adapter,
        }
        if any(block.keys for block in chain):
            # Without kinds, as vLLM sent them first: Dynamo decodes no others.
            flat = [[key[1] for key in block.keys] or None for block in chain]
            event["extra_keys"] = flat
        event |= self._tag(first.group)
        if not self._is_plain:
            reach = self._groups[first.group].reach
            event["kv_cache_spec_kind"] = _KINDS[reach.kind]
            if reach.kind == "window":
                event["kv_cache_spec_sliding_window"] = reach.tokens
        if first.salt.cache_salt is not None:
            event["cache_salt"] = first.salt.cache_salt
        return event

    def _tag(self, group: int) -> Event:
        return {} if self._is_plain else {"group_idx": group}


def decode(encoded: bytes) -> list[int]:
    """Decodes the tokens of the tree as integers."""
    return np.frombuffer(encoded, ">i8").tolist()


def _sort(blocks: dict[Any, Block]) -> Iterator[Block]:
    """Yields blocks by their keys, parents before children, with chains together."""
    left = dict(blocks)
    while left:
        path = [left.popitem()[1]]
        while above := left.pop((path[-1].parent, *path[-1].key[1:]), None):
            path.append(above)
        yield from reversed(path)


def _list_removed(blocks: Iterable[Block], tag: Any) -> Iterator[Event]:
    """Yields an event for the removed blocks of each group and place."""
    hashes: dict[tuple[int, Place], list[int]] = {}
    for block in blocks:
        hashes.setdefault((block.group, block.place), []).append(block.hash)
    for (group, place), each in hashes.items():
        yield {
            "type": "BlockRemoved",
            "block_hashes": each,
            "medium": MEDIA[place],
            **tag(group),
        }
