"""The processes of disaggregated.py: each has a model, a paged cache, and NIXL.

A worker gets commands and sends results as tuples over a pipe. It never waits for
another worker: transfers progress between the steps of the model.
"""

import contextlib
import os
from collections import deque
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import NoReturn

# Several processes share the processors.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import kvcache
import numpy as np
from kvcache import events, transfer

from transformer import Sizes, Transformer, rope_table

SEED = 2026


@dataclass(frozen=True)
class Plan:
    """The common configuration of all workers."""

    sizes: Sizes
    page_size: int
    pages: int
    batch_size: int
    longest: int
    lease_seconds: float = 60.0
    publishes: bool = False  # whether prefill workers keep prefixes, and say which


class Worker:
    """A model that computes with the pages of a cache."""

    def __init__(
        self,
        name: str,
        plan: Plan,
        pipe: Connection,
        publisher: events.Publisher | None = None,
    ) -> None:
        sizes = plan.sizes
        params = kvcache.KVCacheParams(
            "f32",
            sizes.kv_heads,
            sizes.head_size,
            page_size=plan.page_size,
            total_num_layers=sizes.layers,
            enable_prefix_caching=plan.publishes,
        )
        self.plan = plan
        self.pipe = pipe
        self.cache = kvcache.PagedKVCacheManager(
            params,
            max_batch_size=plan.batch_size,
            max_seq_len=plan.longest,
            num_pages=plan.pages,
            events=publisher,
        )
        self.transport = transfer.NIXLTransport(name)
        self._model = Transformer(sizes, SEED)
        self._append = kvcache.ops.append(
            params, rope=sizes.head_size, query_heads=sizes.query_heads
        )
        self._attend = kvcache.ops.attention(params, query_heads=sizes.query_heads)
        self._table = rope_table(plan.longest, sizes.head_size)

    def compute(self, requests: list[str]) -> np.ndarray:
        """Processes the pending tokens of some sequences; returns their next tokens."""
        inputs = self.cache.inputs(requests)

        def attention(
            layer: int, queries: np.ndarray, keys: np.ndarray, values: np.ndarray
        ) -> np.ndarray:
            self._append(inputs, layer, keys, values, queries, rope=self._table)
            out = np.empty_like(queries)
            scale = self.plan.sizes.head_size**-0.5
            self._attend(inputs, layer, queries, out=out, scale=scale)
            return out

        logits = self._model.logits(inputs.tokens, attention)
        self.cache.step(requests)
        last = inputs.row_offsets[1:].astype(np.int64) - 1
        return logits[last].argmax(axis=-1)

    def run(self) -> NoReturn:
        """Works until the pipe is closed, which raises."""
        while True:
            while self.pipe.poll(0 if self.is_busy else 1):
                kind, *arguments = self.pipe.recv()
                getattr(self, f"do_{kind}")(*arguments)
            self.work()

    @property
    def is_busy(self) -> bool:
        raise NotImplementedError

    def work(self) -> None:
        raise NotImplementedError


class Prefill(Worker):
    """Processes prompts, and lends their pages."""

    def __init__(self, name: str, plan: Plan, pipe: Connection) -> None:
        publisher = None
        if plan.publishes:
            publisher = events.Publisher("tcp://127.0.0.1:*", replay="tcp://127.0.0.1:*")
        super().__init__(name, plan, pipe, publisher)
        if publisher:
            pipe.send(("publishes", name, publisher.endpoint, publisher.replay))
        self._waiting: deque[tuple[str, np.ndarray]] = deque()
        self._leases: dict[str, kvcache.Lease] = {}

    def do_prefill(self, request: str, tokens: np.ndarray) -> None:
        self._waiting.append((request, tokens))

    def do_end(self, request: str) -> None:
        lease = self._leases.pop(request, None)
        self.pipe.send(("ended", request, lease is not None and lease.end()))

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    def work(self) -> None:
        if not self._waiting or not self.cache.can_claim(self._waiting[0][1]):
            return
        request, tokens = self._waiting.popleft()
        found = self.cache.claim(request, tokens)
        if self.plan.publishes:
            self.pipe.send(("found", request, found, len(tokens)))
        (token,) = self.compute([request])
        seconds = self.plan.lease_seconds
        lease = self._leases[request] = self.cache.export(request, seconds=seconds)
        self.cache.release(request)  # the lease has the pages
        message = transfer.offer(self.cache, lease, self.transport)
        self.pipe.send(("offer", request, message, int(token)))


@dataclass
class Arrival:
    """A sequence in transfer, and its next token."""

    request: str
    message: bytes
    token: int
    remaining: int
    moved: transfer.Transfer | None = None
    has_arrived: bool = False


class Decode(Worker):
    """Fetches the pages of prompts, and generates tokens."""

    def __init__(self, name: str, plan: Plan, pipe: Connection) -> None:
        super().__init__(name, plan, pipe)
        self._arrivals: dict[str, Arrival] = {}
        self._remaining: dict[str, int] = {}
        self._next: dict[str, int] = {}

    def do_decode(
        self, request: str, message: bytes, token: int, remaining: int
    ) -> None:
        if request not in self._arrivals and request not in self.cache:  # otherwise repeated
            self._arrivals[request] = Arrival(request, message, token, remaining)

    def do_ended(self, request: str, was_held: bool) -> None:
        arrival = self._arrivals.pop(request, None)
        if arrival is None:  # sent twice
            return
        assert arrival.moved
        try:
            arrival.moved.finish(was_held)
        except transfer.TransferError as error:
            self.pipe.send(("lost", request, str(error)))
            return
        self._remaining[request] = arrival.remaining
        self._next[request] = arrival.token
        self.pipe.send(("here", request, arrival.moved.bytes))

    def do_lose(self, request: str) -> None:
        """Cancels the transfer of a sequence: its prefill worker has ended."""
        if arrival := self._arrivals.pop(request, None):
            if arrival.moved:
                arrival.moved.cancel()
            self.pipe.send(("lost", request, "the prefill worker is gone"))

    @property
    def is_busy(self) -> bool:
        return bool(self._arrivals or self._remaining)

    def work(self) -> None:
        for arrival in list(self._arrivals.values()):
            try:
                self._advance(arrival)
            except transfer.TransferError as error:
                del self._arrivals[arrival.request]
                self.pipe.send(("lost", arrival.request, str(error)))
        self._generate()

    def _advance(self, arrival: Arrival) -> None:
        if arrival.moved is None:
            tokens = len(transfer.Offer.from_bytes(arrival.message).tokens)
            # Room for later tokens, so that no sequence has to stop.
            own = -(-(tokens + arrival.remaining) // self.plan.page_size)
            if self._count_free() < own:
                return
            arrival.moved = transfer.fetch(
                self.cache, arrival.message, self.transport, request=arrival.request
            )
        elif not arrival.has_arrived and arrival.moved.poll():
            arrival.has_arrived = True
            self.pipe.send(("arrived", arrival.request))

    def _count_free(self) -> int:
        """Counts free pages that no sequence will need."""
        growing = [len(self.cache.tokens(r)) + n for r, n in self._remaining.items()]
        growing += [
            len(a.moved.offer.tokens) + a.remaining
            for a in self._arrivals.values()
            if a.moved
        ]
        promised = sum(-(-tokens // self.plan.page_size) for tokens in growing)
        return self.plan.pages - promised

    def _generate(self) -> None:
        batch = list(self._remaining)[: self.plan.batch_size]
        if not batch:
            return
        self.cache.grow_batch(batch, [[self._next[request]] for request in batch])
        for request, token in zip(batch, self.compute(batch), strict=True):
            self._next[request] = int(token)
            self._remaining[request] -= 1
            self.pipe.send(("token", request, int(token)))
            if not self._remaining[request]:
                del self._remaining[request]
                self.cache.release(request)


def run(kind: str, name: str, plan: Plan, pipe: Connection) -> None:
    """The main function of a process; ``kind`` is ``"prefill"`` or ``"decode"``."""
    with contextlib.suppress(EOFError, ConnectionError):  # the router has closed the pipe
        {"prefill": Prefill, "decode": Decode}[kind](name, plan, pipe).run()
