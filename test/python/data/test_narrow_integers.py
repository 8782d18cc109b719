"""Tests of arithmetic on lengths of 2^31 and more, which kernels narrow to 32 bits, against NumPy."""

import numpy as np
import pytest

import kvcache

PROGRAM = """
func.func @run(%a: memref<?xi32>, %b: memref<?xi32>, %out: memref<?x6xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %n = memref.dim %out, %c0 : memref<?x6xindex>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a32 = memref.load %a[%i] : memref<?xi32>
    %b32 = memref.load %b[%i] : memref<?xi32>
    %x = arith.index_castui %a32 : i32 to index
    %y = arith.index_castui %b32 : i32 to index
    %max = arith.maxsi %x, %y : index
    %min = arith.minsi %x, %y : index
    %half = arith.shrsi %x, %c1 : index
    %less = arith.cmpi slt, %x, %y : index
    %chosen = arith.select %less, %c1, %c0 : index
    %quotient = arith.divsi %x, %c3 : index
    %rest = arith.remsi %x, %c3 : index
    memref.store %max, %out[%i, %c0] : memref<?x6xindex>
    memref.store %min, %out[%i, %c1] : memref<?x6xindex>
    memref.store %half, %out[%i, %c2] : memref<?x6xindex>
    memref.store %chosen, %out[%i, %c3] : memref<?x6xindex>
    memref.store %quotient, %out[%i, %c4] : memref<?x6xindex>
    memref.store %rest, %out[%i, %c5] : memref<?x6xindex>
  }
  return
}
"""


@pytest.mark.parametrize("target", ["emulator:sm_80", "cpu"])
def test_lengths_of_32_bits_are_not_negative(target):
    edges = np.array([0, 1, 2, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1], np.uint32)
    a, b = (part.reshape(-1) for part in np.meshgrid(edges, edges))
    out = np.zeros((len(a), 6), np.int64)
    program = kvcache.jit(PROGRAM, target=target)
    program.call("run", a.view(np.int32).copy(), b.view(np.int32).copy(), out)
    x, y = a.astype(np.int64), b.astype(np.int64)
    expected = [np.maximum(x, y), np.minimum(x, y), x >> 1, x < y, x // 3, x % 3]
    np.testing.assert_array_equal(out, np.stack(expected, axis=1))
