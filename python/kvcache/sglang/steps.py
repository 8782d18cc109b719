# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The metadata of a step, which all layers share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from ..pages.inputs import StepInputs
from .pools import Pool


@dataclass(frozen=True)
class Sizes:
    """The new tokens of a step.

    Attributes:
        rows: New tokens.
        most: The most new tokens of a sequence.
        offsets: The index of each sequence's first new token, int32 [sequences + 1].
        lengths: Tokens of each sequence after the step, int32 [sequences].
    """

    rows: int
    most: int
    offsets: Any
    lengths: Any

    @classmethod
    def of(cls, batch: Any) -> Sizes:
        """The sizes of a ``ForwardBatch``, whose counts are copied unless the host has
        them.
        """
        mode = batch.forward_mode
        if mode.is_decode_or_idle():
            return cls.uniform(batch.seq_lens, 1)
        if mode.is_target_verify():
            drafts = batch.spec_info.draft_token_num
            return cls.uniform(batch.seq_lens + drafts, drafts)
        counts = batch.extend_seq_lens
        host = batch.extend_seq_lens_cpu
        host = counts.tolist() if host is None else [int(count) for count in host]
        ends = counts.cumsum(0, dtype=torch.int32)
        offsets = torch.nn.functional.pad(ends, (1, 0))
        return cls(sum(host), max(host, default=0), offsets, batch.seq_lens.int())

    @classmethod
    def uniform(cls, lengths: Any, rows: int) -> Sizes:
        """The sizes of a step with equally many new tokens of each sequence."""
        sequences = lengths.shape[0]
        offsets = torch.arange(
            0, (sequences + 1) * rows, rows, dtype=torch.int32, device=lengths.device
        )
        return cls(sequences * rows, rows, offsets, lengths.int())

    @property
    def batch(self) -> int:
        return int(self.lengths.shape[0])


@dataclass(frozen=True)
class Reads:
    """The arguments of attention to the layers of a pool in a step.

    Attributes:
        inputs: The tensors of the layers, and the table.
        lengths: Tokens of each sequence in ``inputs``, int32 [sequences].
        slots: The slots of new tokens, int64 [rows or more].
    """

    inputs: StepInputs
    lengths: Any
    slots: Any


@dataclass(frozen=True)
class TokenTable:
    """SGLang's table of slots, ``req_to_token``.

    Attributes:
        slots: The slot of each token, int32 [requests, tokens].
        page_size: Tokens of a page. Slots of a page are consecutive.
    """

    slots: Any
    page_size: int

    @property
    def most_tokens(self) -> int:
        return int(self.slots.shape[1])

    def make_inputs(self, pool: Pool, sizes: Sizes, requests: Any) -> StepInputs:
        """The inputs of attention to all tokens.

        With pages of one token, the table is read where it is. Otherwise, the pages of
        the batch are copied.

        Args:
            pool: The layers.
            sizes: The new tokens.
            requests: The row of each sequence in the table, int64 [sequences].
        """
        if self.page_size == 1:
            rows = {"lut": self.slots, "table_rows": requests.int()}
        else:
            pages = self.slots[:, :: self.page_size][requests] // self.page_size
            rows = {"lut": pages}
        return _make_inputs(pool, sizes, sizes.lengths, self.most_tokens, **rows)

    def make_window(
        self, pool: Pool, sizes: Sizes, requests: Any, mapping: Any, window: int
    ) -> tuple[StepInputs, Any]:
        """The inputs of attention to the tokens of windows, and their numbers.

        SGLang has a pool with slots of its own for layers with windows, and keeps only
        tokens that a window may see. Tokens before them are left out of the table, so
        sequences are shorter. Positions matter only relative to each other.

        Args:
            pool: The layers.
            sizes: The new tokens.
            requests: The row of each sequence in the table, int64 [sequences].
            mapping: The function that returns the slots of layers with windows.
            window: The most tokens that a token sees, including itself.
        """
        kept = window - 1 + sizes.most
        last = sizes.lengths.long()[:, None] - 1
        first = (last + 1 - kept).clamp(min=0) // self.page_size
        columns = min(kept, self.most_tokens) // self.page_size + 2
        pages = first + torch.arange(columns, device=first.device)
        # The last token of a page is in the window, or after it; the first may be freed.
        tokens = torch.minimum((pages + 1) * self.page_size - 1, last)
        slots = mapping(self.slots[requests[:, None], tokens].long())
        lengths = sizes.lengths - (first[:, 0] * self.page_size).int()
        table = (slots // self.page_size).int()
        bound = columns * self.page_size
        return _make_inputs(pool, sizes, lengths, bound, lut=table), lengths


def _make_inputs(
    pool: Pool, sizes: Sizes, lengths: Any, bound: int, **table: Any
) -> StepInputs:
    inputs = StepInputs.of(
        keys=pool.keys[:1],
        values=pool.values[:1],
        lengths=lengths,
        row_offsets=sizes.offsets,
        max_seq_length=sizes.most,
        max_cache_length=bound,
        **table,
    )
    return replace(inputs, key_blocks=pool.keys, value_blocks=pool.values)


def make_dense_inputs(key: Any, value: Any, sizes: Sizes) -> StepInputs:
    """The inputs of attention to new tokens alone, which are in no pool.

    Args:
        key: The keys, [rows, heads, elements].
        value: The values, likewise.
        sizes: The new tokens.
    """
    return StepInputs.of(
        keys=key[:, None],
        values=value[:, None],
        lengths=sizes.lengths,
        lut=torch.arange(key.shape[0], dtype=torch.int32, device=key.device),
        indptr=sizes.offsets,
        row_offsets=sizes.offsets,
        max_seq_length=sizes.most,
        max_cache_length=sizes.most,
    )
