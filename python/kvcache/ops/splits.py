# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The splits of attention, and their choice from the bounds of steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

from ..cache.params import KVCacheParams
from ..checks import check_positive, check_size
from ..execution.options import parse_target

MOST = 2**20
"""The most tokens, splits or rows in the op's options."""

_MOST_SPLITS = 32  # of a row, where nothing says how long rows are
_WORKSPACE_BYTES = 128 << 20  # that a choice takes at most
_SIZES: tuple[int, ...] = (512, 256)  # tokens of a split
_LATENT_SIZES = 8192, 4096, 2048, 1024, *_SIZES
_LATENT_ROWS = 64  # query heads of a thread block, for latent rows
# Multiprocessors of the largest product of each compute capability (NVIDIA's
# whitepapers and data sheets: A100, A40, Orin, L40S, H200, B200, B300, Thor, RTX PRO
# 6000, GB10).
_MULTIPROCESSORS = {
    80: 108,
    86: 84,
    87: 16,
    89: 142,
    90: 132,
    100: 148,
    103: 148,
    110: 20,
    120: 188,
    121: 48,
}


@dataclass(frozen=True)
class Splits:
    """Options of split KV: splits of a query row's tokens, with results in a workspace.

    Attributes:
        tokens: Tokens per split; more if there would be more than ``most`` splits.
        most: The most splits of a query row.
        rows: The most new tokens of a sequence in a step whose queries are split.
    """

    tokens: int
    most: int
    rows: int

    def __str__(self) -> str:
        """The attribute's text."""
        return f"#kvcache.split<keys = {self.tokens}, max = {self.most}, rows = {self.rows}>"


class StepBounds(NamedTuple):
    """The bounds of steps.

    Attributes:
        sequences: The most sequences of a step.
        tokens: The most tokens of a sequence.
    """

    sequences: int
    tokens: int

    @classmethod
    def parse(cls, max_batch_size: int | None, max_seq_len: int | None) -> Self | None:
        """Checks the arguments of an operation; None if it has neither."""
        if max_batch_size is None and max_seq_len is None:
            return None
        if max_batch_size is None or max_seq_len is None:
            raise ValueError("expects 'max_batch_size' and 'max_seq_len' together")
        check_positive(max_batch_size=max_batch_size, max_seq_len=max_seq_len)
        return cls(int(max_batch_size), int(max_seq_len))

    def cut(self, *reaches: int | None) -> StepBounds:
        """The bounds where no row sees more tokens than each reach that is given."""
        given = [int(reach) for reach in reaches if reach is not None]
        return StepBounds(self.sequences, min([self.tokens, *given]))


def make_splits(
    split_tokens: int | None, max_splits: int | None, split_rows: int
) -> Splits | None:
    """Checks the arguments of split KV."""
    max_splits = _MOST_SPLITS if max_splits is None else max_splits
    check_size(MOST, max_splits=max_splits, split_rows=split_rows)
    if split_tokens is None:
        return None
    check_size(MOST, split_tokens=split_tokens)
    return Splits(int(split_tokens), int(max_splits), int(split_rows))


def check_unsplit(split_tokens: int | None, max_splits: int | None) -> None:
    """Raises ``ValueError`` for arguments of split KV beside the bounds of steps."""
    if split_tokens is not None or max_splits is not None:
        raise ValueError(
            "expects 'split_tokens' and 'max_splits', or 'max_batch_size' and "
            "'max_seq_len', not both"
        )


def choose_splits(
    params: KVCacheParams,
    query_heads: int,
    target: str,
    bounds: StepBounds,
    split_rows: int = 1,
) -> Splits | None:
    """Chooses the splits of an operation; None for none, where a row has one anyway.

    Splits are as long as possible while the largest step gives every multiprocessor ten
    thread blocks, or one for latent rows: a split of these costs as much as 256 tokens
    of the cache. The workspace has at most 128 MiB, or two splits of each row.

    The measurements are in ``docs/explanation/merging-splits.md``.
    """
    check_positive(query_heads=query_heads)
    _, chips = parse_target(target)
    if not chips:
        return None
    multiprocessors = max(map(count_multiprocessors, chips.split(",")))
    if params.is_mla:
        # Two blocks of a row leave four of 132 multiprocessors idle.
        sizes, wanted = _LATENT_SIZES, multiprocessors * 9 // 10
        blocks = bounds.sequences * -(-query_heads // _LATENT_ROWS)
    else:
        sizes, wanted = _SIZES, multiprocessors * 10
        blocks = bounds.sequences * params.n_kv_heads_per_device
    counts = [-(-bounds.tokens // size) for size in sizes]
    tokens, count = next(
        (pair for pair in zip(sizes, counts, strict=True) if blocks * pair[1] >= wanted),
        (sizes[-1], counts[-1]),
    )
    row_bytes = bounds.sequences * split_rows * query_heads * 4 * (params.head_dim + 2)
    most = min(count, max(_WORKSPACE_BYTES // row_bytes, 2), MOST)
    if params.is_mla and most == 1:
        return None
    return Splits(tokens, most, split_rows)  # also one: its kernel has tiles of few rows


def count_multiprocessors(chip: str) -> int:
    """The multiprocessors of the largest product with a chip, such as ``"sm_90a"``."""
    capability = int(chip.removeprefix("sm_").rstrip("af"))
    return _MULTIPROCESSORS[max(known for known in _MULTIPROCESSORS if known <= capability)]
