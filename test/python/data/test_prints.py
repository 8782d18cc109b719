"""Prints of kernels: the CPU and the emulator print as Python formats."""

import re

import numpy as np
import pytest
from compiled import needs_ptxas

import kvcache

SOURCE = """
func.func @print(%x: memref<?x2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %x, %c0 : memref<?x2xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    scf.parallel (%j) = (%c0) to (%c2) step (%c1) {
      %v = memref.load %x[%i, %j] : memref<?x2xf32>
      %h = arith.truncf %v : f32 to f16
      %b = arith.truncf %v : f32 to bf16
      %d = arith.extf %v : f32 to f64
      %k = arith.fptosi %v : f32 to i32
      %k8 = arith.trunci %k : i32 to i8
      %k16 = arith.trunci %k : i32 to i16
      %k64 = arith.extsi %k : i32 to i64
      gpu.printf "%5lld|%-3lld|%.3f|%e|%g|%.1f|%d|%08x|%d|%u|%d|100%%\\n", %i, %j, %v, %d, %h, %b, %k, %k, %k8, %k16, %k64
          : index, index, f32, f64, f16, bf16, i32, i32, i8, i16, i64
    }
  }
  return
}
"""


@pytest.mark.parametrize("target", ["cpu", "emulator:sm_80"])
def test_prints_match_python_format(target, capfd):
    x = np.float32([[0.5, -3.25], [1e4, -0.0], [12, 7.5]])
    kvcache.jit(SOURCE, target=target).call("print", x)
    lines = [
        "%5d|%-3d|%.3f|%e|%g|%.1f|%d|%08x|%d|%u|%d|100%%"
        % (i, j, v, v, float(np.float16(v)), round_to_bf16(v), int(v), int(v) & 0xFFFFFFFF,
           (int(v) + 128) % 256 - 128, int(v) & 0xFFFF, int(v))
        for i, row in enumerate(x.tolist())
        for j, v in enumerate(row)
    ]
    assert sorted(capfd.readouterr().out.splitlines()) == sorted(lines)


def round_to_bf16(number):
    """The number with eight bits, rounded to nearest even."""
    bits = int(np.float32(number).view(np.uint32))
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return float(np.uint32(rounded).view(np.float32))


@needs_ptxas
def test_prints_assemble():
    (kernel,) = kvcache.compile(SOURCE, "sm_90a").kernels.values()
    assert re.search(r"call.*vprintf", kernel.ptx, re.DOTALL)
    assert len(kernel.cubin) > 0
