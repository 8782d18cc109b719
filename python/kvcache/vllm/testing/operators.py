# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators of vLLM's build for the CPU that the engine calls, in PyTorch."""

from __future__ import annotations

import torch

_LIBRARY = torch.library.Library("_C", "FRAGMENT")


def _init_cpu_memory_env(nodes: list[int]) -> list[str]:
    """Binds no memory: a test needs none."""
    return []


def _compute_slot_mapping(
    query_start_loc: torch.Tensor,
    positions: torch.Tensor,
    block_table: torch.Tensor,
    slot_mapping: torch.Tensor,
    block_size: int,
) -> None:
    """Writes the slots of new tokens, and -1 for padding."""
    tokens = int(query_start_loc[-1])
    counts = query_start_loc.diff().long()
    rows = torch.arange(len(counts)).repeat_interleave(counts)
    at = positions[:tokens].long()
    pages = block_table[rows, at // block_size].long()
    slot_mapping[:tokens] = pages * block_size + at % block_size
    slot_mapping[tokens:] = -1


def _sample_greedily(
    output: torch.Tensor,
    cu_num_draft_tokens: torch.Tensor,
    draft_token_ids: torch.Tensor,
    target_argmax: torch.Tensor,
    bonus_token_ids: torch.Tensor,
    is_greedy: torch.Tensor | None,
    max_spec_len: int,
) -> None:
    """Writes the model's tokens up to the first draft that differs, and one more."""
    begin = 0
    for row, end in enumerate(cu_num_draft_tokens.tolist()):
        drafts, tokens = draft_token_ids[begin:end], target_argmax[begin:end]
        begin = end
        if is_greedy is not None and not is_greedy[row]:
            continue
        wrong = (drafts != tokens).nonzero()
        accepted = int(wrong[0]) if len(wrong) else len(drafts)
        made = torch.cat([tokens, bonus_token_ids[row].reshape(1)])[: accepted + 1]
        output[row, : len(made)] = made


for _name, _schema, _function in (
    ("init_cpu_memory_env", "(int[] nodes) -> str[]", _init_cpu_memory_env),
    (
        "compute_slot_mapping_kernel_impl",
        "(Tensor query_start_loc, Tensor positions, Tensor block_table, "
        "Tensor(a!) slot_mapping, int block_size) -> ()",
        _compute_slot_mapping,
    ),
    (
        "rejection_greedy_sample_kernel_impl",
        "(Tensor(a!) output, Tensor cu_num_draft_tokens, Tensor draft_token_ids, "
        "Tensor target_argmax, Tensor bonus_token_ids, Tensor? is_greedy, "
        "int max_spec_len) -> ()",
        _sample_greedily,
    ),
):
    _LIBRARY.define(_name + _schema)
    _LIBRARY.impl(_name, _function, "CompositeExplicitAutograd")
