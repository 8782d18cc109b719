# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rows of models with compressed entries, and their sections of a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from ..cache.params import KVCacheParams
from ..pages.inputs import StepInputs
from ..pages.memory import Memory

SPARSE, HEAVY = "compressed_sparse_attention", "heavily_compressed_attention"
"""The kinds of layers with entries: an indexer chooses some, or all are attended to."""

_ALIGNMENT = 8  # elements of a token in a page


@dataclass(frozen=True)
class Section:
    """The rows of one kind in each page.

    Attributes:
        layers: The number of layers with such rows.
        width: The tokens that a row stands for.
        head_dim: The number of elements of a row.
        start: The first element of the section in a page.
        params: The parameters of a layer of the section.
    """

    layers: int
    width: int
    head_dim: int
    start: int
    params: KVCacheParams

    @property
    def page_elements(self) -> int:
        """The number of elements of the section in a page."""
        return self.layers * int(self.params.page_size or 0) * self.head_dim

    def view(self, blocks: Any) -> list[Any]:
        """The rows of each layer in pages: [pages, rows of a page, 1, head_dim]."""
        rows, pages = int(self.params.page_size or 0), blocks.flatten(1)
        section = pages[:, self.start : self.start + self.page_elements]
        return list(section.unflatten(1, (self.layers, rows, 1, self.head_dim)).unbind(1))

    def find_slots(self, inputs: StepInputs, numbers: Any, sequence: Any) -> Any:
        """The slots of rows with some numbers in their sequences."""
        rows = int(self.params.page_size or 0)
        table = inputs.lut.view(torch.int32).long()
        return table[sequence, numbers // rows] * rows + numbers % rows


@dataclass(frozen=True)
class EntryShape:
    """The compressed entries of a model.

    Attributes:
        kinds: The kind of each layer.
        widths: The tokens of an entry of each kind of layers.
        head_dim: The number of elements of a latent row, and of an entry.
        index_dim: The number of elements of an index key.
        chosen: The most entries that an indexer chooses for a token.
    """

    kinds: tuple[str, ...]
    widths: tuple[tuple[str, int], ...]
    head_dim: int
    index_dim: int
    chosen: int

    @classmethod
    def of(cls, config: Any) -> EntryShape | None:
        """The entries of the model of a configuration; None if it has none."""
        kinds = tuple(getattr(config, "layer_types", None) or ())
        widths = tuple(
            (kind, int(config.compress_rates[kind]))
            for kind in (SPARSE, HEAVY)
            if kind in kinds
        )
        if not widths:
            return None
        sizes = config.head_dim, config.index_head_dim, config.index_topk
        return cls(kinds, widths, *map(int, sizes))

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The number of each layer among those of its kind."""
        return tuple(self.kinds[:i].count(kind) for i, kind in enumerate(self.kinds))

    @property
    def page_multiple(self) -> int:
        """The tokens that a page has a multiple of, so that it has whole entries."""
        return math.lcm(*(width for _, width in self.widths))

    def make_sections(self, dtype: str, page_size: int) -> dict[str, Section]:
        """The sections of a page: ``"window"``, those of layers, and ``"index"``."""
        rows = {"window": (len(self.kinds), 1, self.head_dim)}
        for kind, width in self.widths:
            rows[kind] = self.kinds.count(kind), width, self.head_dim
        if SPARSE in rows:
            layers, width, _ = rows[SPARSE]
            rows["index"] = layers, width, self.index_dim
        sections: dict[str, Section] = {}
        start = 0
        for name, (layers, width, head_dim) in rows.items():
            params = KVCacheParams(
                dtype,
                1,
                head_dim,
                page_size=page_size // width,
                total_num_layers=1,
                is_mla=True,
            )
            sections[name] = Section(layers, width, head_dim, start, params)
            start += sections[name].page_elements
        return sections

    def make_params(self, dtype: Any, page_size: int, share: bool) -> KVCacheParams:
        """The parameters of pages with all sections.

        Raises ``ValueError`` for shared prefixes, whose states are not in pages, for
        pages without whole entries, and for elements of a byte.
        """
        if share:
            raise ValueError(
                "a model with compressed entries has no shared prefixes: the states of "
                "its open groups are not in pages"
            )
        params = KVCacheParams(
            dtype, 1, 1, page_size=page_size, total_num_layers=1, is_mla=True
        )
        name = str(params.dtype_shorthand)
        if name not in ("f32", "f16", "bf16"):
            raise ValueError(
                "expects 'dtype' to be f32, f16 or bf16 for a model with compressed "
                f"entries, got {name}"
            )
        if page_size % self.page_multiple:
            raise ValueError(
                f"expects 'page_size' to be a multiple of {self.page_multiple}, so that a "
                f"page has whole entries, got {page_size}"
            )
        last = list(self.make_sections(name, page_size).values())[-1]
        elements = -(-(last.start + last.page_elements) // page_size)
        elements = -(-elements // _ALIGNMENT) * _ALIGNMENT
        return KVCacheParams(
            name, 1, elements, page_size=page_size, total_num_layers=1, is_mla=True
        )


@dataclass(frozen=True)
class TokenPlaces:
    """The places of the new tokens of a step in their sequences, int64 [total].

    All arrays are in the memory of the cache.

    Attributes:
        sequence: The sequence of each token in the inputs.
        position: The position of each token in its sequence.
    """

    sequence: Any
    position: Any

    @classmethod
    def of(cls, inputs: StepInputs, memory: Memory) -> TokenPlaces:
        """The places of the tokens of a step."""
        assert inputs.row_offsets is not None
        counts = np.diff(inputs.row_offsets.astype(np.int64))
        sequence = np.repeat(np.arange(len(counts)), counts)
        return cls(memory.upload(sequence), memory.upload(inputs.positions))


class StateRings:
    """The states of the last tokens of each row of a batch, from which entries come.

    A ring has the block of tokens that is open, and with ``overlap`` the one before. A
    row of the batch has a ring in each layer.

    Args:
        layers: The number of layers.
        width: The tokens of a block.
        size: The number of elements of an entry.
        overlap: Whether an entry includes the previous block.
        rows: The most rows of a batch.
        device: The device of the rings.
    """

    def __init__(
        self, layers: int, width: int, size: int, overlap: bool, rows: int, device: Any
    ) -> None:
        self.width, self.overlap = width, overlap
        elements = 2 * size * self._groups
        self.params = KVCacheParams(
            "f32", 1, elements, page_size=width, total_num_layers=1, is_mla=True
        )
        shape = layers, rows * self._groups, width, 1, elements
        self._rings = torch.zeros(shape, device=device)

    @property
    def _groups(self) -> int:
        """The number of groups of a ring."""
        return 1 + self.overlap

    def select(self, rows: Sequence[int]) -> None:
        """Makes the first rows of the batch continue those of some rows."""
        rings = self._rings.unflatten(1, (-1, self._groups))
        index = torch.tensor(rows, device=rings.device)
        rings[:, : len(rows)] = rings[:, index]

    def begin(
        self, step: StepInputs, rows: Any, places: TokenPlaces, memory: Memory
    ) -> tuple[StepInputs, Any]:
        """The inputs of a step, and the slots of its tokens, -1 for those not kept.

        The lengths of the inputs begin with the first group of the ring.

        Args:
            step: The inputs of the pages.
            rows: The row of the batch of each sequence, int64 [batch].
            places: The places of the new tokens.
            memory: The memory of the cache.
        """
        assert step.totals is not None and step.row_offsets is not None
        counts = step.row_offsets.astype("int64")[1:] - step.row_offsets[:-1]
        lengths, groups = step.totals - counts, self._groups
        bases = (lengths // self.width - self.overlap).clip(0)
        shifted = lengths - bases * self.width
        columns = range(-(-int((shifted + counts).max()) // self.width))
        table = rows[:, None] * groups + (bases[:, None] + list(columns)) % groups
        first = step.totals // self.width - self.overlap
        number = places.position // self.width
        kept, ring = (memory.upload(each)[places.sequence] for each in (first, rows))
        slots = (ring * groups + number % groups) * self.width
        slots = torch.where(number >= kept, slots + places.position % self.width, -1)
        inputs = StepInputs.of(
            keys=list(self._rings.unbind(0)),
            lengths=memory.upload(shifted.astype("int32")),
            lut=memory.upload(table.astype("int32")),
            row_offsets=step.placed_offsets,
            max_seq_length=step.max_seq_length,
            max_cache_length=int(shifted.max()),
        )
        return inputs, slots.int()
