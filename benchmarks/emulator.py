#!/usr/bin/env python3
"""Measures the emulator: GPU threads per second on one core, for a few examples.

Each cell is the median of several calls, in millions of threads per second, of a module compiled with or without the
sanitizer and the meter: by the time of the processor on one thread of the host, by the clock on several. Arrays are as
large as one decoding step of a small batch has them. A thread of attention does much more than one that copies, so the
last row has its time as a multiple of what NumPy takes for the same, in f32 on one thread.

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

# Before NumPy, which reads them: its threads would be counted too.
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

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
QUERY_HEADS, SCALE = 64, HEAD_SIZE**-0.5
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
    blocks = rng.standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16)
    lengths = np.full(BATCH, TOKENS, np.int32)
    table = rng.permutation(PAGES).astype(np.int32).reshape(BATCH, TOKENS // PAGE_SIZE)
    return blocks, lengths, table, TOKENS, TOKENS


def rows(*shape: int) -> np.ndarray:
    return np.zeros((*shape, HEADS, HEAD_SIZE), ml_dtypes.bfloat16)


LAUNCH_ATTENTION = """
func.func @launch(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                  %max_seq: i32, %max_cache: i32, %layer: index, %scale: f32, %q: !heads, %out: !heads) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c128 = arith.constant 128 : index
  %batch = memref.dim %q, %c0 : !heads
  gpu.launch_func @kernels::@attention_pipe blocks in (%c8, %batch, %c1) threads in (%c128, %c1, %c1)
      args(%blocks : memref<?x2x?x64x8x128xbf16>, %lengths : memref<?xi32>, %lut : memref<?x?xi32>, %max_seq : i32,
           %max_cache : i32, %layer : index, %scale : f32, %q : !heads, %out : !heads)
  return
}
"""


def source(example: str) -> Path | str:
    """An example; attention_pipe, which has only a kernel, with a function that launches it."""
    path = ROOT / f"examples/{example}.mlir"
    if example != "attention_pipe":
        return path
    aliases, kernels = path.read_text().split("gpu.module", 1)
    return f"{aliases}module attributes {{gpu.container_module}} {{{LAUNCH_ATTENTION}gpu.module{kernels}}}"


def attention_arguments() -> tuple:
    rng = np.random.default_rng(1)
    q = rng.standard_normal((BATCH, QUERY_HEADS, HEAD_SIZE), np.float32).astype(ml_dtypes.bfloat16)
    return (*cache(), LAYER, SCALE, q, np.zeros_like(q))


def attend(blocks, lengths, table, _max_sequence, _max_cache, layer, scale, q, out) -> None:
    """attention_pipe in NumPy: a product for all query heads of a KV head."""
    group = q.shape[1] // HEADS
    for b, h in np.ndindex(q.shape[0], HEADS):
        t = np.arange(lengths[b])
        keys, values = (blocks[table[b, t // 64], kv, layer, t % 64, h].astype(np.float32) for kv in (0, 1))
        heads = slice(h * group, (h + 1) * group)
        scores = scale * q[b, heads].astype(np.float32) @ keys.T
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        out[b, heads] = weights @ values / weights.sum(axis=1, keepdims=True)


def programs() -> dict[str, tuple[str, tuple]]:
    """By example: the function to call and its arguments."""
    return {
        "quickstart": ("copy_keys", (*cache(), LAYER, rows(BATCH, TOKENS))),
        "gather": ("gather_keys", (*cache(), LAYER, rows(BATCH, TOKENS))),
        "key_tile": ("copy_keys", (*cache(), LAYER, np.zeros((BATCH, HEADS, TOKENS, HEAD_SIZE), ml_dtypes.bfloat16))),
        "attention_pipe": ("launch", attention_arguments()),
    }


def measure_numpy(runs: int, clock: Callable[[], float]) -> float:
    """Seconds that NumPy takes for attention_pipe."""
    arguments = attention_arguments()
    seconds = []
    for _ in range(runs + 1):
        start = clock()
        attend(*arguments)
        seconds.append(clock() - start)
    return statistics.median(seconds[1:])


def count_threads(source: Path | str, function: str, arguments: tuple, target: str) -> int:
    """The threads of all launches of one call."""
    program = kvcache.jit(source, target=target, sanitize=False, meter=True)
    program.call(function, *arguments)
    return sum(int(np.prod(launch.grid)) * int(np.prod(launch.block)) for launch in program.launches)


def measure(example: str, target: str, runs: int, clock: Callable[[], float]) -> tuple[int, list[float]]:
    """The threads of a call, and its seconds by mode; NaNs where the emulator doesn't run the example."""
    function, arguments = programs()[example]
    text = source(example)
    try:
        threads = count_threads(text, function, arguments, target)
    except kvcache.Error as error:
        print(f"{example}: {str(error).splitlines()[0]}", file=sys.stderr)
        return 0, [float("nan")] * len(MODES)
    compiled = [kvcache.jit(text, target=target, **options) for options in MODES.values()]
    times: list[list[float]] = [[] for _ in compiled]
    for turn in range(runs + 1):  # the first is a warm-up
        for program, seconds in zip(compiled, times):
            start = clock()
            program.call(function, *arguments)
            if turn:
                seconds.append(clock() - start)
    return threads, [statistics.median(seconds) for seconds in times]


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
    print(f"{'example':16}" + "".join(f"{mode:>12}" for mode in MODES))
    seconds: list[float] = []
    for example in programs():
        threads, seconds = measure(example, f"emulator:{args.chip}", args.runs, clock)
        print(f"{example:16}" + "".join(f"{threads / time / 1e6:12.3g}" for time in seconds), flush=True)
    numpy_seconds = measure_numpy(args.runs, clock)
    print(f"\n{'times of NumPy':16}" + "".join(f"{time / numpy_seconds:12.1f}" for time in seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
