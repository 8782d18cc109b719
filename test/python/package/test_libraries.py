"""Tests of libraries of compiled functions, loaded by TVM-FFI."""

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest
import tvm_ffi
from places import BUILD

import kvcache

SOURCE = """
func.func private @helper(%x: f32) -> f32 { return %x : f32 }
func.func @transpose(%from: memref<?x?xf32, strided<[?, ?]>>, %to: memref<?x?xf32>) -> index {
  memref.copy %from, %to : memref<?x?xf32, strided<[?, ?]>> to memref<?x?xf32>
  %c0 = arith.constant 0 : index
  %n = memref.dim %to, %c0 : memref<?x?xf32>
  return %n : index
}
func.func @check(%x: f16) -> f16 {
  %zero = arith.constant 0.0 : f16
  %positive = arith.cmpf ogt, %x, %zero : f16
  cf.assert %positive, "x is not positive"
  %y = math.exp %x : f16
  return %y : f16
}
"""
KERNEL = """
func.func @fill(%x: memref<?xf32>, %value: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.parallel (%b) = (%c0) to (%c1) step (%c1) {
    scf.parallel (%t) = (%c0) to (%c32) step (%c1) {
      memref.store %value, %x[%t] : memref<?xf32>
    }
  }
  return
}
"""


def check(library):
    source = np.arange(6, dtype=np.float32).reshape(2, 3)
    target = np.zeros((3, 2), np.float32)
    assert library.transpose(source.T, target) == 3
    assert (target == source.T).all()
    assert library.check(1.0) == pytest.approx(np.e, rel=1e-3)
    with pytest.raises(ValueError, match=r"transpose: argument 0 \('from'\) expects 2 dim"):
        library.transpose(source[0], target)


def test_functions_of_a_library(tmp_path):
    path = tmp_path / "functions.so"
    program = kvcache.jit(SOURCE)
    program.save_library(path)
    library = tvm_ffi.load_module(path)
    check(library)
    with pytest.raises(kvcache.CheckError, match="x is not positive"):
        library.check(-1.0)
    exported = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=just-symbols", path],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert sorted(exported) == ["__tvm_ffi_check", "__tvm_ffi_transpose"]
    program.save_library(path)  # again, while it is open
    check(library)


def test_libraries_need_no_compiler(tmp_path):
    """Runs in a process without this package, in which a failed check has its own kind."""
    source = SOURCE[SOURCE.index("func.func @check") :]
    kvcache.jit(source).save_library(tmp_path / "functions.so")
    program = f"""
import tvm_ffi
library = tvm_ffi.load_module({str(tmp_path / "functions.so")!r})
assert library.check(0.5) > 1
try:
    library.check(-1.0)
except RuntimeError as error:
    print(error)
with open("/proc/self/maps") as maps:
    assert "libMLIR.so" not in maps.read()
"""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "x is not positive" in done.stdout


def test_libraries_launch_kernels(tmp_path):
    """Runs on a driver that prints its calls."""
    path = tmp_path / "kernels.so"
    kvcache.compile(KERNEL, "sm_90a").save_library(path)
    program = f"""
import ctypes, numpy as np, tvm_ffi
library = tvm_ffi.load_module({str(path)!r})
tensor = tvm_ffi.from_dlpack(np.zeros(32, np.float32))
try:
    library.fill(tensor, 1.5)
except ValueError as error:
    print(error)
device = ctypes.c_int32.from_address(tensor.__chandle__() + 32)
device.value = 2
library.fill(tensor, 1.5)
device.value = 1
"""
    (fake,) = (BUILD / "test/Runtime").glob("libfake_cuda.*")
    done = subprocess.run(
        [sys.executable, "-u", "-c", program],
        # A driver of this version does not report the sizes of parameters.
        env=os.environ
        | {"KVCACHE_CUDA_DRIVER": str(fake), "FAKE_CUDA_VERSION": "12030"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    message = (
        "fill: argument 0 ('x') expects memory of cuda:0 for memref<?xf32>, got memory "
        "of the CPU"
    )
    assert message in done.stdout
    assert "cuLaunchKernel(" in done.stdout


def test_programs_that_can_not_be_saved(tmp_path):
    emulated = kvcache.jit(KERNEL, "emulator:sm_90a")
    with pytest.raises(ValueError, match="for target 'cpu' or 'cuda' to save, got .*sm_90a"):
        emulated.save_library(tmp_path / "kernels.so")
    kvcache.compile(KERNEL).save(tmp_path / "kernels.kvcache")
    loaded = kvcache.load(tmp_path / "kernels.kvcache")
    with pytest.raises(ValueError, match="that 'compile' made: an artifact has no host"):
        loaded.save_library(tmp_path / "kernels.so")
    assert not (tmp_path / "kernels.so").exists()


def test_linkers_that_are_missing_or_fail(tmp_path, monkeypatch):
    program = kvcache.jit(SOURCE)
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(kvcache.ToolchainError, match="there is no no-such-compiler"):
        program.save_library(tmp_path / "functions.so")
    monkeypatch.setenv("CC", "false")
    with pytest.raises(kvcache.ToolchainError, match=r"failed \(exit code 1\):\nit printed nothing"):
        program.save_library(tmp_path / "functions.so")
    monkeypatch.delenv("CC")
    with pytest.raises(TypeError, match="expects 'path' to be a path"):
        program.save_library(3)


def test_the_layout_of_tensors_is_known():
    """Checks the offsets at which tests change a tensor's device, and the package its type."""
    tensor = tvm_ffi.from_dlpack(np.zeros(3, np.int16))
    address = tensor.__chandle__()
    assert ctypes.c_int32.from_address(address + 32).value == 1
    assert ctypes.c_uint32.from_address(address + 44).value == 16 << 8 | 1 << 16
