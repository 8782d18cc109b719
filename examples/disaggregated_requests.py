"""The requests of disaggregated.py, and their comparison with one process."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from console import progress
from disaggregated_workers import SEED, Plan
from transformer import Transformer, causal_attention


@dataclass
class Request:
    """A prompt, the generated tokens, its workers, and its tokens to compute."""

    name: str
    prompt: np.ndarray
    limit: int
    generated: list[int] = field(default_factory=list)
    prefill: Any = None
    decode: Any = None
    missing: int = 0

    @property
    def tokens(self) -> np.ndarray:
        return np.concatenate([self.prompt, np.array(self.generated, np.int64)])

    @property
    def is_done(self) -> bool:
        return len(self.generated) == self.limit


def make_requests(plan: Plan, count: int) -> list[Request]:
    rng = np.random.default_rng(SEED)
    requests = []
    for i in range(count):
        prompt = rng.integers(
            plan.sizes.vocabulary, size=rng.integers(4, plan.longest // 2)
        )
        limit = int(rng.integers(1, plan.longest // 4))
        requests.append(Request(f"request {i}", prompt, limit))
    return requests


def make_conversations(plan: Plan, count: int) -> list[Request]:
    """Makes prompts that begin with one of some system prompts, and are short after it.

    The system prompts fill one and a half of the caches of a worker.
    """
    rng = np.random.default_rng(SEED)
    size = plan.longest // 2 // plan.page_size * plan.page_size
    most = 3 * plan.pages * plan.page_size // (2 * size)
    systems = rng.integers(plan.sizes.vocabulary, size=(most, size))
    requests = []
    for i in range(count):
        own = rng.integers(plan.sizes.vocabulary, size=rng.integers(1, plan.page_size))
        prompt = np.concatenate([systems[rng.integers(most)], own])
        requests.append(Request(f"request {i}", prompt, int(rng.integers(1, plan.page_size))))
    return requests


def count_right(plan: Plan, requests: list[Request]) -> int:
    """Counts tokens equal to those of the model without a cache."""
    model = Transformer(plan.sizes, SEED)
    attention = causal_attention(lambda x: x)
    same = 0
    for request in progress("comparing", requests):
        tokens = request.tokens[:-1]
        rows = model.logits(tokens, attention)
        wanted = rows[len(request.prompt) - 1 :].argmax(axis=-1)
        same += int((wanted == request.generated).sum())
    return same
