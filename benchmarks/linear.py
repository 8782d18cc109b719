"""How the time to compile grows with the number of kvcache ops in a module."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import kvcache

SIZES = (10, 100, 1000, 10000)
SHAPES = {"kernels of 10 ops": 10, "one kernel": SIZES[-1]}
"""How many ops a kernel has at most."""

MOST_SECONDS = 60
"""A module that takes longer is the last of its shape."""
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
    %first = arith.addi %length, %t : index
{moves}
    gpu.return
  }}
"""
_MOVE = """
    %offset{i} = arith.constant {i} : index
    %t{i} = arith.addi %first, %offset{i} : index
    %v{i} = kvcache.load %keys[%b, %h, %t{i}, %d] : !cache -> vector<8xbf16>
    kvcache.store %v{i}, %values[%b, %h, %t{i}, %d] : vector<8xbf16>, !cache"""


@dataclass(frozen=True)
class Point:
    """Times of a module with so many kvcache ops."""

    shape: str
    ops: int
    milliseconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.milliseconds)


def source(ops: int, most_of_kernel: int) -> str:
    """A module of kernels that are equally long: four ops that make two views and a length, then loads and stores."""
    each = min(ops, most_of_kernel)
    if each < 6 or each % 2 or ops % each:
        raise ValueError(f"expects kernels of an even number of ops from 6 on, got {ops} in kernels of {each}")
    moves = "".join(_MOVE.format(i=i) for i in range((each - 4) // 2))
    kernels = "".join(_KERNEL.format(index=index, moves=moves) for index in range(ops // each))
    types = "bf16, #kv, page_size = 16"
    return f"""#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<{types}>
!cache = !kvcache.paged<{types}>
gpu.module @kernels {{{kernels}}}
"""


def measure(chip: str, runs: int) -> list[Point]:
    """Compiles modules of each shape and size in turn, in this process, which one has warmed up."""
    kvcache.compile(source(SIZES[0], SIZES[0]), target=chip)
    times: dict[tuple[str, int], list[float]] = {}
    for turn in range(runs):
        for shape, most in SHAPES.items():
            for ops in SIZES:
                if turn and (shape, ops) not in times:
                    continue
                milliseconds = _time(source(ops, most), chip)
                times.setdefault((shape, ops), []).append(milliseconds)
                if milliseconds > MOST_SECONDS * 1e3 and ops > SIZES[0]:
                    break
    return [Point(shape, ops, tuple(found)) for (shape, ops), found in times.items()]


def _time(text: str, chip: str) -> float:
    start = time.perf_counter()
    kvcache.compile(text, target=chip)
    return (time.perf_counter() - start) * 1e3


def growth(points: Sequence[Point]) -> float:
    """The exponent of the time between the last two sizes of a shape: 1 is linear, 2 quadratic.

    By the median of the rounds' ratios, as compilers are compared: a short run finds a
    quiet moment more easily than a long one, so that their fastest would not do.
    """
    before, last = points[-2:]
    ratios = [
        after / first for first, after in zip(before.milliseconds, last.milliseconds, strict=True)
    ]
    return math.log(statistics.median(ratios)) / math.log(last.ops / before.ops)
