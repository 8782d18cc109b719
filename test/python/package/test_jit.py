"""Tests of kvcache.jit: numbers and results, functions, run-time checks, and errors."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
from compiled import CHECKED, identity
from edits import edit
from hypothesis import given, settings
from hypothesis import strategies as st

import kvcache

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
