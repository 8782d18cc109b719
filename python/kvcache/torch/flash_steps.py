# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps of FlashAttention's functions, as operations of ``kvcache.ops``."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from .. import ops
from ..cache.layouts import Layout, describe
from ..cache.params import KVCacheParams
from ..ops.arguments import check_score_factor
from ..pages.inputs import StepInputs
from .flash_checks import DTYPES, check_device, check_shape, is_readable
from .flash_rules import HeadNumbers, Rule

TARGETS = {"cpu": "cpu", "cuda": "cuda"}
"""The target of operations for each type of device."""

_SPLIT_TOKENS, _MAX_SPLITS = 256, 32
_DIMS = "page token head element"
_MOST_PAGE, _LEAST_PAGE = 256, 16  # tokens per page of a cache without pages


@dataclass(frozen=True)
class Pages:
    """Keys and values in pages.

    Attributes:
        keys: The keys, [pages, page_size, kv_heads, head_dim].
        values: The values, as the keys.
        table: The pages of each sequence, integers [batch, columns].
        name: The argument with the pages, for errors.
    """

    keys: Any
    values: Any
    table: Any
    name: str = "block_table"
    kind: ClassVar[str] = "dense"

    @classmethod
    def from_rows(
        cls, keys: Any, values: Any, rows: Any, batch: int, appends: bool
    ) -> Pages:
        """The pages of a cache with one row of tokens per sequence.

        Raises ``ValueError`` for rows that the cache lacks, and for rows of two sequences
        that both append, if the numbers are readable.
        """
        count, length = keys.shape[:2]
        if rows is None and count < batch:
            raise ValueError(
                f"expects 'k_cache' to have a row for each of {batch} sequences, got "
                f"{count}"
            )
        if rows is None:
            rows = torch.arange(batch, dtype=torch.int32, device=keys.device)
        else:
            check_device(keys, cache_batch_idx=rows)
            check_shape("cache_batch_idx", rows, (batch,))
        size = _choose_page(keys, values)
        pages = length // size if size else 0
        columns = torch.arange(pages, dtype=torch.int32, device=keys.device)
        table = rows.int()[:, None] * pages + columns
        if is_readable(rows) and batch and not (0 <= rows.min() and rows.max() < count):
            raise ValueError(
                f"expects 'cache_batch_idx' to be rows of the cache, in [0, {count}), got "
                f"{rows.tolist()}"
            )
        if appends and is_readable(rows) and rows.unique().numel() < batch:
            raise ValueError(
                "expects 'cache_batch_idx' to name a row at most once with 'k', got "
                f"{rows.tolist()}"
            )
        if pages > 1:
            keys, values = (
                each.unflatten(1, (pages, size)).flatten(0, 1) for each in (keys, values)
            )
        return cls(keys, values, table, "cache_batch_idx")

    @property
    def page_size(self) -> int:
        return int(self.keys.shape[1])

    @property
    def most(self) -> int:
        """The most keys of a sequence."""
        return int(self.table.shape[1]) * self.page_size

    def check_ids(self, lengths: Any) -> None:
        """Raises ``ValueError`` for a page in use that the cache lacks."""
        if not is_readable(lengths) or not self.page_size:
            return
        table, count = self.table.numpy(), self.keys.shape[0]
        wrong = (table < 0) | (table >= count)
        if not wrong.any():
            return
        first = np.arange(table.shape[1]) * self.page_size
        wrong &= first < lengths.numpy()[:, None]
        if wrong.any():
            sequence, column = np.argwhere(wrong)[0]
            raise ValueError(
                f"expects {self.name!r} to have pages in [0, {count}), got "
                f"{table[sequence, column]} for sequence {sequence}, column {column}"
            )

    @functools.cached_property
    def layouts(self) -> tuple[Layout | None, Layout | None]:
        """The layouts of keys and values; None for packed rows."""
        return _find_layout(self.keys), _find_layout(self.values)

    def make_inputs(self, lengths: Any, offsets: Any, rows: int) -> StepInputs:
        """The inputs of a step of at most ``rows`` rows per sequence."""
        tensors = self.keys, self.values
        return _join_inputs(self, tensors, self.table, None, lengths, offsets, rows)


@dataclass(frozen=True)
class PackedKeys:
    """Keys and values of sequences one after another: pages of one token.

    Attributes:
        keys: The keys, [total, kv_heads, head_dim].
        values: The values, as the keys.
        offsets: The first key of each sequence, and the end, integers [batch + 1].
    """

    keys: Any
    values: Any
    offsets: Any

    page_size: ClassVar[int] = 1
    kind: ClassVar[str] = "csr"

    @property
    def most(self) -> int:
        """The most keys of a sequence."""
        return len(self.keys)

    def check_ids(self, lengths: Any) -> None:
        """Does nothing: offsets were checked."""

    @property
    def layouts(self) -> tuple[Layout | None, Layout | None]:
        """The layouts of keys and values; None for packed rows."""
        return _find_layout(self.keys[:, None]), _find_layout(self.values[:, None])

    def make_inputs(self, lengths: Any, offsets: Any, rows: int) -> StepInputs:
        """The inputs of a step of at most ``rows`` rows per sequence."""
        ids = torch.arange(len(self.keys), dtype=torch.int32, device=self.keys.device)
        tensors = self.keys[:, None], self.values[:, None]
        return _join_inputs(self, tensors, ids, self.offsets, lengths, offsets, rows)


def _join_inputs(
    cache: Pages | PackedKeys,
    tensors: tuple[Any, Any],
    table: Any,
    index: Any,
    lengths: Any,
    offsets: Any,
    rows: int,
) -> StepInputs:
    """The inputs of a step with checked parts, which ``StepInputs.of`` would check again.

    Numbers are contiguous int32, and rows of a table.
    """
    return StepInputs(
        requests=tuple(range(lengths.shape[0])),
        tokens=np.empty(0, np.int64),
        row_offsets=offsets.numpy() if is_readable(offsets) else offsets,
        lengths=lengths,
        lut=table,
        max_seq_length=rows,
        max_cache_length=cache.most,
        key_blocks=tensors[:1],
        value_blocks=tensors[1:],
        table=cache.kind,
        table_index=index,
        _placed_offsets=offsets,
    )


def make_offsets(batch: int, rows: int, device: Any) -> Any:
    """The offsets of sequences of ``rows`` rows each, int32 [batch + 1]; read only."""
    if device.type == "cpu":
        return _make_host_offsets(batch, rows)
    # Not kept: those made in the capture of a graph have no elements before a replay.
    return torch.arange(batch + 1, dtype=torch.int32, device=device) * rows


@functools.lru_cache(maxsize=64)
def _make_host_offsets(batch: int, rows: int) -> Any:
    return torch.arange(batch + 1, dtype=torch.int32) * rows


def _choose_page(*tensors: Any) -> int:
    """The tokens per page of a cache whose rows are divided into pages.

    A divisor of the row, so that caches of different lengths share kernels, or a row.
    """
    length = int(tensors[0].shape[1])
    size = math.gcd(length, _MOST_PAGE)
    is_regular = all(each.stride(0) == length * each.stride(1) for each in tensors)
    return size if size >= _LEAST_PAGE and is_regular else length


def _find_layout(tensor: Any) -> Layout | None:
    """The layout of a tensor [pages, tokens, heads, elements]; None for packed rows."""
    _, tokens, heads, width = tensor.shape
    packed = heads * width, width, 1
    sizes = tokens, heads, width
    strides = tensor.stride()[1:]
    if all(a == b or n <= 1 for a, b, n in zip(strides, packed, sizes)):
        return None
    layout: Layout = describe(tensor, _DIMS)
    return layout


@dataclass(frozen=True)
class Queries:
    """The queries of a step.

    Attributes:
        rows: The queries, [total, heads, head_dim].
        offsets: The first query of each sequence, and the end, int32 [batch + 1].
        most: The most queries of a sequence.
        least_keys: A number of keys that each sequence has at least.
        has_padding: Whether there may be rows after the end of the offsets.
    """

    rows: Any
    offsets: Any
    most: int
    least_keys: int = 0
    has_padding: bool = True


def append(pages: Pages, lengths: Any, keys: Any, values: Any) -> StepInputs:
    """Writes new rows [batch, new, kv_heads, head_dim] after ``lengths`` tokens.

    Returns the inputs, whose lengths are ``lengths``.
    """
    batch, new = keys.shape[:2]
    offsets = make_offsets(batch, new, keys.device)
    inputs = pages.make_inputs(lengths, offsets, new)
    operation = _make_append(*_describe(pages, keys), _target(keys))
    operation(inputs, 0, *(_pack(each.flatten(0, 1)) for each in (keys, values)))
    return inputs


def attend(
    queries: Queries,
    keys: Pages | PackedKeys,
    lengths: Any,
    rule: Rule,
    scale: float | None,
    extra: HeadNumbers,
    num_splits: int = 0,
    *,
    needs_lse: bool = True,
    inputs: StepInputs | None = None,
) -> tuple[Any, Any]:
    """Attends to ``lengths`` keys of each sequence, int32 [batch].

    Returns the outputs [total, heads, head_dim] and logarithms, float32 [total, heads],
    which are None unless ``needs_lse``. The inputs are those of an ``append`` of as many
    rows, or None.
    """
    q = queries.rows
    total, heads, width = q.shape
    if not total or not keys.most:
        return torch.zeros_like(q).contiguous(), extra.make_logarithms(q)
    if queries.most == 1 and not rule.has_slopes:
        rule = rule.for_last_query()
    if rule.has_positions and rule.right != 0 and queries.most > 1:
        _check_key_counts(queries, lengths)
    if inputs is None:
        inputs = keys.make_inputs(lengths, queries.offsets, queries.most)
    make = torch.zeros if queries.has_padding else torch.empty
    out = make(q.shape, dtype=q.dtype, device=q.device)
    lse = extra.make_logarithms(q) if needs_lse else None
    splits = (num_splits or _MAX_SPLITS) if queries.most == 1 and num_splits != 1 else 0
    operation = _make_attention(
        *_describe(keys, q), _target(q), heads, rule, splits, keys.kind
    )
    operation(
        inputs,
        0,
        _pack(q),
        out=out,
        lse=lse,
        scale=width**-0.5 if scale is None else check_score_factor("softmax_scale", scale),
        kv_lengths=lengths,
        **extra.make_arguments(queries.offsets.shape[0] - 1, heads),
    )
    return out, lse


def _check_key_counts(queries: Queries, lengths: Any) -> None:
    """Raises ``ValueError`` for a sequence with fewer keys than queries, if readable.

    Functions of scores and masks have no positions before the first key.
    """
    if queries.least_keys >= queries.most or not is_readable(lengths):
        return
    counts = queries.offsets.diff()
    wrong = (lengths < counts).nonzero()
    if not len(wrong):
        return
    sequence = int(wrong[0])
    raise ValueError(
        "expects no sequence to have fewer keys than queries with 'alibi_slopes' or a "
        "'window_size' that sees later keys: sequence "
        f"{sequence} has {int(lengths[sequence])} keys and {int(counts[sequence])} queries"
    )


def _pack(rows: Any) -> Any:
    """Returns rows [total, heads, dim] that are apart, and whose heads are contiguous."""
    total, heads, width = rows.shape
    is_packed = rows.stride(2) == 1 and (heads == 1 or rows.stride(1) == width)
    is_packed &= total == 1 or rows.stride(0) >= heads * width
    return rows if is_packed else rows.contiguous()


def _target(tensor: Any) -> str:
    return TARGETS[tensor.device.type]


def _describe(keys: Pages | PackedKeys, rows: Any) -> tuple[Any, ...]:
    """The type of rows, the sizes of heads and pages, and the layouts of a cache."""
    kv_heads, width = keys.keys.shape[-2:]
    return DTYPES[rows.dtype], kv_heads, width, keys.page_size, keys.layouts


@functools.lru_cache(maxsize=256)
def _make_params(
    dtype: str, heads: int, width: int, page_size: int, layout: Layout | None
) -> KVCacheParams:
    params = KVCacheParams(dtype, heads, width, page_size=page_size, total_num_layers=1)
    return params.with_layout(layout)


def _make_both(
    dtype: str, heads: int, width: int, page_size: int, layouts: tuple[Any, Any]
) -> dict[str, Any]:
    """The parameters of keys and values, as arguments of operations."""
    both = [_make_params(dtype, heads, width, page_size, each) for each in layouts]
    return {"params": both[0], "value_params": both[1], "separate": True}


@functools.lru_cache(maxsize=256)
def _make_append(
    dtype: str, heads: int, width: int, page_size: int, layouts: Any, target: str
) -> Any:
    both = _make_both(dtype, heads, width, page_size, layouts)
    return ops.append(**both, dtype=dtype, target=target)


@functools.lru_cache(maxsize=256)
def _make_attention(
    dtype: str,
    heads: int,
    width: int,
    page_size: int,
    layouts: Any,
    target: str,
    query_heads: int,
    rule: Rule,
    splits: int,
    table: str,
) -> Any:
    options = rule.options
    if splits and target != "cpu":
        options |= {"split_tokens": _SPLIT_TOKENS, "max_splits": splits}
    return ops.attention(
        **_make_both(dtype, heads, width, page_size, layouts),
        query_heads=query_heads,
        dtype=dtype,
        target=target,
        table=table,
        kv_lengths=True,
        **options,
    )
