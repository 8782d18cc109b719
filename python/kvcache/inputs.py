# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the kernels of a step get."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .memory import Memory
from .tables import Sequence, SequenceTable
from .tokens import TOKEN


@dataclass(frozen=True)
class StepInputs:
    """What kernels get to process the pending tokens of a batch.

    Attributes:
        requests: The sequences, in the order of the batch.
        tokens: The ids of the pending tokens, int64 [total], one sequence after another.
        positions: Where in its sequence each stands, int64 [total].
        row_offsets: Where each sequence's begin among them, uint32 [batch + 1].
        lengths: Tokens in the cache before this step, uint32 [batch].
        lut: The lookup table, uint32 [batch, columns]: pages in the order of tokens;
            unused entries name the null page. The columns are the pages of the longest
            sequence of the batch, rounded up to a multiple of 8, and 16 more.
        max_seq_length: The largest number of pending tokens.
        max_cache_length: The largest of ``lengths``.
        blocks: For each device, its tensor [pages, 2, layers, page_size, heads, head_dim].
        scales: The same of the scales; empty for a cache without.
    """

    requests: tuple[Hashable, ...]
    tokens: np.ndarray
    positions: np.ndarray
    row_offsets: np.ndarray
    lengths: Any
    lut: Any
    max_seq_length: int
    max_cache_length: int
    blocks: tuple[Any, ...]
    scales: tuple[Any, ...]

    def collection(self, device: int = 0) -> tuple[Any, ...]:
        """The operands of ``kvcache.paged_collection`` on a device, in its order.

        Blocks, lengths, table, the two maxima, and scales if there are any.
        """
        maxima = self.max_seq_length, self.max_cache_length
        scales = self.scales[device : device + 1]
        return self.blocks[device], self.lengths, self.lut, *maxima, *scales


def gather_inputs(
    requests: tuple[Hashable, ...],
    batch: Iterable[Sequence],
    rows: np.ndarray,
    table: SequenceTable,
    memory: Memory,
    blocks: tuple[Any, ...],
    scales: tuple[Any, ...],
) -> StepInputs:
    """What kernels get for the pending tokens of a batch, which is in ``rows``."""
    lengths = table.lengths[rows]
    pending = table.totals[rows] - lengths
    ends = pending.cumsum()
    # What to add to the place of a token among all of them.
    offsets = lengths - ends + pending
    return StepInputs(
        requests=requests,
        tokens=_join_tokens(batch, lengths),
        positions=np.arange(ends[-1]) + offsets.repeat(pending),
        row_offsets=np.concatenate([[0], ends]).astype(np.uint32),
        lengths=memory.upload(lengths.astype(np.uint32)),
        lut=memory.upload(table.gather(rows)),
        max_seq_length=int(pending.max()),
        max_cache_length=int(lengths.max()),
        blocks=blocks,
        scales=scales,
    )


def _join_tokens(batch: Iterable[Sequence], lengths: np.ndarray) -> np.ndarray:
    """The tokens of each sequence from its length on."""
    joined = array(TOKEN)
    for sequence, length in zip(batch, lengths.tolist(), strict=True):
        joined += sequence.tokens[length:]
    return np.array(joined, np.int64)
