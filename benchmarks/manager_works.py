"""The histories by which page managers are timed, in milliseconds of CPU time: equal for each."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np

PAGE_SIZE = 16
MAX_SEQ_LEN = 131_072
CONTEXT = 4_000
CACHED = 10_000
LONG = 32_768

Times = dict[str, list[float]]


class Cache(Protocol):
    """A page manager with prefix caching, with pages of ``PAGE_SIZE`` tokens."""

    def claim(self, name: str, tokens: np.ndarray) -> None:
        """Gives a new sequence pages for its tokens, from the ids on."""

    def finish(self, names: list[str]) -> None:
        """Says that the pending tokens of sequences are in the cache."""

    def release(self, name: str) -> None: ...

    def decode(self, names: list[str], tokens: np.ndarray) -> None:
        """A step of a batch: a token more for each, and the table of pages for kernels."""


def measure(make: Callable[[int], Cache], batches: list[int], runs: int) -> Times:
    """The times of each work.

    Args:
        make: Makes a cache of so many pages.
        batches: Sequences of a decode step.
    """
    times = {name_decode(batch): decode(make, batch, runs) for batch in batches}
    times["claim among 10,000 prompts of a page"] = claim(make, 0, runs)
    times["the same, after a prompt of the system"] = claim(make, 512, runs)
    cold, again = claim_long(make, runs)
    return times | {"claim of 32,768 tokens": cold, "the same, found in the cache": again}


def name_decode(batch: int) -> str:
    return f"decode step of {batch:,} sequences"


def timed(call: Callable[..., None], *arguments: object) -> float:
    start = time.process_time()
    call(*arguments)
    return (time.process_time() - start) * 1e3


def draw(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.integers(0, 32_000, count)


def decode(make: Callable[[int], Cache], batch: int, runs: int) -> list[float]:
    """Steps of sequences that reach the end of a page at different times."""
    rng = np.random.default_rng(0)
    cache = make(batch * (-(-(CONTEXT + PAGE_SIZE + runs) // PAGE_SIZE) + 1))
    names = [str(i) for i in range(batch)]
    for i, name in enumerate(names):
        cache.claim(name, draw(rng, CONTEXT + i % PAGE_SIZE))
    for start in range(0, batch, 256):
        cache.finish(names[start : start + 256])
    return [timed(cache.decode, names, draw(rng, batch)) for _ in range(runs + 3)][3:]


def claim(make: Callable[[int], Cache], common: int, runs: int) -> list[float]:
    """Claims of prompts that differ in the page after their first ``common`` tokens."""
    rng = np.random.default_rng(0)
    cache = make(CACHED + 256)
    system = draw(rng, common)

    def prompt() -> np.ndarray:
        return np.concatenate([system, draw(rng, PAGE_SIZE + 1)])

    for i in range(CACHED):
        cache.claim(name := f"cached {i}", prompt())
        cache.finish([name])
        cache.release(name)
    times = []
    for i in range(runs):
        times.append(timed(cache.claim, name := str(i), prompt()))
        cache.release(name)
    return times


def claim_long(make: Callable[[int], Cache], runs: int) -> tuple[list[float], list[float]]:
    """Claims of a long prompt, of which nothing is in the cache, and all of it."""
    rng = np.random.default_rng(0)
    cold, again = [], []
    for _ in range(max(runs // 8, 3)):
        cache = make(LONG // PAGE_SIZE + 16)
        prompt = draw(rng, LONG)
        cold.append(timed(cache.claim, "cold", prompt))
        cache.finish(["cold"])
        again.append(timed(cache.claim, "again", prompt))
    return cold, again
