# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pages of a paged cache: who has which, and what a step's kernels get."""

from __future__ import annotations

import os
from array import array
from collections.abc import Hashable, Sequence
from itertools import chain
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from ..cache.groups import MultiKVCacheParams, unite
from ..cache.params import KVCacheParams
from ..checks import (
    check_gibibytes,
    check_instance,
    check_integer,
    check_path,
    check_positive,
    check_request,
    parse_drafts,
    parse_requests,
)
from ..errors import OutOfPagesError
from ..pictures.pages import MAX_PAGES, MAX_SEQUENCES, draw_pages
from .exchange import PageExchange
from .growth import Growth, Plan
from .inputs import StepInputs, gather_inputs
from .memory import Memory, NumPyMemory
from .pool import PagePool
from .prefixes import Prefix
from .snapshot import CacheSnapshot, CacheStats, Place, take_snapshot
from .storage import allocate_storage, count_pages, share_file
from .swaps import PageSwaps
from .tables import Sequence as _Sequence
from .tables import SequenceTable
from .tokens import TOKEN, BatchTokens, TokensOfBatch, parse_batch_tokens, parse_tokens


class PagedKVCacheManager(PageExchange, PageSwaps):
    """Hands out the pages of a cache to sequences that come and go.

    A step of a batch: ``grow`` each sequence by its new tokens, run kernels on what
    ``inputs`` gives, and say ``step`` when they are done. With prefix caching, sequences
    that begin alike share pages, which outlive them until their room is needed; a page
    that several have is copied before one of them writes to it. With swapping, pages
    that have to go move to the host, and come back.

    Every method that raises leaves the manager as it was, also where it is the ``memory``
    that raises, whatever it raises. Only pages that had to go for the call to get room may
    have gone by then: to the host, or, if no sequence has them, out of the cache.

    Args:
        params: The cache; paged, with ``total_num_layers``. ``MultiKVCacheParams`` for
            groups of layers that differ.
        max_batch_size: Sequences that ``inputs`` takes.
        max_seq_len: Tokens of a sequence.
        num_pages: Pages of the device, of the pool that all groups share; one more is
            allocated, the null page.
        cache_bytes: Bytes for all pages on all devices, instead of ``num_pages``.
        memory: Where the tensors lie; NumPy's memory if not given.
        disk_folder: Where a file for pages lies that have no room in the swap space; they
            are dropped if not given. Needs ``enable_kvcache_swapping_to_host``.
        disk_space_gb: The size of this file, in GiB.

    Raises:
        ValueError: The cache is not paged, there is not room for one page, or the
            parameters have a layout that no name of ``Layout.from_name`` has.
    """

    def __init__(
        self,
        params: KVCacheParams | MultiKVCacheParams,
        *,
        max_batch_size: int,
        max_seq_len: int,
        num_pages: int | None = None,
        cache_bytes: int | None = None,
        memory: Memory | None = None,
        disk_folder: str | os.PathLike[str] | None = None,
        disk_space_gb: float | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(params, MultiKVCacheParams):
            check_instance(KVCacheParams, params=params)
            if not params.is_paged:
                raise ValueError(
                    "expects 'params' of a paged cache, got a continuous one"
                )
        memory = NumPyMemory() if memory is None else memory
        check_instance(Memory, memory=memory)
        check_positive(max_batch_size=max_batch_size, max_seq_len=max_seq_len)
        self.params = params
        # NumPy's integers would overflow.
        self.max_batch_size = int(max_batch_size)
        self.max_seq_len = int(max_seq_len)
        self.num_pages = count_pages(params, num_pages, cache_bytes)
        self.num_host_pages = params.n_host_blocks
        self.null_page = self.num_pages
        self.memory = memory
        counts = self.num_pages, self.num_host_pages
        self._groups = unite(params)
        storage = allocate_storage(params, memory, *counts)
        self.blocks = tuple(store.tensor for store in storage.blocks)
        self.scales = tuple(store.tensor for store in storage.scales)
        self.group_tensors = storage.groups
        stores = [*storage.blocks, *storage.scales]
        space = self._parse_disk(disk_folder, disk_space_gb)
        self.num_disk_pages = (
            share_file(stores, disk_folder, space) if disk_folder else 0
        )
        sizes = *counts, self.num_disk_pages
        self._pool = PagePool(*sizes, stores, self._groups)
        self._table = SequenceTable(self._groups, self.null_page)
        self._growth = Growth(self._pool, self._table, params.enable_prefix_caching)
        self._sequences: dict[Hashable, _Sequence] = {}
        # The last batch: a step asks for it three times. None when one of it changes.
        self._last: tuple[tuple[Hashable, ...], list[_Sequence], np.ndarray] | None = (
            None
        )
        self._looked_up = self._found = 0
        # What the sequences of a salt have in common: they begin.
        self._roots: WeakValueDictionary[bytes, Prefix] = WeakValueDictionary()
        self._unsalted = self._roots[b""] = self._growth.make_root()

    def _parse_disk(
        self, folder: str | os.PathLike[str] | None, space: float | None
    ) -> int:
        """The bytes of the file."""
        if (folder is None) != (space is None):
            raise ValueError("expects both 'disk_folder' and 'disk_space_gb', or none")
        if folder is None or space is None:
            return 0
        check_path(disk_folder=folder)
        check_gibibytes(disk_space_gb=space)
        if not self.num_host_pages:
            raise ValueError("'disk_folder' needs 'enable_kvcache_swapping_to_host'")
        if not os.fspath(folder):
            raise ValueError("expects 'disk_folder' to name a folder, got ''")
        return int(space * 2**30)

    # --- Sequences ----------------------------------------------------------------

    def claim(
        self, request: Hashable, tokens: npt.ArrayLike = (), *, salt: bytes = b""
    ) -> int:
        """Begins a sequence, and lets it ``grow`` by ``tokens``.

        Args:
            request: Its name.
            tokens: The ids of its first tokens.
            salt: Only sequences of the same salt share pages; for what tokens don't
                say, such as an adapter or an image.

        Returns:
            How many of the tokens are in the cache already.

        Raises:
            ValueError: There is such a sequence, or ``grow`` raises it.
            TypeError: The salt is not bytes, or ``grow`` raises it.
            OutOfPagesError: As for ``grow``; there is no sequence then.
        """
        check_request(request=request)
        self._check_new(request)
        sequence, ids = self._begin(tokens, salt)
        try:
            found = self._growth.grow(sequence, ids)
        except BaseException:
            self._growth.drop(sequence)
            raise
        self._sequences[request] = sequence
        self._count_found(len(ids), found)
        return found

    def _begin(
        self, tokens: npt.ArrayLike, salt: bytes
    ) -> tuple[_Sequence, array[int]]:
        """A sequence without tokens, and those that it is to grow by."""
        if not isinstance(salt, bytes):
            raise TypeError(f"expects 'salt' to be bytes, got {salt!r}")
        if self._leases:
            self._end_expired()
        ids = parse_tokens(tokens)
        self._check_length(len(ids))
        root = self._roots.get(salt) if salt else self._unsalted
        if root is None:
            root = self._roots[salt] = self._growth.make_root()
        row = self._table.add()
        return _Sequence(root, self._table, row, array(TOKEN)), ids

    def _plan_claim(self, tokens: npt.ArrayLike, salt: bytes) -> Plan:
        sequence, ids = self._begin(tokens, salt)
        try:
            return self._growth.plan(sequence, ids)
        finally:
            self._growth.drop(sequence)

    def grow(self, request: Hashable, tokens: npt.ArrayLike) -> int:
        """Adds tokens to a sequence, with pages for them.

        They are pending until ``step``. With prefix caching, those that begin the
        tokens, and are in the cache of others, are shared or copied instead; at least
        one token is left pending, so that the model has something to continue from.

        Args:
            tokens: Their ids, a sequence of integers.

        Returns:
            How many of them are in the cache already.

        Raises:
            ValueError: The request is not known or swapped out, or it would be longer
                than ``max_seq_len``.
            TypeError: The tokens are not a sequence of integers.
            OutOfPagesError: There are not pages enough.
        """
        self._end_expired()
        sequence = self._get_resident(request)
        ids = parse_tokens(tokens)
        self._check_length(len(sequence.tokens) + len(ids))
        found = self._growth.grow(sequence, ids)
        self._count_found(len(ids), found)
        return found

    def grow_batch(self, requests: Sequence[Hashable], tokens: TokensOfBatch) -> None:
        """Adds tokens to each of some sequences, as the decode steps of a batch do.

        All grow, or none does. Unlike ``grow``, this does not look tokens up in the
        cache: they are new, or their number is not worth it.

        Args:
            tokens: One for each request: integers [batch]; as many for each: integers
                [batch, k]; or a sequence with the tokens of each.

        Raises:
            ValueError: As ``grow``; a request is there twice; or there are not tokens for
                each.
            TypeError: As ``grow``.
            OutOfPagesError: There are not pages enough for all.
        """
        self._growth.grow_batch(*self._parse_batch(requests, tokens))

    def _parse_batch(
        self, requests: Sequence[Hashable], tokens: TokensOfBatch
    ) -> tuple[list[_Sequence], np.ndarray, BatchTokens]:
        """The sequences, their rows, and the tokens that they are to grow by."""
        self._end_expired()
        requests = parse_requests(requests)
        batch, rows = self._get_rows(requests)
        parsed = parse_batch_tokens(tokens, len(batch))
        self._check_length(
            int((self._table.totals[rows] + parsed.counts).max(initial=0))
        )
        return batch, rows, parsed

    def _check_length(self, total: int) -> None:
        if total > self.max_seq_len:
            raise ValueError(
                f"expects a sequence of at most 'max_seq_len' ({self.max_seq_len}) "
                f"tokens, got {total}"
            )

    def _count_found(self, tokens: int, found: int) -> None:
        if self.params.enable_prefix_caching:
            self._looked_up += tokens
            self._found += found

    def fork(
        self, request: Hashable, new_request: Hashable, *more_requests: Hashable
    ) -> None:
        """Begins sequences with the tokens and the pages of another.

        Raises ``ValueError`` where one has pending tokens, or another is known or there
        twice.
        """
        new_requests = new_request, *more_requests
        for each in new_requests:
            check_request(new_request=each)
        sequence = self._get(request)
        if sequence.pending:
            raise ValueError(
                f"request {request!r} has {sequence.pending} pending tokens: step or "
                "truncate it before fork"
            )
        self._check_new(*new_requests)
        copies = self._growth.copy(sequence, len(new_requests))
        self._sequences.update(zip(new_requests, copies, strict=True))

    def commit(
        self,
        request: Hashable,
        tokens: npt.ArrayLike,
        drafts: Sequence[Hashable] = (),
    ) -> None:
        """Keeps what a model has accepted of speculation, and drops the rest.

        Kernels have put the pending tokens of the request and of its drafts in the cache.
        Of these, ``tokens`` are accepted: they are in the cache after it, as behind
        ``step``, and nothing is pending. Drafts are forks that have grown; the first that
        has the tokens gives its pages, and all of them end.

        Args:
            request: A sequence.
            tokens: The ids of tokens that follow those that it had in the cache.
            drafts: Other sequences.

        Raises:
            ValueError: A request is not known, swapped out, or there twice, or none of
                the sequences has these tokens.
            TypeError: As for ``grow``.
        """
        self.commit_batch([request], [parse_tokens(tokens)], [drafts])

    def commit_batch(
        self,
        requests: Sequence[Hashable],
        tokens: TokensOfBatch,
        drafts: Sequence[Sequence[Hashable]] | None = None,
    ) -> None:
        """Does ``commit`` for several requests, for all or, if it raises, for none.

        Args:
            requests: Sequences.
            tokens: As for ``grow_batch``.
            drafts: The drafts of each request, if there are any.
        """
        requests = parse_requests(requests)
        parsed = parse_batch_tokens(tokens, len(requests))
        groups = parse_drafts(drafts, len(requests))
        self._get_rows((*requests, *chain(*groups)))
        chosen = []
        for request, chunk, group in zip(requests, parsed.split(), groups, strict=True):
            sequence = self._sequences[request]
            candidates = [sequence, *(self._sequences[draft] for draft in group)]
            source = sequence.choose(candidates, chunk)
            if source is None:
                raise ValueError(
                    f"expects tokens that request {request!r} or a draft of it has behind "
                    f"the {sequence.length} in the cache, got {list(chunk)}"
                )
            chosen.append((sequence, source, sequence.length + len(chunk)))
        self._last = None  # a draft may give its row
        for (sequence, source, length), group in zip(chosen, groups, strict=True):
            self._growth.commit(sequence, source, length)
            for draft in group:
                self.release(draft)

    def truncate(self, request: Hashable, length: int) -> None:
        """Forgets the tokens of a sequence from ``length`` on, also pending ones.

        Raises ``ValueError`` for more tokens than it has, and where tokens behind these
        would reach what is gone: pages in front of a window, or a state before the
        pending tokens, if ``inputs`` has given them to kernels.
        """
        check_integer(length=length)
        sequence = self._get(request)
        if not 0 <= length <= len(sequence.tokens):
            raise ValueError(
                f"expects 'length' to be 0 to {len(sequence.tokens)} for request "
                f"{request!r}, got {length}"
            )
        if obstacle := sequence.find_obstacle(int(length)):
            raise ValueError(
                f"request {request!r} can't be truncated to {length} tokens: {obstacle}"
            )
        self._growth.cut(sequence, int(length))

    def release(self, request: Hashable) -> None:
        """Ends a sequence. Its pages are free, or kept for later prefixes."""
        self._growth.end(self._get(request))
        self._last = None
        del self._sequences[request]

    # --- Steps --------------------------------------------------------------------

    def inputs(self, requests: Sequence[Hashable]) -> StepInputs:
        """What kernels need to process the pending tokens of some sequences.

        With several groups of layers, ``groups`` of it has what those of each need.

        Raises ``ValueError`` for no sequences, more than ``max_batch_size``, the same
        twice, and for one that is not known, swapped out, or without pending tokens.
        """
        requests = parse_requests(requests)
        batch, rows = self._get_batch(requests)
        given = gather_inputs(
            requests, batch, rows, self._table, self.memory, self.group_tensors
        )
        if self._table.has_states:
            self._table.given[rows] = True
        return given

    def step(self, requests: Sequence[Hashable]) -> None:
        """Says that kernels have put the pending tokens of sequences in the cache.

        With prefix caching, the pages that are full now can be shared by what is
        claimed, or grows, from here on: prompts of the same step share none. Raises
        ``ValueError`` like ``inputs``.
        """
        self._growth.finish(*self._get_batch(parse_requests(requests)))

    def _get_batch(
        self, requests: tuple[Hashable, ...]
    ) -> tuple[list[_Sequence], np.ndarray]:
        """The sequences of a step, and their rows."""
        if not 0 < len(requests) <= self.max_batch_size:
            raise ValueError(
                f"expects 1 to 'max_batch_size' ({self.max_batch_size}) requests, got "
                f"{len(requests)}"
            )
        batch, rows = self._get_rows(requests)
        pending = self._table.totals[rows] - self._table.lengths[rows]
        if not pending.all():
            request = requests[int(pending.argmin())]
            raise ValueError(f"request {request!r} has no pending tokens")
        return batch, rows

    def _get_rows(
        self, requests: tuple[Hashable, ...]
    ) -> tuple[list[_Sequence], np.ndarray]:
        """Sequences that are resident and different, and their rows."""
        if self._last and self._last[0] == requests:
            return self._last[1:]
        batch = list(map(self._sequences.get, requests))
        known = [sequence for sequence in batch if sequence]
        rows = np.array([sequence.row for sequence in known], np.intp)
        if len(known) < len(batch) or not self._table.resident[rows].all():
            for request in requests:
                self._get_resident(request)
        if len(set(known)) < len(known):
            twice = next(r for i, r in enumerate(requests) if r in requests[:i])
            raise ValueError(f"request {twice!r} is twice in the batch")
        self._last = requests, known, rows
        return known, rows

    def reset_prefix_cache(self) -> None:
        """Forgets the cached pages that no sequence has."""
        self._pool.forget_unreferenced()

    # --- What there is ------------------------------------------------------------

    @property
    def num_free_pages(self) -> int:
        """Pages that can be had at once: free, or with nothing that a sequence has."""
        self._end_expired()
        return self._pool.count_available()

    def match(self, tokens: npt.ArrayLike, *, salt: bytes = b"") -> int:
        """How many of the tokens ``claim`` would find in the cache; changes nothing."""
        plan = self._plan_claim(tokens, salt)
        return plan.found if plan.fits else 0

    def pages_needed(self, tokens: npt.ArrayLike, *, salt: bytes = b"") -> int:
        """The pages that ``claim`` would take of ``num_free_pages``; changes nothing.

        Cached pages that no sequence has count as well. Where it is more than there are,
        there is no room.
        """
        return self._growth.count_taken(self._plan_claim(tokens, salt))

    def can_claim(self, tokens: npt.ArrayLike, *, salt: bytes = b"") -> bool:
        """Whether ``claim`` has room for these tokens; changes nothing.

        All three raise for tokens and salts as ``claim`` does.
        """
        return self._plan_claim(tokens, salt).fits

    def can_grow_batch(
        self, requests: Sequence[Hashable], tokens: TokensOfBatch
    ) -> bool:
        """Whether ``grow_batch`` has room; changes nothing, and raises as it does."""
        batch = self._parse_batch(requests, tokens)
        _, needed, available = self._growth.plan_batch(*batch)
        return needed <= available

    def pages_evicted(self, pages: int) -> int:
        """How many cached pages go to the host, or out, when so many are taken.

        They go in this order: those that no sequence has, the least recently used first,
        then those of sequences that are swapped out. Raises ``ValueError`` for more than
        ``num_free_pages``.
        """
        check_integer(pages=pages)
        if not 0 <= pages <= self.num_free_pages:
            raise ValueError(
                f"expects 'pages' to be 0 to {self.num_free_pages}, got {pages}"
            )
        return max(int(pages) - self._pool.count_unused(), 0)

    @property
    def stats(self) -> CacheStats:
        """Counts since the manager was made: tokens found, pages evicted and moved."""
        return CacheStats(
            self._looked_up,
            self._found,
            self._pool.evicted,
            self._pool.moved[Place.HOST],
            self._pool.moved[Place.DEVICE],
            self._pool.moved[Place.DISK],
        )

    def tokens(self, request: Hashable) -> np.ndarray:
        """The ids of a sequence's tokens, int64, the pending ones last."""
        return np.array(self._get(request).tokens, np.int64)

    def __contains__(self, request: Hashable) -> bool:
        return request in self._sequences

    def __len__(self) -> int:
        return len(self._sequences)

    def _get(self, request: Hashable) -> _Sequence:
        check_request(request=request)
        if request not in self._sequences:
            raise ValueError(f"there is no request {request!r}")
        return self._sequences[request]

    def _get_resident(self, request: Hashable) -> _Sequence:
        sequence = self._get(request)
        if not sequence.is_resident:
            raise ValueError(f"request {request!r} is swapped out: swap it in first")
        return sequence

    def snapshot(self) -> CacheSnapshot:
        """The pages and the sequences, as they are now."""
        return take_snapshot(
            tuple(group.tokens for group in self._groups),
            (self.num_pages, self.num_host_pages, self.num_disk_pages),
            self._sequences | self._get_exchanged() | self._get_swapped(),
            self._pool.get_unused(),
        )

    def _repr_svg_(self) -> str | None:
        """The pages as a picture, for a notebook; None where they are too many."""
        counts = self.num_pages, self.num_host_pages, self.num_disk_pages
        if max(counts) > MAX_PAGES:
            return None
        first = list(self._sequences)[:MAX_SEQUENCES]
        return draw_pages(self.snapshot(), requests=first)._repr_svg_()

    def __repr__(self) -> str:
        return (
            f"<kvcache.PagedKVCacheManager of {self.num_pages} pages, "
            f"{self.num_free_pages} free, {len(self)} sequences>"
        )
