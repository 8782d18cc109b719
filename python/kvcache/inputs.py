# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the kernels of a step get."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np


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
            unused entries name the null page.
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
