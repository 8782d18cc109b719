# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The metadata of a step, which the layers of a group share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from vllm.v1.attention.backend import (
    AttentionCGSupport,
    AttentionMetadata,
    AttentionMetadataBuilder,
    CommonAttentionMetadata,
)

from ..pages.inputs import StepInputs
from ..torch.workspaces import Workspaces
from .formats import LayerCache


@dataclass
class StepMetadata(AttentionMetadata):
    """The metadata of a step.

    Attributes:
        num_tokens: New tokens, without padding.
        max_query_len: The most new tokens of a sequence.
        max_seq_len: An upper bound of the tokens of a sequence.
        query_start_loc: The index of each sequence's first new token, int32
            [sequences + 1].
        seq_lens: Tokens of each sequence after the step, int32 [sequences].
        block_table: The pages of each sequence, int32 [sequences, columns].
        causal: Whether a new token sees no later tokens.
        workspaces: The workspaces of the builder.
    """

    num_tokens: int
    max_query_len: int
    max_seq_len: int
    query_start_loc: Any
    seq_lens: Any
    block_table: Any
    causal: bool
    workspaces: Workspaces
    _inputs: StepInputs | None = None

    @classmethod
    def of(cls, common: CommonAttentionMetadata, workspaces: Workspaces) -> StepMetadata:
        """The metadata of vLLM's step. Raises ``NotImplementedError`` for a causal flag
        of each sequence.
        """
        if not isinstance(common.causal, bool):
            raise NotImplementedError(
                "kvcache expects 'causal' to be one flag of a step, got a "
                f"{type(common.causal).__name__}"
            )
        batch = common.num_reqs
        return cls(
            num_tokens=common.num_actual_tokens,
            max_query_len=common.max_query_len,
            max_seq_len=common.max_seq_len,
            query_start_loc=common.query_start_loc[: batch + 1],
            seq_lens=common.seq_lens[:batch],
            block_table=common.block_table_tensor[:batch],
            causal=common.causal,
            workspaces=workspaces,
        )

    @classmethod
    def single(cls, workspaces: Workspaces, device: Any) -> StepMetadata:
        """The metadata of one token, on page 0."""
        one = torch.ones(1, dtype=torch.int32, device=device)
        return cls(
            num_tokens=1,
            max_query_len=1,
            max_seq_len=1,
            query_start_loc=row_ranges(device, _LEAST_ROWS)[1],
            seq_lens=one,
            block_table=torch.zeros_like(one)[None],
            causal=True,
            workspaces=workspaces,
        )

    @property
    def batch(self) -> int:
        return int(self.seq_lens.shape[0])

    def inputs(self, cache: LayerCache) -> StepInputs:
        """The inputs of attention to a layer: lengths are given as ``kv_lengths``."""
        if self._inputs is None:
            self._inputs = StepInputs.of(
                blocks=_make_blocks(cache.blocks.device),
                lengths=self.seq_lens,
                lut=self.block_table,
                row_offsets=self.query_start_loc,
                max_seq_length=self.max_query_len,
                max_cache_length=self.max_seq_len,
            )
        return _with_cache(self._inputs, cache)


class StepBuilder(AttentionMetadataBuilder[StepMetadata]):
    """The builder of the metadata of a group of layers."""

    _cudagraph_support: ClassVar[AttentionCGSupport] = AttentionCGSupport.ALWAYS

    def __init__(
        self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: Any
    ) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        scheduler = vllm_config.scheduler_config
        self.workspaces = Workspaces(scheduler.max_num_seqs, device)
        allocate_ranges(device, scheduler.max_num_batched_tokens)

    def build(
        self,
        common_prefix_len: int,
        common_attn_metadata: CommonAttentionMetadata,
        fast_build: bool = False,
    ) -> StepMetadata:
        return StepMetadata.of(common_attn_metadata, self.workspaces)

    def build_for_cudagraph_capture(
        self, common_attn_metadata: CommonAttentionMetadata
    ) -> StepMetadata:
        """Builds metadata, after each layer ran a step."""
        layers = self.vllm_config.compilation_config.static_forward_context
        for name in self.layer_names:
            layers[name].impl.prepare(layers[name], self.workspaces)
        return self.build(0, common_attn_metadata)


# --- Inputs of appends -------------------------------------------------------------------

_LEAST_ROWS = 8192


def _round_rows(rows: int) -> int:
    return max(_LEAST_ROWS, 1 << (rows - 1).bit_length())


@functools.cache
def row_ranges(device: Any, most: int) -> Any:
    """The pairs (0, n) of all n up to ``most``, int32 [most + 1, 2].

    A step takes one of them as its row offsets: nothing is copied while a graph is
    captured.
    """
    ends = torch.arange(most + 1, dtype=torch.int32)
    return torch.stack([torch.zeros_like(ends), ends], 1).to(device)


def allocate_ranges(device: Any, rows: int) -> None:
    """Allocates what appends of up to ``rows`` rows read."""
    _make_zero(device)
    most = _LEAST_ROWS
    while row_ranges(device, most).shape[0] <= rows:
        most *= 2


@functools.cache
def _make_zero(device: Any) -> Any:
    return torch.zeros((1, 1), dtype=torch.int32, device=device)


@functools.cache
def _make_blocks(device: Any) -> Any:
    """Makes empty blocks, in the place of those of a layer."""
    return torch.empty((0,) * 6, device=device)


@functools.lru_cache(maxsize=8192)
def _append_inputs(device: Any, rows: int) -> StepInputs:
    zero = _make_zero(device)
    return StepInputs.of(
        blocks=_make_blocks(device),
        lengths=zero[0],
        lut=zero,
        row_offsets=row_ranges(device, _round_rows(rows))[rows],
        max_seq_length=rows,
        max_cache_length=0,
    )


def cache_append_inputs(cache: LayerCache) -> Callable[[int], StepInputs]:
    """A function that returns the inputs of an append of some rows with slots.

    They are one sequence without a table. Decode steps often have equal rows.
    """
    blocks = cache.blocks

    @functools.lru_cache(maxsize=256)
    def make(rows: int) -> StepInputs:
        return _with_cache(_append_inputs(blocks.device, rows), cache)

    return make


def _with_cache(inputs: StepInputs, cache: LayerCache) -> StepInputs:
    scales = () if cache.scales is None else (cache.scales,)
    if cache.ropes is None:
        return replace(inputs, blocks=(cache.blocks,), scales=scales)
    return replace(
        inputs,
        blocks=(),
        scales=(),
        key_blocks=(cache.blocks,),
        key_scales=scales,
        value_blocks=(cache.ropes,),
    )
