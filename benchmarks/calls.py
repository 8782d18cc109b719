"""The cost of a call of a compiled function, from Python to its first instruction.

The function takes six arrays and three numbers, and does nothing. Arrays of each library that is installed are passed
to ``JitModule.call`` and to the function of TVM-FFI, and beside them to a function of TVM-FFI's own that checks
nothing: the way on which FlashInfer and others launch kernels. Nothing runs on a GPU.

``--standin`` takes the driver of the tests, build/test/Runtime/libfake_cuda.so: then the function is also compiled for
CUDA, where it launches a kernel. The driver does nothing in a launch, so the time is that of our code up to it.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import sys
import timeit
from collections.abc import Callable, Sequence
from typing import Any

import kvcache
import ml_dtypes
import numpy as np
import tvm_ffi
from command import Command
from record import Record
from report import Table

SOURCE = """
func.func @nothing(%blocks: memref<?x2x?x16x8x128xbf16>, %lengths: memref<?xi32>,
                   %table: memref<?x?xi32>, %keys: memref<?x8x128xbf16>,
                   %values: memref<?x8x128xbf16>, %offsets: memref<?xi32>,
                   %max_seq: i32, %max_cache: i32, %layer: index) {
  return
}
"""
KERNEL = SOURCE.replace(
    "  return",
    """  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = arith.constant 0 : i32
    memref.store %zero, %lengths[%tx] : memref<?xi32>
    gpu.terminator
  }
  return""",
)
SHAPES = ((4, 2, 2, 16, 8, 128), (2,), (2, 4), (3, 8, 128), (3, 8, 128), (3,))
INTEGERS = (False, True, True, False, False, True)
LIMITS = {"tvm_ffi": 0.5, "torch": 1.0, "numpy": 2.0}
"""Microseconds that a call of ``JitModule.call`` may take on an idle machine."""


def make_arrays(make: Callable[[tuple[int, ...], Any], Any], integer: Any, number: Any) -> list[Any]:
    return [make(shape, integer if is_int else number) for shape, is_int in zip(SHAPES, INTEGERS, strict=True)]


def list_libraries() -> dict[str, list[Any]]:
    """Arguments by library. NumPy itself has no bf16: there the function is one of f16."""
    halves = make_arrays(np.zeros, np.int32, np.float16)
    arrays: dict[str, list[Any]] = {
        "tvm_ffi": [tvm_ffi.from_dlpack(array) for array in halves],
        "numpy": halves,
        "ml_dtypes": make_arrays(np.zeros, np.int32, ml_dtypes.bfloat16),
    }
    if importlib.util.find_spec("torch"):
        import torch

        arrays["torch"] = make_arrays(lambda shape, dtype: torch.zeros(shape, dtype=dtype), torch.int32, torch.bfloat16)
    return arrays


def find_least(call: Callable[[], Any], runs: int, number: int) -> float:
    """Microseconds of a call: the least of some series, without those that wait for the machine."""
    return min(timeit.repeat(call, number=number, repeat=runs)) / number * 1e6


def time_calls(program: kvcache.JitModule, arrays: list[Any], runs: int, number: int, plain: bool = True) -> list[Any]:
    """Microseconds of ``call``, of our function, and of one that checks nothing.

    Args:
        plain: Whether TVM-FFI takes the arrays as they are; else there is only the first time.
    """
    blocks, lengths, table, keys, values, offsets = arrays
    function = program.function("nothing")
    unchecked = tvm_ffi.get_global_func("testing.nop", allow_missing=True) or tvm_ffi.get_global_func("ffi.Array")
    # Arguments are written out, as in a program: a tuple of them would be made and taken apart.
    calls = [
        lambda: program.call("nothing", blocks, lengths, table, keys, values, offsets, 1, 17, 0),
        lambda: function(blocks, lengths, table, keys, values, offsets, 1, 17, 0),
        lambda: unchecked(blocks, lengths, table, keys, values, offsets, 1, 17, 0),
    ]
    return [find_least(call, runs, number) if plain or call is calls[0] else None for call in calls]


def place(driver: ctypes.CDLL, array: np.ndarray) -> tvm_ffi.Tensor:
    """A tensor like ``array`` in memory of the driver, which has any contents."""
    from kvcache.devices import tensors

    address = ctypes.c_uint64()
    if driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(array.nbytes, 1))):
        raise MemoryError("the driver has no memory left")
    return tensors.place(array, address.value, 0)


def measure_launches(driver: ctypes.CDLL, runs: int, number: int = 50) -> list[Any]:
    """The row of a function that launches a kernel, on a driver of the tests that is this process' driver."""
    program = kvcache.jit(KERNEL.replace("bf16", "f16"), "cuda:sm_90a")
    arrays = make_arrays(lambda shape, dtype: place(driver, np.empty(shape, dtype)), np.int32, np.float16)
    program.load()
    driver.fakeCudaSetIdle(True)
    try:
        call, *others = time_calls(program, arrays, runs, number)
        return ["tvm_ffi, a launch", call, None, *others]
    finally:
        driver.fakeCudaSetIdle(False)


def open_standin(path: str) -> ctypes.CDLL:
    """The driver of the tests, which becomes the one of this process."""
    driver = ctypes.CDLL(path)
    for name, value in (("FAKE_CUDA_QUIET", "1"), ("FAKE_CUDA_VERSION", "13000")):
        driver.fakeCudaSetOption(name.encode(), value.encode())
    driver.cuInit(0)
    context = ctypes.c_void_p()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
    return driver


def measure(runs: int, number: int = 50) -> Table:
    """The least microseconds of calls, by library."""
    micros = "{:.2f}"
    table = Table(
        "arrays of", ("call, us", micros), ("limit", "{:.1f}"), ("function of TVM-FFI, us", micros),
        ("without checks, us", micros),
    )  # fmt: skip
    programs = {name: kvcache.jit(SOURCE.replace("bf16", name)) for name in ("bf16", "f16")}
    for library, arrays in list_libraries().items():
        program = programs["bf16" if library in ("ml_dtypes", "torch") else "f16"]
        call, *others = time_calls(program, arrays, runs, number, plain=library != "ml_dtypes")
        table.add(library, call, LIMITS.get(library), *others)
    return table


def run(options: argparse.Namespace) -> Record:
    driver = open_standin(options.standin) if options.standin else None
    table = measure(options.runs)
    if driver:
        table.add(*measure_launches(driver, options.runs))
    return Record("benchmarks/calls.py", {"calls": table}, runs=f"the least of {options.runs} series of 50 calls")


def main(arguments: Sequence[str] | None = None) -> int:
    command = Command("benchmarks/calls.py", __doc__)
    command.add_count("--runs", 2000, "series of 50 calls")
    command.add("--standin", metavar="LIBRARY", help="a driver of the tests, to launch a kernel on")
    return command.run(run, arguments)


if __name__ == "__main__":
    sys.exit(main())
