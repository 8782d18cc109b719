"""Tests of parallel loops of the host: equal bytes with any number of threads."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import kvcache
import numpy as np
import pytest
from whole_caches import as_uint, make_cache, random_rows

THREADS = [1, 2, 7]
QUERY_HEADS = 6


def run_operations(name, threads, **options):
    """Runs all operations; returns dense outputs, and the bytes of the cache."""
    manager, inputs, _ = make_cache(name)
    params = manager.params
    total = int(inputs.row_offsets[-1])
    rows = [random_rows(params, total, "f32", seed) for seed in (1, 2)]
    kvcache.ops.append(params, dtype="f32", threads=threads, **options)(inputs, 1, *rows)
    gathered = np.full((2, 3, 40, params.n_kv_heads, params.head_dim), np.nan, np.float32)
    kvcache.ops.gather(params, dtype="f32", threads=threads, **options)(
        inputs, 1, *gathered
    )
    q = (
        np.random.default_rng(3)
        .standard_normal((total, QUERY_HEADS, params.head_dim))
        .astype(np.float32)
    )
    out, lse = np.empty_like(q), np.empty((total, QUERY_HEADS), np.float32)
    attend = kvcache.ops.attention(
        params, QUERY_HEADS, dtype="f32", threads=threads, **options
    )
    attend(inputs, 1, q, out=out, lse=lse, scale=0.1)
    merged, merged_lse = np.empty_like(out), np.empty_like(lse)
    merge = kvcache.ops.merge_states(
        QUERY_HEADS, params.head_dim, dtype="f32", threads=threads
    )
    merge(np.stack([out, q]), np.stack([lse, lse + 1]), merged, merged_lse)
    pairs = np.array([[int(inputs.lut[0, 0]), 60], [3, 61], [-1, 62]], np.int32)
    kvcache.ops.copy_pages(params, threads=threads, **options)(inputs, pairs)
    return [gathered, out, lse, merged, merged_lse, *manager.blocks, *manager.scales]


@pytest.mark.parametrize("options", [{}, {"bounds_checks": True}], ids=["plain", "checked"])
@pytest.mark.parametrize("name", ["bf16", "f32", "fp8-token", "nvfp4", "int4-group"])
def test_operations_write_the_same_bytes(name, options):
    one, *others = (
        [as_uint(each) for each in run_operations(name, n, **options)] for n in THREADS
    )
    for other in others:
        for expected, found in zip(one, other, strict=True):
            np.testing.assert_array_equal(found, expected)


LOOPS = """
func.func @steps(%m: memref<?x?x?xi64>, %a0: index, %a1: index, %a2: index, %b0: index, %b1: index, %b2: index,
                 %s0: index, %s1: index, %s2: index) {
  %c1 = arith.constant 1 : i64
  scf.parallel (%i, %j, %k) = (%a0, %a1, %a2) to (%b0, %b1, %b2) step (%s0, %s1, %s2) {
    %old = memref.load %m[%i, %j, %k] : memref<?x?x?xi64>
    %new = arith.addi %old, %c1 : i64
    memref.store %new, %m[%i, %j, %k] : memref<?x?x?xi64>
  }
  return
}

// Each iteration has memory for itself, in the frame and around a view.
func.func @private(%m: memref<?xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %m, %c0 : memref<?xi64>
  %own = memref.alloca() : memref<4096xi64>
  %view = memref.reinterpret_cast %own to offset: [0], sizes: [64, 64], strides: [64, 1]
      : memref<4096xi64> to memref<64x64xi64>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %number = arith.index_cast %i : index to i64
    scf.for %r = %c0 to %c64 step %c1 {
      scf.for %c = %c0 to %c64 step %c1 {
        memref.store %number, %view[%r, %c] : memref<64x64xi64>
      }
    }
    %sum = scf.for %r = %c0 to %c64 step %c1 iter_args(%s = %number) -> i64 {
      %t = scf.for %c = %c0 to %c64 step %c1 iter_args(%u = %s) -> i64 {
        %e = memref.load %view[%r, %c] : memref<64x64xi64>
        %v = arith.addi %u, %e : i64
        scf.yield %v : i64
      }
      scf.yield %t : i64
    }
    memref.store %sum, %m[%i] : memref<?xi64>
  }
  return
}

// Iterations share memory that the function reads later.
func.func @shared(%out: memref<128xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %memory = memref.alloca() : memref<128xi64>
  scf.parallel (%i) = (%c0) to (%c128) step (%c1) {
    %number = arith.index_cast %i : index to i64
    memref.store %number, %memory[%i] : memref<128xi64>
  }
  memref.copy %memory, %out : memref<128xi64> to memref<128xi64>
  return
}

func.func @sum(%n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %sum = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%c0) -> index {
    scf.reduce(%i : index) {
    ^bb0(%a: index, %b: index):
      %c = arith.addi %a, %b : index
      scf.reduce.return %c : index
    }
  }
  return %sum : index
}

func.func @fails(%m: memref<?xi64>, %first: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %m, %c0 : memref<?xi64>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %own = memref.alloc() : memref<16xi64>
    %isBefore = arith.cmpi ult, %i, %first : index
    %number = arith.index_cast %i : index to i64
    cf.assert %isBefore, "too late"
    memref.store %number, %own[%c0] : memref<16xi64>
    %v = memref.load %own[%c0] : memref<16xi64>
    memref.store %v, %m[%i] : memref<?xi64>
    memref.dealloc %own : memref<16xi64>
  }
  return
}
"""


@pytest.fixture(params=THREADS, scope="module")
def loops(request):
    return kvcache.jit(LOOPS, threads=request.param)


@pytest.mark.parametrize(
    ("first", "end", "step"),
    [((0, 0, 0), (5, 4, 3), (1, 1, 1)), ((1, 0, 2), (9, 10, 8), (3, 4, 5)), ((0, 5, 0), (9, 3, 8), (1, 1, 1)),
     ((0, 0, 0), (1, 1, 9), (1, 1, 2)), ((2, 2, 2), (2, 9, 9), (1, 1, 1))],
)  # fmt: skip
def test_each_iteration_runs_once(loops, first, end, step):
    counts = np.zeros((10, 10, 10), np.int64)
    loops.call("steps", counts, *first, *end, *step)
    expected = np.zeros_like(counts)
    expected[tuple(slice(*each) for each in zip(first, end, step))] = 1
    np.testing.assert_array_equal(counts, expected)


def test_memory_of_an_iteration_is_its_own(loops):
    numbers = np.zeros(500, np.int64)
    for _ in range(5):
        loops.call("private", numbers)
        np.testing.assert_array_equal(numbers, np.arange(500) * 4097)


def test_memory_that_is_read_later_is_shared(loops):
    numbers = np.zeros(128, np.int64)
    loops.call("shared", numbers)
    np.testing.assert_array_equal(numbers, np.arange(128))


def test_reductions(loops):
    assert loops.call("sum", 1000) == 499500


def test_a_failed_check_is_the_first_in_order(loops):
    for first in (0, 1, 250, 999):
        numbers = np.full(1000, -1)
        with pytest.raises(kvcache.CheckError, match="too late"):
            loops.call("fails", numbers, first)
        np.testing.assert_array_equal(numbers[:first], np.arange(first))
        assert (numbers[first:] == -1).all()
    numbers = np.full(1000, -1)
    loops.call("fails", numbers, 1000)
    np.testing.assert_array_equal(numbers, np.arange(1000))


@pytest.mark.parametrize("threads", THREADS)
def test_the_message_is_of_the_first_failure(threads):
    manager, inputs, _ = make_cache("f32", lengths=(60,), new=(40,))
    params = manager.params
    rows = random_rows(params, 40, "f32"), random_rows(params, 40, "f32")
    append = kvcache.ops.append(params, slots="i64", bounds_checks=True, threads=threads)
    slots = np.arange(40)
    slots[[13, 14, 39]] = [5000, 6000, 7000]
    with pytest.raises(
        kvcache.CheckError, match=r"page id is out of range: 1250 is not in"
    ):
        append(inputs, 0, *rows, slots=slots)


def test_threads_of_the_caller_have_separate_teams(loops):
    def run(_):
        numbers = np.zeros(500, np.int64)
        loops.call("private", numbers)
        return numbers

    with ThreadPoolExecutor(4) as pool:
        for numbers in pool.map(run, range(16)):
            np.testing.assert_array_equal(numbers, np.arange(500) * 4097)


def test_a_loop_has_the_threads_that_it_was_made_for(tmp_path):
    script = """
import os, pathlib, sys
import numpy as np
import kvcache
loops = kvcache.jit(pathlib.Path(sys.argv[1]), threads=5)
before = len(os.listdir("/proc/self/task"))
loops.call("private", np.zeros(500, np.int64))
print(len(os.listdir("/proc/self/task")) - before)
"""
    (tmp_path / "loops.mlir").write_text(LOOPS)
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "loops.mlir"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "4\n"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_runs_loops_alone(loops):
    numbers = np.zeros(500, np.int64)
    loops.call("private", numbers)
    child = os.fork()
    if child == 0:
        numbers[:] = 0
        loops.call("private", numbers)
        os._exit(0 if (numbers == np.arange(500) * 4097).all() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_process_without_openmp_gets_an_error(monkeypatch):
    extension = kvcache._native.extension()
    monkeypatch.setattr(extension, "has_threads", lambda: False)
    with pytest.raises(
        kvcache.TargetError, match="3 threads need an OpenMP library.*libgomp1"
    ):
        kvcache.jit(LOOPS, threads=3)
    kvcache.jit(LOOPS, threads=1)


@pytest.mark.parametrize(
    ("threads", "target", "error", "message"),
    [(0, "cpu", ValueError, "'threads' to be positive, got 0"), (1.5, "cpu", TypeError, "'threads'"),
     (5000, "cpu", ValueError, "'threads' to be at most 4096"),
     (2, "emulator:sm_90a", ValueError, "'threads' has no meaning for target 'emulator:sm_90a', only for 'cpu'")],
)  # fmt: skip
def test_wrong_numbers(threads, target, error, message):
    with pytest.raises(error, match=message):
        kvcache.jit(LOOPS, target, threads=threads)
