# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse attention of models: index keys in pages, and slots of the chosen tokens."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .. import ops
from ..cache.params import KVCacheParams
from ..pages.inputs import StepInputs

INDEXED, BLOCKS = "indexed_attention", "minimax_m3_sparse"
"""The kinds of layers whose models choose tokens, or blocks of tokens for each head."""


@dataclass(frozen=True)
class IndexShape:
    """The index keys of a model.

    Attributes:
        layers: The number of each layer among those with index keys; None for a layer
            without.
        heads: The number of heads of index queries.
        head_dim: The number of elements of an index key.
        chosen: The most tokens or blocks that are chosen.
        block: The tokens of a block that is chosen; None if tokens are.
        last: The last blocks that are always chosen.
    """

    layers: tuple[int | None, ...]
    heads: int
    head_dim: int
    chosen: int
    block: int | None = None
    last: int = 0

    @classmethod
    def of(cls, config: Any) -> IndexShape | None:
        """The index keys of the model of a configuration; None if it has none."""
        kinds = list(getattr(config, "layer_types", None) or ())
        options: tuple[int, int | None, int]
        if INDEXED in kinds:
            types = getattr(config, "indexer_types", None) or ["full"] * len(kinds)
            has_keys = [kind == "full" for kind in types]
            options = int(config.index_topk), None, 0
        elif BLOCKS in kinds:
            has_keys = [kind == BLOCKS for kind in kinds]
            chosen, block = int(config.index_topk_blocks), int(config.index_block_size)
            options = chosen, block, int(config.index_local_blocks)
        else:
            return None
        numbers = np.cumsum(has_keys) - 1
        layers = tuple(
            int(number) if has else None
            for number, has in zip(numbers, has_keys, strict=True)
        )
        return cls(layers, int(config.index_n_heads), int(config.index_head_dim), *options)

    @property
    def cached_layers(self) -> int:
        """The number of layers with index keys."""
        return sum(layer is not None for layer in self.layers)


class IndexKeys:
    """The index keys of a model in a group of the cache, and their operations.

    Args:
        shape: The index keys of the model.
        rows: The parameters of the rows that are attended to.
        keys: The parameters of the group of index keys.
        target: The target of the kernels, as in ``jit``.

    Raises:
        ValueError: The kernels do not support these sizes.
    """

    def __init__(
        self, shape: IndexShape, rows: KVCacheParams, keys: KVCacheParams, target: str
    ) -> None:
        self.shape = shape
        self._rows, self._keys, self._target = rows, keys, target
        self._make(None)

    def __deepcopy__(self, memo: dict[int, Any]) -> IndexKeys:
        return self

    def choose(
        self, inputs: StepInputs, layer: int, q: Any, keys: Any, weights: Any
    ) -> Any:
        """Appends keys to a layer, and chooses the tokens of each new token.

        Args:
            inputs: The inputs of the step.
            layer: The layer of the model.
            q: The index queries, [total, heads, head_dim].
            keys: The new keys, [total, 1, head_dim].
            weights: The factors of heads, [total, heads]; None for blocks.

        Returns:
            The slots of the chosen tokens, int32 [total, 1 or heads, n].
        """
        number, block = self.shape.layers[layer], self.shape.block
        assert number is not None
        group, dtype = inputs.groups[1], name_dtype(keys)
        ops.append(self._keys, self._target, dtype)(group, number, keys)
        columns = inputs.max_total_length
        if block is None:
            scores = q.new_empty(len(q), columns, dtype=torch.float32)
            slots = scores.new_empty(len(q), self.shape.chosen, dtype=torch.int32)
            choose = self._make(dtype)[0]
            choose(group, number, q, inputs, weights=weights, scores=scores, out=slots)
            return slots[:, None, :columns].contiguous()
        score, choose = self._make(dtype)
        heads, chosen = self.shape.heads, self.shape.chosen * block
        scores = q.new_empty(len(q), heads, -(-columns // block), dtype=torch.float32)
        slots = scores.new_empty(len(q), heads, chosen, dtype=torch.int32)
        score(group, number, q, out=scores)
        choose(inputs, scores, out=slots)
        return slots[..., :columns].contiguous()

    def _make(self, dtype: str | None) -> tuple[Any, ...]:
        """The operations for queries of a type."""
        shape, target = self.shape, self._target
        if shape.block is None:
            both = ops.index_rows(
                self._keys,
                shape.heads,
                self._rows,
                shape.chosen,
                relu=True,
                weights=True,
                dtype=dtype,
                target=target,
            )
            return (both,)
        score = ops.index_scores(
            self._keys, shape.heads, block=shape.block, dtype=dtype, target=target
        )
        choose = ops.top_rows(
            self._rows,
            shape.chosen,
            width=shape.block,
            expand=True,
            last=shape.last,
            target=target,
        )
        return score, choose


# --- Modules of models ------------------------------------------------------------

INDEXERS = ("Indexer",)
"""The ends of the names of indexers, whose ``forward`` is one of these functions."""


def choose_tokens(
    module: Any,
    hidden_states: Any,
    q_resid: Any,
    position_embeddings: Any,
    past_key_values: Any,
    **_: Any,
) -> Any:
    """The ``forward`` of an indexer of tokens with a ``PagedCache``.

    Returns the slots of the chosen tokens, which the model passes to the attention.
    """
    kind, norm, rope = module.config.model_type, module.k_norm, module.qk_rope_head_dim
    q = module.wq_b(q_resid).unflatten(-1, (module.n_heads, module.head_dim))
    keys = module.wk(hidden_states).to(norm.weight.dtype)
    keys = norm(keys).to(hidden_states.dtype)[:, :, None]
    name = "apply_rotary_pos_emb" + ("_interleave" if kind == "glm_moe_dsa" else "")
    turned = slice(-rope, None) if kind == "hy_v4" else slice(rope)
    rotate = find_function(module, name)
    parts = rotate(q[..., turned], keys[..., turned], *position_embeddings, unsqueeze_dim=2)
    for rows, part in zip((q, keys), parts, strict=True):
        rows[..., turned] = part
    projection = module.weights_proj
    weights = projection(hidden_states.to(projection.weight.dtype)).float()
    weights = weights * (module.n_heads**-0.5 * module.softmax_scale)
    return past_key_values.choose(module.layer_idx, q, keys, weights)


def choose_blocks(
    module: Any,
    hidden_states: Any,
    position_embeddings: Any,
    past_key_values: Any,
    **_: Any,
) -> Any:
    """The ``forward`` of an indexer of blocks with a ``PagedCache``.

    Returns the slots of the tokens of chosen blocks, as ``choose_tokens``.
    """
    size = module.head_dim
    q = module.q_norm(module.q_proj(hidden_states).unflatten(-1, (-1, size)))
    keys = module.k_norm(module.k_proj(hidden_states).unflatten(-1, (1, size)))
    rotate = find_function(module, "apply_rotary_pos_emb")
    ropes = (each[..., :size] for each in position_embeddings)
    q, keys = rotate(q.transpose(1, 2), keys.transpose(1, 2), *ropes)
    layer = module.layer_idx
    return past_key_values.choose(layer, q.transpose(1, 2), keys.transpose(1, 2), None)


def name_dtype(rows: Any) -> str:
    """The name of the dtype of a tensor, as operations have it."""
    return str(rows.dtype).removeprefix("torch.")


def find_function(module: Any, name: str) -> Any:
    """A function of the file of a module's class."""
    return getattr(sys.modules[type(module).__module__], name)
