"""What a call of a compiled function costs, from Python to its first instruction.

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


def get_unchecked() -> Callable[..., Any]:
    return tvm_ffi.get_global_func("testing.nop", allow_missing=True) or tvm_ffi.get_global_func("ffi.Array")


def measure(runs: int, number: int = 50) -> list[tuple[str, float, float, float]]:
    """Library, and the least microseconds of ``call``, of our function, and of one that checks nothing."""
    rows = []
    programs = {name: kvcache.jit(SOURCE.replace("bf16", name)) for name in ("bf16", "f16")}
    for library, arrays in make_arrays().items():
        program = programs["bf16" if library in ("ml_dtypes", "torch") else "f16"]
        rows.append((library, *time_calls(program, arrays, runs, number, plain=library != "ml_dtypes")))
    return rows


def time_calls(
    program: kvcache.JitModule, arrays: list[Any], runs: int, number: int, plain: bool = True
) -> tuple[float, float, float]:
    """The three times for some arrays; only the first one unless TVM-FFI takes them as they are."""
    blocks, lengths, table, keys, values, offsets = arrays
    one, two, zero = NUMBERS
    function, unchecked = program.function("nothing"), get_unchecked()
    # Arguments are written out, as in a program: a tuple of them would be made and taken apart.
    calls = [
        lambda: program.call("nothing", blocks, lengths, table, keys, values, offsets, one, two, zero),
        lambda: function(blocks, lengths, table, keys, values, offsets, one, two, zero),
        lambda: unchecked(blocks, lengths, table, keys, values, offsets, one, two, zero),
    ]
    times = [find_least(each, runs, number) for each in calls[: 3 if plain else 1]]
    first, second, third = times + [float("nan")] * (3 - len(times))
    return first, second, third


def measure_launches(driver: ctypes.CDLL, runs: int, number: int = 50) -> list[tuple[str, float, float, float]]:
    """The same for a function that launches a kernel, on a driver of the tests that is this process' driver."""
    program = kvcache.jit(KERNEL.replace("bf16", "f16"), "cuda:sm_90a")
    arrays = [
        array_on_device(driver, shape, np.int32 if is_int else np.float16)
        for shape, is_int in zip(SHAPES, INTEGERS, strict=True)
    ]
    program.load()
    driver.fakeCudaSetIdle(True)
    try:
        return [("tvm_ffi, a launch", *time_calls(program, arrays, runs, number))]
    finally:
        driver.fakeCudaSetIdle(False)


def array_on_device(driver: ctypes.CDLL, shape: tuple[int, ...], dtype: Any) -> Any:
    """A tensor of TVM-FFI in memory of the driver."""
    from kvcache.devices import tensors

    array, address = np.empty(shape, dtype), ctypes.c_uint64()
    if driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(array.nbytes)):
        raise MemoryError("the driver has no memory left")
    return tensors.place(array, address.value, 0)


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
    parser.add_argument("--standin", metavar="LIBRARY", help="a driver of the tests, to launch a kernel on")
    args = parser.parse_args()
    driver = open_standin(args.standin) if args.standin else None
    rows = measure(args.runs)
    if driver:
        rows += measure_launches(driver, args.runs)
    print(render(rows), end="")


if __name__ == "__main__":
    main()
