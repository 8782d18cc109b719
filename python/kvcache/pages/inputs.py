# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The inputs of the kernels of a step."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..checks import check_integer
from ..execution.arrays import (
    Array,
    as_32_bits,
    check_32_bits,
    check_integers,
    check_memory,
    read_integers,
)
from .memory import Memory
from .storage import GroupTensors
from .tables import Sequence, SequenceTable, as_slice
from .tokens import TOKEN

_RANK = 6
"""The number of dimensions of blocks and scales."""


@dataclass(frozen=True)
class StepInputs:
    """The inputs of kernels that process the pending tokens of a batch.

    Attributes:
        requests: The sequences, in the order of the batch.
        tokens: The ids of the pending tokens, int64 [total], one sequence after another.
        row_offsets: The index of each sequence's first token in ``tokens``, uint32
            [batch + 1], in host memory.
        placed_offsets: ``row_offsets`` in the memory of the cache, for kernels.
        lengths: Tokens in the cache before this step, uint32 [batch].
        lut: The lookup table, uint32 [batch, columns]: pages in the order of tokens;
            unused entries name the null page. The columns are the pages of the longest
            sequence of the batch, rounded up to a multiple of 8, and 16 more.
        max_seq_length: The largest number of pending tokens.
        max_cache_length: The largest of ``lengths``.
        blocks: One tensor per device, [pages, 2, layers, page_size, heads, head_dim].
        scales: One tensor per device, or empty for a cache without scales.
        totals: Tokens of each sequence after this step, int64 [batch], in host memory:
            those of the current ``lengths`` and ``row_offsets``. None if lengths or
            offsets are elsewhere.
        groups: The inputs of each group of layers, with its own table and tensors.
            ``lut``, ``blocks`` and ``scales`` are those of the first group.
    """

    requests: tuple[Hashable, ...]
    tokens: np.ndarray
    row_offsets: np.ndarray
    lengths: Array
    lut: Array
    max_seq_length: int
    max_cache_length: int
    blocks: tuple[Array, ...]
    scales: tuple[Array, ...]
    _placed_offsets: Array | None = None
    _totals: np.ndarray | None = None
    """The totals of a manager, whose lengths may be elsewhere and do not change."""
    _others: tuple[StepInputs, ...] = ()

    @property
    def totals(self) -> np.ndarray | None:
        if self._totals is not None:
            return self._totals
        lengths, offsets = read_integers(self.lengths), read_integers(self.row_offsets)
        if lengths is None or offsets is None:
            return None
        # As kernels read them.
        lengths = lengths.astype(np.uint32, copy=False)
        offsets = offsets.astype(np.uint32, copy=False)
        return np.add(lengths, offsets[1:] - offsets[:-1], dtype=np.int64)

    @property
    def positions(self) -> np.ndarray:
        """The position of each pending token in its sequence, int64 [total].

        Empty if ``row_offsets`` or ``lengths`` are not in host memory.
        """
        totals = self.totals
        if totals is None:
            return np.empty(0, np.int64)
        offsets = self.row_offsets.astype(np.int64)
        first = totals - offsets[1:]
        return np.arange(offsets[-1]) + first.repeat(np.diff(offsets))

    @property
    def max_total_length(self) -> int:
        """The largest of ``totals``; 0 if they are None."""
        totals = self.totals
        return 0 if totals is None else int(totals.max(initial=0))

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
        """The inputs of a step of an engine that manages its own pages.

        ``tokens`` are empty, and ``requests`` are the numbers of the sequences. Kernels
        read lengths, table and offsets as packed integers of 32 bits. Such arrays are
        used as they are, also when their contents change later. Others, such as int64 or
        a slice of a wider table, are copied once here.

        All checks precede all copies. Contents are checked only in host memory,
        including that of PyTorch and JAX.

        Args:
            blocks: The tensor of the device, or a tuple with one tensor per device.
            lengths: Tokens in the cache before this step, integers [batch].
            lut: The lookup table: the pages of each sequence in order, integers
                [batch, columns].
            row_offsets: The index of each sequence's first new token, integers
                [batch + 1].
            scales: As ``blocks``, for a quantized cache.
            max_seq_length: An upper bound of the new tokens of a sequence. Unless given,
                it is read from ``row_offsets``, which must be in host memory then.
            max_cache_length: An upper bound of ``lengths``, as above.

        Raises:
            TypeError: Lengths, table or offsets are not arrays of integers, or blocks
                or scales are not arrays. Masked or sparse arrays, and tensors without
                memory, are none.
            ValueError: There are no blocks, sizes contradict each other, offsets
                decrease, a length is negative, a bound is too small, or a number has
                more than 32 bits.
        """
        blocks = blocks if isinstance(blocks, tuple) else (blocks,)
        scales = scales if isinstance(scales, tuple) else (scales,)
        check_integers(1, lengths=lengths, row_offsets=row_offsets)
        check_integers(2, lut=lut)
        batch = _check_sizes(blocks, lengths, lut, row_offsets, scales)
        check_32_bits(lengths=lengths, row_offsets=row_offsets, lut=lut)
        starts, counts = _read(row_offsets), _read(lengths)
        new = None
        if starts is not None:
            new = np.diff(starts)
            if new.min(initial=0) < 0 or starts[0] != 0:
                raise ValueError(
                    "expects 'row_offsets' to begin with 0 and not to decrease"
                )
        if counts is not None and counts.min(initial=0) < 0:
            sequence = int(counts.argmin())
            raise ValueError(
                f"expects 'lengths' not to be negative, got {counts[sequence]} for "
                f"sequence {sequence}"
            )
        max_seq_length = _get_bound("max_seq_length", max_seq_length, new)
        max_cache_length = _get_bound("max_cache_length", max_cache_length, counts)
        placed = as_32_bits("row_offsets", row_offsets)
        offsets = read_integers(placed)
        return cls(
            requests=tuple(range(batch)),
            tokens=np.empty(0, np.int64),
            row_offsets=cast(np.ndarray, placed if offsets is None else offsets),
            lengths=as_32_bits("lengths", lengths),
            lut=as_32_bits("lut", lut),
            max_seq_length=max_seq_length,
            max_cache_length=max_cache_length,
            blocks=blocks,
            scales=scales,
            _placed_offsets=placed,
        )

    def collection(self, device: int = 0) -> tuple[Array | int, ...]:
        """The operands of ``kvcache.paged_collection`` on a device, in its order.

        They are blocks, lengths, table, the two maxima, and scales if there are any.
        Raises ``ValueError`` for a device without blocks.
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
    """Checks that sizes agree; returns the number of sequences."""
    batch = lengths.shape[0]
    for name, sized, size in (
        ("lut", lut, batch),
        ("row_offsets", row_offsets, batch + 1),
    ):
        if sized.shape[0] != size:
            raise ValueError(
                f"expects {name!r} of {size} for {batch} sequences, got {sized.shape[0]}"
            )
    if not blocks:
        raise ValueError("expects 'blocks' for at least one device, got none")
    if scales and len(scales) != len(blocks):
        raise ValueError(
            f"expects 'scales' for {len(blocks)} devices, got {len(scales)}"
        )
    for name, tensors in (("blocks", blocks), ("scales", scales)):
        for tensor in tensors:
            if not hasattr(tensor, "shape"):
                raise TypeError(
                    f"expects {name!r} to be an array, got {type(tensor).__name__}"
                )
            check_memory(**{name: tensor})
            if len(tensor.shape) != _RANK:
                raise ValueError(
                    f"expects {name!r} with {_RANK} dimensions, got "
                    f"{tuple(tensor.shape)}"
                )
    return int(batch)


def _read(array: Any) -> np.ndarray | None:
    """Reads the numbers of an array in host memory; None for other memory."""
    numbers = read_integers(array)
    return None if numbers is None else numbers.astype(np.int64)


def _get_bound(name: str, bound: int | None, numbers: np.ndarray | None) -> int:
    """Checks a bound against the numbers; returns the largest of them if None."""
    if bound is None and numbers is None:
        raise ValueError(f"expects {name!r} for arrays that are not in host memory")
    largest = 0 if numbers is None else int(numbers.max(initial=0))
    if bound is None:
        return largest
    check_integer(**{name: bound})
    if not largest <= bound < 2**32:
        raise ValueError(f"expects {name!r} to be in [{largest}, 2^32), got {bound}")
    return int(bound)


def gather_inputs(
    requests: tuple[Hashable, ...],
    batch: Iterable[Sequence],
    rows: np.ndarray,
    table: SequenceTable,
    memory: Memory,
    tensors: tuple[GroupTensors, ...],
) -> StepInputs:
    """Gathers the inputs for the pending tokens of a batch, which is in ``rows``."""
    lengths = table.lengths[rows]
    totals = table.totals[rows]
    pending = totals - lengths
    ends = pending.cumsum()
    longest = int(totals.max())
    row_offsets = np.concatenate([[0], ends]).astype(np.uint32)
    common: dict[str, Any] = {
        "requests": requests,
        "tokens": _join_tokens(batch, pending),
        "row_offsets": row_offsets,
        "_placed_offsets": memory.upload(row_offsets),
        "lengths": memory.upload(lengths.astype(np.uint32)),
        "max_seq_length": int(pending.max()),
        "max_cache_length": int(lengths.max()),
        "_totals": totals,
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
    """Joins the pending tokens of each sequence, at least one per sequence."""
    if (pending == 1).all():
        return np.array([sequence.tokens[-1] for sequence in batch], np.int64)
    joined = array(TOKEN)
    for sequence, count in zip(batch, pending.tolist(), strict=True):
        joined += sequence.tokens[-count:]
    return np.array(joined, np.int64)
