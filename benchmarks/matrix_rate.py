"""The rates at which one core multiplies: plain loops of one instruction, by the compiler of kvcache.

Each step has one product for each accumulator. 12 vectors of 512 bits cover the latency of any CPU, and 6 are as many
as 16 registers of 256 bits hold. Products of tiles have four accumulators of two times two tiles. No loop reads memory.
"""

from __future__ import annotations

import functools
import time

import kvcache
import numpy as np
from kvcache.compilation.processors import find_features
from kvcache.execution.matrix import choose_mma

ACCUMULATORS = (6, 12)
LANES = 16
"""Lanes of f32 of an accumulator."""
STEPS, LOOPS = 100_000, 9
INSTRUCTIONS = {
    "multiply-adds": (2 * LANES, "vector<16xf32>", "math.fma %factors, %factors, {} : vector<16xf32>"),
    "dot products": (
        4 * LANES,
        "vector<32xbf16>",
        "x86vector.avx512.dot {}, %factors, %factors : vector<32xbf16> -> vector<16xf32>",
    ),
}
"""By name: the operations of an instruction, the type of its factors, and the text of one product."""


def write_source(count: int, factors: str, product: str) -> str:
    """Returns a function that multiplies vectors of a type, and adds to so many accumulators."""
    names = [f"%a{i}" for i in range(count)]
    carried = ", ".join(f"{name} = %zero" for name in names)
    types = ", ".join(["vector<16xf32>"] * count)
    products = "".join(f"\n    %n{i} = {product.format(name)}" for i, name in enumerate(names))
    sums = "".join(f"\n  %s{i + 1} = arith.addf %s{i}, %all#{i} : vector<16xf32>" for i in range(count))
    return f"""
func.func @multiply(%numbers: memref<16xi32>, %out: memref<16xf32>, %steps: index) {{
  %start = arith.constant 0 : index
  %one = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %bits = vector.load %numbers[%start] : memref<16xi32>, vector<16xi32>
  %factors = vector.bitcast %bits : vector<16xi32> to {factors}
  %all:{count} = scf.for %i = %start to %steps step %one iter_args({carried}) -> ({types}) {{{products}
    scf.yield {", ".join(f"%n{i}" for i in range(count))} : {types}
  }}
  %s0 = arith.constant dense<0.0> : vector<16xf32>{sums}
  vector.store %s{count}, %out[%start] : memref<16xf32>, vector<16xf32>
  return
}}
"""


TILES = 4
TILE_SOURCE = """
func.func @multiply(%numbers: memref<16x16xi32>, %out: memref<16x16xf32>, %steps: index) {
  %start = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = amx.tile_load %numbers[%start, %start] : memref<16x16xi32> into !amx.tile<16x32xbf16>
  %b = amx.tile_load %numbers[%start, %start] : memref<16x16xi32> into !amx.tile<16x32xbf16>
  %c = amx.tile_load %numbers[%start, %start] : memref<16x16xi32> into !amx.tile<16x32xbf16>
  %d = amx.tile_load %numbers[%start, %start] : memref<16x16xi32> into !amx.tile<16x32xbf16>
  %zero = amx.tile_zero : !amx.tile<16x16xf32>
  %all:4 = scf.for %i = %start to %steps step %one iter_args(%s0 = %zero, %s1 = %zero, %s2 = %zero, %s3 = %zero)
      -> (!amx.tile<16x16xf32>, !amx.tile<16x16xf32>, !amx.tile<16x16xf32>, !amx.tile<16x16xf32>) {
    %n0 = amx.tile_mulf %a, %c, %s0 : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
    %n1 = amx.tile_mulf %a, %d, %s1 : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
    %n2 = amx.tile_mulf %b, %c, %s2 : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
    %n3 = amx.tile_mulf %b, %d, %s3 : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
    scf.yield %n0, %n1, %n2, %n3
      : !amx.tile<16x16xf32>, !amx.tile<16x16xf32>, !amx.tile<16x16xf32>, !amx.tile<16x16xf32>
  }
  amx.tile_store %out[%start, %start], %all#0 : memref<16x16xf32>, !amx.tile<16x16xf32>
  amx.tile_store %out[%start, %start], %all#1 : memref<16x16xf32>, !amx.tile<16x16xf32>
  amx.tile_store %out[%start, %start], %all#2 : memref<16x16xf32>, !amx.tile<16x16xf32>
  amx.tile_store %out[%start, %start], %all#3 : memref<16x16xf32>, !amx.tile<16x16xf32>
  return
}
"""


def time_loop(source: str, operations: int, *shape: int) -> float:
    """Returns GFLOPS of a loop with so many operations in a step: the most of some calls."""
    program = kvcache.jit(source)
    numbers, out = np.full(shape, 0x3F803F80, np.int32), np.zeros(shape, np.float32)
    times = []
    for _ in range(LOOPS):
        start = time.process_time()
        program.call("multiply", numbers, out, STEPS)
        times.append(time.process_time() - start)
    return operations * STEPS / min(times) / 1e9


def measure_rate(count: int, operations: int, factors: str, product: str) -> float:
    """Returns GFLOPS of an instruction with so many accumulators."""
    return time_loop(write_source(count, factors, product), operations * count, LANES)


@functools.cache
def measure_rates() -> dict[str, float]:
    """Returns GFLOPS of each instruction that this process may use."""
    rates = {}
    for name, instruction in INSTRUCTIONS.items():
        try:
            rates[name] = max(measure_rate(count, *instruction) for count in ACCUMULATORS)
        except kvcache.CompileError:
            continue
    # The choice asks for the permission, without which such an instruction is illegal.
    if choose_mma(find_features(), opt_level=2) == "amx":
        rates["tile products"] = time_loop(TILE_SOURCE, TILES * 2 * LANES * LANES * 2 * LANES, LANES, LANES)
    return rates
