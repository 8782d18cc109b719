#!/usr/bin/env python3
"""Compares fetching a sequence with NIXL reading the same bytes without us: GB/s, medians of turns (and the best).

A process offers a sequence, and another one reads its pages, again and again. Ours is all of kvcache.transfer.fetch, from
the message until the sequence is in the cache, and the same with pages that were reserved before; NIXL alone reads the same
addresses with an agent of its own, to memory that it has known before. All poll all the time, and so have no thread that
does; over TCP and over shared memory of one machine.

examples:
  scripts/bench transfer
  scripts/bench transfer --mebibytes 16,256 --page-sizes 1,16 --runs 21
"""

from __future__ import annotations

import argparse
import base64
import itertools
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import kvcache
import numpy as np
from command import Command, parse_sizes
from kvcache import transfer
from measure import say, spread, take_turns
from provenance import list_versions
from record import Record
from report import Table

TRANSPORTS = {"TCP": "tcp,self", "shared memory": "tcp,shm,self"}
LAYERS, HEADS, HEAD_SIZE = 16, 8, 128
TOKEN_BYTES = 2 * LAYERS * HEADS * HEAD_SIZE * 2
MARK = "offer: "
CONTENDERS = "fetch", "fetch to reserved pages", "NIXL alone"


def make_cache(num_pages: int, page_size: int) -> kvcache.PagedKVCacheManager:
    params = kvcache.KVCacheParams(
        "bf16", n_kv_heads=HEADS, head_dim=HEAD_SIZE, page_size=page_size, total_num_layers=LAYERS
    )
    return kvcache.PagedKVCacheManager(params, max_batch_size=2, max_seq_len=num_pages * page_size, num_pages=num_pages)


def send(num_pages: int, page_size: int) -> None:
    """The other process: offers a sequence until its input is closed.

    Another sequence has every second page, so that each page is a descriptor.
    """
    cache = make_cache(2 * num_pages, page_size)
    cache.blocks[0].view(np.uint8)[...] = 7
    tokens = range(page_size)
    for request in ("r", "other"):
        cache.claim(request, tokens)
    for _ in range(num_pages - 1):
        cache.grow_batch(["r", "other"], [tokens, tokens])
    cache.step(["r"])
    transport = transfer.NIXLTransport("sender")
    lease = cache.export("r", seconds=3600)
    print(MARK + base64.b64encode(transfer.offer(cache, lease, transport)).decode(), flush=True)
    sys.stdin.readline()


class Fetch:
    """Ours; ``receive`` has no part in the time where pages are reserved before."""

    def __init__(self, cache: kvcache.PagedKVCacheManager, message: bytes, transport: transfer.NIXLTransport) -> None:
        self._cache, self._message, self._transport = cache, message, transport
        self._tokens = transfer.Offer.from_bytes(message).tokens
        self._options: dict[str, Any] = {}

    def prepare(self, is_reserved: bool) -> None:
        if self._options:
            self._cache.release("r")
        self._options = {"reception": self._cache.receive(self._tokens, "r")} if is_reserved else {"request": "r"}

    def read(self, turn: int) -> None:
        moved = transfer.fetch(self._cache, self._message, self._transport, **self._options)
        while not moved.poll():
            pass
        moved.finish(was_held=True)


class Plain:
    """NIXL alone."""

    def __init__(self, cache: kvcache.PagedKVCacheManager, message: bytes, api: Any) -> None:
        offer = transfer.Offer.from_bytes(message)
        pages = np.arange(cache.num_pages)
        tables = transfer.pair(offer.describe(pages), cache.descriptors(pages))
        self.descriptors = len(tables[0])
        self._source, self._target = (table.astype(np.uint64) for table in tables)
        config = api.nixl_agent_config(enable_prog_thread=False, backends=["UCX"])
        self._agent = api.nixl_agent("plain", config)
        rows = [(region.address, region.size, region.device, "") for region in cache.regions()]
        self._agent.register_memory(rows, "DRAM")
        self._peer = self._agent.add_remote_agent(transfer.nixl._split_address(offer.address)[1])

    def read(self, turn: int) -> None:
        target, source = (self._agent.get_xfer_descs(table, "DRAM") for table in (self._target, self._source))
        handle = self._agent.initialize_xfer("READ", target, source, self._peer)
        self._agent.transfer(handle)
        while (state := self._agent.check_xfer_state(handle)) != "DONE":
            if state == "ERR":
                raise RuntimeError("NIXL lost the peer")
        handle.release()


def receive(num_pages: int, page_size: int, runs: int) -> tuple[int, dict[str, list[float]]]:
    """The number of descriptors, and milliseconds by contender."""
    from kvcache.transfer import nixl

    command = [sys.executable, __file__, "--sender", f"{num_pages},{page_size}"]
    sender = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert sender.stdout
        lines = (line for line in sender.stdout if line.startswith(MARK))  # the others are NIXL's
        message = base64.b64decode(next(lines).removeprefix(MARK))
        ours, other = make_cache(num_pages, page_size), make_cache(num_pages, page_size)
        transport = transfer.NIXLTransport("receiver", progress_thread=False)
        fetch, plain = Fetch(ours, message, transport), Plain(other, message, nixl.import_nixl())
        calls = dict(zip(CONTENDERS, (fetch.read, fetch.read, plain.read)))
        prepare = {name: partial(fetch.prepare, bool(number)) for number, name in enumerate(CONTENDERS[:2])}
        times = take_turns(calls, runs, prepare=prepare)
    finally:
        sender.kill()
        sender.wait()
    for cache in ours, other:
        assert (cache.blocks[0].view(np.uint8)[:num_pages] == 7).all()
    return plain.descriptors, times


def measure(options: argparse.Namespace) -> Record:
    os.environ.setdefault("NIXL_LOG_LEVEL", "WARN")  # it writes to the standard output
    rates = ((f"{name}, GB/s", "{:.2f} ({:.2f})") for name in CONTENDERS)
    table = Table("over", "MiB", "tokens of a page", "descriptors", *rates, ("ratios", "{:.2f}, {:.2f}"))
    for name, tls in TRANSPORTS.items():
        os.environ["UCX_TLS"] = tls
        for size, page_size in itertools.product(options.mebibytes, options.page_sizes):
            say(f"{name}, {size} MiB, pages of {page_size} tokens")
            num_pages = max(size * 2**20 // (TOKEN_BYTES * page_size), 1)
            count, times = receive(num_pages, page_size, options.runs)
            gigabytes = num_pages * page_size * TOKEN_BYTES / 1e9
            cells = [[1e3 * gigabytes / each for each in spread(times[name])[:2]] for name in CONTENDERS]
            table.add(name, size, page_size, count, *cells, [cell[0] / cells[-1][0] for cell in cells[:-1]])
    software = list_versions("numpy", "nixl-cu12")
    return Record("scripts/bench transfer", {"fetch": table}, software=software, runs=f"{options.runs} turns")


def main(arguments: Sequence[str] | None = None) -> int:
    command = Command("scripts/bench transfer", __doc__, "transfer")
    sizes = {"type": parse_sizes, "metavar": "N,…"}
    command.add("--mebibytes", default=[4, 16, 64, 256], help="of a sequence (default: 4,16,64,256)", **sizes)
    command.add("--page-sizes", default=[16], help="tokens of a page (default: 16)", **sizes)
    command.add_count("--runs", 21, "of each")
    command.add("--sender", help=argparse.SUPPRESS, **sizes)
    options = command.parse(arguments)
    if options.sender:
        send(*options.sender)
        return 0
    return command.run(measure, options)


if __name__ == "__main__":
    sys.exit(main())
