"""Tests of kvcache.jit: sources, targets and options."""

import functools
import inspect
import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
from compiled import CHECKED, identity
from hypothesis import given, settings
from hypothesis import strategies as st
from places import BUILD

import kvcache

WRONG = """func.func @wrong(%a: i32) -> i64 {
  %b = arith.addi %a, %a : i32
  return %b : i32
}
"""


def test_errors_carry_diagnostics():
    with pytest.raises(kvcache.CompileError) as raised:
        kvcache.jit(WRONG, filename="dir/wrong.mlir")
    error = raised.value
    assert isinstance(error, ValueError) and isinstance(error, kvcache.Error)
    assert str(error).startswith("dir/wrong.mlir:3:3: error: ")
    diagnostic = error.diagnostics[0]
    assert (diagnostic.severity, diagnostic.filename) == ("error", "dir/wrong.mlir")
    assert (diagnostic.line, diagnostic.column) == (3, 3)
    assert "i32" in diagnostic.message


def test_notes_are_part_of_the_message():
    twice = identity("i32") + "\n" + identity("i32")
    with pytest.raises(kvcache.CompileError) as raised:
        kvcache.jit(twice)
    (note,) = raised.value.diagnostics[0].notes
    assert note.severity == "note" and note.line == 1
    assert "<string>:1:1: note: " in str(raised.value)


@pytest.mark.parametrize(
    "source",
    [
        "func.func @f(",
        "module {",
        "}",
        "func.func @f() { return }\0garbage",
        b"\xff\xfe not UTF-8 \x80",
        "func.func @\udcff() { return }",
        '"unknown.op"() : () -> ()',
        "!alias",
        "#alias = ",
        b"ML\xefR",
        b"ML\xefR\x06garbage" * 10,
        "func.func @f(%a: memref<?x?x?x",
        "func.func @f() { %0 = arith.constant 99999999999999999999999 : i32 return }",
    ],
    ids=repr,
)
def test_sources_that_are_wrong(source):
    with pytest.raises(kvcache.CompileError) as raised:
        kvcache.jit(source)
    assert raised.value.diagnostics


@pytest.mark.parametrize(
    "opening, closing",
    [("#a = " + "[" * 10**5, ""), ("module {" * 10**5, "}" * 10**5), ("<" * 10**6, "")],
    ids=["attribute", "module", "garbage"],
)
def test_deep_nesting_is_an_error(opening, closing):
    with pytest.raises(kvcache.CompileError, match="nested more than 1000 deep"):
        kvcache.jit(opening + closing)


def test_many_brackets_that_are_not_nested():
    comment = "// " + "{" * 2000 + "\n"
    arrows = "func.func private @f(" + ", ".join(["() -> i32"] * 2000) + ")\n"
    text = 'func.func private @named() loc("' + "(" * 2000 + '\\"(")\n'
    assert not kvcache.jit(comment + arrows + text).functions


@pytest.mark.parametrize("source", ["", "  \n", "// nothing", "module {}", b""])
def test_sources_without_functions(source):
    assert not kvcache.jit(source).functions


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_damaged_text_is_an_error_or_compiles(data):
    """Any source compiles or raises ``CompileError``, without a crash."""
    text = list(CHECKED)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(text) - 1))
        text[position] = data.draw(
            st.sampled_from(list('%#!@<>()[]{}"0x9?:,=-\0 \n') + [""])
        )
    try:
        kvcache.jit("".join(text))
    except kvcache.CompileError as error:
        assert error.diagnostics


def test_source_may_be_a_path(tmp_path):
    path = tmp_path / "identity.mlir"
    path.write_text(identity("i32"))
    assert kvcache.jit(path).call("identity", 5) == 5
    path.write_text(WRONG)
    with pytest.raises(kvcache.CompileError) as raised:
        kvcache.jit(path)
    assert raised.value.diagnostics[0].filename == str(path)
    with pytest.raises(FileNotFoundError):
        kvcache.jit(tmp_path / "nothing.mlir")


def test_source_may_be_bytecode(tmp_path):
    path = tmp_path / "identity.mlirbc"
    command = [BUILD / "bin" / "kvcache-opt", "--emit-bytecode", "-o", path]
    subprocess.run(command, input=CHECKED.encode(), check=True)
    for source in (path, path.read_bytes()):
        assert "row" in kvcache.jit(source).functions


@pytest.mark.parametrize("source", [None, 7, ["module {}"], object()])
def test_source_of_another_type(source):
    with pytest.raises(TypeError, match="expects MLIR text, bytes or a path as source"):
        kvcache.jit(source)


@pytest.mark.parametrize("target", ["", "gpu", "CPU", "emulator", None, 3])
def test_unknown_targets(target):
    with pytest.raises(
        ValueError, match="unknown target .* known are 'cpu', 'cuda', 'cuda:<chip>' and"
    ):
        kvcache.jit("module {}", target=target)


def test_a_machine_without_a_gpu(monkeypatch):
    """Runs in another process, since a driver is opened once."""
    program = """
import kvcache, numpy as np, tvm_ffi
try:
    kvcache.jit("module {}", target="cuda")
except kvcache.TargetError as error:
    print("jit:", error)
program = kvcache.jit("func.func @f(%n: i32) { return }", "cuda:sm_90a")
for name, call in (("load", program.load), ("call", lambda: program.call("f", 1))):
    try:
        call()
    except kvcache.TargetError as error:
        print(f"{name}:", error)
"""
    monkeypatch.setenv("KVCACHE_CUDA_DRIVER", "/nonexistent/libcuda.so")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    missing = "no CUDA driver: tried to open /nonexistent/libcuda.so"
    assert lines[0].startswith(
        f"jit: target 'cuda' needs a GPU of NVIDIA and its driver: {missing}"
    )
    assert lines[1].startswith(f"load: {missing}")
    assert lines[2].startswith(f"call: f: {missing}")
    assert len(lines) == 3


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_optimization_levels(level):
    assert kvcache.jit(identity("i32"), opt_level=level).call("identity", 3) == 3


@pytest.mark.parametrize("level", [-1, 4, 1.5, "2", None])
def test_wrong_optimization_levels(level):
    with pytest.raises(ValueError, match="expects 'opt_level' to be 0, 1, 2 or 3"):
        kvcache.jit("module {}", opt_level=level)


def test_file_names_of_many_kinds():
    for filename in (Path("a/b.mlir"), "spaced name.mlir", "naïve.mlir", b"a.mlir"):
        with pytest.raises(kvcache.CompileError) as raised:
            kvcache.jit("!", filename=filename)
        assert raised.value.diagnostics[0].filename == os.fsdecode(filename)


def test_call_is_a_method_like_others():
    """The method of the extension has the signature and the errors of Python's."""
    program = kvcache.jit(
        """
func.func @add(%x: i32, %y: i32) -> i32 {
  %sum = arith.addi %x, %y : i32
  return %sum : i32
}
func.func @both(%x: i32, %y: i32) -> (i32, i32) { return %y, %x : i32, i32 }"""
    )
    call = program.call
    assert call("add", 1, 2) == program.call("add", *(1, 2)) == 3
    assert kvcache.JitModule.call(program, "add", 1, 2) == 3
    assert functools.partial(call, "both", 1)(2) == (2, 1)
    assert kvcache.JitModule.call.__doc__.startswith("Calls a function.")
    assert call.__name__ == "call" and "stream" in inspect.signature(call).parameters
    for name, error in ((["add"], TypeError), (None, TypeError), ("sub", ValueError)):
        with pytest.raises(error):
            call(name, 1, 2)
    with pytest.raises(TypeError, match="'call'|required positional|missing 1"):
        call()
    with pytest.raises(ValueError, match="'stream'"):
        call("add", 1, 2, stream=0)
    with pytest.raises(AttributeError, match="_plain|_find|_entries"):
        kvcache.JitModule.call(object(), "add", 1, 2)


def test_programs_end_with_their_last_reference():
    """Without cycles of references, kernels are unloaded at once."""
    program = kvcache.jit(identity("i32"))
    assert program.call("identity", 1) == 1
    reference = weakref.ref(program)
    del program
    assert reference() is None
