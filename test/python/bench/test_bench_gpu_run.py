"""The benchmarks on a GPU, by a driver that pretends."""

import json
import re
import struct
import sys
from dataclasses import asdict
from types import SimpleNamespace
from unittest.mock import MagicMock

import fake_cuda
import numpy as np
import pytest
from bench_gpu import CHIP
from gpu import arguments, command, contenders, cuda_device, kernels
from gpu.cuda_device import CudaDevice, DeviceError
from gpu.inputs import SMALL
from gpu.works import WORKS
from measure import Absent, take_turns


def our_gather(image):
    """Our kernel's meaning, from nothing but its parameters and the grid."""

    def run(grid, values):
        numbers = {parameter["name"]: int.from_bytes(value, "little")
                   for parameter, value in zip(image.parameters, values)}
        batch, tokens = numbers["out.size0"], numbers["out.size1"]
        out = fake_cuda.memory(numbers["out"], np.uint16, batch * tokens * 1024).reshape(batch, tokens, 1024)
        lengths = fake_cuda.memory(numbers["key.cache_lengths"], np.int32, batch)
        stride = numbers["key.table_stride"]
        table = fake_cuda.memory(numbers["key.lookup_table"], np.int32, batch * stride).reshape(batch, stride)
        for sequence in range(grid[1]):
            for token in range(min(grid[0] * image.block[2], tokens)):
                out[sequence, token] = 0
                if token < lengths[sequence]:
                    row = int(table[sequence, token // 16]) * numbers["key.page_stride"] + token % 16 * 1024
                    out[sequence, token] = fake_cuda.memory(numbers["key.blocks"] + 2 * row, np.uint16, 1024)

    return [parameter["size"] for parameter in image.parameters], run


def peer_gather(grid, values):
    """``peers/gather.cu``, a token at a time."""
    blocks, lut, lens, out, columns, tokens, layers, layer, role = struct.unpack("@PPPPIIIII", values[0][:52])
    for sequence in range(grid[1]):
        length = fake_cuda.memory(lens, np.int32, sequence + 1)[sequence]
        table = fake_cuda.memory(lut, np.int32, (sequence + 1) * columns)[-columns:]
        for token in range(min(grid[0] * 8, tokens)):
            to = fake_cuda.memory(out + (sequence * tokens + token) * 2048, np.uint16, 1024)
            to[:] = 0
            if token < length:
                row = ((int(table[token // 16]) * 2 + role) * layers + layer) * 16 + token % 16
                to[:] = fake_cuda.memory(blocks + row * 2048, np.uint16, 1024)


@pytest.fixture
def rig(packed, tmp_path, monkeypatch):
    """A pack with two contenders, and a driver that simulates them. Ours takes 2 ms, the peer 3 and a copy 1.9."""
    image = packed.find(kernels.OURS, "gather", CHIP)
    (tmp_path / "cubins").mkdir()
    for name in ("ours", "peer"):
        (tmp_path / f"cubins/{name}").write_bytes(packed.read(image))
    ours = kernels.KernelImage(**{**asdict(image), "cubin": "cubins/ours"})
    peer = kernels.KernelImage(kernels.PEER, "gather", CHIP, "gather", "cubins/peer")
    made = kernels.Pack({"commit": "abc"}, [ours, peer], folder=tmp_path)
    made.save()
    driver = fake_cuda.FakeDriver(
        {ours.name: our_gather(ours), "gather": ([56], peer_gather)},
        {ours.name: 2.0, "gather": 3.0, "copy": 1.9},
        capability=(10, 0),
        name=b"NVIDIA B200",
    )
    monkeypatch.setattr(command, "CudaDevice", lambda: CudaDevice(driver))
    monkeypatch.setitem(sys.modules, "triton", None)
    return made, driver


ARGUMENTS = ["--works", "gather", "--batch", "3", "--context", "64", "--repetitions", "5", "--warm-up", "2"]


def run_pack(made, *more):
    return command.main(made.folder, "Runs.", [*ARGUMENTS, *more])


def test_everything_is_right_and_timed(rig, capsys, tmp_path):
    made, driver = rig
    assert run_pack(made, "--json", str(tmp_path / "results.json")) == 0
    output = capsys.readouterr().out
    assert "\n6 results are right\n" in output
    assert "met: gather, full: 95.0% of the copy's bandwidth (goal: 90%); 0.67 of the time of the fastest" in output
    assert "gather, edges and ragged and full, Triton: absent: Triton is not installed" in output
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["commit"] == "abc" and "B200" in found["device"]
    columns = [column["title"] for column in found["tables"]["full"]["columns"]]
    assert columns == ["work, full sequences", "kvcache", "CUDA C++", "copy of as many bytes"]
    (row,) = found["tables"]["full"]["rows"]
    assert row == ["gather", pytest.approx([2000, 95]), pytest.approx([3000, 63.333333]), pytest.approx(1900)]
    full = {entry["contender"]: entry for entry in found["results"] if entry["case"] == "full"}
    assert full["kvcache"]["milliseconds"] == pytest.approx([2.0] * 5)
    moved = 2 * 3 * 64 * 2048
    assert full["kvcache"]["figures"] == pytest.approx(
        {"moved_bytes": moved, "bandwidth": moved / 2e-3, "copy_part": 0.95, "peak_part": moved / 2e-3 / 7.67e12}
    )
    assert not any(entry["milliseconds"] for entry in found["results"] if entry["case"] == "edges")
    assert driver.allocated_bytes == 0


def test_launches_have_the_geometry_of_the_table(rig):
    made, driver = rig
    run_pack(made)
    ours = made.images[0]
    assert ("gather", (8, 3, 1), (256, 1, 1), 0) in driver.launches
    assert (ours.name, (64 // ours.block[2], 3, 1), ours.block, 0) in driver.launches
    counts = [len([launch for launch in driver.launches if launch[0] == name]) for name in (ours.name, "gather")]
    assert counts == [3 + 2 * 7] * 2  # verified in three cases, and timed in two


def test_events_are_around_each_launch_and_nothing_waits(rig):
    made, driver = rig
    device = CudaDevice(driver=driver)
    names = []
    launches = {name: lambda turn, name=name: names.append((name, len(driver.calls))) for name in "abc"}
    driver.calls.clear()
    times = take_turns(launches, 4, warm_up=1, clock=device)
    record = ["cuEventCreate", "cuEventRecord"]
    assert driver.calls == record * (1 + 2 * 15 + 1) + ["cuStreamQuery"] + ["cuEventElapsedTime"] * 16
    assert {name: len(values) for name, values in times.items()} == {"a": 4, "b": 4, "c": 4}
    assert [at for _, at in names] == list(range(4, 62, 4))
    turns = ["".join(name for name, _ in names[i : i + 3]) for i in range(0, 15, 3)]
    assert all(sorted(turn) == ["a", "b", "c"] for turn in turns) and len(set(turns)) > 1


@pytest.mark.parametrize("broken", ["kvcache", "CUDA C++"])
def test_a_wrong_contender_is_reported_and_not_timed(rig, capsys, broken):
    made, driver = rig
    ours = made.images[0]
    name, tokens = (ours.name, ours.block[2]) if broken == "kvcache" else ("gather", 8)
    sizes, run = driver.kernels[name]
    driver.kernels[name] = (sizes, lambda grid, values: run((1, *grid[1:]), values))  # a part of the grid
    assert run_pack(made) == (1 if broken == "kvcache" else 0)
    output = capsys.readouterr().out
    assert f"gather, edges, {broken}: wrong: out[0, {tokens}, 0, 0] is 65535, expected 0" in output
    assert not re.search(rf"^gather +\w+ +{re.escape(broken)} ", output, re.MULTILINE)
    if broken == "kvcache":
        assert "not met: gather, full: kvcache has no time: wrong: out" in output
    else:
        assert "met: gather, full: 95.0% of the copy's bandwidth (goal: 90%); no peer was timed" in output


def test_a_contender_can_be_left_out(rig, capsys):
    made, _ = rig
    assert run_pack(made, "--without", "CUDA C++") == 0
    assert "gather, edges and ragged and full, CUDA C++: absent: left out by --without" in capsys.readouterr().out


ILLEGAL = fake_cuda.ILLEGAL_ADDRESS


@pytest.mark.parametrize(
    ("failures", "error", "printed"),
    [
        ({"cuStreamQuery": (ILLEGAL, 6), "cuMemFree": (ILLEGAL, 6)},
         "error: gather, ragged, kvcache: cuStreamQuery: 700; nothing after it was run",
         ["gather, ragged, kvcache: failed: cuStreamQuery: 700", "2 results are right"]),
        ({"cuMemcpyHtoD": (ILLEGAL, 4)},
         "error: gather, ragged: cuMemcpyHtoD: 700; nothing after it was run", ["2 results are right"]),
        ({"cuStreamQuery": (fake_cuda.NOT_READY, 3)},
         "error: gather, edges, CUDA C++: a kernel has not ended after 0.01 s", ["1 results are right"]),
    ],
    ids=["a kernel", "between kernels", "a kernel that never ends"],
)  # fmt: skip
def test_failing_device_ends_the_run_with_its_results(rig, capsys, monkeypatch, failures, error, printed):
    made, driver = rig
    monkeypatch.setattr(cuda_device, "LONGEST_WAIT", 0.01)
    driver.failures.update(failures)
    assert run_pack(made) == 1
    captured = capsys.readouterr()
    assert error in captured.err
    assert all(text in captured.out for text in printed)


@pytest.mark.parametrize(("allocation", "is_ragged_timed"), [(9, False), (11, True)])
def test_too_little_memory_fails_a_case(rig, capsys, allocation, is_ragged_timed):
    """For the buffers of the copy, or already for the inputs."""
    made, driver = rig
    driver.failures["cuMemAlloc"] = (fake_cuda.OUT_OF_MEMORY, allocation)
    assert run_pack(made) == 1
    output = capsys.readouterr().out
    assert "4 results are right" in output
    assert "all: failed: cuMemAlloc: 2: 0.00 GB wanted, 1.00 of 2.00 GB free" in output
    assert "not met: gather, full: kvcache has no time: failed: cuMemAlloc: 2" in output
    assert ("\nmet: gather, ragged: " in output) == is_ragged_timed
    assert "a smaller --batch or --context needs less" in output
    assert driver.allocated_bytes == 0


@pytest.mark.parametrize(
    ("sizes", "error", "reason"), [([], 209, "cuModuleLoadData: 209"), ([8], 0, "kernel KERNEL has 1 parameters, got")]
)
def test_code_that_does_not_fit_makes_a_contender_absent(rig, capsys, sizes, error, reason):
    made, driver = rig
    name = made.images[0].name
    if error:
        driver.failures["cuModuleLoadData"] = (error, 1)
    else:
        driver.kernels[name] = (sizes, None)
    assert run_pack(made) == 0
    output = capsys.readouterr().out
    assert f"gather, edges and ragged and full, kvcache: absent: {reason.replace('KERNEL', name)}" in output
    assert "not met: gather, full: kvcache has no time: absent" in output


def test_much_shared_memory_is_asked_for():
    driver = fake_cuda.FakeDriver()
    device = CudaDevice(driver=driver)
    device.load(b"", "small", 48 * 1024)
    assert "cuFuncSetAttribute" not in driver.calls
    device.load(b"", "large", 48 * 1024 + 1)
    assert "cuFuncSetAttribute" in driver.calls


def test_tensor_maps_are_what_the_driver_takes():
    driver = fake_cuda.FakeDriver()
    tensor_map = arguments.TensorMap(4096, 2, (576, 100), (1152,), (64, 1), "128b", 256)
    assert CudaDevice(driver=driver).encode(tensor_map) == (7).to_bytes(8, "little") * 16
    assert driver.tensor_maps == [(
        "CU_TENSOR_MAP_DATA_TYPE_UINT16", 2, 4096, [576, 100], [1152], [64, 1], [1, 1],
        "CU_TENSOR_MAP_INTERLEAVE_NONE", "CU_TENSOR_MAP_SWIZZLE_128B", "CU_TENSOR_MAP_L2_PROMOTION_L2_256B",
        "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE",
    )]


def test_a_machine_without_a_gpu_says_what_is_missing(monkeypatch, capsys, packed):
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert run_pack(packed) == 1
    assert "the package cuda-bindings is missing" in (error := capsys.readouterr().err)
    assert "python -m pip install cuda-bindings" in error
    driver = fake_cuda.FakeDriver()
    driver.failures["cuInit"] = (fake_cuda.NO_DEVICE, 1)
    with pytest.raises(DeviceError, match="cuInit: 100"):
        CudaDevice(driver=driver)

    def no_library(*_):
        raise RuntimeError("Failed to dlopen libcuda.so.1")

    driver = fake_cuda.FakeDriver()
    driver.cuInit = no_library
    with pytest.raises(DeviceError, match="no CUDA driver: Failed to dlopen libcuda.so.1"):
        CudaDevice(driver=driver)


def test_a_chip_that_the_pack_does_not_know(rig, capsys):
    made, driver = rig
    driver.attributes["COMPUTE_CAPABILITY_MAJOR"] = 7
    assert run_pack(made) == 1
    assert f"error: the pack has no code for sm_70: it is for {CHIP}" in capsys.readouterr().err


@pytest.mark.parametrize(("capability", "chip"), [
    ((9, 0), "sm_90a"), ((8, 0), "sm_80"), ((8, 9), "sm_86"), ((8, 6), "sm_86"), ((10, 0), "sm_100a"),
    ((10, 3), None), ((12, 0), None),
])
def test_the_chip_whose_code_runs(capability, chip):
    chips = ["sm_80", "sm_86", "sm_90a", "sm_100a"]
    if chip:
        assert kernels.choose_chip(capability, chips) == chip
    else:
        with pytest.raises(kernels.PackError, match="it is for sm_80, sm_86, sm_90a, sm_100a"):
            kernels.choose_chip(capability, chips)


@pytest.mark.parametrize(("options", "message"), [
    (["--works", "gather,none"], "unknown name 'none'; known are gather, "),
    (["--batch", "0"], "expects a positive number, got '0'"),
    (["--context", "100"], "expects context to be a multiple of 64, got 100"),
])
def test_wrong_options(options, message, capsys, packed):
    with pytest.raises(SystemExit):
        command.main(packed.folder, "Runs.", options)
    assert message in capsys.readouterr().err


def test_flashinfer_gets_the_pages_of_each_sequence(monkeypatch):
    torch, flashinfer = MagicMock(), MagicMock()
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "flashinfer", flashinfer)
    torch.from_numpy = lambda array: MagicMock(cuda=lambda: SimpleNamespace(array=array, view=lambda dtype: array))
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper.return_value
    work, device = WORKS["decode"], CudaDevice(driver=fake_cuda.FakeDriver())
    case = work.make_case("ragged", SMALL)
    lengths, lut = case.arrays["lengths"], case.arrays["lut"]
    lengths[:2] = 1, 17
    device.stream = 5
    with contenders.Workspace(device, case) as workspace:
        workspace.expected = work.reference(case)
        contender = contenders.enter_flashinfer(workspace)
        begins, pages, last = (argument.array for argument in wrapper.plan.call_args.args[:3])
        for sequence, length in enumerate(lengths):
            own = pages[begins[sequence] : begins[sequence + 1]]
            assert np.array_equal(own, lut[sequence, : len(own)]) and (len(own) - 1) * 16 + last[sequence] == length
        assert wrapper.plan.call_args.args[3:] == (64, 8, 128, 16)
        for factor, wrong in ((1, None), (1.02, "distance from attention[0, ")):
            out = (workspace.expected["attention"] * factor).reshape(-1, 64, 128)
            wrapper.run.return_value.float.return_value.cpu.return_value.numpy.return_value = out
            contender.call(0)
            assert (contender.check() or "").startswith(wrong or "") and bool(contender.check()) == bool(wrong)
        torch.cuda.ExternalStream.assert_called_with(5)
        lengths[0] = 0
        with pytest.raises(Absent, match="FlashInfer expects sequences that have a token"):
            contenders.enter_flashinfer(workspace)
