"""How the time to compile grows with the number of kvcache ops in a module."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import kvcache

SIZES = (10, 100, 1000, 10000)
OPS_OF_KERNEL = 10
MOST_GROWTH = 1.1
"""The exponent of the growth up to which it counts as linear."""

_KERNEL = """
  gpu.func @copy_{index}(%blocks: memref<?x2x?x16x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                         %max_seq: i32, %max_cache: i32, %layer: index) kernel
      attributes {{known_block_size = array<i32: 16, 8, 1>}} {{
    %c8 = arith.constant 8 : index
    %b = gpu.block_id y
    %t = gpu.block_id x
    %h = gpu.thread_id y
    %lane = gpu.thread_id x
    %d = arith.muli %lane, %c8 : index
    %cache = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
        : memref<?x2x?x16x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
    %keys = kvcache.paged_view key %cache[%layer] : !collection
    %values = kvcache.paged_view value %cache[%layer] : !collection
    %length = kvcache.cache_length %keys[%b] : !cache
{moves}
    gpu.return
  }}
"""
_MOVE = """
    %t{i} = arith.addi %length, %{before} : index
    %v{i} = kvcache.load %keys[%b, %h, %t{i}, %d] : !cache -> vector<8xbf16>
    kvcache.store %v{i}, %values[%b, %h, %t{i}, %d] : vector<8xbf16>, !cache"""


@dataclass(frozen=True)
class Point:
    """Times of a module with so many kvcache ops."""

    ops: int
    milliseconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.milliseconds)


def source(ops: int) -> str:
    """A module of kernels with 10 kvcache ops each: what makes two views, a length, three loads and three stores."""
    if ops % OPS_OF_KERNEL:
        raise ValueError(f"expects a multiple of {OPS_OF_KERNEL} ops, got {ops}")
    moves = "".join(_MOVE.format(i=i, before=f"t{i - 1}" if i else "t") for i in range(3))
    kernels = "".join(_KERNEL.format(index=index, moves=moves) for index in range(ops // OPS_OF_KERNEL))
    types = "bf16, #kv, page_size = 16"
    return f"""#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<{types}>
!cache = !kvcache.paged<{types}>
gpu.module @kernels {{{kernels}}}
"""


def measure(chip: str, runs: int) -> list[Point]:
    """Compiles a module of each size in turn, in this process; the smallest has warmed up."""
    sources = {ops: source(ops) for ops in SIZES}
    kvcache.compile(sources[SIZES[0]], target=chip)
    times: dict[int, list[float]] = {ops: [] for ops in SIZES}
    for _ in range(runs):
        for ops, text in sources.items():
            start = time.perf_counter()
            kvcache.compile(text, target=chip)
            times[ops].append((time.perf_counter() - start) * 1e3)
    return [Point(ops, tuple(times[ops])) for ops in SIZES]


def growth(points: Sequence[Point]) -> float:
    """The exponent of the time between the last two sizes: 1 is linear, 2 quadratic.

    By the fastest runs, which others on the machine have disturbed least.
    """
    before, last = points[-2:]
    return math.log(min(last.milliseconds) / min(before.milliseconds)) / math.log(last.ops / before.ops)
