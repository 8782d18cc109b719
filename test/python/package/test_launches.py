"""Tests of launches of compiled kernels without their host code, on the stand-in driver."""

import gc

import ml_dtypes
import numpy as np
import pytest
import standin
from cuda.bindings import driver as bindings
from standin import CHIP, DeviceArray, succeed

import kvcache

KERNELS = """
gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @write(%x: memref<?xf32>, %half: bf16, %n: i32, %flag: i1) kernel {
    %i = gpu.thread_id x
    %b = gpu.block_id x
    %size = gpu.block_dim x
    %first = arith.muli %b, %size : index
    %at = arith.addi %first, %i : index
    %wide = arith.extf %half : bf16 to f32
    %number = arith.sitofp %n : i32 to f32
    %sum = arith.addf %wide, %number : f32
    %value = arith.select %flag, %sum, %wide : f32
    memref.store %value, %x[%at] : memref<?xf32>
    gpu.return
  }
}
"""


@pytest.fixture(scope="module")
def kernel():
    source = KERNELS + """
func.func @launch(%x: memref<?xf32>, %half: bf16, %n: i32, %flag: i1) {
  %c1 = arith.constant 1 : index
  gpu.launch_func @kernels::@write blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%x : memref<?xf32>, %half : bf16, %n : i32, %flag : i1)
  return
}"""
    standin.get().emulate(f"module attributes {{gpu.container_module}} {{ {source} }}", opt_level=0)
    return kvcache.compile(KERNELS).kernel("write")


def arguments(kernel, **values):
    """The values in the order of the parameters."""
    given = {"x.size0": 64, "half": 1.5, "n": -3, "flag": True} | values
    return [given[parameter.name] for parameter in kernel.parameters]


def launched(driver):
    return [line for line in driver.calls() if line.startswith("cuLaunch")]


def test_a_kernel_runs_with_its_arguments(driver, kernel):
    stream = succeed(bindings.cuStreamCreate(1))
    array = DeviceArray(np.zeros(64, np.float32))
    kernel.launch(1, 32, *arguments(kernel, x=array), stream=stream)
    with driver.rules(stream):
        kernel.launch((2, 1), [32, 1, 1], *arguments(kernel, x=array.tensor(), n=2**32 - 3), stream=stream)
    succeed(bindings.cuStreamSynchronize(stream))
    assert (array.numpy() == -1.5).all()
    kernel.launch(1, 32, *arguments(kernel, x=array.address, flag=False, half=ml_dtypes.bfloat16(2.5)))
    assert array.numpy()[[0, 31, 32]].tolist() == [2.5, 2.5, -1.5]


def test_a_kernel_of_an_artifact(driver, kernel, tmp_path, old_objects_stay):
    kvcache.compile(KERNELS).save(tmp_path / "kernels.kvcache")
    driver.calls()
    array = DeviceArray(np.zeros(64, np.float32))
    loaded = kvcache.load(tmp_path / "kernels.kvcache")
    for _ in range(2):
        loaded.kernel("write").launch(2, 32, *arguments(kernel, x=array))
    assert (array.numpy() == -1.5).all()
    del loaded
    gc.collect()
    names = [line.partition("(")[0] for line in driver.calls()]
    assert names.count("cuModuleLoadDataEx") == names.count("cuModuleUnload") == 1


def test_attributes_of_a_launch(driver, kernel):
    array = DeviceArray(np.zeros(128, np.float32))
    args = arguments(kernel, x=array)
    kernel.launch(4, 32, *args, cluster=2)
    kernel.launch(4, 32, *args, programmatic=True)
    kernel.launch(4, 32, *args, shared_bytes=100 * 1024)
    first, second, third = launched(driver)
    assert first.startswith("cuLaunchKernelEx(write, 4x1x1, 32x1x1, 0, null,") and first.endswith(", cluster 2x1x1)")
    assert second.endswith(", programmatic)")
    assert third.startswith("cuLaunchKernel(write, 4x1x1, 32x1x1, 102400, null,")
    with pytest.raises(kvcache.CheckError, match=r"cluster of kernel .* to divide the grid, got 3 of 4 blocks along x"):
        kernel.launch(4, 32, *args, cluster=3)
    with pytest.raises(kvcache.CheckError, match="from 0 to 2\\^31 - 1 bytes, got -1"):
        kernel.launch(4, 32, *args, shared_bytes=-1)


def test_the_device_of_a_launch(driver, kernel):
    first, second = (DeviceArray(np.zeros(64, np.float32), device=device) for device in (0, 1))
    kernel.launch(2, 32, *arguments(kernel, x=second.tensor()))
    kernel.launch(2, 32, *arguments(kernel, x=second), device=1)
    assert (second.numpy() == -1.5).all()
    stream = succeed(bindings.cuStreamCreate(1))
    with pytest.raises(kvcache.CheckError, match=r"launch of @kernels::@write: cuLaunchKernel .*INVALID_HANDLE"):
        kernel.launch(2, 32, *arguments(kernel, x=first), device=1, stream=stream)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"n": 2**32}, OverflowError, r"write: parameter 'n' expects an int of 32 bits for i32, got int \(4294967296\)"),
        ({"n": 1.0}, TypeError, r"parameter 'n' expects an int for i32, got float \(1\.0\)"),
        ({"half": "1"}, TypeError, "parameter 'half' expects a float for bf16, got str"),
        ({"x": np.zeros(64, np.float32)}, ValueError, "parameter 'x' expects memory of a GPU .* got memory of the host: move it"),
        ({"x": object()}, TypeError, "parameter 'x' expects an array or an address for !llvm.ptr, got object"),
        ({"n": b"12345"}, ValueError, "parameter 'n' expects 4 bytes for i32, got 5"),
    ],
    ids=["large", "float", "text", "host", "object", "bytes"],
)
def test_wrong_arguments(driver, kernel, values, error, message):
    with pytest.raises(error, match=message):
        kernel.launch(1, 32, *arguments(kernel, **{"x": 0, **values}))
    assert not launched(driver)


def test_wrong_sizes(driver, kernel):
    with pytest.raises(ValueError, match=r"write has 5 parameters \(.*\), got 1 arguments"):
        kernel.launch(1, 32, 5)
    with pytest.raises(ValueError, match="expects 'block': write does not fix its size"):
        kernel.launch(1, None, *arguments(kernel, x=0))
    with pytest.raises(ValueError, match="expects 'grid' to be from one to three ints, got 1.5"):
        kernel.launch(1.5, 32, *arguments(kernel, x=0))
    with pytest.raises(kvcache.CheckError, match="block of kernel @kernels::@write to have sides from 1"):
        kernel.launch(1, 0, *arguments(kernel, x=0))
    fixed = kvcache.compile("""
func.func @f(%x: memref<32xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.parallel (%b) = (%c0) to (%c1) step (%c1) {
    scf.parallel (%t) = (%c0) to (%c32) step (%c1) {
      memref.store %v, %x[%t] : memref<32xf32>
    }
  }
  return
}""", CHIP).kernel("f_kernel")
    with pytest.raises(ValueError, match=r"expects 'block' to be \(32, 1, 1\), which f_kernel fixes, got \(64, 1, 1\)"):
        fixed.launch(1, 64, *(0 for _ in fixed.parameters))


def test_a_descriptor_is_its_bytes(driver):
    source = """
!desc = !kvcache.tma_tile<64x1xbf16>
gpu.module @kernels {
  gpu.func @load(%desc: !desc) kernel {
    kvcache.tma_prefetch %desc : !desc
    gpu.return
  }
}"""
    kernel = kvcache.compile(source, CHIP).kernel("load")
    kernel.launch(1, 32, bytes(range(128)))
    (line,) = launched(driver)
    assert line.endswith(f"null, {int.from_bytes(bytes(range(8)), 'little')}:128)")
    with pytest.raises(TypeError, match="parameter 'desc' expects 128 bytes for .*, got int"):
        kernel.launch(1, 32, 5)
    with pytest.raises(ValueError, match="parameter 'desc' expects 128 bytes for .*, got 3"):
        kernel.launch(1, 32, b"abc")
