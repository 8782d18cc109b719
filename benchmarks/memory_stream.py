"""The time that streams of bytes take one core: a plain loop over vectors, by the compiler of kvcache.

The loop has the vectors of this CPU, as operations of kvcache have, and their ordinary stores. It computes nothing but
one exclusive or for each vector that it reads, without which nothing would be read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import kvcache
import numpy as np

LANES = 16
"""Lanes of f32 of a vector: 64 bytes."""


def write_source(reads: int, writes: int) -> str:
    """Returns a function that reads and writes so many vectors in each step."""

    loads = [
        f"""
    %r{i} = arith.addi %from_at, %o{i} : index
    %v{i} = vector.load %from[%r{i}] : memref<?xi32>, vector<{LANES}xi32>
    %x{i + 1} = arith.xori %x{i}, %v{i} : vector<{LANES}xi32>"""
        for i in range(reads)
    ]
    stores = [
        f"""
    %w{i} = arith.addi %to_at, %o{i} : index
    vector.store %x{reads}, %to[%w{i}] : memref<?xi32>, vector<{LANES}xi32>"""
        for i in range(writes)
    ]
    constants = "".join(f"\n  %o{i} = arith.constant {i * LANES} : index" for i in range(max(reads, writes)))
    return f"""
func.func @stream(%from: memref<?xi32>, %to: memref<?xi32>, %steps: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %read = arith.constant {reads * LANES} : index
  %written = arith.constant {writes * LANES} : index
  %none = arith.constant dense<0> : vector<{LANES}xi32>{constants}
  %all = scf.for %i = %zero to %steps step %one iter_args(%x0 = %none) -> vector<{LANES}xi32> {{
    %from_at = arith.muli %i, %read : index
    %to_at = arith.muli %i, %written : index{"".join(loads)}{"".join(stores)}
    scf.yield %x{reads} : vector<{LANES}xi32>
  }}
  vector.store %all, %to[%zero] : memref<?xi32>, vector<{LANES}xi32>
  return
}}
"""


@functools.cache
def compile_stream(reads: int, writes: int) -> Any:
    return kvcache.jit(write_source(reads, writes))


def make_stream(read: int, written: int) -> Callable[[], None]:
    """Returns a loop that reads and writes at most so many bytes, and as many as whole steps have.

    A step has one vector of the fewer bytes, and as many whole ones as are left of the others: scales of 1 byte for 4
    elements and less do not count.
    """
    if not written:
        reads, writes = 4, 0
    elif read >= written:
        reads, writes = round(read / written), 1
    else:
        reads, writes = 1, round(written / read)
    bytes_ = LANES * 4
    steps = min(read // (reads * bytes_), written // (writes * bytes_) if writes else read)
    source = np.ones(read // 4, np.int32)
    target = np.ones(max(written // 4, LANES), np.int32)
    program = compile_stream(reads, writes)
    return lambda: program.call("stream", source, target, steps)
