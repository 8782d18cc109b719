#!/usr/bin/env python3
"""Compares our page manager with vLLM's: milliseconds of CPU time, medians over the runs of all rounds.

Both have prefix caching, pages of 16 tokens, sequences of up to 131,072, and contexts of 4,000. A decode step gives each
sequence a token and its table of pages; ours also gathers what kernels get. A claim goes from token ids to pages, with
vLLM's request and its hashes. The contenders are processes that take turns. vLLM runs without a GPU from the folder that
its wheel is unpacked in, by the Python of an environment with torch and the packages that vLLM imports; without --vllm
only ours is measured.

examples:
  scripts/bench manager
  scripts/bench manager --batches 256,1024,4096
  scripts/bench manager --vllm /tmp/vllm --vllm-python /tmp/vllm-venv/bin/python --rounds 3
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import manager_works
import numpy as np

FOLDER = Path(__file__).resolve().parent


class OurCache:
    def __init__(self, num_pages: int) -> None:
        import kvcache

        params = kvcache.KVCacheParams(
            dtype="bf16",
            n_kv_heads=8,
            head_dim=128,
            page_size=manager_works.PAGE_SIZE,
            total_num_layers=1,
            enable_prefix_caching=True,
        )
        self.manager = kvcache.PagedKVCacheManager(
            params,
            max_batch_size=8192,
            max_seq_len=manager_works.MAX_SEQ_LEN,
            num_pages=num_pages,
            memory=kvcache.NoMemory(),
        )

    def claim(self, name: str, tokens: np.ndarray) -> None:
        self.manager.claim(name, tokens)

    def finish(self, names: list[str]) -> None:
        self.manager.step(names)

    def release(self, name: str) -> None:
        self.manager.release(name)

    def decode(self, names: list[str], tokens: np.ndarray) -> None:
        self.manager.grow_batch(names, tokens)
        self.manager.inputs(names)
        self.manager.step(names)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/bench manager", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--batches", type=_parse_sizes, default=[256], metavar="N,…", help="sequences of a decode step (default: 256)")
    add("--runs", type=_parse_size, default=40, metavar="N", help="of each work in a round (default: %(default)s)")
    add("--rounds", type=_parse_size, default=1, metavar="N", help="processes of each (default: %(default)s)")
    add("--vllm", type=Path, metavar="DIR", help="the folder of vLLM's unpacked wheel")
    add("--vllm-python", default=sys.executable, metavar="FILE", help="the Python that vLLM runs in")
    add("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        times = manager_works.measure(OurCache, options.batches, options.runs)
        print(json.dumps({"name": "kvcache", "times": times}))
        return 0
    sizes = [",".join(map(str, options.batches)), str(options.runs)]
    ours = [sys.executable, __file__, "--worker", "--batches", sizes[0], "--runs", sizes[1]]
    commands = [ours]
    if options.vllm:
        peer = FOLDER / "peers/vllm_manager.py"
        commands.append([options.vllm_python, str(peer), str(options.vllm), *sizes])
    results = [run(command) for _ in range(options.rounds) for command in commands]
    print(render(results))
    return 0


def run(command: list[str]) -> dict[str, Any]:
    """The result that a contender prints in the end."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        sys.exit(f"error: {' '.join(command)}: {last[0]}")
    return json.loads(done.stdout.splitlines()[-1])


def render(results: Sequence[dict[str, Any]]) -> str:
    """A table in Markdown: works in rows, contenders in columns."""
    pooled: dict[str, manager_works.Times] = {}
    for result in results:
        works = pooled.setdefault(result["name"], {})
        for work, times in result["times"].items():
            works.setdefault(work, []).extend(times)
    rows = [["CPU ms, median (least)", *pooled], ["---", *["---:"] * len(pooled)]]
    for work in next(iter(pooled.values())):
        cells = [f"{statistics.median(works[work]):.3f} ({min(works[work]):.3f})" for works in pooled.values()]
        rows.append([work, *cells])
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    about = f"{os.cpu_count()} cores, {platform.machine()}, load {load}, Python {platform.python_version()}"
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + f"\n\n{about}, NumPy {np.__version__}"


def _parse_size(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"expects a positive number, got {text!r}")
    return int(text)


def _parse_sizes(text: str) -> list[int]:
    return [_parse_size(each) for each in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
