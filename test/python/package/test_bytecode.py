"""Tests of foreign and damaged bytecode: it is read, or it is an error."""

import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from places import ROOT

import kvcache
from kvcache import bytecode
from kvcache.ir import Module

SOURCE = (ROOT / "examples/gather.mlir").read_text()
MAGIC = b"ML\xefR"


def damage(contents, seed):
    """Cuts the end off, or flips some bits after the magic number."""
    rng = random.Random(seed)
    if rng.random() < 0.25:
        return contents[: rng.randrange(len(MAGIC), len(contents))]
    damaged = bytearray(contents)
    for _ in range(rng.choice((1, 1, 2, 8))):
        damaged[rng.randrange(len(MAGIC), len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def read(source):
    """Returns whether a source can be read; then it must be compilable."""
    try:
        module = Module.parse(source)
    except kvcache.CompileError as error:
        assert error.diagnostics and str(error)
        return False
    assert Module.parse(module.bytecode()).bytecode() == module.bytecode()
    return True


@pytest.mark.long
def test_damaged_bytecode_is_an_error_or_another_module():
    contents = Module.parse(SOURCE, "gather.mlir").bytecode()
    damaged = [damage(contents, seed) for seed in range(16)]
    with ThreadPoolExecutor(2) as pool:
        read_well = list(pool.map(read, damaged))
    assert 0 < read_well.count(False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["attention_pipe", "append_fp8", "tma_by_hand"])
def test_much_damaged_bytecode(name):
    contents = Module.parse(ROOT / "examples" / f"{name}.mlir").bytecode()
    damaged = [damage(contents, f"{name} {seed}") for seed in range(300)]
    with ThreadPoolExecutor(2) as pool:
        assert False in pool.map(read, damaged)


@pytest.mark.parametrize("function", [kvcache.jit, kvcache.compile, Module.parse])
@pytest.mark.parametrize("rest", [b"", b"\x00", b"\xff" * 100, b"\x0dMLIR22\x00"])
def test_each_function_survives(function, rest, tmp_path):
    path = tmp_path / "damaged.mlirbc"
    path.write_bytes(MAGIC + rest)
    for source in (MAGIC + rest, path):
        with pytest.raises(kvcache.CompileError):
            function(source)


ENDS = {
    # AddressSanitizer has a handler for other signals.
    "crashes": (
        "import os; os.abort()",
        "damaged bytecode in a.mlirbc: MLIR's reader ends with SIGABRT",
    ),
    "computes for ever": (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (1, 2))\n"
        "while True: pass",
        "damaged bytecode in a.mlirbc: MLIR's reader takes over 10 seconds",
    ),
    "waits for ever": (
        "import time; time.sleep(100)",
        "damaged bytecode in a.mlirbc: MLIR's reader does not end",
    ),
    "gives up": (
        "import sys; sys.exit('LLVM ERROR: out of memory')",
        "MLIR's reader ends with code 1: LLVM ERROR: out of memory",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("end", ENDS)
def test_ends_of_the_reader(monkeypatch, tmp_path, end):
    program, message = ENDS[end]
    (tmp_path / "reader.py").write_text(program)
    monkeypatch.setattr(bytecode, "__file__", str(tmp_path / "reader.py"))
    if end == "waits for ever":
        monkeypatch.setattr(bytecode, "_PATIENCE", 0.05)
    with pytest.raises(kvcache.CompileError) as caught:
        Module.parse(MAGIC, "a.mlirbc")
    (diagnostic,) = caught.value.diagnostics
    assert message in diagnostic.message
    assert str(caught.value) == f"error: {diagnostic.message}"


def test_the_reader_needs_a_python(monkeypatch):
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(OSError, match="no Python to start"):
        Module.parse(MAGIC)
    assert not Module.parse("").functions


def test_reader_ignores_its_environment(monkeypatch, tmp_path):
    """The current folder may have modules of any name."""
    (tmp_path / "json.py").write_text("raise RuntimeError")
    contents = Module.parse(SOURCE).bytecode()
    monkeypatch.setenv("PYTHONPATH", os.fspath(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert Module.parse(contents).functions
