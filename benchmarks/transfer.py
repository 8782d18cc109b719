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
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import kvcache
from kvcache import transfer

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
    """The other process: offers a sequence until somebody closes its input.

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
    """Ours."""

    def __init__(self, cache: kvcache.PagedKVCacheManager, message: bytes, transport: transfer.NIXLTransport) -> None:
        self._cache, self._message, self._transport = cache, message, transport
        self._tokens = transfer.Offer.from_bytes(message).tokens

    def read(self, is_reserved: bool = False) -> float:
        """Seconds; without those of ``receive`` where pages are reserved before."""
        options: dict[str, Any] = {"request": "r"}
        if is_reserved:
            options = {"reception": self._cache.receive(self._tokens, "r")}
        start = time.perf_counter()
        moved = transfer.fetch(self._cache, self._message, self._transport, **options)
        while not moved.poll():
            pass
        moved.finish(was_held=True)
        seconds = time.perf_counter() - start
        self._cache.release("r")
        return seconds


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

    def read(self) -> float:
        start = time.perf_counter()
        target, source = (self._agent.get_xfer_descs(table, "DRAM") for table in (self._target, self._source))
        handle = self._agent.initialize_xfer("READ", target, source, self._peer)
        self._agent.transfer(handle)
        while (state := self._agent.check_xfer_state(handle)) != "DONE":
            if state == "ERR":
                raise RuntimeError("NIXL lost the peer")
        handle.release()
        return time.perf_counter() - start


def receive(num_pages: int, page_size: int, runs: int) -> tuple[int, np.ndarray]:
    """The number of descriptors, and seconds [runs, 3]: all of ours, with pages that were reserved before, NIXL alone."""
    from kvcache.transfer import nixl

    command = [sys.executable, __file__, "--sender", f"{num_pages},{page_size}"]
    sender = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert sender.stdout
        lines = (line for line in sender.stdout if line.startswith(MARK))  # the others are NIXL's
        message = base64.b64decode(next(lines).removeprefix(MARK))
        ours, other = make_cache(num_pages, page_size), make_cache(num_pages, page_size)
        transport = transfer.NIXLTransport("receiver", progress_thread=False)
        fetch, plain = Fetch(ours, message, transport), Plain(other, message, nixl._import())
        fetch.read()
        plain.read()
        times = [(fetch.read(), fetch.read(is_reserved=True), plain.read()) for _ in range(runs)]
    finally:
        sender.kill()
        sender.wait()
    for cache in ours, other:
        assert (cache.blocks[0].view(np.uint8)[:num_pages] == 7).all()
    return plain.descriptors, np.array(times)


def _parse_sizes(text: str) -> list[int]:
    return [int(size) for size in text.split(",")]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/bench transfer", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--mebibytes",
        type=_parse_sizes,
        default=[4, 16, 64, 256],
        metavar="N,…",
        help="of a sequence (default: 4,16,64,256)",
    )
    parser.add_argument(
        "--page-sizes", type=_parse_sizes, default=[16], metavar="N,…", help="tokens of a page (default: 16)"
    )
    parser.add_argument("--runs", type=int, default=21, metavar="N", help="of each (default: %(default)s)")
    parser.add_argument("--sender", type=_parse_sizes, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.sender:
        send(*options.sender)
        return 0
    os.environ.setdefault("NIXL_LOG_LEVEL", "WARN")  # it writes to the standard output
    columns = ["over", "MiB", "tokens of a page", "descriptors", *(f"{name}, GB/s" for name in CONTENDERS), "ratios"]
    print(f"| {' | '.join(columns)} |\n| --- |{' --: |' * (len(columns) - 1)}")
    for name, tls in TRANSPORTS.items():
        os.environ["UCX_TLS"] = tls
        for size, page_size in itertools.product(options.mebibytes, options.page_sizes):
            num_pages = max(size * 2**20 // (TOKEN_BYTES * page_size), 1)
            count, seconds = receive(num_pages, page_size, options.runs)
            rates = num_pages * page_size * TOKEN_BYTES / 1e9 / seconds
            medians = np.median(rates, axis=0)
            cells = [f"{median:.2f} ({best:.2f})" for median, best in zip(medians, rates.max(axis=0), strict=True)]
            ratios = ", ".join(f"{median / medians[-1]:.2f}" for median in medians[:-1])
            print(f"| {name} | {size} | {page_size} | {count} | {' | '.join(cells)} | {ratios} |", flush=True)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"\n{os.cpu_count()} cores, {platform.machine()}, load {load}, Python {platform.python_version()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
