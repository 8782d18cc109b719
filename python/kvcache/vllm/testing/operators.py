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


for _name, _schema, _function in (
    ("init_cpu_memory_env", "(int[] nodes) -> str[]", _init_cpu_memory_env),
    (
        "compute_slot_mapping_kernel_impl",
        "(Tensor query_start_loc, Tensor positions, Tensor block_table, "
        "Tensor(a!) slot_mapping, int block_size) -> ()",
        _compute_slot_mapping,
    ),
):
    _LIBRARY.define(_name + _schema)
    _LIBRARY.impl(_name, _function, "CompositeExplicitAutograd")
