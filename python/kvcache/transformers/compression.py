# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention to a window of tokens and to compressed entries, as in DeepSeek V4."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from .. import ops
from ..cache.params import KVCacheParams
from ..pages.inputs import StepInputs
from ..pages.memory import Memory
from .attention import Call
from .entries import HEAVY, SPARSE, EntryShape, Section, StateRings, TokenPlaces
from .indexing import find_function, name_dtype


@dataclass
class EntryStep:
    """The inputs of a step for each section of its pages.

    Attributes:
        pages: The inputs of each section, by name.
        states: The inputs of the states of each section with entries, by name.
        kept: The slots of new states, by name; -1 for those that no later entry needs.
        closed: The slots of new entries, by name; -1 for tokens that close no block.
        lengths: The tokens of each sequence before the step, int32 [batch].
        longest: The tokens of the longest sequence after the step.
        places: The places of the new tokens.
        entries: The rows of the entries that each token sees, int32 [total, n], for the
            attention of the layer whose entries have been compressed.
        all_entries: The rows for layers without an indexer; None before the first one.
    """

    pages: dict[str, StepInputs]
    states: dict[str, StepInputs]
    kept: dict[str, Any]
    closed: dict[str, Any]
    lengths: Any
    longest: int
    places: TokenPlaces
    entries: Any = None
    all_entries: Any = field(default=None, repr=False)


COMPRESSORS = ("CSACompressor", "HCACompressor")
"""The ends of the names of compressors, whose ``forward`` is ``add_entries``."""


class Compression:
    """The pages and states of a model with compressed entries, and their operations.

    Args:
        shape: The entries of the model.
        params: The parameters of the pages.
        rows: The most rows of a batch.
        memory: The memory of the cache.
        device: The device of this memory.
        target: The target of the kernels, as in ``jit``.
    """

    def __init__(
        self,
        shape: EntryShape,
        params: KVCacheParams,
        rows: int,
        memory: Memory,
        device: Any,
        target: str,
    ) -> None:
        self.shape, self._memory, self._target = shape, memory, target
        dtype = str(params.dtype_shorthand)
        self._sections = shape.make_sections(dtype, int(params.page_size or 0))
        self._rings = {
            name: StateRings(
                section.layers, section.width, section.head_dim, name != HEAVY, rows, device
            )
            for name, section in self._sections.items()
            if section.width > 1
        }

    def __deepcopy__(self, memo: dict[int, Any]) -> Compression:
        """Copies the states; operations and parameters do not change."""
        result = copy.copy(self)
        result._rings = copy.deepcopy(self._rings, memo)
        return result

    def select(self, rows: Sequence[int]) -> None:
        """Makes the first rows of the batch continue those of some rows."""
        for ring in self._rings.values():
            ring.select(rows)

    def begin(self, step: StepInputs, rows: np.ndarray) -> EntryStep:
        """Begins a step.

        Args:
            step: The inputs of the pages.
            rows: The row of the batch of each sequence.
        """
        places = TokenPlaces.of(step, self._memory)
        pages = {
            name: self._make_inputs(step, section)
            for name, section in self._sections.items()
        }
        states, kept, closed = {}, {}, {}
        for name, ring in self._rings.items():
            states[name], kept[name] = ring.begin(step, rows, places, self._memory)
            closed[name] = self._find_closed(step, self._sections[name], places)
        lengths = step.lengths.view(torch.int32)
        longest = step.max_total_length
        return EntryStep(pages, states, kept, closed, lengths, longest, places)

    def _make_inputs(self, step: StepInputs, section: Section) -> StepInputs:
        """The inputs of a section, whose lengths count tokens only for the window."""
        lengths = step.lengths.view(torch.int32)
        is_window = section.width == 1
        return StepInputs.of(
            keys=section.view(step.blocks[0]),
            lengths=lengths if is_window else torch.zeros_like(lengths),
            lut=step.lut.view(torch.int32),
            row_offsets=step.placed_offsets.view(torch.int32),
            max_seq_length=step.max_seq_length,
            max_cache_length=step.max_cache_length if is_window else 0,
        )

    def _find_closed(
        self, step: StepInputs, section: Section, places: TokenPlaces
    ) -> Any:
        """The slot of the entry that each token closes, or -1, int32 [total]."""
        position, width = places.position, section.width
        slots = section.find_slots(step, position // width, places.sequence)
        return torch.where((position + 1) % width == 0, slots, -1).int()

    # --- A layer ------------------------------------------------------------------

    def compress(
        self,
        step: EntryStep,
        layer: int,
        module: Any,
        hidden: Any,
        q_residual: Any,
        positions: Any,
    ) -> None:
        """Adds the entries of a layer, and chooses those that each token attends to.

        Args:
            step: The step of the new tokens.
            layer: The layer of the model.
            module: The compressor of the layer.
            hidden: The hidden states of the new tokens, [total, size].
            q_residual: The latent queries, [total, rank].
            positions: The positions of the tokens for ropes, [total].
        """
        kind, number = self.shape.kinds[layer], self.shape.numbers[layer]
        self._add_entries(step, kind, number, module, hidden, positions)
        if kind == SPARSE:
            indexer = module.indexer
            self._add_entries(step, "index", number, indexer, hidden, positions)
            step.entries = self._choose(
                step, number, indexer, hidden, q_residual, positions
            )
            return
        if step.all_entries is None:
            step.all_entries = self._find_all(step)
        step.entries = step.all_entries

    def _add_entries(
        self,
        step: EntryStep,
        name: str,
        number: int,
        module: Any,
        hidden: Any,
        positions: Any,
    ) -> None:
        """Stores the states of new tokens, and the entries of the groups they close."""
        section, ring, target = self._sections[name], self._rings[name], self._target
        places, states = step.places.position % section.width, step.states[name]
        gates = (module.gate_proj(hidden) + module.position_bias[places]).float()
        new = torch.cat([module.kv_proj(hidden).float(), gates], dim=-1)[:, None]
        pooled = new.new_zeros(len(new), 1, section.head_dim)
        pool = ops.pool(
            ring.params,
            section.width,
            kind="gated",
            overlap=ring.overlap,
            target=target,
            separate=True,
        )
        pool(states, number, out=pooled, new=new)
        keep = ops.append(ring.params, target, slots="i32", separate=True)
        keep(states, number, new, slots=step.kept[name])
        entries = module.kv_norm(pooled[None, :, 0].to(hidden.dtype))
        first = positions - (section.width - 1)
        entries = _rotate(module, entries[:, None], first)[0, 0, :, None].contiguous()
        dtype = name_dtype(entries)
        store = ops.append(section.params, target, dtype, slots="i32", separate=True)
        store(step.pages[name], number, entries, slots=step.closed[name])

    def _choose(
        self,
        step: EntryStep,
        number: int,
        module: Any,
        hidden: Any,
        q_residual: Any,
        positions: Any,
    ) -> Any:
        """The rows of the entries that an indexer chooses for each token."""
        index, entries = self._sections["index"], self._sections[SPARSE]
        q = module.q_b_proj(q_residual).unflatten(-1, (-1, module.head_dim))
        q = _rotate(module, q.transpose(0, 1)[None], positions)[0].transpose(0, 1)
        scorer, heads = module.scorer, q.shape[1]
        scale = scorer.weights_scaling * scorer.softmax_scale
        weights = (scorer.weights_proj(hidden).float() * scale).contiguous()
        choose = ops.index_rows(
            index.params,
            heads,
            entries.params,
            self.shape.chosen,
            relu=True,
            width=index.width,
            weights=True,
            whole=True,
            dtype=name_dtype(q),
            target=self._target,
            separate=True,
        )
        columns = max(step.longest // index.width, 1)
        scores = weights.new_empty(len(q), columns)
        rows = scores.new_empty(len(q), self.shape.chosen, dtype=torch.int32)
        choose(
            step.pages["index"],
            number,
            q.contiguous(),
            step.pages[SPARSE],
            weights=weights,
            scores=scores,
            out=rows,
            lengths=step.lengths,
        )
        return rows

    def _find_all(self, step: EntryStep) -> Any:
        """The rows of all closed entries that each token sees."""
        section = self._sections[HEAVY]
        position, sequence = step.places.position[:, None], step.places.sequence[:, None]
        entries = max(step.longest // section.width, 1)
        numbers = torch.arange(entries, device=position.device)
        slots = section.find_slots(step.pages["window"], numbers, sequence)
        is_closed = numbers < (position + 1) // section.width
        return torch.where(is_closed, slots, -1).int().contiguous()

    def attend(
        self, step: EntryStep, layer: int, latent: Any, query: Any, call: Call
    ) -> Any:
        """Appends the latent rows of a layer, and attends: [total, heads, head_dim].

        Args:
            step: The step of the new tokens.
            layer: The layer of the model.
            latent: The new rows, [total, 1, head_dim].
            query: The queries, [total, heads, head_dim].
            call: The other arguments.
        """
        dtype, target = name_dtype(query), self._target
        window, inputs = self._sections["window"].params, step.pages["window"]
        ops.append(window, target, dtype, separate=True)(inputs, layer, latent)
        heads, size = query.shape[1:]
        common = {"value_dim": size, "dtype": dtype, "target": target, "separate": True}
        attend = ops.attention(
            window, heads, window=call.window, sinks=call.sinks is not None, **common
        )
        outs, lses = query.new_empty(2, *query.shape), _make_lses(2, query)
        given = {"scale": call.scale, "sinks": call.sinks}
        attend(inputs, layer, query, out=outs[0], lse=lses[0], **given)
        kind = self.shape.kinds[layer]
        if kind not in self._sections:
            return outs[0]
        rows, step.entries = step.entries, None
        attend = ops.attention(self._sections[kind].params, heads, rows=True, **common)
        given = {"scale": call.scale, "rows": rows}
        number = self.shape.numbers[layer]
        attend(step.pages[kind], number, query, out=outs[1], lse=lses[1], **given)
        out = torch.empty_like(query)
        ops.merge_states(heads, size, target, dtype)(outs, lses, out, _make_lses(1, query)[0])
        return out


def add_entries(
    module: Any,
    hidden_states: Any,
    q_residual: Any,
    position_ids: Any,
    past_key_values: Any,
    layer_idx: int,
) -> tuple[Any, None]:
    """The ``forward`` of a compressor with a ``PagedCache``.

    The entries are in pages, where the attention reads them. Returns none to the model.
    """
    positions = position_ids.expand(hidden_states.shape[:2])
    past_key_values.compress(layer_idx, module, hidden_states, q_residual, positions)
    return hidden_states.new_zeros(len(hidden_states), 1, 0, module.head_dim), None


def _make_lses(splits: int, query: Any) -> Any:
    return query.new_empty(splits, *query.shape[:2], dtype=torch.float32)


def _rotate(module: Any, rows: Any, positions: Any) -> Any:
    """Applies the rope of a compressor to rows [1, heads, total, dim]."""
    kind = module.rope_layer_type
    cos, sin = module.rotary_emb(rows, position_ids=positions[None], layer_type=kind)
    return find_function(module, "apply_rotary_pos_emb")(rows, cos, sin)
