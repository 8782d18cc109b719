#!/usr/bin/env python3
"""Random histories of caches of different formats that send each other sequences.

Each token has a value derived from all before it, which differs by role, layer and head of the
model. A vector is this value times a pattern that all dtypes hold. So the contents of a cache
identify their tokens, in any format, after any number of conversions.

As a program, this runs histories for a number of steps, from a seed on:

  PYTHONPATH=build/python build/venv/bin/python test/python/support/transfer_histories.py 100000 0
"""

import functools
import itertools
import random
from collections import Counter
from dataclasses import dataclass, field

import kvcache
import numpy as np
import pytest
from kvcache import reach, transfer
from long_histories import run_from_command_line

NAMES = itertools.count()
HEADS, LAYERS, SIZE, GROUP = 4, 2, 16, 8
MAX_SEQ_LEN = 24
EIGHTH = np.array([8, -4, 2, -8, 1, 4, -2, -1]) / 8
PATTERN = np.concatenate([EIGHTH, EIGHTH[::-1]])
QUANTIZED = {
    "dtype": "f8E4M3FN",
    "kvcache_quant_config": kvcache.KVCacheQuantizationConfig("f32", GROUP),
}
DTYPES = {"dtype": "f32"}, {"dtype": "bf16"}, QUANTIZED
LAYOUTS = None, "HND", "LBHNC", "LHBNC", "BHLNC"
REACHES = (
    *(reach.full, reach.full, reach.window(1), reach.window(4), reach.window(5, sinks=2)),
    *(reach.window(3, sinks=1), reach.chunk(6)),
)


@dataclass(frozen=True)
class Ends:
    """The caches of a model: their common parameters, and the format of each."""

    formats: tuple = ({}, {})
    num_pages: tuple = (9, 9)
    prefixes: bool = False
    kind: object = reach.full
    common: dict = field(default_factory=dict)

    def make(self, i):
        fields = {"dtype": "bf16", "n_kv_heads": HEADS, "page_size": 4}
        params = kvcache.KVCacheParams(
            head_dim=SIZE,
            total_num_layers=LAYERS,
            enable_prefix_caching=self.prefixes,
            reach=self.kind,
            **{**fields, **self.common, **self.formats[i]},
        )
        return kvcache.PagedKVCacheManager(
            params,
            max_batch_size=8,
            max_seq_len=MAX_SEQ_LEN,
            num_pages=self.num_pages[i],
        )


def draw_ends(seed):
    """Draws the caches of long histories, mostly of unequal formats."""
    draw = random.Random(seed)
    latent = {"is_mla": True, "n_kv_heads": 1}
    common = draw.choice([{}, {}, {}, latent])
    formats = []
    for _ in range(draw.choice((2, 2, 3))):
        layout = draw.choice(LAYOUTS)
        formats.append(
            {
                **draw.choice(DTYPES[:2] if common else DTYPES),
                "page_size": draw.choice((1, 2, 3, 4, 8)),
                "n_devices": 1 if common else draw.choice((1, 1, 2, 4, 8)),
                "layout": layout and kvcache.Layout.from_name(layout),
            }
        )
    if draw.random() < 0.2:
        formats[1] = formats[0]
    counts = [draw.randint(1, 3) * 36 // each["page_size"] + 2 for each in formats]
    return Ends(
        tuple(formats), tuple(counts), draw.random() < 0.7, draw.choice(REACHES), common
    )


# --- Values ---------------------------------------------------------------------------

MODULUS = 199


@functools.lru_cache(maxsize=4096)
def list_values(tokens, heads):
    """The values of tokens: [tokens, roles, layers, heads], exact in bf16."""
    sums, total = [], 7
    for token in tokens:
        total = (total * 1_000_003 + int(token) + 1) % (2**31 - 1)
        sums.append(total)
    places = np.arange(2 * LAYERS * heads).reshape(2, LAYERS, heads) + 3
    sums = np.array(sums, np.int64).reshape(-1, 1, 1, 1)
    return 1 + sums // 7 % MODULUS * places % MODULUS


def list_heads(params, device):
    first = device * params.n_kv_heads // params.n_devices
    return slice(first, first + params.n_kv_heads_per_device)


def write(cache, request, start):
    """Fills a sequence, from a token on."""
    params, tokens = cache.params, tuple(cache.tokens(request).tolist())
    positions = np.arange(start, len(tokens))
    values = list_values(tokens, params.n_kv_heads)[positions]
    table = cache.inputs([request]).lut[0]
    pages, offsets = table[positions // params.page_size], positions % params.page_size
    for device, blocks in enumerate(cache.blocks):
        own = values[:, : blocks.shape[1], :, list_heads(params, device), None]
        if cache.scales:
            cache.scales[device][pages, :, :, offsets] = own
            own = np.ones_like(own)
        blocks[pages, :, :, offsets] = own * PATTERN


def check(cache, requests):
    """Checks that all tokens that later tokens reach are in the cache, on each device."""
    params = cache.params
    states = {state.request: state for state in cache.snapshot().sequences}
    for request in requests:
        state, tokens = states[request], tuple(cache.tokens(request).tolist())
        assert state.length == len(tokens) and not state.pending
        table = state.groups[0] if state.groups else state.pages
        positions = list_reached(params.reach, len(tokens))
        expected = list_values(tokens, params.n_kv_heads)[positions]
        pages = [table[p // params.page_size].index for p in positions]
        offsets = positions % params.page_size
        for device, blocks in enumerate(cache.blocks):
            found = blocks[pages, :, :, offsets].astype(np.float32)
            if cache.scales:
                scales = cache.scales[device][pages, :, :, offsets]
                found = found * scales.repeat(GROUP, -1)
            own = expected[:, : blocks.shape[1], :, list_heads(params, device), None]
            error = np.abs(found - own * PATTERN)
            assert (error <= 1e-3 * own).all(), "other values"


@functools.cache
def list_reached(kind, length):
    reached = [p for p in range(length) if is_reached(kind, length, p)]
    return np.array(reached, np.int64)


def is_reached(kind, length, position):
    """Returns whether a token from ``length`` on reaches another, by brute force."""
    for later in range(length, length + 2 * MAX_SEQ_LEN):
        if kind.kind == "window":
            if later - position < kind.tokens or position < kind.sinks:
                return True
        elif kind.kind == "chunk":
            if later // kind.tokens == position // kind.tokens:
                return True
        else:
            return True
    return False


# --- Histories ------------------------------------------------------------------------


class TransferHistory:
    """Draws operations of some caches, and checks all sequences after a few."""

    ACTIONS = {
        "begin": 4, "grow": 8, "release": 4, "fork": 1, "truncate": 1, "send": 4, "advance": 8,
    }  # fmt: skip
    CHECKED = 4

    def __init__(self, seed, ends):
        self.random = random.Random(seed)
        self.prefixes = ends.prefixes
        self.caches = [ends.make(i) for i in range(len(ends.formats))]
        self.transports = [
            transfer.LocalTransport(f"end {next(NAMES)}", chunk=chunk)
            for chunk in (1 << 24, 3000, 500)[: len(self.caches)]
        ]
        self.live, self.moving = [[] for _ in self.caches], []
        self.events, self.count = Counter(), 0
        self.prompts = [self.random.choices((0, 1), k=MAX_SEQ_LEN) for _ in "12"]

    def run(self, steps):
        names, weights = zip(*self.ACTIONS.items(), strict=True)
        for step, name in enumerate(self.random.choices(names, weights, k=steps)):
            i = self.random.randrange(len(self.caches))
            try:
                getattr(self, name)(i)
            except kvcache.OutOfPagesError:
                assert name in ("begin", "grow")
                self.events["out of pages"] += 1
            if step % self.CHECKED == 0:
                self.check()
        self.check()
        self.end()
        return self.events

    def check(self):
        for cache, requests in zip(self.caches, self.live, strict=True):
            check(cache, requests)

    def end(self):
        """Ends everything, and checks that no page is lost."""
        for *_, lease, moved in self.moving:
            moved.cancel()
            lease.end()
        for cache, requests in zip(self.caches, self.live, strict=True):
            for request in requests:
                cache.release(request)
            assert cache.num_free_pages == cache.num_pages and len(cache) == 0
            cache.reset_prefix_cache()
            assert not cache.snapshot().pages

    def new(self):
        self.count += 1
        return f"r{self.count}"

    def begin(self, i):
        if len(self.live[i]) >= 5:
            return self.release(i)
        request = self.new()
        prompt = self.random.choice(self.prompts)
        tokens = prompt[: self.random.randint(1, MAX_SEQ_LEN - 4)]
        found = self.caches[i].claim(request, tokens)
        self.add(i, request, found)
        self.live[i].append(request)
        self.events["begun by a prefix"] += found > 0

    def add(self, i, request, start):
        write(self.caches[i], request, start)
        self.caches[i].step([request])

    def grow(self, i):
        if not self.live[i]:
            return
        request = self.random.choice(self.live[i])
        length = len(self.caches[i].tokens(request))
        if length < MAX_SEQ_LEN:
            likely = self.prompts[0][length]
            token = self.random.choice((likely, likely, likely, 1 - likely))
            self.caches[i].grow(request, [token])
            self.add(i, request, length)

    def release(self, i):
        if self.live[i]:
            at = self.random.randrange(len(self.live[i]))
            self.caches[i].release(self.live[i].pop(at))

    def fork(self, i):
        if self.live[i] and len(self.live[i]) < 5:
            request = self.new()
            self.caches[i].fork(self.random.choice(self.live[i]), request)
            self.live[i].append(request)

    def truncate(self, i):
        """Truncates to any length; freed tokens can't be reached again."""
        if not self.live[i]:
            return
        request = self.random.choice(self.live[i])
        length = self.random.randint(1, len(self.caches[i].tokens(request)))
        try:
            self.caches[i].truncate(request, length)
            self.events["truncated"] += 1
        except ValueError as error:
            kind = self.caches[i].params.reach.kind
            assert "can't be truncated" in str(error) and kind in ("window", "chunk")
            self.events["not truncated"] += 1

    def send(self, i):
        if not self.live[i]:
            return
        to = self.random.choice([k for k in range(len(self.caches)) if k != i])
        there = self.caches[to]
        lease = self.caches[i].export(self.random.choice(self.live[i]), seconds=1000)
        message = transfer.offer(self.caches[i], lease, self.transports[i])
        name = None if self.prefixes and self.random.random() < 0.3 else self.new()
        options = {"request": name}
        try:
            if self.random.random() < 0.5:
                options = {"reception": there.receive(lease.tokens, name)}
            moved = transfer.fetch(there, message, self.transports[to], **options)
        except kvcache.OutOfPagesError:
            lease.end()
            self.events["no room to receive"] += 1
            return
        self.moving.append((to, name, lease, moved))
        self.events["nothing to read"] += not moved.bytes
        self.events["found by the receiver"] += moved.reception.found > 0
        self.events["gaps in pages"] += any(moved.reception.gone)
        self.events["gaps sent on"] += any(lease.gone)

    def advance(self, _):
        if not self.moving:
            return
        at = self.random.randrange(len(self.moving))
        i, name, lease, moved = self.moving[at]
        if self.random.random() < 0.1:
            moved.cancel()
            self.events["cancelled"] += 1
        elif self.random.random() < 0.05:
            lease.end()
            with pytest.raises(transfer.TransferFailed):
                while not moved.poll():
                    pass
                moved.finish(lease.end())
            self.events["ran out"] += 1
        elif moved.poll():
            moved.finish(lease.end())
            self.live[i] += [name] if name else []
            self.events["arrived"] += 1
        else:
            return
        del self.moving[at]
        lease.end()


if __name__ == "__main__":
    run_from_command_line(draw_ends, lambda seed, ends: TransferHistory(seed, ends).run(1_000), length=1_000)
