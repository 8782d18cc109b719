"""What a call of a compiled function costs, from Python to its first instruction.

The function takes six arrays and three numbers, and does nothing. Arrays of each library that is installed are passed
to ``JitModule.call`` and to the function of TVM-FFI, and beside them to a function of TVM-FFI's own that checks
nothing: the way on which FlashInfer and others launch kernels. Nothing runs on a GPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import timeit
from collections.abc import Callable
from typing import Any

import kvcache
import ml_dtypes
import numpy as np
import tvm_ffi

SOURCE = """
func.func @nothing(%blocks: memref<?x2x?x16x8x128xbf16>, %lengths: memref<?xi32>,
                   %table: memref<?x?xi32>, %keys: memref<?x8x128xbf16>,
                   %values: memref<?x8x128xbf16>, %offsets: memref<?xi32>,
                   %max_seq: i32, %max_cache: i32, %layer: index) {
  return
}
"""
SHAPES = ((4, 2, 2, 16, 8, 128), (2,), (2, 4), (3, 8, 128), (3, 8, 128), (3,))
INTEGERS = (False, True, True, False, False, True)
NUMBERS = (1, 17, 0)
LIMITS = {"tvm_ffi": 0.5, "torch": 1.0, "numpy": 2.0}
"""Microseconds that a call of ``JitModule.call`` may take on an idle machine."""


def make_arrays() -> dict[str, list[Any]]:
    """Arguments by library. NumPy itself has no bf16: there the function is one of f16."""
    halves = [
        np.zeros(shape, np.int32 if is_int else np.float16) for shape, is_int in zip(SHAPES, INTEGERS, strict=True)
    ]
    arrays: dict[str, list[Any]] = {
        "tvm_ffi": [tvm_ffi.from_dlpack(array) for array in halves],
        "numpy": halves,
        "ml_dtypes": [
            array if array.dtype == np.int32 else array.astype(ml_dtypes.bfloat16) for array in halves
        ],
    }
    if importlib.util.find_spec("torch"):
        import torch

        arrays["torch"] = [
            torch.zeros(shape, dtype=torch.int32 if is_int else torch.bfloat16)
            for shape, is_int in zip(SHAPES, INTEGERS, strict=True)
        ]
    return arrays


def measure(runs: int, number: int = 50) -> list[tuple[str, float, float, float]]:
    """Library, and the least microseconds of ``call``, of our function, and of one that checks nothing."""
    unchecked = tvm_ffi.get_global_func("testing.nop", allow_missing=True) or tvm_ffi.get_global_func("ffi.Array")
    rows = []
    programs = {name: kvcache.jit(SOURCE.replace("bf16", name)) for name in ("bf16", "f16")}
    for library, arrays in make_arrays().items():
        program = programs["bf16" if library in ("ml_dtypes", "torch") else "f16"]
        function = program.function("nothing")
        args = (*arrays, *NUMBERS)
        times = [
            find_least(lambda: program.call("nothing", *args), runs, number),
            find_least(lambda: function(*args), runs, number) if library != "ml_dtypes" else float("nan"),
            find_least(lambda: unchecked(*args), runs, number) if library != "ml_dtypes" else float("nan"),
        ]
        rows.append((library, *times))
    return rows


def find_least(call: Callable[[], Any], runs: int, number: int) -> float:
    """Microseconds of a call: the least of some series, without those that wait for the machine."""
    return min(timeit.repeat(call, number=number, repeat=runs)) / number * 1e6


def render(rows: list[tuple[str, float, float, float]]) -> str:
    lines = [
        "| arrays of | call, us | limit | function of TVM-FFI, us | without checks, us |",
        "| --- | --- | --- | --- | --- |",
    ]
    for library, *times in rows:
        call, function, unchecked = (f"{time:.2f}" if time == time else "not taken" for time in times)
        limit = f"{LIMITS[library]:.1f}" if library in LIMITS else ""
        lines.append(f"| {library} | {call} | {limit} | {function} | {unchecked} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000, metavar="N", help="series of 50 calls (default: %(default)s)")
    print(render(measure(parser.parse_args().runs)), end="")


if __name__ == "__main__":
    main()
