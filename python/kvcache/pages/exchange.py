# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Leases and receptions of a page manager, for exchange with other machines."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cache.groups import MultiKVCacheParams
from ..cache.params import KVCacheParams
from ..checks import check_positive_real, check_request
from .growth import Growth
from .leases import Lease, Reception
from .regions import Region, describe_all, list_regions, merge
from .tables import CachedSequence, SequenceTable


class PageExchange:
    """The part of ``PagedKVCacheManager`` for exchange with other machines."""

    params: KVCacheParams | MultiKVCacheParams
    num_pages: int
    blocks: tuple[Any, ...]
    scales: tuple[Any, ...]
    _growth: Growth
    _table: SequenceTable
    _sequences: dict[Hashable, CachedSequence]

    def __init__(self) -> None:
        super().__init__()
        self._leases: dict[Lease, CachedSequence] = {}
        self._receptions: dict[Reception, CachedSequence] = {}
        self._regions: tuple[Region, ...] | None = None

    def _begin(self, tokens: npt.ArrayLike, salt: bytes) -> tuple[CachedSequence, array[int]]:
        raise NotImplementedError

    def _get_resident(self, request: Hashable) -> CachedSequence:
        raise NotImplementedError

    def _publish_changed(self) -> None:
        raise NotImplementedError

    def regions(self) -> tuple[Region, ...]:
        """The regions of the tensors: blocks of each device, then scales of each."""
        if self._regions is None:  # tensors stay where they are
            self._regions = list_regions(
                self.params, self.num_pages, self.blocks, self.scales
            )
        return self._regions

    def descriptors(
        self,
        pages: npt.ArrayLike,
        layers: Iterable[int] | None = None,
        heads: Iterable[int] | None = None,
    ) -> np.ndarray:
        """The bytes of pages: keys and values, with their scales.

        Two managers whose regions have equal fingerprints list the same bytes in the
        same order. ``kvcache.transfer.pair`` splits them where one end has merged more.
        Pages that several groups of layers share are bytes: one layer, one head.

        Args:
            pages: The pages of the device, as in leases and receptions.
            layers: The layers of this manager's tensors; all by default.
            heads: The heads of a device; all by default. If the tokens of a head are
                not contiguous, each token is one descriptor.

        Returns:
            Descriptors, int64 [n, 3]: address, length in bytes, and number of the
            device. Contiguous bytes are merged.

        Raises:
            ValueError: A page, layer or head is out of range.
        """
        regions = self.regions()
        _, _, num_layers, _, num_heads, _ = regions[0].shape
        chosen = _parse_numbers("pages", pages, self.num_pages)
        own_layers = _parse_part("layers", layers, num_layers)
        own_heads = _parse_part("heads", heads, num_heads)
        return merge(describe_all(regions, chosen, own_layers, own_heads))

    def export(self, request: Hashable, *, seconds: float) -> Lease:
        """Lends the pages of a sequence to another machine.

        Args:
            request: A resident sequence without pending tokens.
            seconds: The most seconds of the lease.

        Raises:
            ValueError: The request is unknown, swapped out, or has pending tokens, or
                the time is not positive.
        """
        check_positive_real(seconds=seconds)
        sequence = self._get_resident(request)
        if sequence.pending:
            raise ValueError(
                f"request {request!r} has {sequence.pending} pending tokens: step or "
                "truncate it before export"
            )
        (copy,) = self._growth.copy(sequence)
        lease = Lease(request, copy, seconds, self._end_lease)
        self._leases[lease] = copy
        return lease

    def _end_lease(self, lease: Lease) -> None:
        self._growth.end(self._leases.pop(lease))

    def _end_expired(self) -> None:
        """Ends the leases whose time is up."""
        for lease in [lease for lease in self._leases if not lease.is_held]:
            lease.end()

    def receive(
        self, tokens: npt.ArrayLike, request: Hashable = None, *, salt: bytes = b""
    ) -> Reception:
        """Reserves pages for a sequence of another machine.

        Args:
            tokens: The ids of its tokens.
            request: The name of the sequence that ``commit`` of the reception begins.
                Without it, the pages only become cached prefixes, which needs
                ``enable_prefix_caching``.
            salt: As for ``claim``.

        Raises:
            ValueError: Such a sequence or reception exists; there is neither a name nor
                prefix caching; or there are no tokens, or more than ``max_seq_len``.
            TypeError: As for ``claim``.
            OutOfPagesError: As for ``claim``.
        """
        if request is not None:
            check_request(request=request)
            self._check_new(request)
        elif not self.params.enable_prefix_caching:
            raise ValueError(
                "expects 'request', or parameters with 'enable_prefix_caching'"
            )
        sequence, ids = self._begin(tokens, salt)
        try:
            if not ids:
                raise ValueError("expects tokens to receive, got none")
            self._growth.grow(sequence, ids)
        except BaseException:
            self._growth.drop(sequence)
            raise
        reception = Reception(request, sequence, self._end_reception)
        self._receptions[reception] = sequence
        return reception

    def begin_filling(self, reception: Reception) -> None:
        """Marks the pages of a reception as being written by a transfer.

        Raises ``ValueError`` if another transfer writes to them, or if the reception
        has ended or belongs to another manager.
        """
        if reception not in self._receptions:
            raise ValueError(
                f"the reception of {reception.request!r} has ended, or is of another cache"
            )
        if reception.is_filling:
            raise ValueError(
                f"another transfer fills the reception of {reception.request!r}"
            )
        reception.is_filling = True

    def _end_reception(self, reception: Reception, is_filled: bool) -> None:
        sequence = self._receptions.pop(reception)
        if is_filled:
            # Pages that no token reaches were not filled: they must not become
            # prefixes.
            if reception.gone:
                for group, gone in zip(self._table.groups, reception.gone, strict=True):
                    group.gone[sequence.row] = gone
            self._growth.free_unreached(sequence, sequence.total)
            self._growth.finish([sequence], sequence.rows)
        if is_filled and reception.request is not None:
            self._sequences[reception.request] = sequence
        else:
            self._growth.end(sequence)
        if is_filled:
            self._publish_changed()

    def _get_exchanged(self) -> dict[Hashable, CachedSequence]:
        """The sequences of leases and receptions."""
        sequences: dict[Hashable, CachedSequence] = dict(self._leases.items())
        sequences.update(self._receptions.items())
        return sequences

    def _check_new(self, *requests: Hashable) -> None:
        receptions = self._receptions
        received = {each.request for each in receptions} if receptions else ()
        for i, request in enumerate(requests):
            if request in self._sequences or request in requests[:i]:
                raise ValueError(f"request {request!r} has been claimed already")
            if request in received:
                raise ValueError(f"request {request!r} is being received already")


def _parse_part(name: str, part: Iterable[int] | None, size: int) -> np.ndarray | None:
    return None if part is None else _parse_numbers(name, list(part), size)


def _parse_numbers(name: str, numbers: npt.ArrayLike, size: int) -> np.ndarray:
    parsed = np.asarray(numbers)
    if parsed.ndim != 1 or (parsed.size and parsed.dtype.kind not in "iu"):
        raise TypeError(f"expects {name!r} to be integers, got {numbers!r}")
    if parsed.size and not 0 <= parsed.min() <= parsed.max() < size:
        raise ValueError(
            f"expects {name!r} to be 0 to {size - 1}, got {parsed.tolist()}"
        )
    return parsed.astype(np.int64)
