"""Reductions over the threads of a block, on the CPU and the emulator, against NumPy; ptxas
takes the kernels."""

import functools

import ml_dtypes
import numpy as np
import pytest
from compiled import needs_ptxas

import kvcache

TARGETS = ["cpu", "emulator:sm_80"]
ROWS = 3

# The type, the combiner of %a and %b, NumPy's function and the initial value.
CASES = {
    "sum": ("f32", "arith.addf", np.add, 5),
    "sum of f64": ("f64", "arith.addf", np.add, -2),
    "sum of f16": ("f16", "arith.addf", np.add, 1),
    "largest": ("f32", "arith.maximumf", np.maximum, 2),
    "largest of bf16": ("bf16", "arith.maximumf", np.maximum, -100),
    "smallest": ("f32", "arith.minimumf", np.minimum, 100),
    "sum of i8": ("i8", "arith.addi", np.add, 3),
    "sum of i64": ("i64", "arith.addi", np.add, 1 << 40),
    "largest of i32": ("i32", "arith.maxsi", np.maximum, 0),
    "bits of i16": ("i16", "arith.xori", np.bitwise_xor, 77),
}
DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def get_dtype(type):
    return np.dtype(DTYPES.get(type) or type.replace("i", "int"))


def write_program(type, combine, initial, threads):
    number = float(initial) if "f" in type else initial
    return f"""
func.func @reduce(%x: memref<?x{threads}x{type}>, %y: memref<?x{type}>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant {threads} : index
  %initial = arith.constant {number} : {type}
  %n = memref.dim %x, %c0 : memref<?x{threads}x{type}>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
    %all = scf.parallel (%j) = (%c0) to (%threads) step (%c1) init (%initial) -> {type} {{
      %v = memref.load %x[%i, %j] : memref<?x{threads}x{type}>
      scf.reduce(%v : {type}) {{
      ^bb0(%a: {type}, %b: {type}):
        %c = {combine} %a, %b : {type}
        scf.reduce.return %c : {type}
      }}
    }}
    memref.store %all, %y[%i] : memref<?x{type}>
  }}
  return
}}
"""


def draw(shape, dtype):
    """Small integers, whose sums are exact in any order."""
    return np.random.default_rng(0).integers(-3, 4, shape).astype(dtype)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_reduction_of_block_matches_numpy(case, target):
    type, combine, reference, initial = CASES[case]
    dtype = get_dtype(type)
    x, y = draw((ROWS, 96), dtype), np.zeros(ROWS, dtype)
    kvcache.jit(write_program(type, combine, initial, 96), target=target).call("reduce", x, y)
    want = [functools.reduce(reference, row, dtype.type(initial)) for row in x]
    np.testing.assert_array_equal(y.astype(float), np.array(want).astype(float))


@pytest.mark.parametrize("threads", [1, 2, 7, 31, 32, 33, 64, 65, 500, 1024])
def test_block_may_have_any_number_of_threads(threads):
    x, y = draw((ROWS, threads), np.float32), np.zeros(ROWS, np.float32)
    source = write_program("f32", "arith.addf", 5, threads)
    kvcache.jit(source, target="emulator:sm_80").call("reduce", x, y)
    np.testing.assert_array_equal(y, x.sum(axis=1) + 5)


# Two reductions, an access of memory by the whole block, a second result, and a loop that stores.
SOFTMAX = """
func.func @softmax(%x: memref<?x4x24xf32>, %y: memref<?x4x24xf32>, %count: memref<1xi32>, %sums: memref<?x2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c24 = arith.constant 24 : index
  %one = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %none = arith.constant 1000 : index
  %n = memref.dim %x, %c0 : memref<?x4x24xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.atomic_rmw addi %one, %count[%c0] : (i32, memref<1xi32>) -> i32
    %max, %first = scf.parallel (%h, %j) = (%c0, %c0) to (%c4, %c24) step (%c1, %c1) init (%least, %none) -> (f32, index) {
      %v = memref.load %x[%i, %h, %j] : memref<?x4x24xf32>
      %is_positive = arith.cmpf ogt, %v, %zero : f32
      %k = arith.muli %h, %c24 : index
      %place = arith.addi %k, %j : index
      %candidate = arith.select %is_positive, %place, %none : index
      scf.reduce(%v, %candidate : f32, index) {
      ^bb0(%a: f32, %b: f32):
        %c = arith.maximumf %a, %b : f32
        scf.reduce.return %c : f32
      }, {
      ^bb0(%a: index, %b: index):
        %c = arith.minui %a, %b : index
        scf.reduce.return %c : index
      }
    }
    memref.store %max, %sums[%i, %c0] : memref<?x2xf32>
    %again = memref.load %sums[%i, %c0] : memref<?x2xf32>
    %sum = scf.parallel (%h, %j) = (%c0, %c0) to (%c4, %c24) step (%c1, %c1) init (%zero) -> f32 {
      %v = memref.load %x[%i, %h, %j] : memref<?x4x24xf32>
      %d = arith.subf %v, %again : f32
      %e = math.exp %d : f32
      memref.store %e, %y[%i, %h, %j] : memref<?x4x24xf32>
      scf.reduce(%e : f32) {
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        scf.reduce.return %c : f32
      }
    }
    %place_i32 = arith.index_cast %first : index to i32
    %place_f32 = arith.sitofp %place_i32 : i32 to f32
    memref.store %place_f32, %sums[%i, %c1] : memref<?x2xf32>
    scf.parallel (%h, %j) = (%c0, %c0) to (%c4, %c24) step (%c1, %c1) {
      %last = arith.subi %c24, %j : index
      %other = arith.subi %last, %c1 : index
      %e = memref.load %y[%i, %h, %j] : memref<?x4x24xf32>
      %p = arith.divf %e, %sum : f32
      memref.store %p, %y[%i, %h, %j] : memref<?x4x24xf32>
    }
  }
  return
}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_several_loops_of_block_are_phases(target):
    x = np.random.default_rng(1).standard_normal((ROWS, 4, 24)).astype(np.float32)
    x[1] = -np.abs(x[1])
    y, count, sums = np.zeros_like(x), np.zeros(1, np.int32), np.zeros((ROWS, 2), np.float32)
    kvcache.jit(SOFTMAX, target=target).call("softmax", x, y, count, sums)
    flat = x.reshape(ROWS, -1).astype(np.float64)
    want = np.exp(flat - flat.max(axis=1, keepdims=True))
    want /= want.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(y.reshape(ROWS, -1), want, rtol=1e-5)
    assert count[0] == ROWS
    first = [np.flatnonzero(row > 0)[0] if (row > 0).any() else 1000 for row in flat]
    np.testing.assert_array_equal(sums, np.stack([flat.max(axis=1), first], axis=1).astype("f"))


def write_kernel(op, type, block=(8, 3, 4)):
    """A reduction that all threads execute five times, in a loop."""
    x, y, z = block
    return f"""
module attributes {{gpu.container_module}} {{
gpu.module @kernels {{
  gpu.func @kernel(%x: memref<5x?x{type}>, %y: memref<5x?x{type}>) kernel
      attributes {{known_block_size = array<i32: {x}, {y}, {z}>}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %ny = arith.constant {y} : index
    %nx = arith.constant {x} : index
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %tz = gpu.thread_id z
    %a = arith.muli %tz, %ny : index
    %b = arith.addi %a, %ty : index
    %c = arith.muli %b, %nx : index
    %t = arith.addi %c, %tx : index
    scf.for %i = %c0 to %c5 step %c1 {{
      %v = memref.load %x[%i, %t] : memref<5x?x{type}>
      %r = gpu.all_reduce {op} %v uniform {{}} : ({type}) -> {type}
      memref.store %r, %y[%i, %t] : memref<5x?x{type}>
    }}
    gpu.return
  }}
}}
func.func @run(%x: memref<5x?x{type}>, %y: memref<5x?x{type}>) {{
  %c1 = arith.constant 1 : index
  %nx = arith.constant {x} : index
  %ny = arith.constant {y} : index
  %nz = arith.constant {z} : index
  gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1) threads in (%nx, %ny, %nz)
      args(%x: memref<5x?x{type}>, %y: memref<5x?x{type}>)
  return
}}
}}
"""


@pytest.mark.parametrize(
    ("op", "type", "reference"),
    [
        ("add", "i32", np.add),
        ("add", "f64", np.add),
        ("mul", "i64", np.multiply),
        ("minsi", "i8", np.minimum),
        ("maxui", "i16", lambda a, b: np.maximum(a.view(np.uint16), b.view(np.uint16)).view(np.int16)),
        ("maxnumf", "f32", np.maximum),
        ("minimumf", "f16", np.minimum),
        ("xor", "i32", np.bitwise_xor),
    ],
)
def test_all_reduce_in_loop_matches_numpy(op, type, reference):
    dtype = get_dtype(type)
    x = draw((5, 96), dtype)
    y = np.zeros_like(x)
    kvcache.jit(write_kernel(op, type), target="emulator:sm_80").call("run", x, y)
    for row, results in zip(x, y):
        want = functools.reduce(reference, row[1:], row[:1])
        np.testing.assert_array_equal(results, np.broadcast_to(want, 96))


@pytest.mark.parametrize("type", ["f64", "i64", "i8", "f32", "i32", "f16", "bf16"])
def test_subgroup_reduction_matches_numpy(type):
    dtype = get_dtype(type)
    source = write_kernel("add", type, (64, 1, 1)).replace("all_reduce", "subgroup_reduce")
    source = source.replace("uniform {} :", "uniform :")
    x = draw((5, 64), dtype)
    y = np.zeros_like(x)
    kvcache.jit(source, target="emulator:sm_80").call("run", x, y)
    want = np.repeat(x.reshape(5, 2, 32).sum(axis=2), 32, axis=1)
    np.testing.assert_array_equal(y, want)


@needs_ptxas
@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
def test_reductions_assemble(chip):
    sources = [SOFTMAX, write_kernel("maxnumf", "f32"), write_kernel("add", "f64")]
    sources += [write_program(*CASES[case][:2], CASES[case][3], 96) for case in CASES]
    for source in sources:
        for kernel in kvcache.compile(source, chip).kernels.values():
            assert "bar.sync" in kernel.ptx or "barrier" in kernel.ptx
            assert "shfl.sync" in kernel.ptx
            assert len(kernel.cubin) > 0
