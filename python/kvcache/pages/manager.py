# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The manager of a paged cache: pages of sequences, and inputs of steps."""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import chain
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from ..cache.groups import MultiKVCacheParams, as_layer_groups
from ..cache.params import KVCacheParams
from ..checks import (
    check_instance,
    check_integer,
    check_positive,
    check_request,
    check_share,
    parse_drafts,
    parse_requests,
)
from ..pictures.pages import MAX_PAGES, MAX_SEQUENCES, draw_pages
from .exchange import PageExchange
from .growth import Growth
from .gathering import gather_inputs
from .inputs import StepInputs
from .listeners import PageListener
from .memory import Memory, NumPyMemory
from .pool import PagePool
from .prefixes import Prefix
from .publishing import PagePublishing
from .questions import PageQuestions
from .recount import PageReset
from .retention import Retain, parse_retain
from .snapshot import CacheSnapshot, take_snapshot
from .storage import PageStore, allocate_storage, check_paged, count_pages, parse_disk, share_file
from .stores import Store
from .swaps import PageSwaps
from .tables import CachedSequence, SequenceTable
from .token_table import BatchRows
from .tokens import BatchTokens, TokensOfBatch, parse_batch_tokens, parse_tokens


class PagedKVCacheManager(PagePublishing, PageExchange, PageSwaps, PageQuestions, PageReset):
    """Assigns the pages of a cache to sequences.

    A step of a batch: ``grow`` each sequence by its new tokens, run kernels on
    ``inputs``, and call ``step`` when they are done. With prefix caching, sequences
    with equal first tokens share pages, which stay until their room is needed. A shared
    page is copied before a sequence writes to it. With swapping, evicted pages move to
    the host, and back when they are needed.

    A method that raises leaves the manager unchanged, even if ``memory`` raises. The
    only exception is pages that were evicted to make room: they may be on the host, or,
    if no sequence uses them, dropped. After an interrupt of ``events`` or a store,
    ``step`` has marked the tokens. Any other interrupt, such as ``KeyboardInterrupt``,
    may leave part of a call: release the requests of the call, and call
    ``reset_prefix_cache``.

    Args:
        params: The parameters of a paged cache with ``total_num_layers``;
            ``MultiKVCacheParams`` for groups of layers that differ.
        max_batch_size: The most sequences in a batch.
        max_seq_len: The most tokens of a sequence.
        num_pages: Pages of the device, shared by all groups, without the null page,
            which is allocated besides.
        cache_bytes: Bytes for all pages on all devices, instead of ``num_pages``.
        memory: The memory of the tensors; NumPy's by default.
        disk_folder: The folder of a file for pages without room in the swap space,
            which are dropped by default. Needs ``enable_kvcache_swapping_to_host``.
        disk_space_gb: The size of this file, in GiB.
        events: A listener that publishes the cached pages, such as
            ``kvcache.events.Publisher``. Needs ``enable_prefix_caching``.
        max_retained_share: The most pages that ``retain`` of ``claim`` keeps, as a
            share of ``num_pages``; 0 ignores it. Higher priorities take the share of
            lower ones.
        store: A store for cached pages that outlive the manager, such as
            ``kvcache.stores.Folder``. Needs ``enable_prefix_caching``.
        store_name: The name of the model, its revision, and its part of the cache.
            Managers with equal names and formats share pages.

    Raises:
        ValueError: The cache is not paged, there is no room for one page, or the layout
            of the parameters is not one of ``Layout.from_name``.
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
        events: PageListener | None = None,
        max_retained_share: float = 0.0,
        store: Store | None = None,
        store_name: str = "",
    ) -> None:
        super().__init__()
        check_paged(params)
        self.params = params
        self.memory = NumPyMemory() if memory is None else memory
        check_instance(Memory, memory=self.memory)
        check_positive(max_batch_size=max_batch_size, max_seq_len=max_seq_len)
        check_share(max_retained_share=max_retained_share)
        # NumPy's integers would overflow.
        self.max_batch_size = int(max_batch_size)
        self.max_seq_len = int(max_seq_len)
        self.num_pages = count_pages(params, num_pages, cache_bytes)
        self.num_host_pages = params.n_host_blocks
        self.null_page = self.num_pages
        self._groups = as_layer_groups(params)
        stores = self._allocate(disk_folder, disk_space_gb)
        sizes = self.num_pages, self.num_host_pages, self.num_disk_pages
        most_retained = int(max_retained_share * self.num_pages)
        self._pool = PagePool(*sizes, stores, self._groups, most_retained)
        self._table = SequenceTable(self._groups, self.null_page)
        self._growth = Growth(self._pool, self._table, params.enable_prefix_caching)
        self._sequences: dict[Hashable, CachedSequence] = {}
        # The last batch, which a step needs three times; None when a sequence of it
        # changes.
        self._last: tuple[tuple[Hashable, ...], list[CachedSequence], BatchRows] | None = None
        # The root of the tree of prefixes for each salt.
        self._roots: WeakValueDictionary[bytes, Prefix] = WeakValueDictionary()
        self._unsalted = self._roots[b""] = self._growth.make_root(b"")
        self._begin_publishing(store, store_name, stores, events)

    def _allocate(
        self, disk_folder: str | os.PathLike[str] | None, disk_space_gb: float | None
    ) -> list[PageStore]:
        """Allocates the tensors, the swap space and the file of the disk."""
        counts = self.num_pages, self.num_host_pages
        storage = allocate_storage(self.params, self.memory, *counts)
        self.blocks = tuple(store.tensor for store in storage.blocks)
        self.scales = tuple(store.tensor for store in storage.scales)
        self.group_tensors = storage.groups
        stores = [*storage.blocks, *storage.scales]
        space = parse_disk(disk_folder, disk_space_gb, self.num_host_pages)
        self.num_disk_pages = share_file(stores, disk_folder, space) if disk_folder else 0
        return stores

    # --- Sequences ----------------------------------------------------------------

    def claim(
        self,
        request: Hashable,
        tokens: npt.ArrayLike = (),
        *,
        salt: bytes = b"",
        retain: Sequence[Retain] = (),
    ) -> int:
        """Begins a sequence, and lets it ``grow`` by ``tokens``.

        Args:
            request: The name of the new sequence.
            tokens: The ids of its first tokens.
            salt: Only sequences with equal salts share pages; for inputs besides
                tokens, such as an adapter or an image.
            retain: Hints to keep cached pages of its first tokens longer than others,
                within ``max_retained_share``. Of several for a page, the one with the
                highest priority counts that has not expired.

        Returns:
            How many of the tokens are in the cache already.

        Raises:
            ValueError: The sequence exists already, a hint is out of range or without
                prefix caching, or ``grow`` raises it.
            TypeError: The salt is not bytes, a hint is no ``Retain``, or ``grow``
                raises it.
            OutOfPagesError: As for ``grow``; no sequence begins then.
        """
        check_request(request=request)
        self._check_new(request)
        hints = parse_retain(retain) if retain else ()
        if hints and not self.params.enable_prefix_caching:
            raise ValueError("'retain' needs 'enable_prefix_caching'")
        if self._tier:
            with self.prefetch(tokens, salt=salt) as prefetch:
                prefetch.wait()
        sequence, ids = self._begin(tokens, salt)
        if hints:
            sequence.retain = hints
        try:
            found = self._growth.grow(sequence, ids)
        except BaseException:
            self._growth.drop(sequence)
            raise
        self._sequences[request] = sequence
        self._count_looked_up(len(ids))
        if self._tier:
            self._tier.count_missed(len(ids), found)
        return found

    def _begin(
        self, tokens: npt.ArrayLike, salt: bytes
    ) -> tuple[CachedSequence, array[int]]:
        """Begins a sequence without tokens; returns it and its parsed first tokens."""
        if not isinstance(salt, bytes):
            raise TypeError(f"expects 'salt' to be bytes, got {salt!r}")
        if self._leases:
            self._end_expired()
        ids = parse_tokens(tokens)
        self._check_length(len(ids))
        root = self._roots.get(salt) if salt else self._unsalted
        if root is None:
            root = self._roots[salt] = self._growth.make_root(salt)
        return CachedSequence(self._table, self._table.add(root)), ids

    def grow(self, request: Hashable, tokens: npt.ArrayLike) -> int:
        """Adds tokens to a sequence, with pages for them.

        They are pending until ``step``. With prefix caching, the first tokens that are
        in the cache already are shared or copied instead. At least one token stays
        pending, so that the model has an input.

        Args:
            request: The name of the sequence.
            tokens: The ids of the tokens, a sequence of integers.

        Returns:
            How many of the tokens are in the cache already.

        Raises:
            ValueError: The request is unknown or swapped out, or would have more than
                ``max_seq_len`` tokens.
            TypeError: The tokens are not a sequence of integers.
            OutOfPagesError: There are not enough pages.
        """
        if self._leases:
            self._end_expired()
        sequence = self._get_resident(request)
        ids = parse_tokens(tokens)
        self._check_length(sequence.total + len(ids))
        found = self._growth.grow(sequence, ids)
        self._count_looked_up(len(ids))
        return found

    def grow_batch(self, requests: Sequence[Hashable], tokens: TokensOfBatch) -> None:
        """Adds tokens to several sequences, as the decode steps of a batch do.

        All grow, or none does. Unlike ``grow``, it does not look tokens up in the
        cache.

        Args:
            requests: The names of the sequences.
            tokens: One token per request, integers [batch]; k tokens per request,
                integers [batch, k]; or a sequence with the tokens of each request.

        Raises:
            ValueError: As for ``grow``; a request is given twice; or the numbers of
                requests and of their tokens differ.
            TypeError: As for ``grow``.
            OutOfPagesError: There are not enough pages for all.
        """
        self._growth.grow_batch(*self._parse_batch(requests, tokens))

    def _parse_batch(
        self, requests: Sequence[Hashable], tokens: TokensOfBatch
    ) -> tuple[list[CachedSequence], BatchRows, BatchTokens]:
        """Parses the sequences, their rows, and their new tokens."""
        self._end_expired()
        requests = parse_requests(requests)
        batch, rows = self._get_rows(requests)
        parsed = parse_batch_tokens(tokens, len(batch))
        self._check_length(
            int((self._table.totals[rows.selector] + parsed.counts).max(initial=0))
        )
        return batch, rows, parsed

    def _check_length(self, total: int) -> None:
        if total > self.max_seq_len:
            raise ValueError(
                f"expects a sequence of at most 'max_seq_len' ({self.max_seq_len}) "
                f"tokens, got {total}"
            )

    def fork(
        self, request: Hashable, new_request: Hashable, *more_requests: Hashable
    ) -> None:
        """Begins sequences with the tokens and the pages of another.

        Raises ``ValueError`` if the source has pending tokens, or a new name exists
        already or is given twice.
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
        """Keeps the accepted tokens of speculation, and drops the others.

        Kernels have put the pending tokens of the request and of its drafts in the
        cache. Of these, ``tokens`` are accepted: they are in the cache afterwards, as
        after ``step``, and nothing is pending. Drafts are forks that have grown. The
        first sequence with the accepted tokens gives its pages, and all drafts end.

        Args:
            request: The sequence that continues.
            tokens: The ids of the accepted tokens, which follow those in the cache.
            drafts: The forks of the request.

        Raises:
            ValueError: A request is unknown, swapped out, or given twice, or none of
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
        """Calls ``commit`` for several requests; for none if it raises.

        Args:
            requests: The sequences that continue.
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
                    f"expects tokens that request {request!r} or a draft of it has after "
                    f"the {sequence.length} in the cache, got {list(chunk)}"
                )
            chosen.append((sequence, source, sequence.length + len(chunk)))
        self._last = None  # a draft may give its row
        for (sequence, source, length), group in zip(chosen, groups, strict=True):
            self._growth.commit(sequence, source, length)
            for draft in group:
                self.release(draft)
        self._publish_changed()

    def truncate(self, request: Hashable, length: int) -> None:
        """Drops the tokens of a sequence from ``length`` on, also pending ones.

        Raises ``ValueError`` for more tokens than it has, or if later tokens would
        reach freed pages: pages before a window, or a state before pending tokens that
        ``inputs`` has given to kernels.
        """
        check_integer(length=length)
        sequence = self._get(request)
        if not 0 <= length <= sequence.total:
            raise ValueError(
                f"expects 'length' to be 0 to {sequence.total} for request "
                f"{request!r}, got {length}"
            )
        if obstacle := sequence.find_obstacle(int(length)):
            raise ValueError(
                f"request {request!r} can't be truncated to {length} tokens: {obstacle}"
            )
        self._growth.cut(sequence, int(length))

    def release(self, request: Hashable) -> None:
        """Ends a sequence. Its pages are freed, or stay cached for later prefixes."""
        self._growth.end(self._get(request))
        self._last = None
        del self._sequences[request]

    # --- Steps --------------------------------------------------------------------

    def inputs(self, requests: Sequence[Hashable]) -> StepInputs:
        """The inputs of kernels that process the pending tokens of sequences.

        With several groups of layers, its ``groups`` has the inputs of each.

        Raises ``ValueError`` for no sequences, more than ``max_batch_size``, or one
        twice, and for a sequence that is unknown, swapped out, or without pending
        tokens.
        """
        requests = parse_requests(requests)
        _, rows = self._get_batch(requests)
        given = gather_inputs(
            requests, rows, self._table, self.memory, self.group_tensors
        )
        if self._table.has_states:
            self._table.given[rows.selector] = True
        return given

    def step(self, requests: Sequence[Hashable]) -> None:
        """Marks the pending tokens of sequences as in the cache.

        Call it after kernels have put them there. With prefix caching, later ``claim``
        and ``grow`` can share the pages that are full now: prompts of one step share
        none. Raises ``ValueError`` like ``inputs``.
        """
        batch, rows = self._get_batch(parse_requests(requests))
        self._growth.finish(batch, rows.selector)
        self._publish_changed()

    def _get_batch(self, requests: tuple[Hashable, ...]) -> tuple[list[CachedSequence], BatchRows]:
        """Checks the sequences of a step; returns them and their rows."""
        if not 0 < len(requests) <= self.max_batch_size:
            raise ValueError(f"expects 1 to 'max_batch_size' ({self.max_batch_size}) requests, got {len(requests)}")
        batch, rows = self._get_rows(requests)
        pending = self._table.totals[rows.selector] - self._table.lengths[rows.selector]
        if not pending.all():
            request = requests[int(pending.argmin())]
            raise ValueError(f"request {request!r} has no pending tokens")
        return batch, rows

    def _get_rows(self, requests: tuple[Hashable, ...]) -> tuple[list[CachedSequence], BatchRows]:
        """Checks that sequences are resident and differ; returns them and their rows."""
        if self._last and self._last[0] == requests:
            return self._last[1:]
        batch = list(map(self._sequences.get, requests))
        known = [sequence for sequence in batch if sequence]
        rows = BatchRows.of(np.array([sequence.row for sequence in known], np.intp))
        if len(known) < len(batch) or not self._table.resident[rows.selector].all():
            for request in requests:
                self._get_resident(request)
        if len(set(known)) < len(known):
            counts = Counter(requests)
            twice = next(request for request in requests if counts[request] > 1)
            raise ValueError(f"request {twice!r} is twice in the batch")
        self._last = requests, known, rows
        return known, rows

    # --- State --------------------------------------------------------------------

    def _get(self, request: Hashable) -> CachedSequence:
        try:
            return self._sequences[request]
        except KeyError:
            raise ValueError(f"there is no request {request!r}") from None
        except TypeError:
            check_request(request=request)
            raise

    def _get_resident(self, request: Hashable) -> CachedSequence:
        sequence = self._get(request)
        if not sequence.is_resident:
            raise ValueError(f"request {request!r} is swapped out: swap it in first")
        return sequence

    def snapshot(self) -> CacheSnapshot:
        """A snapshot of the pages and the sequences."""
        return take_snapshot(
            tuple(group.tokens for group in self._groups),
            (self.num_pages, self.num_host_pages, self.num_disk_pages),
            {
                **self._sequences,
                **self._get_exchanged(),
                **self._get_swapped(),
                **self._prefetches,
            },
            self._pool.get_unused(),
        )

    def _repr_svg_(self) -> str | None:
        """The pages as a picture, for a notebook; None if they are too many."""
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
