"""Tests that ptxas keeps the code's accesses to low bits of floats, without conversions."""

import subprocess

import pytest
from compiled import needs_nvdisasm, needs_ptxas
from kvcache.compilation import toolchain
from places import ROOT

import kvcache

LANES = (1, 2, 3, 4)
QUANTIZE = """
gpu.func @quantize{lanes}(%in: memref<?x{lanes}xf32>, %out: memref<?x{lanes}xi8>, %scales: memref<?xf32>) kernel {{
  %c0 = arith.constant 0 : index
  %t = gpu.thread_id x
  %x = vector.load %in[%t, %c0] : memref<?x{lanes}xf32>, vector<{lanes}xf32>
  %w, %scale = kvcache.quantize %x : vector<{lanes}xf32> -> vector<{lanes}xi8>, f32
  vector.store %w, %out[%t, %c0] : memref<?x{lanes}xi8>, vector<{lanes}xi8>
  memref.store %scale, %scales[%t] : memref<?xf32>
  gpu.return
}}"""


def write_quantize():
    return "\n".join(["gpu.module @kernels {", *(QUANTIZE.format(lanes=lanes) for lanes in LANES), "}"])


@needs_ptxas
@needs_nvdisasm
@pytest.mark.parametrize("name", ["prevent-f2i-miscompile.mlir", "quantize"])
def test_no_conversion(name, tmp_path):
    text = write_quantize() if name == "quantize" else (ROOT / "test/Target" / name).read_text()
    path = tmp_path / "kernels.cubin"
    # All kernels of a module have equal code.
    path.write_bytes(next(iter(kvcache.compile(text).kernels.values())).cubin)
    sass = subprocess.run([toolchain.find_tool("nvdisasm"), path], capture_output=True, text=True, check=True).stdout
    # The scales are f32, so that no kernel has to convert a number.
    assert "STG.E" in sass and "F2I" not in sass
