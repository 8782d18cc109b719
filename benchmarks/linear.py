"""How the time to compile grows with the number of kvcache ops in a module, and what nvcc takes for the same kernel."""

from __future__ import annotations

import functools
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import kvcache
from contenders import Nvcc, TookTooLongError
from report import Table

SIZES = (10, 100, 1000, 10000)
SHAPES = {"kernels of 10 ops": 10, "one kernel": SIZES[-1]}
"""How many ops a kernel has at most."""
PEER = "one kernel, nvcc"
"""The same as CUDA C++, by nvcc as a process."""

MOST_SECONDS = 60
"""A module that takes longer is the last of its shape."""
MOST_GROWTH = 1.1
"""The exponent of the growth up to which it counts as linear."""
FIRST_GROWTH = 100
"""The ops from which on growth counts: of less, most of the time is that of any module."""

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

_CUDA = """\
#include <cstdint>

typedef unsigned long long u64;

/// Copies eight elements of a head's token from the keys to the values of a page of 16 tokens, 8 heads of 128.
static __device__ __forceinline__ void move(const uint16_t *__restrict__ keys, uint16_t *values,
                                            const uint32_t *__restrict__ pages, u64 page_stride, uint32_t t) {{
  u64 at = pages[t / 16] * page_stride + ((t % 16) * 8 + threadIdx.y) * 128 + threadIdx.x * 8;
  *(uint4 *)(values + at) = *(const uint4 *)(keys + at);
}}

extern "C" __global__ void __launch_bounds__(128)
    copy(uint16_t *__restrict__ blocks, const uint32_t *__restrict__ lengths, const uint32_t *__restrict__ lut,
         u64 max_pages, u64 num_layers, u64 layer) {{
  const u64 layer_stride = 16 * 8 * 128, role_stride = num_layers * layer_stride;
  uint16_t *keys = blocks + layer * layer_stride;
  const uint32_t *pages = lut + blockIdx.y * max_pages;
  const uint32_t first = lengths[blockIdx.y] + blockIdx.x;
{moves}
}}
"""
_CUDA_MOVE = "  move(keys, keys + role_stride, pages, 2 * role_stride, first + {i});"


@dataclass(frozen=True)
class Point:
    """Times of a module with so many kvcache ops; none where it took more than ``MOST_SECONDS`` and was stopped."""

    shape: str
    ops: int
    milliseconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median, or how long it had at least."""
        return statistics.median(self.milliseconds or [MOST_SECONDS * 1e3])


def source(ops: int, most_of_kernel: int) -> str:
    """A module of kernels that are equally long: four ops that make two views and a length, then loads and stores."""
    each = min(ops, most_of_kernel)
    if each < 6 or each % 2 or ops % each:
        raise ValueError(f"expects kernels of an even number of ops from 6 on, got {ops} in kernels of {each}")
    moves = "".join(_MOVE.format(i=i) for i in range(_count_moves(each)))
    kernels = "".join(_KERNEL.format(index=index, moves=moves) for index in range(ops // each))
    types = "bf16, #kv, page_size = 16"
    return f"""#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<{types}>
!cache = !kvcache.paged<{types}>
gpu.module @kernels {{{kernels}}}
"""


def cuda_source(ops: int) -> str:
    """The work of a kernel with so many ops, in CUDA C++."""
    moves = "\n".join(_CUDA_MOVE.format(i=i) for i in range(_count_moves(ops)))
    return _CUDA.format(moves=moves)


def _count_moves(ops: int) -> int:
    """The loads, each with a store, of a kernel with so many ops."""
    return (ops - 4) // 2


def measure(chip: str, runs: int, nvcc: Nvcc | None = None) -> list[Point]:
    """Compiles modules of each shape and size in turn, in this process, which one has warmed up; nvcc, if any, in its."""
    kvcache.compile(source(SIZES[0], SIZES[0]), target=chip)
    timers: dict[str, Callable[[int], float]] = {
        shape: functools.partial(_time, chip, most) for shape, most in SHAPES.items()
    }
    if nvcc:
        timers[PEER] = functools.partial(_time_nvcc, nvcc, chip)
    times: dict[tuple[str, int], list[float]] = {}
    for turn in range(runs):
        for shape, timer in timers.items():
            for ops in SIZES:
                if turn and not times.get((shape, ops)):
                    break
                found = times.setdefault((shape, ops), [])
                try:
                    found.append(timer(ops))
                except TookTooLongError:
                    break
                if found[-1] > MOST_SECONDS * 1e3 and ops > SIZES[0]:
                    break
    return [Point(shape, ops, tuple(found)) for (shape, ops), found in times.items()]


def _time(chip: str, most_of_kernel: int, ops: int) -> float:
    text = source(ops, most_of_kernel)
    start = time.perf_counter()
    kvcache.compile(text, target=chip)
    return (time.perf_counter() - start) * 1e3


def _time_nvcc(nvcc: Nvcc, chip: str, ops: int) -> float:
    with tempfile.TemporaryDirectory(prefix="kvcache-bench-") as folder:
        file = Path(folder, "copy.cu")
        file.write_text(cuda_source(ops))
        start = time.perf_counter()
        nvcc.compile_file(file, chip, MOST_SECONDS)
        return (time.perf_counter() - start) * 1e3


def growth(points: Sequence[Point], first_ops: int = FIRST_GROWTH) -> float | None:
    """The exponent of the time that the sizes of a shape take, from ``first_ops`` to the last: 1 is linear, 2 quadratic.

    By the median of the rounds' ratios, as compilers are compared: a short run finds a
    quiet moment more easily than a long one, so that their fastest would not do. What takes
    too long in one round has a time less. None where fewer than two sizes were compiled.
    """
    timed = [point for point in points if point.milliseconds]
    if len(timed) < 2:
        return None
    *earlier, last = timed
    first = next((point for point in earlier if point.ops >= first_ops), earlier[-1])
    ratios = [after / before for before, after in zip(first.milliseconds, last.milliseconds, strict=False)]
    return math.log(statistics.median(ratios)) / math.log(last.ops / first.ops)


def tabulate(points: Sequence[Point]) -> Table:
    table = Table(
        "module", ("kvcache ops", "{:,}"), "ms", ("fastest", "{:,.0f}"), ("slowest", "{:,.0f}"), "ms an op",
        heading="Growth of the compile time",
    )  # fmt: skip
    for point in points:
        times, over = point.milliseconds, "" if point.milliseconds else "over "
        each = f"{over}{point.median:,.0f}", min(times, default=None), max(times, default=None)
        table.add(point.shape, point.ops, *each, f"{over}{point.median / point.ops:.2f}")
    return table
