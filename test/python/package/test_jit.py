"""Tests of kvcache.jit: numbers and results, functions, run-time checks, and errors."""

import functools
import inspect
import os
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from edits import edit
from hypothesis import given, settings
from hypothesis import strategies as st
from places import BUILD

import kvcache


def identity(*types):
    """A module with a function that returns its arguments."""
    values = ", ".join(f"%a{i}" for i in range(len(types)))
    arguments = ", ".join(f"%a{i}: {type}" for i, type in enumerate(types))
    results = ", ".join(types)
    returned = f"return {values} : {results}" if types else "return"
    return f"func.func @identity({arguments}) -> ({results}) {{ {returned} }}"


# Numbers


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_integers_of_any_width(data):
    bits = data.draw(st.integers(2, 64))
    number = data.draw(st.integers(-(2 ** (bits - 1)), 2**bits - 1))
    signed = number - 2**bits if number >= 2 ** (bits - 1) else number
    assert kvcache.jit(identity(f"i{bits}")).call("identity", number) == signed


@pytest.mark.parametrize(
    "type, low, high",
    [
        ("i1", -1, 1),
        ("i8", -(2**7), 2**8 - 1),
        ("i32", -(2**31), 2**32 - 1),
        ("i64", -(2**63), 2**64 - 1),
        ("index", -(2**63), 2**64 - 1),
    ],
)
def test_integers_that_do_not_fit(type, low, high):
    program = kvcache.jit(identity(type))
    for number in (low, high):
        program.call("identity", number)
    for number in (low - 1, high + 1, 10**30):
        with pytest.raises(
            OverflowError, match=rf"argument 0 \('a0'\) .* from {low} to {high}"
        ):
            program.call("identity", number)


@pytest.mark.parametrize(
    "number", [5, True, np.int8(5), np.uint64(5), np.bool_(True), np.array(5)]
)
def test_integers_of_many_kinds(number):
    result = kvcache.jit(identity("i32")).call("identity", number)
    assert type(result) is int and result == int(number)


@pytest.mark.parametrize("value", [1.0, np.float32(1), "1", None, np.zeros(2, int)])
def test_integer_argument_rejects_other_values(value):
    with pytest.raises(TypeError, match="expects an int for index, got"):
        kvcache.jit(identity("index")).call("identity", value)


@pytest.mark.parametrize(
    "type, dtype",
    [
        ("f64", np.float64),
        ("f32", np.float32),
        ("f16", np.float16),
        ("bf16", ml_dtypes.bfloat16),
        ("f8E4M3FN", ml_dtypes.float8_e4m3fn),
        ("f8E5M2", ml_dtypes.float8_e5m2),
        ("f8E8M0FNU", ml_dtypes.float8_e8m0fnu),
    ],
)
def test_floats(type, dtype):
    program = kvcache.jit(identity(type))
    for value in (
        1,
        0.3,
        1.5,
        100.0,
        np.float32(3),
        ml_dtypes.bfloat16(2),
        np.inf,
        np.nan,
    ):
        result = program.call("identity", value)
        expected = float(np.asarray(value, np.float64).astype(dtype))
        assert isinstance(result, float)
        assert result == expected or np.isnan(result) and np.isnan(expected)


@pytest.mark.parametrize("value", ["1.0", None, 1j, [1.0], np.zeros(1)])
def test_float_argument_rejects_other_values(value):
    with pytest.raises(TypeError, match="expects a float for f32, got"):
        kvcache.jit(identity("f32")).call("identity", value)


# Results


def test_results():
    assert kvcache.jit(identity()).call("identity") is None
    assert kvcache.jit(identity("i1")).call("identity", True) is True
    assert kvcache.jit(identity("index")).call("identity", -1) == -1
    types = ("i1", "i8", "f64", "i16", "bf16", "index", "i1", "f32", "i64", "f8E5M2")
    values = (True, -3, 0.25, 77, 1.5, 2**40, False, -0.5, -(2**62), 2.0)
    assert kvcache.jit(identity(*types)).call("identity", *values) == values


def test_conversions_on_the_host_find_their_helpers():
    """LLVM may call library functions for these."""
    program = kvcache.jit("""
func.func @convert(%x: f64) -> (f32, f32, f64) {
  %half = arith.truncf %x : f64 to f16
  %single = arith.truncf %x : f64 to f32
  %brain = arith.truncf %single : f32 to bf16
  %a = arith.extf %half : f16 to f32
  %b = arith.extf %brain : bf16 to f32
  %c = math.exp %x : f64
  return %a, %b, %c : f32, f32, f64
}
""")
    half, brain, exponential = program.call("convert", 1.001)
    assert half == np.float16(1.001)
    assert brain == np.float32(ml_dtypes.bfloat16(1.001))
    assert exponential == pytest.approx(np.exp(1.001))


def test_strided_copies_find_their_helper():
    """Runs in another process, in which no program has loaded the library."""
    program = """
import numpy as np, kvcache
source = np.arange(12, dtype=np.float32).reshape(3, 4).T
target = np.zeros((4, 3), np.float32)
kvcache.jit('''
func.func @copy(%a: memref<?x?xf32, strided<[?, ?]>>, %b: memref<?x?xf32>) {
  memref.copy %a, %b : memref<?x?xf32, strided<[?, ?]>> to memref<?x?xf32>
  return
}
''').call("copy", source, target)
assert (source == target).all()
"""
    subprocess.run([sys.executable, "-c", program], check=True)


# Functions


def test_functions_are_listed():
    program = kvcache.jit(
        edit(
            identity("i32", "memref<?xf32>"),
            ("-> (i32, memref<?xf32>)", "-> i32"),
            ("return %a0, %a1 : i32, memref<?xf32>", "return %a0 : i32"),
        )
        + "\nfunc.func private @hidden() { return }\nfunc.func private @outside()"
    )
    assert dict(program.functions) == {"identity": "(i32, memref<?xf32>) -> i32"}
    assert "identity(i32, memref<?xf32>) -> i32" in repr(program)


def test_unknown_function():
    program = kvcache.jit(identity("i32"))
    with pytest.raises(
        ValueError, match="no function 'nothing'; the module has identity"
    ):
        program.call("nothing")


def test_wrong_number_of_arguments():
    program = kvcache.jit(identity("i32"))
    unknown_to_dlpack = np.zeros(3, ml_dtypes.bfloat16)
    for arguments in ((), (1, 2), (unknown_to_dlpack, unknown_to_dlpack)):
        with pytest.raises(ValueError, match="identity: expects 1 arguments, got"):
            program.call("identity", *arguments)


@pytest.mark.parametrize(
    "source, message",
    [
        (identity("memref<4xf32>"), "returns memref<4xf32>"),
        (identity("vector<4xf32>"), "argument 0 is vector<4xf32>"),
        (
            "func.func @identity(%m: memref<*xf32>) { return }",
            "argument 0 is memref<\\*xf32>",
        ),
        (
            "func.func @identity(%k: !kvcache.paged<f32, "
            "#kvcache.params<num_heads = 1, head_size = 8>, page_size = 4>) { return }",
            "argument 0 is !kvcache.paged<f32",
        ),
    ],
)
def test_functions_that_can_not_be_called(source, message):
    program = kvcache.jit(source)
    with pytest.raises(
        TypeError, match=f"identity can't be called: .*{message}"
    ):
        program.call("identity", 0)


@pytest.mark.parametrize(
    "list", ["ctors ctors = [@first], priorities = [1 : i32], data = [#llvm.zero]",
             "dtors dtors = [@first], priorities = [1 : i32], data = [#llvm.zero]"]
)  # fmt: skip
def test_modules_that_want_to_run_by_themselves(list):
    source = f"""
llvm.mlir.global_{list}
llvm.func @first() {{
  llvm.return
}}
"""
    with pytest.raises(kvcache.CompileError, match="2:1: error: constructors and destructors of a module are not run"):
        kvcache.jit(source)


def test_undefined_function():
    source = """
func.func private @outside(i32)
func.func @caller(%x: i32) {
  call @outside(%x) : (i32) -> ()
  return
}
"""
    with pytest.raises(
        kvcache.CompileError, match="2:1: error: 'outside' is called but"
    ):
        kvcache.jit(source)


# Run-time checks

CHECKED = """
#kv = #kvcache.params<num_heads = 2, head_size = 8>
!collection = !kvcache.paged_collection<f32, #kv, page_size = 4>
!cache = !kvcache.paged<f32, #kv, page_size = 4>
func.func @row(%blocks: memref<?x2x?x4x2x8xf32>, %lengths: memref<?xi32>,
               %table: memref<?x?xi32>, %b: index, %t: index) -> index {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c = kvcache.paged_collection %blocks, %lengths, %table, %zero, %zero
         : memref<?x2x?x4x2x8xf32>, memref<?xi32>, memref<?x?xi32> -> !collection
  %k = kvcache.paged_view key %c[%c0] : !collection
  %r = kvcache.row_index %k[%b, %t] : !cache
  return %r : index
}
"""


def test_bounds_checks_raise():
    program = kvcache.jit(CHECKED, filename="row.mlir", bounds_checks=True)
    cache = (
        np.zeros((3, 2, 1, 4, 2, 8), np.float32),
        np.array([8], np.uint32),
        np.array([[2, 9]], np.uint32),
    )
    for _ in range(3):  # a failed check leaves the program usable
        assert program.call("row", *cache, 0, 3) == 2 * 8 + 3
        with pytest.raises(kvcache.CheckError, match=r"row.mlir:12:\d+: .*9"):
            program.call("row", *cache, 0, 4)
        with pytest.raises(kvcache.CheckError, match=r"row.mlir:12:\d+: "):
            program.call("row", *cache, 1, 0)


def test_assertions_raise():
    program = kvcache.jit("""
func.func @check(%x: i1) -> i32 {
  cf.assert %x, "x is false"
  %c = arith.constant 7 : i32
  return %c : i32
}
""")
    assert program.call("check", True) == 7
    with pytest.raises(kvcache.CheckError, match="x is false"):
        program.call("check", False)


def test_failures_of_the_device_raise():
    program = kvcache.jit("""
llvm.func @kvcacheDeviceFailed(!llvm.ptr, !llvm.ptr) attributes {passthrough = ["noreturn"]}
llvm.mlir.global internal constant @where("f.mlir:3:1: launch of @kernels::@row\\00")
llvm.mlir.global internal constant @message("100% used\\00")
func.func @launch() {
  %where = llvm.mlir.addressof @where : !llvm.ptr
  %message = llvm.mlir.addressof @message : !llvm.ptr
  llvm.call @kvcacheDeviceFailed(%where, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  return
}
""")
    for _ in range(2):
        with pytest.raises(kvcache.CheckError) as caught:
            program.call("launch")
        assert str(caught.value) == "f.mlir:3:1: launch of @kernels::@row: 100% used"


def test_checks_fail_in_each_thread_by_itself():
    program = kvcache.jit(CHECKED, bounds_checks=True)
    cache = (
        np.zeros((3, 2, 1, 4, 2, 8), np.float32),
        np.array([8], np.uint32),
        np.array([[2, 9]], np.uint32),
    )

    def fails(token):
        try:
            return program.call("row", *cache, 0, token) and False
        except kvcache.CheckError:
            return True

    with ThreadPoolExecutor(4) as pool:
        tokens = [i % 8 for i in range(2000)]
        assert list(pool.map(fails, tokens)) == [token >= 4 for token in tokens]


# Threads


def test_compiling_and_calling_in_threads():
    def work(number):
        program = kvcache.jit(identity("i32", "index"))
        return program.call("identity", number, number)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(16))) == [(i, i) for i in range(16)]


def test_other_threads_run_during_a_call():
    program = kvcache.jit("""
func.func @wait(%flag: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  scf.while : () -> () {
    %v = memref.atomic_rmw addi %zero, %flag[%c0] : (i32, memref<1xi32>) -> i32
    %again = arith.cmpi eq, %v, %zero : i32
    scf.condition(%again)
  } do {
    scf.yield
  }
  return
}
""")
    flag = np.zeros(1, np.int32)
    thread = threading.Thread(target=program.call, args=("wait", flag), daemon=True)
    thread.start()
    flag[0] = 1
    thread.join(timeout=20)
    assert not thread.is_alive()


# Sources, targets and options

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
