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
from pathlib import Path

# Before NumPy, which reads them: its threads would be counted too.
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import ml_dtypes
import numpy as np
from command import HINT, Command
from measure import Clock, HostClock, say, take_turns
from provenance import FOLDER, list_versions
from record import Record
from report import Table

try:
    import kvcache
except ImportError as error:
    sys.exit(f"error: {error}\n  {HINT}")

EXAMPLES = FOLDER.parent / "examples"
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
    path = EXAMPLES / f"{example}.mlir"
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


def count_threads(source: Path | str, function: str, arguments: tuple, target: str) -> int:
    """The threads of all launches of one call."""
    program = kvcache.jit(source, target=target, sanitize=False, meter=True)
    program.call(function, *arguments)
    return sum(int(np.prod(launch.grid)) * int(np.prod(launch.block)) for launch in program.launches)


def measure_modes(example: str, target: str, runs: int, clock: Clock) -> tuple[int, list[float | None]]:
    """The threads of a call, and its milliseconds by mode; none where the emulator doesn't run the example."""
    function, arguments = programs()[example]
    text = source(example)
    try:
        threads = count_threads(text, function, arguments, target)
    except kvcache.Error as error:
        say(f"{example}: {str(error).splitlines()[0]}")
        return 0, [None] * len(MODES)
    calls = {}
    for mode, options in MODES.items():
        program = kvcache.jit(text, target=target, **options)
        calls[mode] = lambda turn, program=program: program.call(function, *arguments)
    times = take_turns(calls, runs, clock=clock)
    return threads, [statistics.median(times[mode]) for mode in MODES]


def measure(options: argparse.Namespace) -> Record:
    os.environ["KVCACHE_EMULATOR_THREADS"] = str(options.threads)
    clock = HostClock(time.process_time if options.threads == 1 else time.perf_counter)
    rates = Table("millions of GPU threads a second", *((mode, "{:.3g}") for mode in MODES))
    times: list[float | None] = []
    for example in programs():
        threads, times = measure_modes(example, f"emulator:{options.chip}", options.runs, clock)
        rates.add(example, *(threads / time / 1e3 if time else None for time in times))
    arguments = attention_arguments()
    (seconds,) = take_turns({"NumPy": lambda turn: attend(*arguments)}, options.runs, clock=clock).values()
    multiples = Table("times of NumPy", *((mode, "{:.1f}") for mode in MODES))
    multiples.add("attention_pipe", *(time and time / statistics.median(seconds) for time in times))
    return Record(
        "benchmarks/emulator.py",
        {"threads": rates, "numpy": multiples},
        software=list_versions("numpy"),
        runs=f"{options.runs} calls on {options.threads} thread(s) of the host, {options.chip}",
    )


def main(arguments: list[str] | None = None) -> int:
    command = Command("benchmarks/emulator.py", __doc__)
    command.add_chips("sm_100a", are_many=False)
    command.add_count("--threads", 1, "threads of the host")
    command.add_count("--runs", 9, "counted calls")
    return command.run(measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
