"""The Llama of random weights that the suite generates tokens with, and its prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Workload:
    """The model and the prompts; ``rounds`` are those that are timed."""

    layers: int = 8
    hidden: int = 2048
    heads: tuple[int, int] = (16, 4)
    batches: tuple[int, ...] = (1, 16, 64)
    prompt: int = 512
    new: int = 64
    rounds: int = 5


def choose_device(target: str) -> str:
    return "cuda" if target.startswith("cuda") else "cpu"


def make_config(work: Workload, **options: Any) -> Any:
    """Makes the configuration for transformers."""
    from transformers import LlamaConfig

    heads, kv_heads = work.heads
    return LlamaConfig(
        vocab_size=1000, hidden_size=work.hidden, intermediate_size=3 * work.hidden, num_hidden_layers=work.layers,
        num_attention_heads=heads, num_key_value_heads=kv_heads, max_position_embeddings=work.prompt + work.new,
        pad_token_id=0, eos_token_id=None, bos_token_id=1, tie_word_embeddings=False, **options,
    )  # fmt: skip


def count_equal(*runs: Sequence[Sequence[int]]) -> int:
    """The number of first tokens that are equal in all rows of all runs."""
    columns = zip(*(list(zip(*rows)) for rows in runs))
    return next((i for i, column in enumerate(columns) if len(set(column)) > 1), len(runs[0][0])) if runs else 0
