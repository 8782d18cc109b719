# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The inputs of the kernels of a step."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from collections.abc import Sequence as Tensors
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..checks import check_integer
from ..devices import cuda
from ..execution.arrays import Array, read_integers
from .step_tables import TABLES, StepTable, check_tensors, pick_table, to_tensors

__all__ = ["TABLES", "StepInputs", "make_form"]

_NO_TABLE = StepTable(None, None, None)
_BLANKS = (
    np.zeros(1, np.int32),
    np.zeros((1, 1), np.int32),
    np.array([0, 2**31 - 1], np.int32),
)
"""Lengths, a table and offsets for functions that do not read them."""


@functools.cache
def _copy_blanks(device: int) -> tuple[cuda.DeviceArray, ...]:
    what = "a step without a table"
    return tuple(cuda.DeviceArray(array, device, what) for array in _BLANKS)


def _find_blanks(tensor: Array) -> tuple[Any, ...]:
    """Returns ``_BLANKS`` in the memory of a tensor of the cache."""
    device = cuda.find_gpu(tensor)
    if device is None:
        return _BLANKS
    return tuple(copy.tensor for copy in _copy_blanks(device))


def make_form(is_separate: bool, table: str, count: int) -> str:
    """Names a form of inputs by its table, empty for none, and its operands."""
    return f"{'separate' if is_separate else 'joined'} {table} {count}"


@dataclass(frozen=True)
class StepInputs:
    """The inputs of kernels that process the pending tokens of a batch.

    Attributes:
        requests: The sequences, in the order of the batch.
        tokens: The ids of the pending tokens, int64 [total], one sequence after another.
        row_offsets: The index of each sequence's first token in ``tokens``, uint32
            [batch + 1], in host memory; None without a table.
        placed_offsets: ``row_offsets`` in the memory of the cache, for kernels.
        lengths: Tokens in the cache before this step, uint32 [batch]; None without a
            table.
        lut: The lookup table, uint32 [batch, columns]: pages in the order of tokens;
            unused entries name the null page. The columns are the pages of the longest
            sequence of the batch, rounded up to a multiple of 8, and 16 more. ``of``
            takes other tables, too; None without a table.
        max_seq_length: The largest number of pending tokens.
        max_cache_length: The largest of ``lengths``.
        blocks: One tensor per device, [pages, 2, layers, page_size, heads, head_dim].
        scales: One tensor per device, or empty for a cache without scales.
        key_blocks: The keys, if they have tensors of their own: one per layer, [pages,
            page_size, heads, head_dim].
        value_blocks: The values, likewise; empty for a latent cache.
        key_scales: The scales of ``key_blocks``, or empty.
        value_scales: The scales of ``value_blocks``, or empty.
        table: The kind of ``lut``: ``"dense"``, ``"csr"`` or ``"rows"``.
        table_index: ``indptr`` of a csr table, or ``table_rows``; None for a dense one.
        totals: Tokens of each sequence after this step, int64 [batch], in host memory:
            those of the current ``lengths`` and ``row_offsets``. None if lengths or
            offsets are elsewhere.
        groups: The inputs of each group of layers, with its own table and tensors.
            ``lut``, ``blocks`` and ``scales`` are those of the first group.
    """

    requests: tuple[Hashable, ...]
    tokens: np.ndarray
    row_offsets: Any
    lengths: Any
    lut: Any
    max_seq_length: int
    max_cache_length: int
    blocks: tuple[Array, ...] = ()
    scales: tuple[Array, ...] = ()
    key_blocks: tuple[Array, ...] = ()
    value_blocks: tuple[Array, ...] = ()
    key_scales: tuple[Array, ...] = ()
    value_scales: tuple[Array, ...] = ()
    table: str = "dense"
    table_index: Array | None = None
    _placed_offsets: Array | None = None
    _totals: np.ndarray | None = None
    """The totals of a manager, whose lengths may be elsewhere and do not change."""
    _others: tuple[StepInputs, ...] = ()

    @property
    def totals(self) -> np.ndarray | None:
        if self._totals is not None:
            return self._totals
        lengths, offsets = read_integers(self.lengths), self.current_offsets
        if lengths is None or not isinstance(offsets, np.ndarray):
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
        offsets = self.current_offsets.astype(np.int64)
        first = totals - offsets[1:]
        return np.arange(offsets[-1]) + first.repeat(np.diff(offsets))

    @property
    def max_total_length(self) -> int:
        """The largest of ``totals``; 0 if they are None."""
        totals = self.totals
        return 0 if totals is None else int(totals.max(initial=0))

    @property
    def placed_offsets(self) -> Any:
        placed = self._placed_offsets
        return self.row_offsets if placed is None else placed

    @property
    def current_offsets(self) -> Any:
        """``row_offsets``, read again: PyTorch may move the memory of a tensor."""
        placed = read_integers(self.placed_offsets)
        return self.row_offsets if placed is None else placed

    @property
    def groups(self) -> tuple[StepInputs, ...]:
        return self, *self._others

    @property
    def has_table(self) -> bool:
        """Whether there are lengths, a table and offsets."""
        return self.lut is not None

    @property
    def is_separate(self) -> bool:
        """Whether keys and values have tensors of their own."""
        return bool(self.key_blocks)

    @classmethod
    def of(
        cls,
        *,
        blocks: Array | Tensors[Array] = (),
        keys: Array | Tensors[Array] = (),
        values: Array | Tensors[Array] = (),
        lengths: Array | None = None,
        lut: Array | None = None,
        row_offsets: Array | None = None,
        indptr: Array | None = None,
        table_rows: Array | None = None,
        scales: Array | Tensors[Array] = (),
        key_scales: Array | Tensors[Array] = (),
        value_scales: Array | Tensors[Array] = (),
        max_seq_length: int | None = None,
        max_cache_length: int | None = None,
    ) -> StepInputs:
        """The inputs of a step of an engine that manages its own pages.

        The cache is ``blocks`` with all layers, keys and values, or ``keys`` and
        ``values`` with a tensor for each layer. Lengths, table and offsets are left out
        if the inputs are only for ``append`` with ``slots``.

        ``tokens`` are empty, and ``requests`` are the numbers of the sequences. Kernels
        read lengths, table and offsets as integers of 32 bits. Such arrays are used as
        they are, also when their contents change later; so is a slice of a larger
        table. Others, such as int64, are copied once here.

        All checks precede all copies. Contents are checked only in host memory,
        including that of PyTorch and JAX.

        Args:
            blocks: The tensor of the device, or a sequence with one tensor per device.
            keys: The keys of the only layer, or a sequence with one tensor per layer:
                [pages, page_size, heads, head_dim], or [tokens, heads, head_dim] for
                pages of one token. Operations name them ``key_blocks``.
            values: The values, as ``keys``. Operations name them ``value_blocks``. A
                latent cache has none, or the last elements of its rows for operations
                with ``rope_params``, which name them ``rope_blocks``.
            lengths: Tokens in the cache before this step, integers [batch].
            lut: The lookup table: the pages of each sequence in order, integers
                [batch, columns].
            row_offsets: The index of each sequence's first new token, integers
                [batch + 1].
            indptr: The first entry of each sequence in ``lut``, and the end of the last
                one, integers [batch + 1]. Then ``lut`` is one array of pages [entries],
                as FlashInfer's ``indices``.
            table_rows: The row of each sequence in ``lut``, integers [batch]. Then
                ``lut`` may have more rows than the batch, as SGLang's ``req_to_token``.
            scales: As ``blocks``, for a quantized cache.
            key_scales: As ``keys``, for quantized keys.
            value_scales: As ``values``, for quantized values.
            max_seq_length: An upper bound of the new tokens of a sequence. Unless given,
                it is read from ``row_offsets``, which must be in host memory then.
            max_cache_length: An upper bound of ``lengths``, as above.

        Raises:
            TypeError: Lengths, table or offsets are not arrays of integers, or a tensor
                of the cache is not an array. Masked or sparse arrays, and tensors
                without memory, are none.
            ValueError: There is no tensor, or both ``blocks`` and ``keys``. Some of
                lengths, table and offsets are missing. Sizes contradict each other,
                offsets decrease, a length is negative, a bound is too small, or a
                number has more than 32 bits.
        """
        tensors = {
            name: to_tensors(name, given)
            for name, given in (
                ("blocks", blocks),
                ("scales", scales),
                ("keys", keys),
                ("values", values),
                ("key_scales", key_scales),
                ("value_scales", value_scales),
            )
        }
        found = pick_table(lengths, lut, row_offsets, indptr, table_rows)
        table = _NO_TABLE if found is None else found
        if found is not None:
            table.check_sizes()
        check_tensors(**tensors)
        checked = table if found is None else table.checked()
        return cls(
            requests=tuple(range(checked.batch)),
            tokens=np.empty(0, np.int64),
            row_offsets=checked.host_offsets,
            lengths=checked.lengths,
            lut=checked.lut,
            max_seq_length=table.get_max_seq(max_seq_length),
            max_cache_length=table.get_max_cache(max_cache_length),
            blocks=tensors["blocks"],
            scales=tensors["scales"],
            key_blocks=tensors["keys"],
            value_blocks=tensors["values"],
            key_scales=tensors["key_scales"],
            value_scales=tensors["value_scales"],
            table=checked.kind,
            table_index=checked.index,
            _placed_offsets=checked.row_offsets,
        )

    @cached_property
    def _operands(
        self,
    ) -> tuple[str, tuple[tuple[Any, ...], ...], np.ndarray | None, np.ndarray | None]:
        """The form of the inputs, and the operands of each layer, or of device 0.

        Offsets follow the operands. Then come offsets in host memory, and totals, or
        None. The extension reads this.
        """
        layers = len(self.key_blocks)
        given = [self.views(layer) for layer in range(layers)] or [self.collection()]
        own = given[0]
        offsets = self.placed_offsets
        if not self.has_table:
            count = 1 + bool(self.value_blocks)
            *blanks, offsets = _find_blanks(own[0])
            given = [(*each[:count], *blanks, *each[count + 2 :]) for each in given]
        form = make_form(self.is_separate, self.table if self.has_table else "", len(own))
        host = self.row_offsets if isinstance(self.row_offsets, np.ndarray) else None
        operands = tuple((*each, offsets) for each in given)
        return form, operands, host, self._totals

    def collection(self, device: int = 0) -> tuple[Any, ...]:
        """The operands of ``kvcache.paged_collection`` on a device, in its order.

        They are blocks, lengths, table, its index if it has one, the two maxima, and
        scales if there are any. Raises ``ValueError`` for a device without blocks.
        """
        check_integer(device=device)
        if not 0 <= device < len(self.blocks):
            raise ValueError(
                f"expects 'device' to be in [0, {len(self.blocks)}), got {device}"
            )
        return self._join(self.blocks[device : device + 1], self.scales[device : device + 1])

    def views(self, layer: int = 0) -> tuple[Any, ...]:
        """The operands of ``kvcache.paged_cache`` for keys and for values of a layer.

        They are keys, values, lengths, table, its index if it has one, the two maxima,
        and the scales of keys and of values if there are any. Raises ``ValueError`` for
        a layer without tensors.
        """
        check_integer(layer=layer)
        if not 0 <= layer < len(self.key_blocks):
            raise ValueError(
                f"expects 'layer' to be in [0, {len(self.key_blocks)}), got {layer}"
            )
        own = slice(layer, layer + 1)
        return self._join(
            (*self.key_blocks[own], *self.value_blocks[own]),
            (*self.key_scales[own], *self.value_scales[own]),
        )

    def _join(
        self, blocks: tuple[Array, ...], scales: tuple[Array, ...]
    ) -> tuple[Any, ...]:
        index = () if self.table_index is None else (self.table_index,)
        maxima = self.max_seq_length, self.max_cache_length
        return *blocks, self.lengths, self.lut, *index, *maxima, *scales
