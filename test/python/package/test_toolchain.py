"""Tests of launch facts of kernels, and of the tools that compute them."""

import subprocess

import kvcache
import pytest
from compiled import GATHER, needs_nvdisasm, needs_ptxas
from kvcache.compilation import toolchain
from places import BUILD

KVCACHE_OPT = BUILD / "bin" / "kvcache-opt"

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


@pytest.fixture
def toolkit(tmp_path):
    """A folder with a libdevice, which is none."""
    library = tmp_path / "nvvm" / "libdevice" / "libdevice.10.bc"
    library.parent.mkdir(parents=True)
    library.write_text("no bitcode")
    return tmp_path


SINH = """
gpu.module @kernels {
  gpu.func @kernel(%m: memref<f32>) kernel {
    %x = memref.load %m[] : memref<f32>
    %y = math.sinh %x : f32
    memref.store %y, %m[] : memref<f32>
    gpu.return
  }
}
"""


def test_libdevice_is_that_of_the_toolkit(toolkit):
    with pytest.raises(kvcache.CompileError, match=f"{toolkit}/nvvm/libdevice/libdevice.10.bc"):
        kvcache.compile(SINH, toolkit=toolkit)
    kvcache.compile(SINH.replace("sinh", "sin"), toolkit=str(toolkit))
    with pytest.raises(kvcache.CompileError, match=f"{toolkit}/nvvm/libdevice/libdevice.10.bc"):
        kvcache.jit(SINH, target="cuda:sm_90a", toolkit=toolkit)


def test_libdevice_is_found_beside_ptxas(toolkit, monkeypatch):
    program = toolkit / "bin" / "ptxas"
    program.parent.mkdir()
    program.touch()
    monkeypatch.setenv("PTXAS", str(program))
    assert toolchain.find_toolkit(None) == str(toolkit)


def test_libdevice_is_found_in_packages(toolkit, monkeypatch):
    packages = toolkit / "site-packages"
    for variable in ("PTXAS", "CUDA_HOME", "CUDA_ROOT", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(toolchain.sys, "executable", str(toolkit / "python"))
    monkeypatch.setattr(toolchain.sysconfig, "get_path", lambda name: str(packages))
    assert toolchain.find_toolkit(None) == ""
    for name in ("cuda_nvcc", "cu13"):
        (packages / "nvidia" / name).mkdir(parents=True)
        (packages / "nvidia" / name / "nvvm").symlink_to(toolkit / "nvvm")
        assert toolchain.find_toolkit(None) == str(packages / "nvidia" / name)


def test_toolkit_without_libdevice_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="expects 'toolkit' to be a folder with nvvm/libdevice"):
        kvcache.compile(SINH, toolkit=tmp_path)
    with pytest.raises(TypeError, match="expects 'toolkit' to be a path, got 7"):
        kvcache.compile(SINH, toolkit=7)
    with pytest.raises(ValueError, match="'toolkit' has no meaning for target 'cpu'"):
        kvcache.jit(SINH, toolkit=tmp_path)


def test_toolkit_name_may_have_spaces_and_quotes():
    assert toolchain.describe_toolkit("/a b/it's") == ' toolkit="/a b/it\'s"'
    with pytest.raises(ValueError, match="without quotes"):
        toolchain.describe_toolkit("/a\"b'")


@pytest.mark.parametrize("name", ["/a{b", "/a}b", "/a{b}"])
def test_toolkit_name_with_braces_is_an_error(name):
    with pytest.raises(ValueError, match="expects 'toolkit' without braces in its name, got '/a"):
        toolchain.describe_toolkit(name)
