#!/usr/bin/env python3
"""Compares our page manager with vLLM's and SGLang's: CPU time, medians over the runs of all rounds.

After each median are the least and the greatest median of a round.

Both have prefix caching, pages of 16 tokens, sequences of up to 131,072, and contexts of 4,000. A decode step gives each
sequence a token and its table of pages; ours also gathers what kernels get. Ours runs a second time with three groups of
layers: full attention, a window of 1,024 tokens with sinks, and chunks of 8,192. A claim goes from token ids to pages, with
vLLM's request and its hashes. SGLang's table has indices of tokens, and pages of new tokens enter its tree only when a
sequence ends. The contenders are processes that take turns. No GPU is used: SGLang's kernels of indices run as PyTorch.

examples:
  scripts/bench manager
  scripts/bench manager --batches 256,1024,4096
  scripts/bench manager --vllm --sglang --rounds 3
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import manager_works
import numpy as np
from command import Command, parse_sizes
from measure import Absent
from provenance import BUILD, FOLDER, list_versions
from record import Record
from report import Table

ENGINES_PYTHON = BUILD / "engines-venv/bin/python"


class OurCache:
    NAME = "kvcache"

    def __init__(self, num_pages: int) -> None:
        import kvcache

        self.manager = kvcache.PagedKVCacheManager(
            self.describe(),
            max_batch_size=8192,
            max_seq_len=manager_works.MAX_SEQ_LEN,
            num_pages=num_pages * self.count_groups(),
            memory=kvcache.NoMemory(),
        )

    def describe(self, **fields: Any) -> Any:
        import kvcache

        return kvcache.KVCacheParams(
            dtype="bf16",
            n_kv_heads=8,
            head_dim=128,
            page_size=manager_works.PAGE_SIZE,
            enable_prefix_caching=True,
            **fields or {"total_num_layers": 1},
        )

    def count_groups(self) -> int:
        return 1

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


class OurGroups(OurCache):
    """A model with full attention, a window, and chunks."""

    NAME = "kvcache, three groups"

    def describe(self, **fields: Any) -> Any:
        import kvcache

        kinds = kvcache.reach.full, kvcache.reach.window(1024, sinks=4), kvcache.reach.chunk(8192)
        groups = [OurCache.describe(self, layer_ids=[i], reach=kind) for i, kind in enumerate(kinds)]
        return kvcache.MultiKVCacheParams(groups)

    def count_groups(self) -> int:
        return 3


OURS = {each.NAME: each for each in (OurCache, OurGroups)}


def run_process(command: list[str]) -> dict[str, Any]:
    """The result that a contender prints in the end."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise ValueError(f"{' '.join(command)}: {last[0]}")
    return json.loads(done.stdout.splitlines()[-1])


def summarize(rounds: Sequence[Sequence[float]], scale: float = 1) -> list[float]:
    """The median of all runs, and the least and the greatest median of a round: no round is left out."""
    medians = [scale * statistics.median(times) for times in rounds]
    return [scale * statistics.median(time for times in rounds for time in times), min(medians), max(medians)]


def tabulate(results: Sequence[dict[str, Any]], batches: Sequence[int]) -> Table:
    """Works in rows, contenders in columns."""
    pooled: dict[str, dict[str, list[list[float]]]] = {}
    for result in results:
        works = pooled.setdefault(result["name"], {})
        for work, times in result["times"].items():
            works.setdefault(work, []).append(times)
    cells = "{:.3f} ({:.3f} to {:.3f})"
    table = Table("CPU ms, median (medians of rounds)", *((name, cells) for name in pooled))
    for work in next(iter(pooled.values())):
        table.add(work, *(summarize(works[work]) for works in pooled.values()))
    for batch in batches:
        work, scale = manager_works.name_decode(batch), 1e3 / batch
        steps = (summarize(works[work], scale) for works in pooled.values())
        table.add(f"the step of {batch:,}, us per sequence", *steps)
    return table


def measure(options: argparse.Namespace) -> Record:
    engines = [name for name in ("vllm", "sglang") if getattr(options, name)]
    if engines and not ENGINES_PYTHON.exists():
        raise Absent(f"there is no {ENGINES_PYTHON}: scripts/bench makes it")
    sizes = [",".join(map(str, options.batches)), str(options.runs)]
    ours = [sys.executable, __file__, "--batches", sizes[0], "--runs", sizes[1], "--worker"]
    commands = [[*ours, name] for name in OURS]
    commands += [[str(ENGINES_PYTHON), str(FOLDER / f"peers/{name}_manager.py"), *sizes] for name in engines]
    results = [run_process(command) for _ in range(options.rounds) for command in commands]
    return Record(
        "scripts/bench manager",
        {"managers": tabulate(results, options.batches)},
        software=list_versions("numpy"),
        runs=f"{options.runs} of each work in {options.rounds} rounds of processes that take turns",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    command = Command("scripts/bench manager", __doc__, "page-managers")
    command.add(
        "--batches", type=parse_sizes, default=[256], metavar="N,…", help="sequences of a step (default: 256)"
    )
    command.add_count("--runs", 40, "of each work in a round")
    command.add_count("--rounds", 1, "processes of each")
    both = "gets both engines and PyTorch (7 GB) into build/"
    command.add("--vllm", action="store_true", help=f"measure vLLM's as well; {both}")
    command.add("--sglang", action="store_true", help=f"measure SGLang's as well; {both}")
    command.add("--worker", choices=OURS, help=argparse.SUPPRESS)
    options = command.parse(arguments)
    if options.worker:
        times = manager_works.measure(OURS[options.worker], options.batches, options.runs)
        print(json.dumps({"name": options.worker, "times": times}))
        return 0
    return command.run(measure, options)


if __name__ == "__main__":
    sys.exit(main())
