#!/usr/bin/env python3
"""Compares fetching a sequence with NIXL reading the same bytes without us: GB/s, medians of turns (and the best).

A process offers a sequence, and another one reads its pages, again and again. Ours is all of kvcache.transfer.fetch, until
the sequence is in the cache; NIXL alone reads the same addresses with an agent of its own. Both poll all the time, over
TCP and over shared memory of one machine.

examples:
  scripts/bench transfer
  scripts/bench transfer --mebibytes 16,256 --runs 21
"""

from __future__ import annotations

import argparse
import base64
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
PAGE_SIZE, LAYERS, HEADS, HEAD_SIZE = 16, 16, 8, 128
PAGE_BYTES = 2 * LAYERS * PAGE_SIZE * HEADS * HEAD_SIZE * 2
MARK = "offer: "


def make_cache(num_pages: int) -> kvcache.PagedKVCacheManager:
    params = kvcache.KVCacheParams(
        "bf16", n_kv_heads=HEADS, head_dim=HEAD_SIZE, page_size=PAGE_SIZE, total_num_layers=LAYERS
    )
    return kvcache.PagedKVCacheManager(params, max_batch_size=1, max_seq_len=num_pages * PAGE_SIZE, num_pages=num_pages)


def send(num_pages: int) -> None:
    """The other process: offers a sequence until somebody closes its input."""
    cache = make_cache(num_pages)
    cache.blocks[0].view(np.uint8)[...] = 7
    cache.claim("r", range(num_pages * PAGE_SIZE))
    cache.step(["r"])
    transport = transfer.NIXLTransport("sender")
    lease = cache.export("r", seconds=3600)
    print(MARK + base64.b64encode(transfer.offer(cache, lease, transport)).decode(), flush=True)
    sys.stdin.readline()


def fetch(cache: kvcache.PagedKVCacheManager, message: bytes, transport: transfer.NIXLTransport) -> float:
    start = time.perf_counter()
    moved = transfer.fetch(cache, message, transport, request="r")
    while not moved.poll():
        pass
    moved.finish(was_held=True)
    seconds = time.perf_counter() - start
    cache.release("r")
    return seconds


class Plain:
    """NIXL alone."""

    def __init__(self, cache: kvcache.PagedKVCacheManager, message: bytes, api: Any) -> None:
        offer = transfer.Offer.from_bytes(message)
        pages = np.arange(cache.num_pages)
        tables = transfer.pair(offer.describe(0), cache.descriptors(pages))
        self._source, self._target = (table.astype(np.uint64) for table in tables)
        self._agent = api.nixl_agent("plain", api.nixl_agent_config(backends=["UCX"]))
        rows = [(region.address, region.size, region.device, "") for region in cache.regions()]
        self._agent.register_memory(rows, "DRAM")
        self._peer = self._agent.add_remote_agent(offer.address)

    def read(self) -> float:
        start = time.perf_counter()
        target, source = (self._agent.get_xfer_descs(table, "DRAM") for table in (self._target, self._source))
        handle = self._agent.initialize_xfer("READ", target, source, self._peer)
        self._agent.transfer(handle)
        while (state := self._agent.check_xfer_state(handle)) != "DONE":
            if state == "ERR":
                raise RuntimeError("NIXL lost the peer")
        seconds = time.perf_counter() - start
        handle.release()
        return seconds


def receive(num_pages: int, runs: int) -> np.ndarray:
    """Seconds of ours and of NIXL alone, [runs, 2]."""
    from kvcache.transfer.nixl import _import

    command = [sys.executable, __file__, "--sender", str(num_pages)]
    sender = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert sender.stdout
        lines = (line for line in sender.stdout if line.startswith(MARK))  # the others are NIXL's
        message = base64.b64decode(next(lines).removeprefix(MARK))
        ours, other = make_cache(num_pages), make_cache(num_pages)
        transport = transfer.NIXLTransport("receiver")
        plain = Plain(other, message, _import())
        fetch(ours, message, transport)
        plain.read()
        times = [(fetch(ours, message, transport), plain.read()) for _ in range(runs)]
    finally:
        sender.kill()
        sender.wait()
    for cache in ours, other:
        assert (cache.blocks[0].view(np.uint8)[:num_pages] == 7).all()
    return np.array(times)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/bench transfer", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--mebibytes",
        type=lambda text: [int(size) for size in text.split(",")],
        default=[4, 64, 256],
        metavar="N,…",
        help="of a sequence (default: 4,64,256)",
    )
    parser.add_argument("--runs", type=int, default=21, metavar="N", help="of each (default: %(default)s)")
    parser.add_argument("--sender", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.sender:
        send(options.sender)
        return 0
    os.environ.setdefault("NIXL_LOG_LEVEL", "WARNING")  # it writes to the standard output
    print("| over | MiB | fetch, GB/s | NIXL alone, GB/s | ratio |\n| --- | --: | --: | --: | --: |")
    for name, tls in TRANSPORTS.items():
        os.environ["UCX_TLS"] = tls
        for size in options.mebibytes:
            num_pages = max(size * 2**20 // PAGE_BYTES, 1)
            rates = num_pages * PAGE_BYTES / 1e9 / receive(num_pages, options.runs)
            (ours, plain), (best, plain_best) = np.median(rates, axis=0), rates.max(axis=0)
            print(
                f"| {name} | {size} | {ours:.2f} ({best:.2f}) | {plain:.2f} ({plain_best:.2f}) | {ours / plain:.2f} |",
                flush=True,
            )
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"\n{os.cpu_count()} cores, {platform.machine()}, load {load}, Python {platform.python_version()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
