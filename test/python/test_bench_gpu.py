"""The benchmarks on a GPU, without one: inputs and references on the emulator, launches by a driver that pretends."""

import ast
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import types
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import devices
import fake_cuda
import ml_dtypes
import numpy as np
import pytest

from kvcache import ir

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from gpu import arguments, command, contenders, cubin, cuda_device, emulate, formats, inputs, kernels  # noqa: E402
from gpu import pack, references, report  # noqa: E402
from gpu.cuda_device import CudaDevice  # noqa: E402
from gpu.device import DeviceError, Facts  # noqa: E402
from gpu.inputs import SMALL, Sizes  # noqa: E402
from gpu.measure import Result, time_launches  # noqa: E402
from gpu.works import WORKS  # noqa: E402
from peers.triton_launches import LAUNCHES  # noqa: E402

KERNELS = ROOT / "benchmarks/kernels"
TRITON = ROOT / "benchmarks/peers/triton_kernels.py"
CHIP = "sm_100a"


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A pack of our kernels for one chip."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack, "find_nvcc", lambda: None)
        return pack.fill(tmp_path_factory.mktemp("pack"), list(WORKS), [CHIP])


# --- Formats and references ------------------------------------------------------------------------------------------


def test_fp8_is_that_of_ml_dtypes():
    codes = np.arange(256, dtype=np.uint8)
    values = codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    assert np.array_equal(formats.e4m3_to_f32(codes), values, equal_nan=True)
    numbers = values[np.isfinite(values)]
    ties = (np.sort(numbers)[:-1] + np.sort(numbers)[1:]) / 2
    rng = np.random.default_rng(0)
    random = np.concatenate([rng.normal(0, scale, 2000) for scale in (1e-3, 0.1, 10, 400)])
    probes = np.concatenate([numbers, ties, random]).astype(np.float32)
    expected = np.clip(probes, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    assert np.array_equal(formats.f32_to_e4m3(probes), expected)
    assert np.array_equal(np.diff(formats.e4m3_order(formats.f32_to_e4m3(np.unique(numbers)))), np.ones(252))


def test_bf16_is_that_of_ml_dtypes():
    values = np.random.default_rng(0).normal(0, 100, 10000).astype(np.float32)
    bits = values.astype(ml_dtypes.bfloat16).view(np.uint16)
    assert np.array_equal(formats.f32_to_bf16(values), bits)
    assert np.array_equal(formats.bf16_to_f32(bits), bits.view(ml_dtypes.bfloat16).astype(np.float32))


@pytest.mark.parametrize(("name", "target"), devices.spread(list(WORKS)))
def test_our_kernels_are_right_on_the_emulator(name, target):
    sizes = Sizes(batch=4, context=64, chunk=64)
    chip = target.removeprefix("emulator:")
    assert emulate.check(WORKS[name], KERNELS / f"{name}.mlir", chip, "edges", sizes) is None


def test_wrong_bits_are_named():
    expected = {"out": np.zeros((2, 3), np.uint16)}
    results = {"out": np.array([[0, 0, 0], [0, 7, 1]], np.uint16)}
    assert references.compare_bits(expected, expected) is None
    assert references.compare_bits(expected, results) == "out[1, 1] is 7, expected 0; 2 of 6 are wrong"


def test_a_reciprocal_may_be_a_step_off_where_something_is_written():
    case = WORKS["append_fp8"].make_case("edges", SMALL)
    expected = references.append_fp8(case)
    assert references.compare_reciprocal(expected, expected) is None
    written = np.argwhere(expected["scales"].view(np.int32) != -1)[0]
    token = tuple(written[:-1])
    results = {name: array.copy() for name, array in expected.items()}
    results["scales"].view(np.int32)[tuple(written)] += references.SCALE_ULPS
    code = results["blocks"][(*token, 1)]
    results["blocks"][(*token, 1)] = code + 1 if code & 0x7F < 0x7E else code - 1
    assert references.compare_reciprocal(expected, results) is None
    results["blocks"][(*token, 1)] = code ^ 0x80 if code & 0x7F > 1 else 0x20
    assert "blocks[" in references.compare_reciprocal(expected, results)
    results["scales"].view(np.int32)[tuple(written)] += 1
    assert "scales[" in references.compare_reciprocal(expected, results)
    elsewhere = {**expected, "blocks": np.where(expected["blocks"] == 0xFF, 0xFE, expected["blocks"])}
    assert "blocks[" in references.compare_reciprocal(expected, elsewhere)


def test_attention_has_to_be_close_in_every_head():
    expected = references.decode(WORKS["decode"].make_case("edges", SMALL))
    assert references.compare_merged(expected, expected) is None
    for change in (1.02, np.nan):
        results = {**expected, "attention": expected["attention"].copy()}
        results["attention"][3, 5, 2] *= change
        assert "attention[3, 5, 2]" in references.compare_merged(expected, results)
    later = {**expected, "log_sum": expected["log_sum"] + 0.1}
    assert references.compare_merged(expected, later).startswith("log_sum[1, 0, 0]")


def test_sizes_are_checked_and_defeat_the_cache():
    with pytest.raises(ValueError, match="expects context to be a multiple of 64, got 100"):
        Sizes(context=100)
    with pytest.raises(ValueError, match="expects layer to be from 0 to 1, got 2"):
        Sizes(layer=2)
    with pytest.raises(ValueError, match="expects batch to be positive, got 0"):
        Sizes(batch=0)
    sizes = Sizes(batch=2).filling(l2_bytes=1 << 20, token_bytes=2048)
    case = WORKS["gather"].make_case("ragged", sizes)
    assert case.arrays["lengths"].sum() * 2048 > 3 << 20
    assert sizes.context % 64 == 0


# --- Cubins and arguments --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WORKS)
def test_cubins_say_what_the_compiler_says_of_parameters(packed, name):
    image = packed.find(kernels.OURS, name, CHIP)
    slots = cubin.read_parameters(packed.read(image), image.name)
    assert [asdict(slot) for slot in slots] == [
        {"offset": parameter["offset"], "size": parameter["size"]} for parameter in image.parameters
    ]


def test_what_is_no_cubin_is_an_error(packed):
    image = packed.find(kernels.OURS, "gather", CHIP)
    data = packed.read(image)
    with pytest.raises(cubin.CubinError, match="does not begin as an ELF file"):
        cubin.read_parameters(b"PTX", "gather")
    with pytest.raises(cubin.CubinError, match=f"there is no kernel 'other'; the cubin has {image.name}"):
        cubin.read_parameters(data, "other")
    for size in range(64, len(data) * 9 // 10, len(data) // 50):  # of which the last is a table that nobody reads
        try:
            cubin.read_parameters(data[:size], image.name)
        except cubin.CubinError:
            continue
        pytest.fail(f"{size} bytes of {len(data)} were read as a cubin")


@pytest.mark.parametrize("peer", [peer for work in WORKS.values() for peer in work.peers], ids=lambda peer: peer.source)
def test_structs_are_those_of_the_sources(peer):
    source = (ROOT / f"benchmarks/peers/{peer.source}.cu").read_text()
    body = re.search(r"struct Params \{(.*?)\};", source, re.DOTALL)[1]
    letters = {"uint32_t": "I", "float": "f"}
    fields = ""
    for declaration in filter(None, map(str.strip, body.split(";"))):
        declaration = re.sub(r"//.*", "", declaration).strip()
        type = declaration.removeprefix("const ").split()[0]
        fields += "".join("P" if "*" in name else letters[type] for name in declaration.split(","))
    assert peer.fields == fields
    assert len(peer.members) == len(fields)


@pytest.mark.slow
@pytest.mark.skipif(not pack.find_nvcc(), reason="needs nvcc")
def test_structs_have_the_bytes_that_nvcc_wants(tmp_path):
    with_peers = kernels.Pack({}, folder=tmp_path)
    for work in WORKS.values():
        case = work.make_case("edges", SMALL)
        device = CudaDevice(driver=fake_cuda.FakeDriver())
        with contenders.Workspace(device, case) as workspace:
            for peer in work.peers:
                pack._add_peer(with_peers, ROOT / f"benchmarks/peers/{peer.source}.cu", CHIP, pack.find_nvcc())
                entrant = contenders.enter_peer(work, peer, workspace, with_peers, CHIP)
                assert entrant.name == peer.title


def test_triton_functions_take_what_they_are_given():
    functions = {node.name: [argument.arg for argument in node.args.args]
                 for node in ast.parse(TRITON.read_text()).body if isinstance(node, ast.FunctionDef)}
    assert functions.keys() == LAUNCHES.keys()
    shape = {"P": inputs.PAGE_SIZE, "H": inputs.HEADS, "HKV": inputs.HEADS, "D": inputs.HEAD_SIZE, "G": inputs.GROUP,
             "GQ": inputs.QUERY_HEADS // inputs.HEADS}
    for name, launch in LAUNCHES.items():
        assert functions[name][len(launch.arguments):] == list(launch.constants)
        assert {**launch.constants, **shape}.items() >= launch.constants.items()


def test_sizes_of_arguments_are_checked():
    slots = (cubin.Slot(0, 8), cubin.Slot(8, 4))
    arguments.check([b"12345678", b"1234"], slots, "gather")
    with pytest.raises(arguments.ArgumentError, match="kernel gather has 2 parameters, got 1"):
        arguments.check([b"12345678"], slots, "gather")
    with pytest.raises(arguments.ArgumentError, match="parameter 1 of kernel gather has 4 bytes, got 8"):
        arguments.check([b"12345678"] * 2, slots, "gather")


def test_what_a_parameter_may_name():
    array = arguments.DeviceArray(4096, (2, 3, 5), 2)
    values = {"out": array, "layer": 7, "scale": 0.5}
    assert [arguments.look_up(f"out{part}", values) for part in ("", ".size1", ".stride0")] == [4096, 3, 15]
    assert arguments.encode_number(-1, 4) == b"\xff" * 4
    assert arguments.encode_number(0.5, 4) == struct.pack("<f", 0.5)
    assert arguments.encode_struct("PI", ("out", "layer"), values) == struct.pack("@PI4x", 4096, 7)
    for name, message in (("other", "nobody says what 'other' is; known are out, layer, scale"),
                          ("out.size3", "an array has no 'size3'"), ("layer.size0", "a number has no 'size0'")):
        with pytest.raises(arguments.ArgumentError, match=message):
            arguments.look_up(name, values)
    with pytest.raises(arguments.ArgumentError, match="4294967296 does not fit into 4 bytes"):
        arguments.encode_number(2**32, 4)


# --- The same launch as our host code's ------------------------------------------------------------------------------

TRACED_CHIP = "sm_100a"
_TOOLS = Path(os.environ.get("MLIR_DIR", "/usr/lib/llvm-22/lib/cmake/mlir"), "../../../bin").resolve()
_LIBRARIES = ROOT / "build/lib"


def make_main(source, name, case):
    """A function that prints where it puts the arrays of a case, and calls ours with them."""
    function = {function.name: function for function in ir.Module.parse(source).functions}[name]
    lines, types, arrays = [], [], []
    for argument in function.arguments:
        type, value = str(argument.type), f"%{argument.name}"
        types.append(type)
        if argument.name in case.numbers:
            lines.append(f"{value} = arith.constant {case.numbers[argument.name]} : {type}")
            continue
        arrays.append(argument.name)
        open_sizes = re.findall(r"\?|\d+(?=x)", type)
        sizes = [f"%{argument.name}_{dim}" for dim, size in enumerate(open_sizes) if size == "?"]
        shape = case.arrays[argument.name].shape
        lines += [f"{size} = arith.constant {shape[int(size.rsplit('_', 1)[1])]} : index" for size in sizes]
        lines += [
            f"{value} = memref.alloc({', '.join(sizes)}) {{alignment = 256 : i64}} : {type}",
            f"{value}_at = memref.extract_aligned_pointer_as_index {value} : {type} -> index",
            f"vector.print {value}_at : index",
        ]
    operands = ", ".join(f"%{argument.name}" for argument in function.arguments)
    lines.append(f"func.call @{name}({operands}) : ({', '.join(types)}) -> ()")
    body = "\n".join(["func.func @main() {", *lines, "return", "}"])
    text = source.read_text()
    if "gpu.container_module" in text:  # the module is written out: the function goes into it
        end = text.rindex("}")
        return f"{text[:end]}{body}\n}}\n", arrays
    return f"{text}\n{body}\n", arrays


def trace_launch(source, name, case, folder):
    """What our own host code passes to the kernel: addresses of the arrays, the grid, and the parameters' texts."""
    text, arrays = make_main(source, name, case)
    (folder / "source.mlir").write_text(text)
    lowered = folder / "host.mlir"
    options = f"--kvcache-to-ptx=chip={TRACED_CHIP} host=true"
    subprocess.run([ROOT / "build/bin/kvcache-opt", folder / "source.mlir", options, "-o", lowered], check=True)
    libraries = [_TOOLS.parent / "lib/libmlir_c_runner_utils.so",
                 _LIBRARIES / "libkvcache_trace.so", _LIBRARIES / "libkvcache_runtime.so"]
    command = [_TOOLS / "mlir-runner", lowered, "-e", "main", "-entry-point-result=void",
               f"-shared-libs={','.join(map(str, libraries))}"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    addresses = dict(zip(arrays, map(int, output.split("launch")[0].split())))
    grid, block = (tuple(map(int, found.split(", "))) for found in re.search(
        r"grid \((.*?)\), block \((.*?)\)", output).groups())
    parameters = re.findall(r"param \d+: \d+ bytes, (.*)", output)
    return addresses, grid, block, [re.sub(r"offset (-?\d+), base (\w+)", add_offset, text) for text in parameters]


def add_offset(match):
    return f"address {int(match[2], 16) + int(match[1]):#x}"


class TracingDevice:
    """Writes descriptors as the trace does."""

    def encode(self, tensor_map):
        size = tensor_map.element_bytes
        strides = (1, *(stride // size for stride in tensor_map.stride_bytes))
        return (
            f"tensor map of {size}-byte elements, dims {tensor_map.dims}, strides {strides}, box {tensor_map.box}, "
            f"swizzle {tensor_map.swizzle}, l2 promotion {tensor_map.l2_promotion}, "
            f"address {tensor_map.address:#x}"
        ).encode()


def describe_argument(argument):
    if argument.startswith(b"tensor map"):
        return argument.decode()
    signed = int.from_bytes(argument, "little", signed=True)
    return f"{signed} = {int.from_bytes(argument, 'little'):#x}"


@pytest.mark.skipif(not (_TOOLS / "mlir-runner").exists(), reason="needs mlir-runner")
@pytest.mark.parametrize("name", WORKS)
def test_launches_are_those_of_our_host_code(packed, name, tmp_path):
    work, image = WORKS[name], packed.find(kernels.OURS, name, TRACED_CHIP)
    case = work.make_case("ragged", SMALL)
    addresses, grid, block, parameters = trace_launch(KERNELS / f"{name}.mlir", name, case, tmp_path)
    workspace = contenders.Workspace(None, case)
    workspace.arrays = {key: arguments.DeviceArray(addresses.get(key, 0), array.shape, array.itemsize)
                        for key, array in case.arrays.items()}
    encoded = contenders.encode_parameters(image, workspace.values(), TracingDevice())
    assert [describe_argument(argument) for argument in encoded] == parameters
    assert (work.grid(case, image.block), image.block) == (grid, block)


# --- A GPU that pretends ---------------------------------------------------------------------------------------------


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
    """A pack with two contenders, and a driver that knows what they do. Ours takes 2 ms, the peer 3 and a copy 1.9."""
    image = packed.find(kernels.OURS, "gather", CHIP)
    (tmp_path / "cubins").mkdir()
    for name in ("ours", "peer"):
        (tmp_path / f"cubins/{name}").write_bytes(packed.read(image))
    ours = kernels.KernelImage(**{**asdict(image), "cubin": "cubins/ours"})
    peer = kernels.KernelImage(kernels.PEER, "gather", CHIP, "gather", "cubins/peer")
    made = kernels.Pack({"commit": "abc"}, [ours, peer], folder=tmp_path)
    made.save()
    read = cubin.read_parameters
    monkeypatch.setattr(contenders, "read_parameters",
                        lambda data, name: (cubin.Slot(0, 56),) if name == "gather" else read(data, name))
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
    assert found["provenance"]["pack commit"] == "abc" and "B200" in found["provenance"]["device"]
    full = {entry["contender"]: entry for entry in found["results"] if entry["kind"] == "full"}
    assert full["kvcache"]["milliseconds"] == pytest.approx([2.0] * 5)
    assert full["kvcache"]["moved_bytes"] == 2 * 3 * 64 * 2048
    assert full["kvcache"]["figures"]["bandwidth"] == pytest.approx(2 * 3 * 64 * 2048 / 2e-3)
    assert full["kvcache"]["figures"]["of_peak"] == pytest.approx(2 * 3 * 64 * 2048 / 2e-3 / 7.67e12)
    assert not any(entry["milliseconds"] for entry in found["results"] if entry["kind"] == "edges")
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
    launches = {name: lambda name=name: names.append((name, len(driver.calls))) for name in "abc"}
    driver.calls.clear()
    times = time_launches(device, launches, warm_up=1, repetitions=4)
    record = ["cuEventCreate", "cuEventRecord"]
    assert driver.calls == record * (1 + 2 * 15 + 1) + ["cuStreamQuery"] + ["cuEventElapsedTime"] * 16
    assert {name: len(values) for name, values in times.items()} == {"a": 4, "b": 4, "c": 4}
    assert [at for _, at in names] == list(range(4, 62, 4))
    turns = ["".join(name for name, _ in names[i : i + 3]) for i in range(0, 15, 3)]
    assert all(sorted(turn) == ["a", "b", "c"] for turn in turns) and len(set(turns)) > 1


class SlowHost(fake_cuda.FakeDriver):
    def _cuEventCreate(self, flags):
        self.clock += 0.25
        return super()._cuEventCreate(flags)


@pytest.mark.parametrize(("driver", "warning"), [
    (fake_cuda.FakeDriver(), ""), (SlowHost(), "the device was idle for 23% of the time"),
])
def test_a_device_that_waits_for_the_host_is_named(driver, warning, capsys):
    def launch():
        driver.clock += 1

    time_launches(CudaDevice(driver=driver), {"a": launch}, warm_up=1, repetitions=1)
    assert capsys.readouterr().err[:len(warning) or None] == warning


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


def test_a_kernel_that_fails_ends_the_run_with_what_there_is(rig, capsys):
    made, driver = rig
    driver.failures["cuStreamQuery"] = (fake_cuda.ILLEGAL_ADDRESS, 6)
    driver.failures["cuMemFree"] = (fake_cuda.ILLEGAL_ADDRESS, 6)
    assert run_pack(made) == 1
    captured = capsys.readouterr()
    assert "error: gather, ragged, kvcache: cuStreamQuery: 700; nothing after it was run" in captured.err
    assert "gather, ragged, kvcache: failed: cuStreamQuery: 700" in captured.out
    assert "2 results are right" in captured.out


def test_a_device_that_fails_between_kernels(rig, capsys):
    made, driver = rig
    driver.failures["cuMemcpyHtoD"] = (fake_cuda.ILLEGAL_ADDRESS, 4)
    assert run_pack(made) == 1
    assert "error: gather, ragged: cuMemcpyHtoD: 700; nothing after it was run" in capsys.readouterr().err


def test_a_kernel_that_never_ends(rig, capsys, monkeypatch):
    made, driver = rig
    monkeypatch.setattr(cuda_device, "LONGEST_WAIT", 0.01)
    driver.failures["cuStreamQuery"] = (fake_cuda.NOT_READY, 3)
    assert run_pack(made) == 1
    assert "error: gather, edges, CUDA C++: a kernel has not ended after 0.01 s" in capsys.readouterr().err


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


def test_code_that_does_not_load_makes_a_contender_absent(rig, capsys):
    made, driver = rig
    driver.failures["cuModuleLoadData"] = (209, 1)
    assert run_pack(made) == 0
    output = capsys.readouterr().out
    assert "gather, edges and ragged and full, kvcache: absent: cuModuleLoadData: 209" in output
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
    (["--works", "gather,none"], "unknown work 'none'; known are gather, "),
    (["--batch", "0"], "expects a positive number, got '0'"),
    (["--context", "100"], "expects context to be a multiple of 64, got 100"),
])
def test_wrong_options(options, message, capsys, packed):
    with pytest.raises(SystemExit):
        command.main(packed.folder, "Runs.", options)
    assert message in capsys.readouterr().err


class FakeTensor:
    """As much of a tensor of PyTorch as FlashInfer gets and gives; bf16 is its bits."""

    def __init__(self, array):
        self.array = array

    def numpy(self):
        return self.array

    def view(self, dtype):
        return FakeTensor(self.array.view(dtype))

    cuda = float = cpu = lambda self: self


class FakeTorch(types.ModuleType):
    bfloat16, uint8 = np.uint16, np.uint8
    from_numpy = staticmethod(FakeTensor)

    def __init__(self):
        super().__init__("torch")
        self.streams = []
        self.cuda = types.SimpleNamespace(
            ExternalStream=int, stream=self._stream, synchronize=lambda: None
        )

    @contextmanager
    def _stream(self, stream):
        self.streams.append(stream)
        yield

    @staticmethod
    def empty(size, dtype, device):
        return FakeTensor(np.zeros(16, dtype))


class FakeFlashInfer(types.ModuleType):
    """Attention as FlashInfer's documentation has it: lists of pages, and pages of keys and values (NHD)."""

    class BatchDecodeWithPagedKVCacheWrapper:
        def __init__(self, buffer, layout, use_tensor_cores):
            assert layout == "NHD"

        def plan(self, begins, pages, last, query_heads, heads, size, page_size, q_data_type, kv_data_type):
            self.pages = [begins.array, pages.array, last.array]
            assert (query_heads, heads, size, page_size) == (64, 8, 128, 16)

        def run(self, query, cache):
            begins, pages, last = self.pages
            out = np.zeros(query.array.shape, np.float32)
            for sequence, queries in enumerate(formats.bf16_to_f32(query.array)):
                mine = pages[begins[sequence] : begins[sequence + 1]]
                length = (len(mine) - 1) * 16 + last[sequence]
                blocks = formats.bf16_to_f32(cache.array[mine]).swapaxes(0, 1).reshape(2, -1, 8, 128)
                keys, values = np.repeat(blocks[:, :length], 8, axis=2)
                scores = np.einsum("hd,thd->ht", queries, keys) / np.sqrt(128)
                weights = np.exp(scores - scores.max(-1, keepdims=True))
                out[sequence] = np.einsum("ht,thd->hd", weights / weights.sum(-1, keepdims=True), values)
            return FakeTensor(out)


def test_flashinfer_attends_to_the_same_tokens(monkeypatch):
    torch = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "flashinfer", FakeFlashInfer("flashinfer"))
    work, device = WORKS["decode"], CudaDevice(driver=fake_cuda.FakeDriver())
    case = work.make_case("ragged", SMALL)
    case.arrays["lengths"][:2] = 1, 17
    expected = work.reference(case)
    device.stream = 5
    with contenders.Workspace(device, case) as workspace:
        entrant = contenders.enter_flashinfer(workspace)
        entrant.launch()
        assert entrant.compare(expected, entrant.results()) is None
        assert torch.streams == [5]
        case.arrays["lengths"][1] = 18
        later = contenders.enter_flashinfer(workspace)
        later.launch()
        assert "distance from attention[1, " in later.compare(expected, later.results())
        case.arrays["lengths"][0] = 0
        with pytest.raises(contenders.Unavailable, match="FlashInfer expects sequences that have a token"):
            contenders.enter_flashinfer(workspace)


# --- Packs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("missing", "package"), [("cuda", "cuda-bindings"), ("numpy", "numpy")])
def test_a_pack_is_complete_and_runs_by_itself(packed, tmp_path, missing, package):
    """Without a GPU as far as the message that there is none, and without anything of this repository."""
    folder = shutil.copytree(packed.folder, tmp_path / "elsewhere")
    saved = json.loads((folder / kernels.MANIFEST).read_text())["images"]
    assert [json.loads(json.dumps(asdict(image))) for image in kernels.load(folder).images] == saved
    assert [image.name for image in packed.images] == [image["name"] for image in saved]
    assert {entry["contender"] for entry in packed.missing} == {kernels.PEER}
    blocked = ("ml_dtypes", "kvcache", missing)
    program = (
        f"import runpy, sys; sys.modules.update(dict.fromkeys({blocked})); sys.argv = ['run.py']; "
        "runpy.run_path('run.py', run_name='__main__')"
    )
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: the package {package} is missing")


def test_what_is_no_pack(tmp_path):
    with pytest.raises(kernels.PackError, match="not a pack: there is no manifest.json"):
        kernels.load(tmp_path)
    for text, message in (
        ("{", "not the manifest of a pack"), ("{}", "not the manifest of a pack: KeyError"),
        ('{"format": "kvcache-bench-gpu", "version": 9}', "expects version 1 of kvcache-bench-gpu, got 9"),
    ):
        (tmp_path / kernels.MANIFEST).write_text(text)
        with pytest.raises(kernels.PackError, match=message):
            kernels.load(tmp_path)


def test_what_does_not_compile_is_missing_with_the_reason(tmp_path, capsys):
    made = kernels.Pack({}, folder=tmp_path)
    source = tmp_path / "gather.mlir"
    source.write_text("func.func @gather() { unknown.op }")
    pack._add_ours(made, source, "sm_90a")
    pack._add_ours(made, tmp_path / "none.mlir", "sm_90a")
    source.write_text("func.func @gather() { return }")
    pack._add_ours(made, source, "sm_80")
    reasons = [entry["reason"] for entry in made.missing]
    assert reasons[0].startswith("error: ") and "unknown" in reasons[0]
    assert reasons[1] == "none.mlir: No such file or directory"
    assert reasons[2] == "expects one kernel in gather.mlir, got none"
    assert made.find(kernels.OURS, "gather", "sm_80") == reasons[2]
    assert made.find(kernels.OURS, "other", "sm_80") == "the pack has no other for sm_80"
    assert "kvcache, none, sm_90a: " in capsys.readouterr().err


# --- Report ----------------------------------------------------------------------------------------------------------


def results_of(work, **milliseconds):
    return [Result(work, "full", name.replace("_", " "), "right", "", [value], 10**9)
            for name, value in milliseconds.items()]


@pytest.mark.parametrize(("work", "times", "verdict"), [
    ("gather", {"kvcache": 1.0, "copy": 0.9, "Triton": 1.0}, "met"),
    ("gather", {"kvcache": 1.0, "copy": 0.89, "Triton": 1.0}, "not met"),
    ("gather", {"kvcache": 1.0, "copy": 0.95, "Triton": 0.98}, "not met"),
    ("decode", {"kvcache": 1.0, "copy": 0.5, "Triton": 1.2, "CUDA": 1.0}, "met"),
])
def test_verdicts(work, times, verdict):
    (line,) = report.judge(report.make_rows(results_of(work, **times), 4.8e12))
    assert line.startswith(f"{verdict}: {work}, full: ")
    assert ("of the copy's" in line) == WORKS[work].is_copy


def test_peaks_are_the_table_s_or_the_clock_s():
    facts = Facts("NVIDIA H200", "", (9, 0), "", 132, 0, 0, 1e12)
    assert report.peak_bandwidth(facts) == (4.8e12, "data sheet of H200")
    device = CudaDevice(driver=fake_cuda.FakeDriver(name=b"NVIDIA A100"))
    assert report.peak_bandwidth(device.facts) == (1e6 * 2 * 8, "memory clock and bus width")


def test_small_working_sets_are_named():
    results = results_of("gather", copy=1.0)
    assert report.warn_of_cache(results, 10**9 // 4) == []
    assert report.warn_of_cache(results, 10**9)[0].startswith("gather, full: moves 1.0 times the L2 cache")


def test_nothing_is_reported_that_was_not_run():
    results = [Result("gather", "full", "kvcache", "absent", "no code")]
    rows = report.make_rows(results, 4.8e12)
    assert [row.figures for row in rows] == [None]
    assert "kvcache" not in report.format_table(rows).split("results are right")[0]
    assert report.judge(rows) == ["not met: gather, full: kvcache has no time: absent: no code"]


@pytest.mark.parametrize(("words", "status", "text"), [
    (["--help"], 0, "usage: scripts/bench-gpu pack"), (["go"], 1, "unknown command 'go'"),
    (["run", "none.tar.gz"], 1, "run needs the file of a pack"),
])
def test_the_script_s_commands(words, status, text):
    result = subprocess.run([ROOT / "scripts/bench-gpu", *words], capture_output=True, text=True)
    assert result.returncode == status
    assert text in result.stdout + result.stderr
