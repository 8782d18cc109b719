# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The padding of a batch: masks of models, and rows without padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

_SAME = "expects the same padding as before in 'attention_mask'"


def count_padding(mask: Any, batch: int, total: int) -> np.ndarray:
    """The padding of each row, which must be on the left; int64 [batch].

    Waits for the device of the mask.
    """
    if mask is None:
        return np.zeros(batch, np.int64)
    check_sizes(mask, batch, total)
    real = mask.to(torch.bool).cpu().numpy()
    if (np.diff(real.astype(np.int8), axis=1) < 0).any():
        raise ValueError(
            "expects padding on the left in 'attention_mask': use padding_side='left'"
        )
    return total - real.sum(axis=1)


def check_sizes(mask: Any, batch: int, total: int) -> None:
    """Raises ``ValueError`` for a mask that is not [batch, total]."""
    if tuple(mask.shape) != (batch, total):
        raise ValueError(
            f"expects an 'attention_mask' of [{batch}, {total}], got {list(mask.shape)}"
        )


def check_same(padding: np.ndarray, known: np.ndarray) -> None:
    """Raises ``ValueError`` for other padding than in earlier steps."""
    if (padding != known).any():
        raise ValueError(_SAME)


class LateChecks:
    """Checks of masks on a GPU, whose results are read in later steps.

    So no step waits for the GPU. A wrong mask raises in the first step after the GPU
    has compared it.
    """

    def __init__(self) -> None:
        self._running: list[tuple[Any, Any]] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> LateChecks:
        return LateChecks()

    def begin(self, mask: Any, padding: Any) -> None:
        """Begins to compare a mask [batch, tokens] with the padding of rows [batch]."""
        columns = torch.arange(mask.shape[1], device=mask.device)
        is_same = (mask.to(torch.bool) == (columns >= padding[:, None])).all()
        flag = torch.empty((), dtype=torch.bool, pin_memory=True)
        flag.copy_(is_same, non_blocking=True)
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(mask.device))
        self._running.append((event, flag))

    def end(self) -> None:
        """Raises ``ValueError`` if a mask was wrong; never waits."""
        while self._running and self._running[0][0].query():
            _, flag = self._running.pop(0)
            if not flag:
                raise ValueError(f"{_SAME}: a mask of an earlier step has other padding")


def find_tokens(padding: np.ndarray, first: int, total: int) -> np.ndarray | None:
    """The indices of tokens in [batch * columns], int64; None if none is padding.

    The columns are those from ``first`` to ``total``.
    """
    if (padding <= first).all():
        return None
    return np.flatnonzero(np.arange(first, total) >= padding[:, None])


def pack(rows: Any, tokens: Any) -> Any:
    """Packs [batch, heads, tokens, dim] to [total, heads, dim], without padding.

    Args:
        rows: The padded rows.
        tokens: The indices of ``find_tokens``, on the device of the rows, or None.
    """
    return pack_columns(rows.transpose(1, 2), tokens)


def pack_columns(rows: Any, tokens: Any) -> Any:
    """Packs [batch, tokens, ...] to [total, ...], without padding.

    ``tokens`` is as for ``pack``.
    """
    packed = rows.flatten(0, 1)
    return packed.contiguous() if tokens is None else packed.index_select(0, tokens)


def unpack(packed: Any, tokens: Any, batch: int, columns: int) -> Any:
    """Unpacks [total, heads, dim] to [batch, columns, heads, dim], zeros for padding.

    ``tokens`` is as for ``pack``.
    """
    if tokens is not None:
        out = packed.new_zeros(batch * columns, *packed.shape[1:])
        packed = out.index_copy_(0, tokens, packed)
    return packed.unflatten(0, (batch, columns))
