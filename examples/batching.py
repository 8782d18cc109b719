"""Continuous batching: chooses the requests of each step by the free pages.

A request waits until there is room for its prompt, then is in every step until it has
all its tokens. If pages run out, the latest request makes room: its pages move to the
host, or, if that is full as well, it restarts.
"""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import kvcache
import numpy as np


@dataclass
class Request:
    """A prompt, the number of tokens to generate, and the tokens so far."""

    name: str
    prompt: np.ndarray
    new_tokens: int
    generated: list[int] = field(default_factory=list)

    @property
    def tokens(self) -> np.ndarray:
        """The tokens so far with the prompt, [tokens]."""
        return np.concatenate([self.prompt, np.array(self.generated, np.int64)])

    @property
    def is_done(self) -> bool:
        return len(self.generated) == self.new_tokens


class Batcher:
    """Distributes the pages of a cache among requests.

    Attributes:
        counts: The numbers of events: "steps"; "prompt tokens" that were claimed,
            "shared tokens" of them; requests "swapped out" and "restarted".

    Args:
        cache: The page manager.
        requests: The requests in the order in which they begin.
        prompt_tokens: The number of new prompt tokens from which on a step takes no
            further prompt.
    """

    def __init__(
        self,
        cache: kvcache.PagedKVCacheManager,
        requests: Iterable[Request],
        prompt_tokens: int,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._cache = cache
        self._prompt_tokens = prompt_tokens
        self._waiting = deque(requests)
        self._swapped: deque[Request] = deque()
        self._running: list[Request] = []

    def next_batch(self) -> list[Request]:
        """The requests of the next step, with pages for their tokens; empty at the end.

        Raises ``kvcache.OutOfPagesError`` if the cache is too small for one request.
        """
        self._resume()
        for request in list(self._running):
            self._grow(request)
        self._admit()
        return list(self._running)

    def finish_step(self, tokens: Iterable[int]) -> None:
        """Adds the next token of each request of the batch."""
        batch = list(self._running)
        self._cache.step([request.name for request in batch])
        self.counts["steps"] += 1
        for request, token in zip(batch, tokens, strict=True):
            request.generated.append(int(token))
            if request.is_done:
                self._cache.release(request.name)
                self._running.remove(request)

    def _resume(self) -> None:
        """Swaps requests in while there is room."""
        while self._swapped:
            try:
                self._cache.swap_in(self._swapped[0].name)
            except kvcache.OutOfPagesError:
                if not self._running:
                    raise
                return
            self._running.append(self._swapped.popleft())

    def _grow(self, request: Request) -> None:
        """Makes room for a request's latest token, or preempts it."""
        while request in self._running:
            try:
                self._cache.grow(request.name, request.generated[-1:])
                return
            except kvcache.OutOfPagesError:
                if len(self._running) == 1:
                    raise
                self._preempt(self._running[-1])

    def _preempt(self, request: Request) -> None:
        self._running.remove(request)
        try:
            self._cache.swap_out(request.name)
        except kvcache.OutOfPagesError:  # the host is full
            self._cache.release(request.name)
            self._waiting.appendleft(request)
            self.counts["restarted"] += 1
        else:
            self._swapped.appendleft(request)
            self.counts["swapped out"] += 1

    def _admit(self) -> None:
        """Begins requests, unless older ones are swapped out."""
        new_tokens = 0
        while self._waiting and not self._swapped:
            is_full = len(self._running) == self._cache.max_batch_size
            if is_full or new_tokens >= self._prompt_tokens:
                return
            request = self._waiting[0]
            try:
                shared = self._cache.claim(request.name, request.tokens)
            except kvcache.OutOfPagesError:
                if not self._running:
                    raise
                return
            self._running.append(self._waiting.popleft())
            new_tokens += len(request.tokens) - shared
            self.counts["prompt tokens"] += len(request.tokens)
            self.counts["shared tokens"] += shared
