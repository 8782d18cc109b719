"""kvcache.compile: kernels, their parameters and launch facts, and artifacts."""

import functools
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import BUILD
from programs import examples

import kvcache
from kvcache import Parameter, toolchain

KVCACHE_OPT = BUILD / "bin" / "kvcache-opt"


def has_tool(name):
    try:
        return toolchain.find_tool(name).exists()
    except kvcache.ToolchainError:
        return False


needs_ptxas = pytest.mark.skipif(not has_tool("ptxas"), reason="needs ptxas")
needs_nvdisasm = pytest.mark.skipif(not has_tool("nvdisasm"), reason="needs nvdisasm")

GATHER = """
#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!blocks = memref<?x2x?x64x8x128xbf16>

gpu.module @kernels {
  gpu.func @gather(%blocks: !blocks, %lengths: memref<?xi32>, %table: memref<?x?xi32>,
                   %out: memref<?x8xbf16>, %layer: i32) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %zero = arith.constant 0 : i32
    %c0 = arith.constant 0 : index
    %l = arith.index_castui %layer : i32 to index
    %c = kvcache.paged_collection %blocks, %lengths, %table, %zero, %zero
           : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
    %k = kvcache.paged_view key %c[%l] : !collection
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %v = kvcache.load %k[%b, %c0, %t, %c0] : !cache -> vector<8xbf16>
    vector.store %v, %out[%t, %c0] : memref<?x8xbf16>, vector<8xbf16>
    gpu.return
  }
  gpu.func @fill(%out: memref<32xf32>, %flag: i8, %value: f32)
      workgroup(%shared: memref<32xf32, #gpu.address_space<workgroup>>) kernel {
    %t = gpu.thread_id x
    memref.store %value, %shared[%t] : memref<32xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %zero = arith.constant 0 : index
    %first = memref.load %shared[%zero] : memref<32xf32, #gpu.address_space<workgroup>>
    memref.store %first, %out[%t] : memref<32xf32>
    gpu.return
  }
}
"""

# Nested parallel loops become a kernel: two of them, both under the same name.
LOOPS = """
func.func @double(%a: memref<64x128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
    scf.parallel (%j) = (%c0) to (%c128) step (%c1) {
      %v = memref.load %a[%i, %j] : memref<64x128xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %a[%i, %j] : memref<64x128xf32>
    }
  }
  scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
    scf.parallel (%j) = (%c0) to (%c128) step (%c1) {
      %v = memref.load %a[%i, %j] : memref<64x128xf32>
      %w = arith.mulf %v, %v : f32
      memref.store %w, %a[%i, %j] : memref<64x128xf32>
    }
  }
  return
}
"""


# Kernels


def test_kernels():
    module = kvcache.compile(GATHER)
    assert list(module.kernels) == ["gather", "fill"]
    assert module.chips == ("sm_90a",)
    gather = module.kernels["gather"]
    assert gather is module.kernel("gather") is module.kernel("gather", "sm_90a")
    assert (gather.name, gather.chip, gather.module) == ("gather", "sm_90a", "kernels")
    assert gather.block_size == (128, 1, 1)
    assert module.kernels["fill"].block_size is None
    assert gather.descriptors == ()
    assert ".target sm_90a" in gather.ptx and ".entry gather(" in gather.ptx
    assert gather.ptx.endswith("}\n")


def test_parameters_have_names_and_places():
    gather, fill = kvcache.compile(GATHER).kernels.values()
    assert fill.parameters == (
        Parameter("out", "!llvm.ptr", 8, 0),
        Parameter("flag", "i8", 1, 8),
        Parameter("value", "f32", 4, 12),
    )
    names = [parameter.name for parameter in gather.parameters]
    places = {
        name: names.index(name)
        for name in ("blocks", "lengths", "table", "out", "layer")
    }
    assert sorted(places.values()) == list(places.values())
    assert (
        len(names)
        == len(set(names))
        == gather.ptx.split(".entry fill")[0].count(".param .u")
    )
    for name in ("blocks", "lengths", "table", "out"):
        assert gather.parameters[places[name]].type == "!llvm.ptr"


# Kernels may be written for LLVM, with names that are PTX's.
HAND_WRITTEN = """
gpu.module @kernels {
  llvm.func @f(%pointer: !llvm.ptr, %byte: i8,
               %map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64},
               %value: f32, %pair: !llvm.struct<(i32, i64)>, %lanes: vector<4xf32>)
      attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64, 2>} {
    llvm.return
  }
  llvm.func @empty() attributes {nvvm.kernel} {
    llvm.return
  }
}
"""


def test_parameters_of_kernels_by_hand():
    f, empty = kvcache.compile(HAND_WRITTEN).kernels.values()
    assert f.block_size == (64, 2, 1)
    assert f.parameters == (
        Parameter("f_param_0", "!llvm.ptr", 8, 0),
        Parameter("f_param_1", "i8", 1, 8),
        Parameter("f_param_2", "!llvm.array<128 x i8>", 128, 64),
        Parameter("f_param_3", "f32", 4, 192),
        Parameter("f_param_4", "!llvm.struct<(i32, i64)>", 16, 200),
        Parameter("f_param_5", "vector<4xf32>", 16, 224),
    )
    assert ".param .align 64 .b8 f_param_2[128]" in f.ptx
    assert (empty.parameters, empty.block_size) == ((), None)


def test_repr_shows_the_launch():
    module = kvcache.compile(GATHER)
    assert "fill(out: !llvm.ptr, flag: i8, value: f32) for sm_90a" in repr(module)
    assert "block_size=(128, 1, 1)" in repr(module.kernels["gather"])
    assert (
        repr(kvcache.compile("module {}"))
        == "<kvcache.CompiledModule for no chip: no kernels>"
    )


def test_kernels_of_one_name():
    module = kvcache.compile(LOOPS)
    assert len(module.kernels) == 2
    for name, kernel in module.kernels.items():
        assert name in (kernel.name, f"{kernel.module}::{kernel.name}")
        assert module.kernel(name) is kernel


def test_unknown_kernel():
    with pytest.raises(
        ValueError, match="no kernel 'nothing'; the module has gather, fill"
    ):
        kvcache.compile(GATHER).kernel("nothing")
    with pytest.raises(ValueError, match="no kernel 'gather' for sm_80"):
        kvcache.compile(GATHER).kernel("gather", "sm_80")


# Targets and options


@pytest.mark.parametrize(
    "target",
    [
        "sm_80,sm_100a",
        "sm_80, sm_100a",
        ["sm_80", "sm_100a"],
        ("sm_80", "sm_100a", "sm_80"),
    ],
)
def test_several_chips(target):
    module = kvcache.compile(GATHER, target)
    assert module.chips == ("sm_80", "sm_100a")
    assert set(module.kernels) == {
        (n, c) for n in ("gather", "fill") for c in module.chips
    }
    for chip in module.chips:
        kernel = module.kernel("gather", chip)
        assert kernel.chip == chip and f".target {chip}" in kernel.ptx
        assert kernel.parameters == module.kernel("gather", "sm_80").parameters
    with pytest.raises(ValueError, match="expects 'chip', one of sm_80, sm_100a"):
        module.kernel("gather")


def test_targets_of_the_source_come_first():
    named = GATHER.replace("@kernels {", '@kernels [#nvvm.target<chip = "sm_120a">] {')
    assert kvcache.compile(named, "sm_80").chips == ("sm_120a",)


@pytest.mark.parametrize("chip", kvcache.chips())
def test_every_chip(chip):
    assert f".target {chip}" in kvcache.compile(GATHER, chip).kernels["gather"].ptx


@pytest.mark.parametrize(
    "target", ["sm_70", "", "SM_90A", "sm_90a,", "gfx942", ["sm_90a", ""], []]
)
def test_unknown_chips(target):
    with pytest.raises(
        ValueError, match="unknown chip .* known are sm_80|at least one chip"
    ):
        kvcache.compile(GATHER, target)


def test_unknown_format():
    with pytest.raises(
        ValueError, match="'format' to be one of ptx, cubin, fatbin, got 'sass'"
    ):
        kvcache.compile(GATHER, format="sass")


@pytest.mark.parametrize("level", [0, 3])
def test_optimization_levels(level):
    assert (
        ".entry gather"
        in kvcache.compile(GATHER, opt_level=level).kernels["gather"].ptx
    )


def test_wrong_optimization_level():
    with pytest.raises(
        ValueError, match="expects 'opt_level' to be 0, 1, 2 or 3, got 4"
    ):
        kvcache.compile(GATHER, opt_level=4)


def test_bounds_checks_trap_with_the_source_line():
    kernel = kvcache.compile(
        GATHER, filename="gather.mlir", bounds_checks=True
    ).kernels["gather"]
    assert "__assertfail" in kernel.ptx or "trap" in kernel.ptx
    # Strings are arrays of bytes in PTX.
    arrays = re.findall(r"\.b8 [^=]*= \{([^}]*)\}", kernel.ptx)
    texts = [bytes(map(int, array.split(","))).decode() for array in arrays]
    assert any("gather.mlir:19:10: " in text for text in texts)


def test_errors_carry_diagnostics(tmp_path):
    path = tmp_path / "wrong.mlir"
    path.write_text(GATHER.replace("vector<8xbf16>\n", "vector<7xbf16>\n", 1))
    with pytest.raises(kvcache.CompileError) as raised:
        kvcache.compile(path)
    assert raised.value.diagnostics[0].filename == str(path)
    assert raised.value.diagnostics[0].line > 0


@pytest.mark.parametrize(
    "op, message",
    [
        ('inline_asm has_side_effects "bogus $5;", "r" %i : (i32) -> ()', "Invalid . operand number"),
        ('inline_asm has_side_effects "", "{eax}" %i : (i32) -> ()', "couldn't allocate"),
        ('call_intrinsic "llvm.prefetch"(%p, %i, %i, %i) : (!llvm.ptr, i32, i32, i32) -> ()', "immarg"),
    ],
)
def test_errors_on_which_llvm_ends_the_process_are_errors(op, message):
    source = f"""
gpu.module @kernels {{
  llvm.func @wait(%i: i32, %p: !llvm.ptr) attributes {{gpu.kernel, nvvm.kernel}} {{
    llvm.{op}
    llvm.return
  }}
}}
"""
    expected = f"LLVM can't compile 'kernels' for sm_80: {message}"
    for _ in range(3):
        with pytest.raises(kvcache.CompileError, match=expected):
            kvcache.compile(source, "sm_80")
    assert kvcache.compile(GATHER, "sm_80").kernels


def test_sources_without_kernels():
    assert not kvcache.compile("func.func @f() { return }").kernels


def test_compiling_in_threads():
    chips = kvcache.chips()[:8]
    with ThreadPoolExecutor(4) as pool:
        modules = list(pool.map(lambda chip: kvcache.compile(GATHER, chip), chips))
    assert [module.chips for module in modules] == [(chip,) for chip in chips]


# Launch facts


TILES = """
!tile = !kvcache.tile<{rows}x128xbf16, swizzle_128b>
gpu.module @kernels {{
  gpu.func @tiles(%out: memref<8xbf16>) kernel {{
    %c0 = arith.constant 0 : index
    %tile = kvcache.alloc_tile : !tile
    %v = kvcache.tile_load %tile[%c0, %c0] : !tile -> vector<8xbf16>
    vector.store %v, %out[%c0] : memref<8xbf16>, vector<8xbf16>
    gpu.return
  }}
}}
"""


@pytest.mark.parametrize("rows, dynamic", [(192, 0), (256, 65536)])
def test_dynamic_shared_memory(rows, dynamic, tmp_path):
    module = kvcache.compile(TILES.format(rows=rows), ["sm_80", "sm_120a"])
    module.save(tmp_path / "tiles")
    for either in (module, kvcache.load(tmp_path / "tiles")):
        for kernel in either.kernels.values():
            assert kernel.dynamic_shared_memory == dynamic
            shown = f"dynamic_shared_memory={dynamic}>"
            assert (shown in repr(kernel)) == (dynamic > 0)


def test_more_shared_memory_than_the_chip_has():
    with pytest.raises(kvcache.CompileError, match="but sm_120a has 101376"):
        kvcache.compile(TILES.format(rows=512), ["sm_80", "sm_120a"])


@needs_ptxas
def test_launch_facts():
    gather, fill = kvcache.compile(GATHER).kernels.values()
    assert 8 <= gather.registers <= 64
    assert gather.spill_bytes == gather.stack_bytes == gather.shared_bytes == 0
    assert fill.shared_bytes == 32 * 4
    assert gather.cubin.startswith(b"\x7fELF")


@needs_ptxas
@needs_nvdisasm
def test_machine_instructions_are_counted():
    gather, fill = kvcache.compile(GATHER).kernels.values()
    assert 10 <= gather.sass_instructions <= 100
    assert 5 <= fill.sass_instructions <= 40


@needs_nvdisasm
def test_padding_is_not_counted():
    section = """
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   NOP;
        /*0020*/              @!P0 EXIT ;
.L_x_0:
        /*0030*/                   BRA `(.L_x_0);
        /*0040*/                   NOP;
        /*0050*/                   NOP;
"""
    assert toolchain._count_section(section) == 3


@needs_ptxas
@pytest.mark.parametrize("format", ["cubin", "fatbin"])
def test_formats(format):
    kernel = kvcache.compile(GATHER, format=format).kernels["gather"]
    assert getattr(kernel, format)
    assert ".entry gather" in kernel.ptx
    assert kernel.binary.known("cubin") is not None


PLACES = ("PTXAS", "CUDA_HOME", "CUDA_ROOT", "CUDA_PATH", "PATH")


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A ptxas in each place of the search, which prints the place's name and fails."""
    monkeypatch.setattr(toolchain.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(toolchain.sysconfig, "get_path", lambda _: str(tmp_path))
    for place in PLACES:
        folder = tmp_path / place / "bin"
        folder.mkdir(parents=True)
        fake = folder / "ptxas"
        fake.write_text(f"#!/bin/sh\necho from {place}\nexit 3\n")
        fake.chmod(0o755)
        value = {"PTXAS": fake, "PATH": folder}.get(place, folder.parent)
        monkeypatch.setenv(place, str(value))
    (tmp_path / "kernel.mlir").write_text(GATHER)
    return tmp_path


@pytest.mark.parametrize("first", range(len(PLACES)))
def test_python_and_the_compiler_find_the_same_tool(first, places, monkeypatch):
    for place in PLACES[:first]:
        monkeypatch.delenv(place)
    with pytest.raises(kvcache.ToolchainError, match=f"from {PLACES[first]}$"):
        assert kvcache.compile(GATHER).kernels["gather"].cubin
    options = "--kvcache-to-ptx=chip=sm_90a format=cubin"
    run = subprocess.run(
        [KVCACHE_OPT, places / "kernel.mlir", options], capture_output=True, text=True
    )
    assert run.returncode != 0
    assert f"'ptxas' failed (exit code 3): from {PLACES[first]}" in run.stderr


def test_missing_tool(monkeypatch):
    monkeypatch.setattr(toolchain, "_tool_folders", lambda: iter(()))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("PTXAS", raising=False)
    kernel = kvcache.compile(GATHER).kernels["gather"]
    with pytest.raises(kvcache.ToolchainError, match="pip install nvidia-cuda-nvcc"):
        assert kernel.registers
    monkeypatch.setenv("PTXAS", "/nonexistent/ptxas")
    with pytest.raises(kvcache.ToolchainError, match="PTXAS is '/nonexistent/ptxas'"):
        kvcache.compile(GATHER, format="cubin")


@needs_ptxas
def test_tool_that_fails():
    with pytest.raises(kvcache.ToolchainError, match="ptxas failed .*\n.*line 1"):
        toolchain.assemble("garbage", "sm_90a")


RUNS = {
    "ptxas": lambda: toolchain.assemble("", "sm_90a"),
    "fatbinary": lambda: toolchain.make_fatbin("", b"", "sm_90a"),
    "nvdisasm": lambda: toolchain.disassemble(b""),
}


@pytest.mark.parametrize("tool", RUNS)
@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 0", "{tool} succeeded, but wrote no output"),
        ("exit 3", r"{tool} failed \(exit code 3\):\nit printed nothing"),
        (r"printf 'caf\351'; exit 1", "{tool} failed .*\ncaf\ufffd$"),
        ("exec sleep 60", "{tool} did not end within 1 s, the limit of KVCACHE_TOOL_"),
    ],
    ids=["no-output", "silent-failure", "latin-1", "hangs"],
)
def test_tools_that_misbehave(monkeypatch, tmp_path, tool, script, message):
    fake = tmp_path / tool
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setenv(tool.upper(), str(fake))
    monkeypatch.setenv("KVCACHE_TOOL_TIMEOUT", "1")
    with pytest.raises(kvcache.ToolchainError, match=message.format(tool=tool)):
        RUNS[tool]()


@needs_ptxas
@pytest.mark.parametrize("limit", ["0", "-1", "1.5", "soon", ""])
def test_bad_time_limit(monkeypatch, limit):
    monkeypatch.setenv("KVCACHE_TOOL_TIMEOUT", limit)
    with pytest.raises(kvcache.ToolchainError, match=f"positive number.*'{limit}'"):
        toolchain.assemble("", "sm_90a")


# Artifacts


@pytest.fixture
def saved(tmp_path):
    module = kvcache.compile(GATHER, ["sm_90a", "sm_100a"])
    module.save(tmp_path / "kernels.kvcache")
    return module, tmp_path / "kernels.kvcache"


def assert_same(module, other):
    assert list(module.kernels) == list(other.kernels)
    assert repr(module) == repr(other)
    for key, kernel in module.kernels.items():
        assert other.kernels[key].ptx == kernel.ptx
        assert other.kernels[key].parameters == kernel.parameters
        assert other.kernels[key].block_size == kernel.block_size


def test_artifacts(saved):
    module, path = saved
    assert_same(module, kvcache.load(path))
    assert_same(module, kvcache.load(str(path)))


def test_artifacts_are_reproducible(saved, tmp_path):
    _, path = saved
    kvcache.load(path).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@needs_ptxas
@needs_nvdisasm
def test_artifacts_bring_launch_facts_along(tmp_path, monkeypatch):
    module = kvcache.compile(GATHER, format="cubin")
    count = module.kernels["gather"].sass_instructions
    module.save(tmp_path / "a")
    monkeypatch.setattr(toolchain, "_run", None)
    loaded = kvcache.load(tmp_path / "a")
    assert loaded.format == "cubin"
    for kernel in loaded.kernels.values():
        assert kernel.cubin == module.kernels[kernel.name].cubin
        assert kernel.registers == module.kernels[kernel.name].registers
    assert loaded.kernels["gather"].sass_instructions == count


def test_artifacts_load_without_the_compiler(saved, tmp_path):
    """The package without its extension, as on a machine without LLVM."""
    module, path = saved
    package = tmp_path / "site" / "kvcache"
    binaries = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(Path(kvcache.__file__).parent, package, ignore=binaries)
    program = f"""
import kvcache
print(repr(kvcache.load({str(path)!r})))
try:
    kvcache.compile("module {{}}")
except ImportError as error:
    print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(package.parent)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert repr(module) in run.stdout
    assert "the compiler of the kvcache package can't be loaded" in run.stdout


def test_files_that_are_no_artifacts(saved, tmp_path):
    _, path = saved
    data = path.read_bytes()
    wrong = tmp_path / "wrong"
    damaged = bytearray(data)
    damaged[len(data) // 2] ^= 0xFF
    for contents in (
        b"",
        b"garbage",
        data[:-30],
        data[: len(data) // 2],
        bytes(damaged),
    ):
        wrong.write_bytes(contents)
        with pytest.raises(kvcache.ArtifactError, match=f"{wrong}: not an artifact"):
            kvcache.load(wrong)
    with pytest.raises(FileNotFoundError):
        kvcache.load(tmp_path / "nothing")


@pytest.mark.parametrize(
    "change, message",
    [
        (
            {"version": 2},
            "has version 2 of the format, written by kvcache .* reads version 1",
        ),
        ({"format": "other"}, "not an artifact of kvcache"),
        ({"binaries": None}, "not an artifact"),
        ({"binaries": [{"module": "m"}]}, "not an artifact"),
        (None, "not an artifact"),
    ],
)
def test_manifests_that_are_wrong(tmp_path, saved, change, message):
    _, path = saved
    wrong = tmp_path / "wrong"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(wrong, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "manifest.json":
                data = json.dumps(change and {**json.loads(data), **change})
            target.writestr(name, data)
    with pytest.raises(kvcache.ArtifactError, match=message):
        kvcache.load(wrong)


@functools.cache
def get_artifact():
    """The bytes of an artifact with everything in it that one can have."""
    module = kvcache.compile(GATHER, ["sm_90a", "sm_100a"], opt_level=0)
    for binary in module.binaries:
        binary.__dict__["cubin"] = b"code"
        names = [kernel.name for kernel in binary.kernels]
        resources = toolchain.Resources(1, 2, 3, 4)
        binary.__dict__["resources"] = dict.fromkeys(names, resources)
        binary.__dict__["instructions"] = dict.fromkeys(names, 5)
    with tempfile.TemporaryDirectory() as folder:
        module.save(Path(folder, "artifact"))
        return Path(folder, "artifact").read_bytes()


def check_damaged(contents):
    """It is refused, or what it gives can be used."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "damaged")
        path.write_bytes(contents)
        try:
            module = kvcache.load(path)
        except kvcache.ArtifactError as error:
            assert str(error).startswith(f"{path}: ")
            return
        for kernel in module.kernels.values():
            if kernel.binary.known("resources"):
                numbers = kernel.registers, kernel.spill_bytes, kernel.stack_bytes
                assert {type(number) for number in numbers} == {int}
            if kernel.binary.known("instructions"):
                assert isinstance(kernel.sass_instructions, int)
            assert isinstance(kernel.binary.known("cubin"), bytes | None)
            parameters = [p.name + p.type for p in kernel.parameters]
            assert isinstance(kernel.chip + kernel.module + "".join(parameters), str)
        module.save(path)
        assert repr(kvcache.load(path)) == repr(module)


@given(st.data())
@examples(400)
def test_artifacts_with_other_bytes(data):
    contents = bytearray(get_artifact())
    for _ in range(data.draw(st.integers(1, 4))):
        contents[data.draw(st.integers(0, len(contents) - 1))] ^= data.draw(
            st.integers(1, 255)
        )
    end = data.draw(st.sampled_from((len(contents), 0)))
    check_damaged(bytes(contents[: end or data.draw(st.integers(0, len(contents)))]))


def find_places(value):
    """All (container, key) pairs in a value of JSON."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield value, key
        if isinstance(inner, dict | list):
            yield from find_places(inner)


NONSENSE = (None, True, -1, 1.5, 2**70, "", "x", "\ud800", [], [1], {}, {"x": 1}, [[[]]])


@given(st.data())
@examples(400)
def test_artifacts_with_other_manifests(data):
    source = zipfile.ZipFile(io.BytesIO(get_artifact()))
    manifest = json.loads(source.read("manifest.json"))
    container, key = data.draw(st.sampled_from(list(find_places(manifest))))
    if data.draw(st.booleans()):
        container[key] = data.draw(st.sampled_from(NONSENSE))
    else:
        del container[key]
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as target:
        for name in source.namelist():
            is_manifest = name == "manifest.json"
            target.writestr(name, json.dumps(manifest) if is_manifest else source.read(name))
    check_damaged(output.getvalue())


@pytest.mark.parametrize("path", [None, 3, True, 1.5, [], object()])
def test_paths_of_artifacts(path):
    with pytest.raises(TypeError, match="expects 'path' to be a path, got"):
        kvcache.load(path)
    with pytest.raises(TypeError, match="expects 'path' to be a path, got"):
        kvcache.compile("").save(path)


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", kvcache.__version__)
