"""Tests of rules that programs for CUDA must follow, and of their errors, on the stand-in driver."""

import pathlib

import kvcache
import numpy as np
import pytest
import standin
from fill import FILL
from places import EXAMPLES
from standin import CHIP, DeviceArray, make_append, succeed
from streams import capture

ALLOCATES = """
func.func @fill(%x: memref<?xf32>, %value: f32) {
  %temporary = gpu.alloc () : memref<32xf32>
  gpu.dealloc %temporary : memref<32xf32>
  return
}
"""
WAITS = """
func.func @fill(%x: memref<?xf32>, %value: f32) {
  %zero = arith.constant 0.0 : f32
  %token = gpu.memset async %x, %zero : memref<?xf32>, f32
  gpu.wait [%token]
  return
}
"""


# --- Rules ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "violation"),
    [
        (ALLOCATES, ["cuMemAlloc allocates", "cuMemFree frees memory and synchronizes"]),
        (WAITS, ["cuStreamSynchronize synchronizes"]),
    ],
    ids=["allocation", "synchronization"],
)
def test_host_code_that_breaks_the_rules_is_found(driver, stream, source, violation):
    array = DeviceArray(np.zeros(32, np.float32))
    program = standin.get().jit(source)
    with pytest.raises(AssertionError) as broken, driver.rules(stream):
        program.call("fill", array, 1.0, stream=stream)
    for line in violation:
        assert line in str(broken.value)
    with pytest.raises(kvcache.CheckError, match=r"<string>:[35]:.*CAPTURE_UNSUPPORTED"):
        capture(stream, lambda: program.call("fill", array, 1.0, stream=stream))
    with pytest.raises(kvcache.CompileError, match="is to be captured in a CUDA graph") as refused:
        kvcache.jit(source, f"cuda:{CHIP}", capturable=True)
    assert refused.value.diagnostics[0].line in (3, 5)


def test_a_wrong_stream_is_found(driver, stream, fill):
    array = DeviceArray(np.zeros(40, np.float32))
    fill.load()
    with pytest.raises(AssertionError, match="cuLaunchKernel works on another stream"), driver.rules(stream):
        fill.call("fill", array, 1.0)
    with pytest.raises(kvcache.CheckError, match="CAPTURE_IMPLICIT"):
        capture(stream, lambda: fill.call("fill", array, 1.0))
    driver.reset()
    fill.call("fill", array, 1.0, stream=stream)
    assert not array.numpy().any()  # which the default stream does not wait for


def test_a_wrong_context_is_found(driver, stream, fill):
    from cuda.bindings import driver as bindings

    array = DeviceArray(np.zeros(40, np.float32), device=1)
    other = succeed(bindings.cuDevicePrimaryCtxRetain(1))
    fill.load(1)
    with pytest.raises(kvcache.CheckError, match="CUDA_ERROR_INVALID_HANDLE"):
        fill.call("fill", array.tensor(), 1.0, stream=stream)  # a stream of device 0
    with pytest.raises(AssertionError, match="works in another context"), driver.rules(0):
        fill.call("fill", array.tensor(), 1.0)
    assert int(succeed(bindings.cuCtxGetCurrent())) != int(other)


def test_parameters_of_a_wrong_size_are_found(driver, stream):
    kernel = kvcache.compile(FILL, CHIP).kernel("fill_kernel")
    sizes = [parameter.size for parameter in kernel.parameters]
    assert sorted(sizes) == [4, 8, 8]
    index = sizes.index(4)
    object.__setattr__(kernel.parameters[index], "size", 8)
    args = [0] * 3
    args[index] = b"12345678"
    with pytest.raises(kvcache.CheckError, match=f"parameter {index} of kernel .* has 4 bytes, got 8"):
        kernel.launch(1, None, *args, stream=stream)


def test_code_is_loaded_before_a_capture(driver, stream):
    program = standin.get().jit(FILL)
    array = DeviceArray(np.zeros(40, np.float32))

    def call():
        program.call("fill", array, 1.0, stream=stream)

    with pytest.raises(
        kvcache.CheckError,
        match=r"<string>:\d+:\d+: launch of .* is not loaded, and its stream is being captured: "
        "expects a call or 'load' before the capture",
    ):
        capture(stream, call)
    program.load()
    loaded = driver.calls()
    assert any(line.startswith("cuModuleLoadDataEx") for line in loaded)
    assert any(line.startswith("cuModuleGetFunction") for line in loaded)
    with driver.rules(stream):
        capture(stream, call)
    assert driver.violations() == []


def test_kernels_are_unloaded_with_their_program(driver):
    program = standin.get().jit(FILL)
    program.load()
    program.load()
    driver.calls()
    del program
    assert [line.partition("(")[0] for line in driver.calls()] == ["cuModuleUnload"]


# --- Errors ---------------------------------------------------------------------------


def test_a_kernel_that_traps(driver, capfd):
    program = standin.get().jit(pathlib.Path(EXAMPLES / "append.mlir"), bounds_checks=True)
    args = make_append()
    args[2][1, 1] = 77  # a missing page
    placed = [DeviceArray(a) if isinstance(a, np.ndarray) else a for a in args]
    tensors = [a.tensor() if isinstance(a, DeviceArray) else a for a in placed]
    program.call("append", *tensors)
    with pytest.raises(AssertionError):
        placed[0].numpy()  # waits
    with pytest.raises(
        kvcache.CheckError,
        match=r"append\.mlir:\d+:\d+: launch of .*CUDA_ERROR_ASSERT: device-side assert triggered "
        r"\(by a kernel that was launched before; its check says: .*append\.mlir:\d+: "
        r"'kvcache\.\w+' op page id is out of range\)",
    ):
        program.call("append", *tensors)
    assert "append.mlir" in (message := capfd.readouterr().err) and "77 is not in [0, 6)" in message


FAILS = """
func.func @fail(%x: memref<?xf32>, %first: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%b) = (%c0) to (%c1) step (%c1) {{
    scf.parallel (%t) = (%c0) to (%c64) step (%c1) {{
      %holds = arith.cmpi ult, %t, %first : index
      cf.assert %holds, "{message}"
      %v = memref.load %x[%t] : memref<?xf32>
      memref.store %v, %x[%t] : memref<?xf32>
    }}
  }}
  return
}}
"""


@pytest.mark.parametrize("first", [0, 1, 63])
@pytest.mark.parametrize("size", [1, 1023, 1024, 5000])
def test_the_message_of_a_check_is_whole_or_cut(driver, size, first):
    """Tests failures of one thread, of many, and of all at once."""
    from cuda.bindings import driver as bindings

    message = ("no way " * size)[:size]
    program = standin.get().jit(FAILS.format(message=message))
    tensor = DeviceArray(np.zeros(64, np.float32)).tensor()
    program.call("fail", tensor, 64)
    succeed(bindings.cuCtxSynchronize())
    program.call("fail", tensor, first)
    assert int(bindings.cuCtxSynchronize()[0]) == 710
    with pytest.raises(kvcache.CheckError, match="its check says: ") as raised:
        program.call("fail", tensor, 64)
    assert str(raised.value).endswith(f"<string>:9: {message[:1023]})")


@pytest.mark.parametrize(
    ("stream", "error"), [("main", TypeError), (1.5, TypeError), (True, TypeError), (object(), TypeError)]
)
def test_stream_rejects_invalid_types(driver, fill, stream, error):
    with pytest.raises(error, match="expects a stream of CUDA, got"):
        fill.call("fill", DeviceArray(np.zeros(4, np.float32)), 1.0, stream=stream)


def test_options_of_other_targets():
    program = kvcache.jit("func.func @f() { return }")
    with pytest.raises(ValueError, match="have no meaning for target 'cpu', only for 'cuda'"):
        program.call("f", stream=0)
    with pytest.raises(ValueError, match="expects a program with kernels to load, got one for 'cpu'"):
        program.load()
    with pytest.raises(ValueError, match="'capturable' has no meaning for target 'cpu', only for 'cuda'"):
        kvcache.jit("func.func @f() { return }", capturable=True)
    with pytest.raises(ValueError, match="'meter' has no meaning for target 'cuda:sm_90a'"):
        kvcache.jit("func.func @f() { return }", "cuda:sm_90a", meter=True)
    with pytest.raises(ValueError, match="unknown chip 'sm_1' in target 'cuda:sm_1'"):
        kvcache.jit("func.func @f() { return }", "cuda:sm_1")


def test_host_code_can_not_read_memory_of_the_device():
    source = """
func.func @first(%lengths: memref<?xi32>) -> i32 {
  %c0 = arith.constant 0 : index
  %n = memref.load %lengths[%c0] : memref<?xi32>
  return %n : i32
}"""
    with pytest.raises(kvcache.CompileError, match=r"accesses memory of the device on the host: argument 0 \('lengths'\)"):
        kvcache.jit(source, f"cuda:{CHIP}")
