# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pages of a paged cache: who has which, and what a step's kernels get."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from . import dtypes
from .checks import (
    check_instance,
    check_integer,
    check_positive,
    check_request,
    parse_requests,
)
from .errors import OutOfPagesError
from .inputs import StepInputs
from .memory import Memory, NumPyMemory
from .pages import Page, PagePool, PageStore
from .params import KVCacheParams
from .pictures.pages import MAX_PAGES, MAX_SEQUENCES, draw_pages
from .prefixes import TOKEN, Match, Prefix, find
from .snapshot import CacheSnapshot, PageState, Place, SequenceState

_LUT_COLUMNS = 8  # what the lookup table's columns are rounded up to
_LUT_PADDING = 16  # columns more, so that wide reads of a row stay inside


@dataclass(eq=False)
class _Sequence:
    """The tokens and the pages of a request; there is room for all its tokens."""

    root: Prefix
    tokens: array[int] = field(default_factory=lambda: array(TOKEN))
    pages: list[Page] = field(default_factory=list)
    length: int = 0  # tokens in the cache, the first ones
    is_resident: bool = True

    @property
    def pending(self) -> int:
        return len(self.tokens) - self.length


class PagedKVCacheManager:
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
        params: The cache; paged, with ``total_num_layers``.
        max_batch_size: Sequences that ``inputs`` takes.
        max_seq_len: Tokens of a sequence.
        num_pages: Pages of the device; one more is allocated, the null page.
        cache_bytes: Bytes for all pages on all devices, instead of ``num_pages``.
        memory: Where the tensors lie; NumPy's memory if not given.

    Raises:
        ValueError: The cache is not paged, or there is not room for one page.
    """

    def __init__(
        self,
        params: KVCacheParams,
        *,
        max_batch_size: int,
        max_seq_len: int,
        num_pages: int | None = None,
        cache_bytes: int | None = None,
        memory: Memory | None = None,
    ) -> None:
        check_instance(KVCacheParams, params=params)
        memory = NumPyMemory() if memory is None else memory
        check_instance(Memory, memory=memory)
        if not params.is_paged:
            raise ValueError("expects 'params' of a paged cache, got a continuous one")
        check_positive(max_batch_size=max_batch_size, max_seq_len=max_seq_len)
        self.params = params
        # NumPy's integers would overflow.
        self.max_batch_size = int(max_batch_size)
        self.max_seq_len = int(max_seq_len)
        self.num_pages = _get_num_pages(params, num_pages, cache_bytes)
        self.num_host_pages = params.n_host_blocks
        self.null_page = self.num_pages
        self._memory = memory
        self._page_size = params.shape_per_block[2]
        blocks, scales = self._allocate()
        self.blocks = tuple(store.tensor for store in blocks)
        self.scales = tuple(store.tensor for store in scales)
        self._pool = PagePool(self.num_pages, self.num_host_pages, [*blocks, *scales])
        self._sequences: dict[Hashable, _Sequence] = {}
        # What the sequences of a salt have in common: they begin.
        self._roots: WeakValueDictionary[bytes, Prefix] = WeakValueDictionary()

    def _allocate(self) -> tuple[list[PageStore], list[PageStore]]:
        """The blocks and the scales of each device."""

        def allocate(shape: list[int], dtype: Any) -> list[PageStore]:
            counts = self.num_pages, self.num_host_pages
            element = dtypes.dtype(dtype)
            return [
                PageStore(self._memory, tuple(shape), element, *counts)
                for _ in range(params.n_devices_per_stage)
            ]

        params = self.params
        blocks = allocate(params.shape_per_block, params.storage_dtype)
        config = params.kvcache_quant_config
        if not config:
            return blocks, []
        return blocks, allocate(params.shape_per_scale_block, config.scale_dtype)

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
        if request in self._sequences:
            raise ValueError(f"request {request!r} has been claimed already")
        if not isinstance(salt, bytes):
            raise TypeError(f"expects 'salt' to be bytes, got {salt!r}")
        sequence = _Sequence(self._roots.setdefault(salt, Prefix()))
        found = self._grow(sequence, self._parse_tokens(tokens))
        self._sequences[request] = sequence
        return found

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
        return self._grow(self._get_resident(request), self._parse_tokens(tokens))

    def fork(self, request: Hashable, new_request: Hashable) -> None:
        """Begins a sequence with the tokens and the pages of another.

        Raises ``ValueError`` where one has pending tokens or the other is known.
        """
        check_request(new_request=new_request)
        sequence = self._get(request)
        if sequence.pending:
            raise ValueError(
                f"request {request!r} has {sequence.pending} pending tokens: step or "
                "truncate it before fork"
            )
        if new_request in self._sequences:
            raise ValueError(f"request {new_request!r} has been claimed already")
        for page in sequence.pages:
            self._pool.refer(page, sequence.is_resident)
        tokens, pages = sequence.tokens[:], sequence.pages[:]
        self._sequences[new_request] = _Sequence(
            sequence.root, tokens, pages, sequence.length, sequence.is_resident
        )

    def truncate(self, request: Hashable, length: int) -> None:
        """Forgets the tokens of a sequence from ``length`` on, also pending ones.

        Raises ``ValueError`` for more tokens than it has.
        """
        check_integer(length=length)
        sequence = self._get(request)
        if not 0 <= length <= len(sequence.tokens):
            raise ValueError(
                f"expects 'length' to be 0 to {len(sequence.tokens)} for request "
                f"{request!r}, got {length}"
            )
        self._cut(sequence, int(length))

    def release(self, request: Hashable) -> None:
        """Ends a sequence. Its pages are free, or kept for later prefixes."""
        self._cut(self._get(request), 0)
        del self._sequences[request]

    def _cut(self, sequence: _Sequence, length: int) -> None:
        # The last page first: it must not outlive those that it is behind.
        while len(sequence.pages) > self._count_pages(length):
            self._pool.release(sequence.pages.pop(), sequence.is_resident)
        del sequence.tokens[length:]
        sequence.length = min(sequence.length, length)

    def swap_out(self, request: Hashable) -> None:
        """Moves a sequence's pages to the host, but for those that others use.

        Raises:
            ValueError: The request is not known or swapped out already, or the
                parameters have no ``enable_kvcache_swapping_to_host``.
            OutOfPagesError: The swap space has no room for them.
        """
        self._check_swapping()
        sequence = self._get_resident(request)
        leaving = [page for page in reversed(sequence.pages) if page.users == 1]
        available = self._pool.count_available_host()
        if len(leaving) > available:
            raise OutOfPagesError("the swap space has no room", len(leaving), available)
        self._pool.move(leaving, Place.HOST)
        for page in reversed(sequence.pages):
            self._pool.end_use(page)
        sequence.is_resident = False

    def swap_in(self, request: Hashable) -> None:
        """Moves a sequence's pages back to the device.

        Raises:
            ValueError: The request is not known or not swapped out.
            OutOfPagesError: The device has no room for them.
        """
        self._check_swapping()
        sequence = self._get(request)
        if sequence.is_resident:
            raise ValueError(f"request {request!r} is not swapped out")
        brought = [page for page in sequence.pages if page.is_on(Place.HOST)]
        available = self._pool.count_available(kept=sequence.pages)
        if len(brought) > available:
            raise OutOfPagesError("out of pages", len(brought), available)
        self._pool.move(brought, Place.DEVICE, kept=sequence.pages)
        for page in sequence.pages:
            self._pool.begin_use(page)
        sequence.is_resident = True

    def _check_swapping(self) -> None:
        if not self.num_host_pages:
            raise ValueError("swapping needs 'enable_kvcache_swapping_to_host'")

    # --- Growing ------------------------------------------------------------------

    def _parse_tokens(self, tokens: npt.ArrayLike) -> array[int]:
        ids = np.asarray(tokens)
        if ids.shape == (0,):
            return array(TOKEN)
        if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
            raise TypeError(
                "expects 'tokens' to be a sequence of integers, got an array of "
                f"{ids.dtype} with shape {ids.shape}"
            )
        if ids.min() < 0 or ids.max() > np.iinfo(np.int64).max:
            raise ValueError(
                "expects 'tokens' not to be negative and below 2^63, got "
                f"{ids.min() if ids.min() < 0 else ids.max()}"
            )
        return array(TOKEN, ids.astype(np.int64).tobytes())

    def _count_pages(self, tokens: int) -> int:
        return -(-tokens // self._page_size)

    def _grow(self, sequence: _Sequence, tokens: array[int]) -> int:
        total = len(sequence.tokens) + len(tokens)
        if total > self.max_seq_len:
            raise ValueError(
                f"expects a sequence of at most 'max_seq_len' ({self.max_seq_len}) "
                f"tokens, got {total}"
            )
        if not tokens:
            return 0
        match = self._choose_match(sequence, tokens)
        written = self._get_written(sequence)
        is_copied = self._is_copied(sequence)
        missing = self._count_pages(total) - len(sequence.pages) - len(match.pages)
        new = self._pool.provide(
            missing + is_copied,
            copied=written if is_copied else match.partial,
            brought=[page for page in match.pages if page.is_on(Place.HOST)],
            kept=match.kept,
        )
        if written and is_copied:
            sequence.pages[sequence.length // self._page_size] = new.pop(0)
            self._pool.release(written, was_resident=True)
        elif written:
            self._pool.forget(written)
        for page in match.pages:
            self._pool.refer(page, is_resident=True)
        sequence.pages += match.pages + new
        found = len(match.pages) * self._page_size + match.common
        sequence.tokens += tokens
        sequence.length += found
        return found

    def _choose_match(self, sequence: _Sequence, tokens: array[int]) -> Match:
        """What of the tokens is in the cache, as far as there is room to use it.

        Raises ``OutOfPagesError`` where there is no room for the tokens at all.
        """
        total = self._count_pages(len(sequence.tokens) + len(tokens))
        more = total - len(sequence.pages) + self._is_copied(sequence)
        needed = available = 0
        for match in self._find_matches(sequence, tokens):
            on_host = sum(page.is_on(Place.HOST) for page in match.pages)
            needed = more - len(match.pages) + on_host
            available = self._pool.count_available(match.kept)
            if needed <= available:
                return match
        raise OutOfPagesError("out of pages", needed, available)

    def _find_matches(
        self, sequence: _Sequence, tokens: array[int]
    ) -> Iterable[Match]:
        """The best match of tokens, then others that need less room."""
        count, rest = divmod(sequence.length, self._page_size)
        if self.params.enable_prefix_caching and not rest and not sequence.pending:
            parent = sequence.pages[count - 1].prefix if count else sequence.root
            assert parent
            match = find(parent, tokens[:-1], self._page_size)
            yield match
            yield Match(match.pages)
            on_device = takewhile(lambda page: page.is_on(Place.DEVICE), match.pages)
            yield Match(list(on_device))
        else:
            yield Match([])

    def _get_written(self, sequence: _Sequence) -> Page | None:
        """The page with tokens in it that the next ones come into."""
        count, rest = divmod(sequence.length, self._page_size)
        return sequence.pages[count] if rest else None

    def _is_copied(self, sequence: _Sequence) -> bool:
        page = self._get_written(sequence)
        return page is not None and page.references > 1

    # --- Steps --------------------------------------------------------------------

    def inputs(self, requests: Sequence[Hashable]) -> StepInputs:
        """What kernels need to process the pending tokens of some sequences.

        Raises ``ValueError`` for no sequences, more than ``max_batch_size``, the same
        twice, and for one that is not known, swapped out, or without pending tokens.
        """
        requests = parse_requests(requests)
        batch = self._get_batch(requests)
        columns = -(-self._count_pages(self.max_seq_len) // _LUT_COLUMNS) * _LUT_COLUMNS
        lut = np.full((len(batch), columns + _LUT_PADDING), self.null_page, np.uint32)
        for row, sequence in zip(lut, batch):
            row[: len(sequence.pages)] = [page.address.index for page in sequence.pages]
        pending = [sequence.pending for sequence in batch]
        lengths = np.array([sequence.length for sequence in batch], np.uint32)
        return StepInputs(
            requests=requests,
            tokens=np.concatenate([s.tokens[s.length :] for s in batch]),
            positions=np.concatenate(
                [np.arange(s.length, len(s.tokens)) for s in batch]
            ),
            row_offsets=np.cumsum([0, *pending], dtype=np.uint32),
            lengths=self._memory.upload(lengths),
            lut=self._memory.upload(lut),
            max_seq_length=max(pending),
            max_cache_length=int(lengths.max()),
            blocks=self.blocks,
            scales=self.scales,
        )

    def step(self, requests: Sequence[Hashable]) -> None:
        """Says that kernels have put the pending tokens of sequences in the cache.

        With prefix caching, the pages that are full now can be shared by what is
        claimed, or grows, from here on: prompts of the same step share none. Raises
        ``ValueError`` like ``inputs``.
        """
        for sequence in self._get_batch(parse_requests(requests)):
            first = sequence.length // self._page_size
            sequence.length = len(sequence.tokens)
            if self.params.enable_prefix_caching:
                for i in range(first, sequence.length // self._page_size):
                    self._publish(sequence, i)

    def _publish(self, sequence: _Sequence, i: int) -> None:
        """Lets later sequences find a sequence's page, or takes an equal one that they do."""
        parent = sequence.pages[i - 1].prefix if i else sequence.root
        assert parent
        start = i * self._page_size
        tokens = sequence.tokens[start : start + self._page_size].tobytes()
        known = parent.children.get(tokens)
        if known and known.page:
            self._pool.merge(sequence.pages[i], known.page)
            sequence.pages[i] = known.page
        else:
            parent.add(tokens, sequence.pages[i])

    def _get_batch(self, requests: tuple[Hashable, ...]) -> list[_Sequence]:
        if not 0 < len(requests) <= self.max_batch_size:
            raise ValueError(
                f"expects 1 to 'max_batch_size' ({self.max_batch_size}) requests, got "
                f"{len(requests)}"
            )
        batch = list(map(self._get_resident, requests))
        for i, (request, sequence) in enumerate(zip(requests, batch)):
            if sequence in batch[:i]:
                raise ValueError(f"request {request!r} is twice in the batch")
            if not sequence.pending:
                raise ValueError(f"request {request!r} has no pending tokens")
        return batch

    def reset_prefix_cache(self) -> None:
        """Forgets the cached pages that no sequence has."""
        self._pool.forget_unreferenced()

    # --- What there is ------------------------------------------------------------

    @property
    def num_free_pages(self) -> int:
        """Pages that can be had at once: free, or with nothing that a sequence has."""
        return self._pool.count_available()

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
        tokens = dict.fromkeys(self._pool.get_unused(), self._page_size)
        sequences = []
        for request, sequence in self._sequences.items():
            for i, page in enumerate(sequence.pages):
                filled = min(max(sequence.length - i * self._page_size, 0), self._page_size)
                filled = self._page_size if page.prefix else filled
                tokens[page] = max(tokens.get(page, 0), filled)
            sequences.append(
                SequenceState(
                    request,
                    tuple(page.address for page in sequence.pages),
                    sequence.length,
                    sequence.pending,
                    sequence.is_resident,
                )
            )
        pages = [
            PageState(
                page.address, page.references, page.prefix is not None, tokens[page]
            )
            for page in tokens
        ]
        return CacheSnapshot(
            self._page_size,
            self.num_pages,
            self.num_host_pages,
            self.null_page,
            tuple(sorted(pages, key=_get_order)),
            tuple(sequences),
        )

    def _repr_svg_(self) -> str | None:
        """The pages as a picture, for a notebook; None where they are too many."""
        if max(self.num_pages, self.num_host_pages) > MAX_PAGES:
            return None
        first = list(self._sequences)[:MAX_SEQUENCES]
        return draw_pages(self.snapshot(), requests=first)._repr_svg_()

    def __repr__(self) -> str:
        return (
            f"<kvcache.PagedKVCacheManager of {self.num_pages} pages, "
            f"{self.num_free_pages} free, {len(self)} sequences>"
        )


def _get_order(page: PageState) -> tuple[bool, int]:
    return page.address.place is Place.HOST, page.address.index


def _get_num_pages(
    params: KVCacheParams, num_pages: int | None, cache_bytes: int | None
) -> int:
    if num_pages is not None and cache_bytes is None:
        check_positive(num_pages=num_pages)
        return int(num_pages)
    if cache_bytes is None or num_pages is not None:
        raise ValueError("expects either 'num_pages' or 'cache_bytes'")
    check_positive(cache_bytes=cache_bytes)
    fitting = int(cache_bytes) // params.bytes_per_block
    if fitting < 2:
        raise ValueError(
            "expects 'cache_bytes' to hold at least one page and the null page of "
            f"{params.bytes_per_block} bytes each, got {cache_bytes}"
        )
    return fitting - 1
