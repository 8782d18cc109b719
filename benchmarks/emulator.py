#!/usr/bin/env python3
"""Measures the emulator: GPU threads per second on one core, for a few examples.

Each cell is the median of several calls, in millions of threads per second, of a module compiled with or without the
sanitizer and the meter: by the time of the processor on one thread of the host, by the clock on several. Arrays are as
large as one decoding step of a small batch has them.

examples:
  PYTHONPATH=build/python build/venv/bin/python benchmarks/emulator.py
  PYTHONPATH=build/python build/venv/bin/python benchmarks/emulator.py --chip sm_90a --threads 4 --runs 21
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np

try:
    import kvcache
except ImportError as error:
    sys.exit(f"error: {error}\n  scripts/setup.sh --build builds what is needed; then run with PYTHONPATH=build/python")

ROOT = Path(__file__).resolve().parent.parent
BATCH, TOKENS, PAGE_SIZE, HEADS, HEAD_SIZE = 8, 256, 64, 8, 128
PAGES = BATCH * TOKENS // PAGE_SIZE
LAYERS, LAYER = 1, 0
MODES = {
    "plain": {"sanitize": False},
    "meter": {"sanitize": False, "meter": True},
    "sanitizer": {"sanitize": True},
    "both": {"sanitize": True, "meter": True},
}


def cache() -> tuple:
    """Pages, lengths, page table and its limits, of a cache whose sequences are all full."""
    rng = np.random.default_rng(0)
    shape = (PAGES, 2, LAYERS, PAGE_SIZE, HEADS, HEAD_SIZE)
    blocks = rng.integers(0, 2**14, shape, np.uint16).view(ml_dtypes.bfloat16)
    lengths = np.full(BATCH, TOKENS, np.int32)
    table = rng.permutation(PAGES).astype(np.int32).reshape(BATCH, TOKENS // PAGE_SIZE)
    return blocks, lengths, table, TOKENS, TOKENS


def rows(*shape: int) -> np.ndarray:
    return np.zeros((*shape, HEADS, HEAD_SIZE), ml_dtypes.bfloat16)


def programs() -> dict[str, tuple[str, tuple]]:
    """By example: the function to call and its arguments."""
    return {
        "quickstart": ("copy_keys", (*cache(), LAYER, rows(BATCH, TOKENS))),
        "gather": ("gather_keys", (*cache(), LAYER, rows(BATCH, TOKENS))),
        "key_tile": ("copy_keys", (*cache(), LAYER, np.zeros((BATCH, HEADS, TOKENS, HEAD_SIZE), ml_dtypes.bfloat16))),
    }


def count_threads(source: Path, function: str, arguments: tuple, target: str) -> int:
    """The threads of all launches of one call."""
    program = kvcache.jit(source, target=target, sanitize=False, meter=True)
    program.call(function, *arguments)
    return sum(int(np.prod(launch.grid)) * int(np.prod(launch.block)) for launch in program.launches)


def measure(example: str, target: str, runs: int, clock: Callable[[], float]) -> list[float]:
    """Millions of threads per second, by mode; NaNs where the emulator doesn't run the example."""
    function, arguments = programs()[example]
    source = ROOT / f"examples/{example}.mlir"
    try:
        threads = count_threads(source, function, arguments, target)
    except kvcache.Error as error:
        print(f"{example}: {str(error).splitlines()[0]}", file=sys.stderr)
        return [float("nan")] * len(MODES)
    compiled = [kvcache.jit(source, target=target, **options) for options in MODES.values()]
    times: list[list[float]] = [[] for _ in compiled]
    for turn in range(runs + 1):  # the first is a warm-up
        for program, seconds in zip(compiled, times):
            start = clock()
            program.call(function, *arguments)
            if turn:
                seconds.append(clock() - start)
    return [threads / statistics.median(seconds) / 1e6 for seconds in times]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chip", default="sm_100a", help="the chip to emulate (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="threads of the host (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=9, help="counted calls (default: %(default)s)")
    args = parser.parse_args()
    if args.runs < 1 or args.threads < 1:
        parser.error("--runs and --threads must be at least 1")
    if args.chip not in kvcache.chips():
        parser.error(f"--chip must be one of {', '.join(kvcache.chips())}")
    os.environ["KVCACHE_EMULATOR_THREADS"] = str(args.threads)
    clock = time.process_time if args.threads == 1 else time.perf_counter

    print(f"millions of GPU threads per second, {args.chip}, {args.threads} thread(s) of the host\n")
    print(f"{'example':12}" + "".join(f"{mode:>12}" for mode in MODES))
    for example in programs():
        cells = measure(example, f"emulator:{args.chip}", args.runs, clock)
        print(f"{example:12}" + "".join(f"{cell:12.2f}" for cell in cells), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
