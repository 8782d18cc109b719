# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lookup tables and tensors of an engine, with their checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

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

TABLES = ("dense", "csr", "rows")
"""The kinds of lookup tables: the values of ``table`` in the types of caches."""

_BLOCKS_RANK = 6
_LAYER_RANK = 4


@dataclass(frozen=True)
class StepTable:
    """The lengths, table and offsets of a step.

    Attributes:
        lengths: As in ``StepInputs.of``; None if there is no table.
        lut: As in ``StepInputs.of``.
        row_offsets: As in ``StepInputs.of``.
        kind: One of ``TABLES``.
        index: ``indptr`` or ``table_rows``; None for a dense table.
    """

    lengths: Any
    lut: Any
    row_offsets: Any
    kind: str = "dense"
    index: Any = None

    @property
    def batch(self) -> int:
        return 0 if self.lengths is None else int(self.lengths.shape[0])

    @property
    def index_name(self) -> str:
        return "indptr" if self.kind == "csr" else "table_rows"

    def check_sizes(self) -> None:
        """Checks that arrays are of integers, and that their sizes agree."""
        check_integers(1, lengths=self.lengths, row_offsets=self.row_offsets)
        check_integers(1 if self.kind == "csr" else 2, lut=self.lut)
        if self.index is not None:
            check_integers(1, **{self.index_name: self.index})
        self.check_counts()

    def check_counts(self) -> None:
        """Raises ``ValueError`` for arrays of different numbers of sequences."""
        batch = self.batch
        sized = {"lut": (self.lut, batch)} if self.kind == "dense" else {}
        sized["row_offsets"] = self.row_offsets, batch + 1
        if self.index is not None:
            sized[self.index_name] = self.index, batch + (self.kind == "csr")
        for name, (array, size) in sized.items():
            if array.shape[0] != size:
                raise ValueError(
                    f"expects {name!r} of {size} for {batch} sequences, got "
                    f"{array.shape[0]}"
                )

    def checked(self) -> StepTable:
        """Checks the contents in host memory; returns arrays for kernels."""
        index = {} if self.index is None else {self.index_name: self.index}
        check_32_bits(
            lengths=self.lengths, row_offsets=self.row_offsets, lut=self.lut, **index
        )
        if self._starts is not None:
            check_offsets(self._starts)
        counts = self._counts
        if counts is not None and counts.min(initial=0) < 0:
            sequence = int(counts.argmin())
            raise ValueError(
                f"expects 'lengths' not to be negative, got {counts[sequence]} for "
                f"sequence {sequence}"
            )
        check_index(self.kind, self.index, self.lut)
        return replace(
            self,
            lengths=as_32_bits("lengths", self.lengths),
            lut=as_32_bits("lut", self.lut, strided=self.kind != "csr"),
            row_offsets=as_32_bits("row_offsets", self.row_offsets),
            index=None if not index else as_32_bits(self.index_name, self.index),
        )

    @cached_property
    def _starts(self) -> Any:
        return _read(self.row_offsets)

    @property
    def _new(self) -> np.ndarray | None:
        return None if self._starts is None else np.diff(self._starts)

    @cached_property
    def _counts(self) -> np.ndarray | None:
        return _read(self.lengths)

    @property
    def host_offsets(self) -> Any:
        """The offsets in host memory; those of kernels if they are elsewhere."""
        offsets = read_integers(self.row_offsets)
        return self.row_offsets if offsets is None else offsets

    def get_max_seq(self, bound: int | None) -> int:
        """Checks ``max_seq_length``, or computes it."""
        return 0 if self.lengths is None else _get_bound("max_seq_length", bound, self._new)

    def get_max_cache(self, bound: int | None) -> int:
        """Checks ``max_cache_length``, or computes it."""
        if self.lengths is None:
            return 0
        return _get_bound("max_cache_length", bound, self._counts)


def check_index(kind: str, index: Any, lut: Any) -> None:
    """Raises ``ValueError`` for sequences without entries or a row of the table."""
    numbers, end = _read(index), lut.shape[0]
    if numbers is None or not numbers.size:
        return
    if kind == "csr":
        if numbers[0] < 0 or np.diff(numbers).min(initial=0) < 0:
            raise ValueError("expects 'indptr' not to be negative or to decrease")
        if numbers[-1] > end:
            raise ValueError(
                f"expects 'indptr' to end in the {end} entries of 'lut', got "
                f"{numbers[-1]}"
            )
        return
    wrong = (numbers < 0) | (numbers >= end)
    if wrong.any():
        sequence = int(wrong.argmax())
        raise ValueError(
            f"expects 'table_rows' to be in [0, {end}), the rows of 'lut', got "
            f"{numbers[sequence]} for sequence {sequence}"
        )


def check_offsets(starts: np.ndarray) -> None:
    """Raises ``ValueError`` for offsets of rows that do not begin with 0 or decrease."""
    if starts[:1].any() or np.diff(starts).min(initial=0) < 0:
        raise ValueError("expects 'row_offsets' to begin with 0 and not to decrease")


def pick_table(
    lengths: Any, lut: Any, row_offsets: Any, indptr: Any, table_rows: Any
) -> StepTable | None:
    """Picks the table of the given arrays; None if there are none of them."""
    given = {"lengths": lengths, "lut": lut, "row_offsets": row_offsets}
    missing = [name for name, array in given.items() if array is None]
    index = [array for array in (indptr, table_rows) if array is not None]
    if len(missing) == len(given) and not index:
        return None
    if missing:
        raise ValueError(
            "expects 'lengths', 'lut' and 'row_offsets', or none of them for 'append' "
            f"with slots, got no {missing[0]!r}"
        )
    if len(index) > 1:
        raise ValueError("expects 'indptr' or 'table_rows', got both")
    kind = "dense" if not index else "rows" if indptr is None else "csr"
    return StepTable(lengths, lut, row_offsets, kind, index[0] if index else None)


def to_tensors(name: str, given: Array | Sequence[Array]) -> tuple[Any, ...]:
    """Returns a tensor or a sequence of tensors as a tuple.

    Tensors of a layer's tokens get a dimension of pages of one token.
    """
    tensors = tuple(given) if isinstance(given, tuple | list) else (given,)
    if name in ("blocks", "scales"):
        return tensors
    return tuple(
        tensor[:, None] if len(getattr(tensor, "shape", ())) == _LAYER_RANK - 1 else tensor
        for tensor in tensors
    )


def check_tensors(
    blocks: Sequence[Any],
    scales: Sequence[Any],
    keys: Sequence[Any],
    values: Sequence[Any],
    key_scales: Sequence[Any],
    value_scales: Sequence[Any],
) -> None:
    """Raises ``TypeError`` or ``ValueError`` for tensors that are no cache."""
    if keys and (blocks or scales):
        raise ValueError("expects 'blocks' or 'keys', got both")
    if not keys:
        if values or key_scales or value_scales:
            raise ValueError("expects 'values', 'key_scales' and 'value_scales' only with 'keys'")
        if not blocks:
            raise ValueError("expects 'blocks' for at least one device, got none")
        _check_count("scales", scales, len(blocks), "devices")
    else:
        for name, tensors in (
            ("values", values),
            ("key_scales", key_scales),
            ("value_scales", value_scales),
        ):
            _check_count(name, tensors, len(keys), "layers")
    for name, tensors, rank in (
        ("blocks", blocks, _BLOCKS_RANK),
        ("scales", scales, _BLOCKS_RANK),
        ("keys", keys, _LAYER_RANK),
        ("values", values, _LAYER_RANK),
        ("key_scales", key_scales, _LAYER_RANK),
        ("value_scales", value_scales, _LAYER_RANK),
    ):
        _check_ranks(name, tensors, rank)
    for key, value in zip(keys, values):
        pages, found = list(key.shape[:2]), list(value.shape[:2])
        if found != pages:
            raise ValueError(
                f"expects 'values' to have the pages and tokens of 'keys', {pages}, got "
                f"{found}"
            )


def _check_count(name: str, tensors: Sequence[Any], count: int, kind: str) -> None:
    if tensors and len(tensors) != count:
        raise ValueError(f"expects {name!r} for {count} {kind}, got {len(tensors)}")


def _check_ranks(name: str, tensors: Sequence[Any], rank: int) -> None:
    for tensor in tensors:
        if not hasattr(tensor, "shape"):
            raise TypeError(
                f"expects {name!r} to be an array, got {type(tensor).__name__}"
            )
        check_memory(**{name: tensor})
        if len(tensor.shape) != rank:
            raise ValueError(
                f"expects {name!r} with {rank} dimensions, got {tuple(tensor.shape)}"
            )


def _read(array: Any) -> np.ndarray | None:
    """Reads the numbers of an array in host memory; None for other memory."""
    numbers = None if array is None else read_integers(array)
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
