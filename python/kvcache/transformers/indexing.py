# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse attention of models: index keys in pages, and rows of the chosen tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .. import ops
from ..cache.params import KVCacheParams
from ..pages.inputs import StepInputs
from ..pages.memory import Memory
from .padding import pack

INDEXED, BLOCKS = "indexed_attention", "minimax_m3_sparse"
"""The kinds of layers whose models choose tokens, or blocks of tokens for each head."""


@dataclass(frozen=True)
class IndexShape:
    """The index keys of a model.

    Attributes:
        layers: The number of each layer among those with index keys; None for a layer
            without.
        head_dim: The number of elements of an index key.
        block: The tokens of a block that is chosen; None if tokens are.
    """

    layers: tuple[int | None, ...]
    head_dim: int
    block: int | None

    @classmethod
    def of(cls, config: Any) -> IndexShape | None:
        """The index keys of the model of a configuration; None if it has none."""
        kinds = list(getattr(config, "layer_types", None) or ())
        if INDEXED in kinds:
            types = getattr(config, "indexer_types", None) or ["full"] * len(kinds)
            has_keys, block = [kind == "full" for kind in types], None
        elif BLOCKS in kinds:
            has_keys = [kind == BLOCKS for kind in kinds]
            block = int(config.index_block_size)
        else:
            return None
        numbers = np.cumsum(has_keys) - 1
        layers = tuple(
            int(number) if has else None
            for number, has in zip(numbers, has_keys, strict=True)
        )
        return cls(layers, int(config.index_head_dim), block)

    @property
    def cached_layers(self) -> int:
        """The number of layers with index keys."""
        return sum(layer is not None for layer in self.layers)

    def expand(self, chosen: Any) -> Any:
        """The columns of chosen tokens or blocks, [batch, heads, tokens, columns].

        Args:
            chosen: The chosen tokens, [batch, tokens, k], or blocks, [batch, heads,
                tokens, k]. Negative ones are none.
        """
        if self.block is None:
            return chosen[:, None]
        offsets = torch.arange(self.block, device=chosen.device)
        return (chosen[..., None] * self.block + offsets).flatten(-2)


@dataclass(frozen=True)
class TokenPlaces:
    """The places of the new tokens of a step in their sequences, int64 [total, 1, 1].

    All arrays are in the memory of the cache.

    Attributes:
        sequence: The sequence of each token in the inputs.
        position: The position of each token in its sequence.
        padding: The columns of a batch before its sequence.
        starts: The first token of each sequence among all of these, and their number,
            int32 [batch + 1].
        length: The number of all tokens of the sequences.
    """

    sequence: Any
    position: Any
    padding: Any
    starts: Any
    length: int

    @classmethod
    def of(cls, inputs: StepInputs, padding: np.ndarray, memory: Memory) -> TokenPlaces:
        """The places of the tokens of a step; ``padding`` is that of its sequences."""
        assert inputs.row_offsets is not None and inputs.totals is not None
        offsets = np.asarray(inputs.row_offsets).astype(np.int64)
        counts = np.diff(offsets)
        sequence = np.repeat(np.arange(len(counts)), counts)
        first = inputs.totals - counts - offsets[:-1]
        position = np.arange(offsets[-1]) + first[sequence]
        own, places, before = (
            memory.upload(each[:, None, None])
            for each in (sequence, position, padding[sequence])
        )
        starts = np.concatenate([[0], np.cumsum(inputs.totals)]).astype(np.int32)
        return cls(own, places, before, memory.upload(starts), int(starts[-1]))


class IndexKeys:
    """The index keys of a model in a group of the cache, and their operations.

    Args:
        shape: The index keys of the model.
        params: The parameters of the group of index keys.
        target: The target of the kernels, as in ``jit``.
    """

    def __init__(self, shape: IndexShape, params: KVCacheParams, target: str) -> None:
        self.shape = shape
        self._params, self._target = params, target

    def __deepcopy__(self, memo: dict[int, Any]) -> IndexKeys:
        return self

    def update(
        self, inputs: StepInputs, layer: int, keys: Any, places: TokenPlaces
    ) -> Any:
        """Appends keys to a layer, and returns all of its keys, without padding.

        Args:
            inputs: The inputs of the step.
            layer: The layer of the model.
            keys: The new keys, [total, 1, head_dim].
            places: The places of the new tokens.
        """
        number = self.shape.layers[layer]
        assert number is not None
        group, dtype = inputs.groups[1], str(keys.dtype).removeprefix("torch.")
        ops.append(self._params, self._target, dtype)(group, number, keys)
        out = keys.new_empty(places.length, 1, self.shape.head_dim)
        gather = ops.gather(self._params, self._target, dtype, ragged=True)
        gather(group, number, out, output_offsets=places.starts)
        return out


def find_rows(
    inputs: StepInputs, page_size: int, columns: Any, tokens: Any, places: TokenPlaces
) -> Any:
    """The rows of the cache in chosen columns, int32 [total, heads, columns].

    Those of padding and of later tokens are -1.

    Args:
        inputs: The inputs of the cache that is attended to.
        page_size: The tokens of its pages.
        columns: The columns that each query sees, [batch, heads, tokens, columns].
        tokens: The indices of tokens that are not padding, as for ``pack``.
        places: The places of these tokens.
    """
    found = pack(columns, tokens).long() - places.padding
    is_seen = (found >= 0) & (found <= places.position)
    found = torch.where(is_seen, found, 0)
    table = inputs.lut.view(torch.int32).long()
    rows = table[places.sequence, found // page_size] * page_size + found % page_size
    return torch.where(is_seen, rows, -1).int().contiguous()
