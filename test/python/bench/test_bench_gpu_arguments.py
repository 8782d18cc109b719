"""The benchmarks on a GPU: arguments and launches, compared with those of the host code that we make."""

import ast
import os
import re
import struct
import subprocess
from pathlib import Path

import pytest
from bench_gpu import CHIP
from gpu import arguments, contenders, inputs, kernels
from gpu.inputs import SMALL
from gpu.works import WORKS
from peers.triton_launches import LAUNCHES
from places import KERNELS, ROOT

from kvcache import ir

TRITON = ROOT / "benchmarks/peers/triton_kernels.py"


# --- Arguments --------------------------------------------------------------------------------------------------------


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
    arguments.check([b"12345678", b"1234"], [8, 4], "gather")
    with pytest.raises(arguments.ArgumentError, match="kernel gather has 2 parameters, got 1"):
        arguments.check([b"12345678"], [8, 4], "gather")
    with pytest.raises(arguments.ArgumentError, match="parameter 1 of kernel gather has 4 bytes, got 8"):
        arguments.check([b"12345678"] * 2, [8, 4], "gather")


def test_what_a_parameter_may_name():
    array = arguments.DeviceArray(4096, (2, 3, 5), 2)
    values = {"out": array, "layer": 7, "scale": 0.5}
    assert [arguments.look_up(f"out{part}", values) for part in ("", ".size1", ".stride0")] == [4096, 3, 15]
    assert arguments.encode_number(-1, 4) == b"\xff" * 4
    assert arguments.encode_number(0.5, 4) == struct.pack("<f", 0.5)
    assert arguments.encode_struct("PI", ("out", "layer"), values) == struct.pack("@PI4x", 4096, 7)
    for name, message in (("other", "unknown argument 'other'; known are out, layer, scale"),
                          ("out.size3", "an array has no 'size3'"), ("layer.size0", "a number has no 'size0'")):
        with pytest.raises(arguments.ArgumentError, match=message):
            arguments.look_up(name, values)
    with pytest.raises(arguments.ArgumentError, match="4294967296 does not fit into 4 bytes"):
        arguments.encode_number(2**32, 4)


# --- The same launch as our host code's ------------------------------------------------------------------------------

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
    """Traces a launch by our host code: addresses of the arrays, the grid, and the texts of the parameters."""
    text, arrays = make_main(source, name, case)
    (folder / "source.mlir").write_text(text)
    lowered = folder / "host.mlir"
    options = f"--kvcache-to-ptx=chip={CHIP} host=true"
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
    work, image = WORKS[name], packed.find(kernels.OURS, name, CHIP)
    case = work.make_case("ragged", SMALL)
    addresses, grid, block, parameters = trace_launch(KERNELS / f"{name}.mlir", name, case, tmp_path)
    workspace = contenders.Workspace(None, case)
    workspace.arrays = {key: arguments.DeviceArray(addresses.get(key, 0), array.shape, array.itemsize)
                        for key, array in case.arrays.items()}
    encoded = contenders.encode_parameters(image, workspace.values(), TracingDevice())
    assert [describe_argument(argument) for argument in encoded] == parameters
    assert (work.grid(case, image.block), image.block) == (grid, block)
