# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Swaps of sequences to the host and back, synchronous or while steps run."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence

from ..errors import OutOfPagesError
from .growth import Growth
from .memory import AsyncMemory, Copy, Memory
from .pool import PagePool
from .prefixes import Page
from .snapshot import Place
from .tables import CachedSequence


class Swap:
    """A sequence that is moving to the host, or back.

    ``begin_swap_out`` and ``begin_swap_in`` make one. It ends when ``poll`` returns
    True, or ``wait`` returns. Until then, the pages that it reads and writes stay in
    use.

    Attributes:
        request: The name of the sequence.
    """

    def __init__(
        self,
        request: Hashable,
        copies: Sequence[Copy] = (),
        end: Callable[[Swap, bool], None] | None = None,
    ) -> None:
        self.request = request
        self._unfinished = list(copies)
        self._end = end
        self._error: Exception | None = None

    def poll(self) -> bool:
        """Returns whether the swap has ended; never waits.

        Raises the error of a copy, once, when all copies have ended. The swap is undone
        then, and later calls return True.
        """
        if self._end is None:
            return True
        for copy in self._unfinished[:]:
            try:
                is_done = copy.poll()
            except Exception as error:
                self._error = self._error or error
                is_done = True
            if is_done:
                self._unfinished.remove(copy)
        if self._unfinished:
            return False
        end, self._end = self._end, None
        end(self, self._error is None)
        if self._error:
            raise self._error
        return True

    def wait(self) -> None:
        """Polls until the swap has ended, and raises as ``poll`` does."""
        while not self.poll():
            time.sleep(1e-5)

    def __repr__(self) -> str:
        return f"<swap of {self.request!r}, {len(self._unfinished)} copies unfinished>"


class PageSwaps:
    """The part of ``PagedKVCacheManager`` that swaps sequences out and in."""

    memory: Memory
    num_host_pages: int
    _growth: Growth
    _pool: PagePool
    _sequences: dict[Hashable, CachedSequence]
    _last: object

    def __init__(self) -> None:
        super().__init__()
        # The sequence of each swap, and a copy of it that keeps its pages in use.
        self._swaps: dict[Swap, tuple[CachedSequence, CachedSequence]] = {}

    def _get(self, request: Hashable) -> CachedSequence:
        raise NotImplementedError

    def _get_resident(self, request: Hashable) -> CachedSequence:
        raise NotImplementedError

    def _end_expired(self) -> None:
        raise NotImplementedError

    # --- Out ----------------------------------------------------------------------

    def swap_out(self, request: Hashable) -> None:
        """Moves a sequence's pages to the host, except pages in use by others.

        Raises:
            ValueError: The request is unknown, swapped out or being swapped, or the
                parameters lack ``enable_kvcache_swapping_to_host``.
            OutOfPagesError: The swap space has no room for them.
        """
        sequence, leaving = self._plan_swap_out(request)
        self._pool.move(leaving, Place.HOST)
        self._finish_swap_out(sequence)

    def begin_swap_out(self, request: Hashable) -> Swap:
        """As ``swap_out``, but returns before the pages are copied.

        The sequence counts as swapped out at once. Its pages on the device are free
        when the swap has ended. Without an ``AsyncMemory``, it has ended when this
        returns.
        """
        sequence, leaving = self._plan_swap_out(request)
        if not isinstance(self.memory, AsyncMemory):
            self._pool.move(leaving, Place.HOST)
            self._finish_swap_out(sequence)
            return Swap(request)
        (held,) = self._growth.copy(sequence)
        try:
            indices, copies = self._pool.begin_move(leaving, Place.HOST)
        except BaseException:
            self._growth.end(held)
            raise

        def end(swap: Swap, is_done: bool) -> None:
            del self._swaps[swap]
            self._pool.end_move(
                leaving,
                Place.HOST,
                indices,
                # Meanwhile other sequences may use a page, or all may have dropped it.
                lambda page: is_done and page.users == 1 and page.references > 1,
            )
            if not is_done:
                self._finish_swap_in(request, sequence)
            self._growth.end(held)

        self._finish_swap_out(sequence)
        swap = Swap(request, copies, end)
        self._swaps[swap] = sequence, held
        return swap

    def _plan_swap_out(self, request: Hashable) -> tuple[CachedSequence, list[Page]]:
        """Plans a swap: the sequence, and the pages that only it uses, the last first."""
        self._check_swapping()
        sequence = self._get_resident(request)
        self._check_still(request, sequence)
        leaving = [page for page in sequence.list_pages()[::-1] if page.users == 1]
        available = self._pool.count_available_host()
        if len(leaving) > available:
            raise OutOfPagesError("the swap space has no room", len(leaving), available)
        return sequence, leaving

    def _finish_swap_out(self, sequence: CachedSequence) -> None:
        for page in sequence.list_pages()[::-1]:
            self._pool.end_use(page)
        self._last = None
        sequence.mark_swapped_out()

    # --- In -----------------------------------------------------------------------

    def swap_in(self, request: Hashable) -> None:
        """Moves a sequence's pages back to the device.

        Raises:
            ValueError: The request is unknown, not swapped out, or being swapped.
            OutOfPagesError: The device has no room for them.
        """
        sequence, brought = self._plan_swap_in(request)
        self._pool.move(brought, Place.DEVICE, kept=sequence.list_pages())
        self._finish_swap_in(request, sequence)

    def begin_swap_in(self, request: Hashable) -> Swap:
        """As ``swap_in``, but returns before the pages are copied.

        The sequence counts as swapped out until the swap has ended. Pages that are
        evicted to the host to make room are copied before this returns. Without an
        ``AsyncMemory``, the swap has ended when this returns.
        """
        sequence, brought = self._plan_swap_in(request)
        pages = sequence.list_pages()
        if not isinstance(self.memory, AsyncMemory):
            self._pool.move(brought, Place.DEVICE, kept=pages)
            self._finish_swap_in(request, sequence)
            return Swap(request)
        (held,) = self._growth.copy(sequence)
        try:
            moved = self._pool.begin_move(brought, Place.DEVICE, kept=pages)
        except BaseException:
            self._growth.end(held)
            raise
        indices, copies = moved
        # Pages that other swaps bring meanwhile stay.
        used = held.list_pages()
        for page in used:
            self._pool.begin_use(page)

        def end(swap: Swap, is_done: bool) -> None:
            del self._swaps[swap]
            # Another swap may have brought a page meanwhile.
            self._pool.end_move(
                brought,
                Place.DEVICE,
                indices,
                lambda page: is_done and page.place is not Place.DEVICE,
            )
            if is_done:
                self._finish_swap_in(request, sequence)
            for page in used[::-1]:
                self._pool.end_use(page)
            self._growth.end(held)

        swap = Swap(request, copies, end)
        self._swaps[swap] = sequence, held
        return swap

    def _plan_swap_in(self, request: Hashable) -> tuple[CachedSequence, list[Page]]:
        """Plans a swap: the sequence, and its pages that are not on the device."""
        self._check_swapping()
        self._end_expired()
        sequence = self._get(request)
        if sequence.is_resident:
            raise ValueError(f"request {request!r} is not swapped out")
        self._check_still(request, sequence)
        pages = sequence.list_pages()
        brought = [page for page in pages if page.place is not Place.DEVICE]
        available = self._pool.count_available(kept=pages)
        if len(brought) > available:
            raise OutOfPagesError("out of pages", len(brought), available)
        return sequence, brought

    def _finish_swap_in(self, request: Hashable, sequence: CachedSequence) -> None:
        """Makes a sequence resident after all its pages are on the device."""
        if self._sequences.get(request) is not sequence:
            return  # released during the swap
        for page in sequence.list_pages():
            self._pool.begin_use(page)
        sequence.mark_resident()

    # --- Both ---------------------------------------------------------------------

    def _check_swapping(self) -> None:
        if not self.num_host_pages:
            raise ValueError("swapping needs 'enable_kvcache_swapping_to_host'")

    def _check_still(self, request: Hashable, sequence: CachedSequence) -> None:
        if any(moving is sequence for moving, _ in self._swaps.values()):
            raise ValueError(
                f"request {request!r} is being swapped: poll its swap first"
            )

    def _get_swapped(self) -> dict[Hashable, CachedSequence]:
        """The copies of sequences that keep the pages of unfinished swaps in use."""
        return {swap: held for swap, (_, held) in self._swaps.items()}
