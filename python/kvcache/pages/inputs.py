# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the kernels of a step get."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..checks import check_integer
from ..execution.arrays import Array
from .memory import Memory
from .storage import GroupTensors
from .tables import Sequence, SequenceTable, as_slice
from .tokens import TOKEN


@dataclass(frozen=True)
class StepInputs:
    """What kernels get to process the pending tokens of a batch.

    Attributes:
        requests: The sequences, in the order of the batch.
        tokens: The ids of the pending tokens, int64 [total], one sequence after another.
        positions: Where in its sequence each stands, int64 [total].
        row_offsets: Where each sequence's begin among them, uint32 [batch + 1], in host
            memory.
        placed_offsets: The same for kernels, in the memory of the cache.
        lengths: Tokens in the cache before this step, uint32 [batch].
        lut: The lookup table, uint32 [batch, columns]: pages in the order of tokens;
            unused entries name the null page. The columns are the pages of the longest
            sequence of the batch, rounded up to a multiple of 8, and 16 more.
        max_seq_length: The largest number of pending tokens.
        max_cache_length: The largest of ``lengths``.
        blocks: For each device, its tensor [pages, 2, layers, page_size, heads, head_dim].
        scales: The same of the scales; empty for a cache without.
        groups: The inputs of each group of layers, with its own table and tensors; only
            itself if there is one group. ``lut``, ``blocks`` and ``scales`` of the whole
            are those of the first group.
    """

    requests: tuple[Hashable, ...]
    tokens: np.ndarray
    positions: np.ndarray
    row_offsets: np.ndarray
    lengths: Array
    lut: Array
    max_seq_length: int
    max_cache_length: int
    blocks: tuple[Array, ...]
    scales: tuple[Array, ...]
    _placed_offsets: Array | None = None
    _others: tuple[StepInputs, ...] = ()

    @property
    def placed_offsets(self) -> Array:
        placed = self._placed_offsets
        return self.row_offsets if placed is None else placed

    @property
    def groups(self) -> tuple[StepInputs, ...]:
        return self, *self._others

    @classmethod
    def of(
        cls,
        *,
        blocks: Array | tuple[Array, ...],
        lengths: Array,
        lut: Array,
        row_offsets: Array,
        scales: Array | tuple[Array, ...] = (),
        max_seq_length: int | None = None,
        max_cache_length: int | None = None,
    ) -> StepInputs:
        """The inputs of a step of an engine that has pages of its own.

        ``tokens`` are empty, and ``requests`` are the numbers of the sequences.

        Args:
            blocks: The tensor of the device, or a tuple of those of all devices.
            lengths: Tokens in the cache before this step, i32 or uint32 [batch].
            lut: The page of each of a sequence's page numbers, i32 or uint32
                [batch, columns].
            row_offsets: Where each sequence's new tokens begin, i32 or uint32 [batch + 1].
            scales: As ``blocks``, for a quantized cache.
            max_seq_length: An upper bound of the new tokens of a sequence. Unless given,
                it is read from ``row_offsets``, which must be in host memory then.
            max_cache_length: The same of ``lengths``.

        Raises:
            TypeError: Lengths, table or offsets are no array.
            ValueError: The sizes contradict each other, or offsets decrease.
        """
        blocks = blocks if isinstance(blocks, tuple) else (blocks,)
        scales = scales if isinstance(scales, tuple) else (scales,)
        batch = _check_sizes(blocks, lengths, lut, row_offsets, scales)
        starts, counts = _read(row_offsets), _read(lengths)
        new, positions = None, np.empty(0, np.int64)
        if starts is not None:
            new = np.diff(starts)
            if new.min(initial=0) < 0 or starts[0] != 0:
                raise ValueError(
                    "expects 'row_offsets' to begin with 0 and not to decrease"
                )
        if new is not None and starts is not None and counts is not None:
            positions = np.arange(starts[-1]) + (counts - starts[:-1]).repeat(new)
        return cls(
            requests=tuple(range(batch)),
            tokens=np.empty(0, np.int64),
            positions=positions,
            row_offsets=cast(np.ndarray, row_offsets),
            lengths=lengths,
            lut=lut,
            max_seq_length=_get_bound("max_seq_length", max_seq_length, new),
            max_cache_length=_get_bound("max_cache_length", max_cache_length, counts),
            blocks=blocks,
            scales=scales,
        )

    def collection(self, device: int = 0) -> tuple[Array | int, ...]:
        """The operands of ``kvcache.paged_collection`` on a device, in its order.

        Blocks, lengths, table, the two maxima, and scales if there are any. Raises
        ``ValueError`` for a device without blocks.
        """
        check_integer(device=device)
        if not 0 <= device < len(self.blocks):
            raise ValueError(
                f"expects 'device' to be in [0, {len(self.blocks)}), got {device}"
            )
        maxima = self.max_seq_length, self.max_cache_length
        scales = self.scales[device : device + 1]
        return self.blocks[device], self.lengths, self.lut, *maxima, *scales


def _check_sizes(
    blocks: tuple[Any, ...],
    lengths: Any,
    lut: Any,
    row_offsets: Any,
    scales: tuple[Any, ...],
) -> int:
    """The number of sequences."""
    ranks = {"lengths": (lengths, 1), "lut": (lut, 2), "row_offsets": (row_offsets, 1)}
    for name, (array, rank) in ranks.items():
        if not hasattr(array, "shape"):
            raise TypeError(
                f"expects {name!r} to be an array, got {type(array).__name__}"
            )
        if len(array.shape) != rank:
            raise ValueError(
                f"expects {name!r} with {rank} dimensions, got {array.shape}"
            )
    batch = lengths.shape[0]
    for name, sized, size in (
        ("lut", lut, batch),
        ("row_offsets", row_offsets, batch + 1),
    ):
        if sized.shape[0] != size:
            raise ValueError(
                f"expects {name!r} of {size} for {batch} sequences, got {sized.shape[0]}"
            )
    if scales and len(scales) != len(blocks):
        raise ValueError(
            f"expects 'scales' for {len(blocks)} devices, got {len(scales)}"
        )
    return int(batch)


def _read(array: Any) -> np.ndarray | None:
    """The numbers in host memory; None for an array of a device."""
    return np.asarray(array).astype(np.int64) if isinstance(array, np.ndarray) else None


def _get_bound(name: str, bound: int | None, numbers: np.ndarray | None) -> int:
    if bound is not None:
        check_integer(**{name: bound})
        return int(bound)
    if numbers is None:
        raise ValueError(f"expects {name!r} for arrays that are not NumPy's")
    return int(numbers.max(initial=0))


def gather_inputs(
    requests: tuple[Hashable, ...],
    batch: Iterable[Sequence],
    rows: np.ndarray,
    table: SequenceTable,
    memory: Memory,
    tensors: tuple[GroupTensors, ...],
) -> StepInputs:
    """What kernels get for the pending tokens of a batch, which is in ``rows``."""
    lengths = table.lengths[rows]
    totals = table.totals[rows]
    pending = totals - lengths
    ends = pending.cumsum()
    # What to add to the place of a token among all of them.
    offsets = lengths - ends + pending
    longest = int(totals.max())
    row_offsets = np.concatenate([[0], ends]).astype(np.uint32)
    common: dict[str, Any] = {
        "requests": requests,
        "tokens": _join_tokens(batch, pending),
        "positions": np.arange(ends[-1]) + offsets.repeat(pending),
        "row_offsets": row_offsets,
        "_placed_offsets": memory.upload(row_offsets),
        "lengths": memory.upload(lengths.astype(np.uint32)),
        "max_seq_length": int(pending.max()),
        "max_cache_length": int(lengths.max()),
    }
    others: tuple[StepInputs, ...] = ()
    places = as_slice(rows)
    for group, (blocks, scales) in zip(table.groups[::-1], tensors[::-1], strict=True):
        lut = memory.upload(group.gather(places, longest))
        inputs = StepInputs(
            **common,
            lut=lut,
            blocks=blocks,
            scales=scales,
            _others=() if group.number else others,
        )
        others = inputs, *others
    return others[0]


def _join_tokens(batch: Iterable[Sequence], pending: np.ndarray) -> np.ndarray:
    """The last tokens of each sequence, of which so many are pending; one or more."""
    if (pending == 1).all():
        return np.array([sequence.tokens[-1] for sequence in batch], np.int64)
    joined = array(TOKEN)
    for sequence, count in zip(batch, pending.tolist(), strict=True):
        joined += sequence.tokens[-count:]
    return np.array(joined, np.int64)
