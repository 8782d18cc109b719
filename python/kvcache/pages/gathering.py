# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The inputs of a step of the page manager."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from .inputs import StepInputs
from .memory import Memory
from .storage import GroupTensors
from .tables import SequenceTable
from .token_table import BatchRows


def gather_inputs(
    requests: tuple[Hashable, ...],
    rows: BatchRows,
    table: SequenceTable,
    memory: Memory,
    tensors: tuple[GroupTensors, ...],
) -> StepInputs:
    """Gathers the inputs for the pending tokens of a batch, which is in ``rows``."""
    lengths = table.lengths[rows.selector]
    totals = table.totals[rows.selector].copy()
    pending = totals - lengths
    longest = int(totals.max())
    row_offsets = np.zeros(len(pending) + 1, np.uint32)
    pending.cumsum(dtype=np.uint32, out=row_offsets[1:])
    common: dict[str, Any] = {
        "requests": requests,
        "tokens": table.join_pending(rows, pending),
        "row_offsets": row_offsets,
        "_placed_offsets": memory.upload(row_offsets),
        "lengths": memory.upload(lengths.astype(np.uint32)),
        "max_seq_length": int(pending.max()),
        "max_cache_length": int(lengths.max()),
        "_totals": totals,
    }
    others: tuple[StepInputs, ...] = ()
    for group, (blocks, scales) in zip(table.groups[::-1], tensors[::-1], strict=True):
        lut = memory.upload(group.gather(rows.selector, longest))
        inputs = StepInputs(
            **common,
            lut=lut,
            blocks=blocks,
            scales=scales,
            _others=() if group.number else others,
        )
        others = inputs, *others
    return others[0]
