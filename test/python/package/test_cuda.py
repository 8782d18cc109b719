"""Tests of programs for CUDA, on a driver that records calls and runs kernels on the emulator."""

import pathlib

import kvcache
import ml_dtypes
import numpy as np
import pytest
import standin
import tvm_ffi
from fill import FILL
from places import EXAMPLES
from standin import CHIP, DeviceArray, make_append, succeed
from streams import capture, synchronize

# --- Whole programs -------------------------------------------------------------------


@pytest.fixture(scope="module")
def appended():
    """The blocks after the CPU's program."""
    args = make_append()
    kvcache.jit(pathlib.Path(EXAMPLES / "append.mlir")).call("append", *args)
    assert args[0].any()
    return args[0]


@pytest.fixture(scope="module")
def append():
    return standin.get().jit(pathlib.Path(EXAMPLES / "append.mlir"), capturable=True)


def test_bytes_round_trip_through_a_cache(driver, stream, append, appended):
    placed = [DeviceArray(a) if isinstance(a, np.ndarray) else a for a in make_append()]
    tensors = [a.tensor() if isinstance(a, DeviceArray) else a for a in placed]
    append.load()
    with driver.rules(stream):
        append.call("append", *tensors, stream=stream)
    assert not placed[0].numpy().any()  # of another stream
    synchronize(stream)
    assert (placed[0].numpy() == appended).all()


def test_a_captured_call_runs_when_its_graph_does(driver, stream, append, appended):
    from cuda.bindings import driver as bindings

    placed = [DeviceArray(a) if isinstance(a, np.ndarray) else a for a in make_append()]
    tensors = [a.tensor() if isinstance(a, DeviceArray) else a for a in placed]
    append.load()
    function = append.function("append")
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 0), int(stream)), driver.rules(stream):
        graph = capture(stream, lambda: function(*tensors))
    synchronize(stream)
    assert not placed[0].numpy().any()
    for _ in range(2):
        succeed(bindings.cuMemsetD8Async(placed[0].address, 0, appended.nbytes, stream))
        succeed(bindings.cuGraphLaunch(graph, stream))
        synchronize(stream)
        assert (placed[0].numpy() == appended).all()


def test_split_attention_replays_with_other_lengths(driver, stream):
    """The grid and the workspace depend on sizes only, and each replay leaves the counter zero."""
    from cuda.bindings import driver as bindings

    params = kvcache.KVCacheParams("bf16", 1, 64, page_size=16, total_num_layers=1)
    operation = kvcache.ops.attention(params, 4, split_tokens=16, max_splits=4)
    program = standin.get().jit(operation.source, capturable=True)
    program.load()
    random = np.random.default_rng(8)
    blocks = random.standard_normal((9, 2, 1, 16, 1, 64)).astype(ml_dtypes.bfloat16)
    q = random.standard_normal((2, 4, 64)).astype(ml_dtypes.bfloat16)
    lengths, table = np.zeros(2, np.int32), np.arange(8, dtype=np.int32).reshape(2, 4)
    arrays = blocks, lengths, table, q, np.array([0, 1, 2], np.int32), q, np.zeros((2, 4), np.float32)
    placed = [DeviceArray(each) for each in (*arrays, np.zeros(operation.workspace_size(2), np.int8))]
    *cache, new, offsets, out, lse, workspace = (each.tensor() for each in placed)
    function = program.function("attention")
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 0), int(stream)), driver.rules(stream):
        graph = capture(stream, lambda: function(*cache, 1, 64, 0, new, offsets, out, lse, 0.1, workspace))
    for now in ([0, 63], [40, 17], [15, 16]):
        lengths[:] = now
        succeed(bindings.cuMemcpyHtoD(placed[1].address, lengths.ctypes.data, lengths.nbytes))
        succeed(bindings.cuGraphLaunch(graph, stream))
        synchronize(stream)
        inputs = kvcache.StepInputs.of(blocks=blocks, lengths=lengths, lut=table, row_offsets=arrays[4])
        wanted, wanted_lse = np.empty_like(q), np.empty((2, 4), np.float32)
        kvcache.ops.attention(params, 4)(inputs, 0, q, out=wanted, lse=wanted_lse, scale=0.1)
        np.testing.assert_allclose(placed[-2].numpy(), wanted_lse, rtol=1e-4)
        error = placed[-3].numpy().astype(np.float32) - wanted.astype(np.float32)
        assert np.abs(error).max() < 0.02 and not placed[-1].numpy()[:16].any()


def run_operation(driver, options, batch=2, **arguments):
    """Calls an operation of attention on arrays of a device; returns it, and the output."""
    params = kvcache.KVCacheParams("f8E4M3FN", 1, 64, page_size=16, total_num_layers=1)
    operation = kvcache.ops.attention(params, 4, target=f"cuda:{CHIP}", **options)
    driver.emulate(operation.source)
    table = np.arange(4 * batch, dtype=np.int32).reshape(batch, 4)
    blocks = np.ones((4 * batch, 2, 1, 16, 1, 64), ml_dtypes.float8_e4m3fn)
    q = np.ones((batch, 4, 64), ml_dtypes.bfloat16)
    out = q.astype(kvcache.dtypes.dtype(options.get("out_dtype", "bf16")))
    arrays = blocks, np.full(batch, 60, np.int32), table, np.arange(batch + 1, dtype=np.int32), q, out
    placed = [DeviceArray(each) for each in arrays]
    blocks, lengths, lut, offsets, q, out = (each.tensor() for each in placed)
    inputs = kvcache.StepInputs.of(
        blocks=blocks, lengths=lengths, lut=lut, row_offsets=offsets, max_seq_length=1, max_cache_length=60
    )
    driver.calls()
    operation(inputs, 0, q, out=out, scale=0.1, **arguments)
    return operation, placed[-1].numpy().astype(np.float64)


def test_operations_take_numbers_and_leave_logarithms_out(driver):
    _, out = run_operation(driver, {"static_scales": True}, key_scale=2, value_scale=0.25)
    assert (out == 0.25).all()
    _, out = run_operation(driver, {"out_dtype": "f8E5M2"}, out_scale=0.5)
    assert (out == 2).all()


def test_operations_keep_a_workspace_for_each_stream(driver, stream):
    options = {"split_tokens": 16, "max_splits": 4}

    def count_allocations(batch, where):
        with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 0), where):
            operation, out = run_operation(driver, options, batch)
        assert (out == 1).all()
        return operation, [call for call in driver.calls() if call.startswith("cuMemAlloc")]

    operation, first = count_allocations(2, 0)
    assert first == [f"cuMemAlloc({operation.workspace_size(2)})"]
    assert not count_allocations(2, 0)[1] and not count_allocations(1, 0)[1]
    assert count_allocations(2, int(stream))[1] == first
    assert count_allocations(3, 0)[1] == [f"cuMemAlloc({2 * operation.workspace_size(2)})"]
    assert not count_allocations(4, 0)[1]


def test_descriptors_are_parameters(driver, stream):
    """The descriptors of a copy by TMA need no memory on the device."""
    source = (EXAMPLES / "key_tile.mlir").read_text()
    program = standin.get().jit(source, capturable=True)
    kernels = program._compiled.kernels
    assert kernels
    program.load()
    assert not [call for call in driver.calls() if call.startswith("cuMemAlloc")]


@pytest.fixture(scope="module")
def copy_keys():
    return standin.get().jit(pathlib.Path(EXAMPLES / "key_tile.mlir"), capturable=True)


def make_key_tiles():
    """The arguments of examples/key_tile.mlir, with keys of two sequences."""
    args = make_append()
    random = np.random.default_rng(6)
    args[0][...] = random.standard_normal(args[0].shape).astype(ml_dtypes.bfloat16)
    args[1] = np.array([70, 0, 3], np.int32)
    out = np.ones((3, 8, 96, 128), ml_dtypes.bfloat16)
    return [*args[:5], 1, out]


def test_a_kernel_copies_tiles_by_descriptors(driver, stream, copy_keys):
    """Host code encodes a descriptor of the view for each call, and the copy reads pages through it."""
    args = make_key_tiles()
    blocks, lengths, table, out = args[0], args[1], args[2], args[-1]
    placed = [DeviceArray(a) if isinstance(a, np.ndarray) else a for a in args]
    tensors = [a.tensor() if isinstance(a, DeviceArray) else a for a in placed]
    copy_keys.load()
    driver.calls()
    with driver.rules(stream):
        copy_keys.call("copy_keys", *tensors, stream=stream)
    made = [line.partition("(")[0] for line in driver.calls()]
    assert "cuTensorMapEncodeTiled" in made and "cuLaunchKernel" in made
    synchronize(stream)
    for b, length in enumerate(lengths):
        for t in range(96):
            page = table[b, t // 64]
            expected = blocks[page, 0, 1, t % 64] if t < length else np.zeros_like(blocks[0, 0, 0, 0])
            out[b, :, t] = expected
    assert (placed[-1].numpy().view(np.uint16) == out.view(np.uint16)).all()


def test_streams_that_an_event_orders(driver, append, copy_keys):
    """Another stream reads appended rows only after an event: nothing else orders them."""
    from cuda.bindings import driver as bindings

    writer, reader = (succeed(bindings.cuStreamCreate(1)) for _ in range(2))
    event = succeed(bindings.cuEventCreate(0))
    append.load()
    copy_keys.load()
    for has_event in (False, True):
        args = make_append()
        args[1][...] = 0
        placed = [DeviceArray(a) if isinstance(a, np.ndarray) else a for a in args]
        tensors = [a.tensor() if isinstance(a, DeviceArray) else a for a in placed]
        out = DeviceArray(np.ones((3, 8, 64, 128), ml_dtypes.bfloat16))
        lengths = DeviceArray(np.array([2, 1, 4], np.int32))
        with driver.rules(writer):
            append.call("append", *tensors, stream=writer)
        if has_event:
            succeed(bindings.cuEventRecord(event, writer))
            succeed(bindings.cuStreamWaitEvent(reader, event, 0))
        with driver.rules(reader):
            copy_keys.call("copy_keys", tensors[0], lengths.tensor(), *tensors[2:6], out.tensor(), stream=reader)
        synchronize(reader)
        assert out.numpy()[0, :, :2].any() == has_event
        synchronize(writer)
    keys, read = args[6], out.numpy()
    assert (read[0, :, :2].transpose(1, 0, 2) == keys[:2]).all()
    assert (read[2, :, :4].transpose(1, 0, 2) == keys[3:7]).all()


def test_arrays_with_an_interface_of_cuda(driver, stream, fill):
    array = DeviceArray(np.zeros(40, np.float32))
    fill.call("fill", array, 2.5, stream=stream)
    synchronize(stream)
    assert (array.numpy() == 2.5).all()
    fill.call("fill", array, 3.5)
    assert (array.numpy() == 3.5).all()


def test_memory_and_streams_of_cuda_core(driver, fill):
    from cuda import core

    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    memory = device.allocate(160, stream=stream)
    view = tvm_ffi.from_dlpack(memory)
    assert view.device.dlpack_device_type() == 2
    array = DeviceArray(np.zeros(40, np.float32))
    array.address = int(memory.handle)
    fill.load()
    with driver.rules(int(stream.handle)):
        fill.call("fill", array, 4.5, stream=stream)
    stream.sync()
    assert (array.numpy() == 4.5).all()


def test_a_library_launches_on_the_stream(driver, stream, fill, tmp_path):
    fill.save_library(tmp_path / "fill.so")
    library = tvm_ffi.load_module(tmp_path / "fill.so")
    array = DeviceArray(np.zeros(40, np.float32))
    library.fill(array.tensor(), 1.0)  # loads
    assert (array.numpy() == 1).all()
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 0), int(stream)), driver.rules(stream):
        library.fill(array.tensor(), 5.5)
    synchronize(stream)
    assert (array.numpy() == 5.5).all()


# --- Devices --------------------------------------------------------------------------


def test_calls_work_on_the_device_of_their_arrays(driver, fill):
    from cuda.bindings import driver as bindings

    before = succeed(bindings.cuCtxGetCurrent())
    first, second = DeviceArray(np.zeros(8, np.float32)), DeviceArray(np.zeros(8, np.float32), device=1)
    fill.call("fill", second.tensor(), 1.0)
    fill.call("fill", first.tensor(), 2.0)
    assert (first.numpy() == 2).all() and (second.numpy() == 1).all()
    assert int(succeed(bindings.cuCtxGetCurrent())) == int(before)


def test_arrays_of_two_devices(driver):
    source = "func.func @f(%x: memref<?xf32>, %y: memref<?xf32>) { return }"
    program = kvcache.jit(source, f"cuda:{CHIP}")
    arrays = [DeviceArray(np.zeros(8, np.float32), device=device).tensor() for device in (1, 0)]
    with pytest.raises(
        ValueError,
        match=r"argument 1 \('y'\) expects memory of cuda:1, the device of argument 0 .* got memory of cuda:0",
    ):
        program.call("f", *arrays)


def test_the_devices_present_are_compiled_for(driver, monkeypatch):
    found = kvcache.jit(FILL, "cuda")
    assert found.target == "cuda"
    array = DeviceArray(np.zeros(8, np.float32))
    standin.get().emulate(FILL)
    found.call("fill", array, 1.0)
    assert (array.numpy() == 1).all()
    from kvcache.devices import cuda

    for capability, chip in (("90", "sm_90a"), ("89", "sm_89"), ("199", "sm_121")):
        monkeypatch.setenv("FAKE_CUDA_CAPABILITY", capability)
        assert cuda.find_chips() == [chip]
    monkeypatch.setenv("FAKE_CUDA_CAPABILITY", "75")
    with pytest.raises(kvcache.TargetError, match=r"compute capability 7\.5, and this package compiles for sm_80"):
        kvcache.jit(FILL, "cuda")
    monkeypatch.setenv("FAKE_CUDA_DEVICES", "0")
    with pytest.raises(kvcache.TargetError, match="needs a GPU of NVIDIA and its driver: the driver finds no device"):
        kvcache.jit(FILL, "cuda")


def test_a_gpu_that_the_code_is_not_for(driver, monkeypatch):
    program = kvcache.jit(FILL, f"cuda:{CHIP}", opt_level=0)
    monkeypatch.setenv("FAKE_CUDA_CAPABILITY", "80")
    with pytest.raises(kvcache.CheckError, match=r"has no code for a device of compute capability 8\.0"):
        program.load()


# --- Arrays of the host ---------------------------------------------------------------


def test_arrays_of_the_host_are_copied_if_wanted(driver, stream, fill):
    array = np.zeros(40, np.float32)
    with pytest.raises(ValueError, match=r"got memory of the CPU: move it to the device first, for .*tensor\.to"):
        fill.call("fill", array, 1.0)
    fill.call("fill", array, 1.5, copy_host_arrays=True)
    assert (array == 1.5).all()
    fill.call("fill", array[8:16], 2.5, copy_host_arrays=True, stream=stream)
    assert (array == np.where((np.arange(40) // 8) == 1, 2.5, 1.5)).all()
    fill.call("fill", array[:0], 2.5, copy_host_arrays=True)
    allocated = [line.partition("(")[0] for line in driver.calls()]
    assert allocated.count("cuMemAlloc") == allocated.count("cuMemFree") == 2


def test_a_cache_of_the_host_is_copied(driver, append, appended):
    args = make_append()
    append.call("append", *args, copy_host_arrays=True)
    assert (args[0] == appended).all()
