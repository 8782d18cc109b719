"""Tests of functions through TVM-FFI: arrays of other libraries, and checks of wrappers."""

import gc
import sys

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm_ffi import core

import kvcache
from kvcache import dtypes

FIRST = """
func.func @first(%m: {type}{attributes}) -> {result} {{
  %c0 = arith.constant 0 : index
  %v = memref.load %m[%c0] : {type}
  return %v : {result}
}}
"""
SET = """
func.func @set(%m: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %v = arith.constant 7 : i32
  memref.store %v, %m[%c0] : memref<?xi32>
  return
}
"""
TARGETS = ["cpu", "emulator:sm_90a"]


def first(element, layout="", attributes="", target="cpu"):
    source = FIRST.format(
        type=f"memref<?x{element}{layout}>", result=element, attributes=attributes
    )
    return kvcache.jit(source, target, opt_level=0)


def identity(*types):
    arguments = ", ".join(f"%a{index}: {type_}" for index, type_ in enumerate(types))
    values = ", ".join(f"%a{index}" for index in range(len(types)))
    text = ", ".join(types)
    returned = f"return {values} : {text}" if types else "return"
    return f"func.func @identity({arguments}) -> ({text}) {{ {returned} }}"


# Functions


@pytest.mark.parametrize("target", TARGETS)
def test_functions_of_tvm_ffi(target):
    function = first("i32", target=target).function("first")
    gc.collect()  # the program is destroyed, its code is not
    assert isinstance(function, tvm_ffi.Function)
    assert function(np.arange(5, 9, dtype=np.int32)) == 5
    assert function(tvm_ffi.from_dlpack(np.arange(4, 9, dtype=np.int32))) == 4
    with pytest.raises(TypeError, match=r"first: argument 0 \('m'\) expects an array of"):
        function(1)


def test_functions_that_are_missing():
    with pytest.raises(ValueError, match="no function 'last'; the module has first"):
        first("i32").function("last")
    with pytest.raises(TypeError, match="expects 'name' to be a string"):
        first("i32").function([])


def test_results_of_functions():
    assert kvcache.jit(identity()).function("identity")() is None
    program = kvcache.jit(identity("i1", "ui64", "f32"))
    result = program.function("identity")(True, 2**64 - 1, 0.5)
    assert isinstance(result, tvm_ffi.Array)
    assert list(result) == [True, 2**64 - 1, 0.5]
    assert program.call("identity", True, 2**64 - 1, 0.5) == (True, 2**64 - 1, 0.5)


def test_many_arguments():
    count = 300
    program = kvcache.jit(identity(*["i32"] * count))
    assert program.call("identity", *range(count)) == tuple(range(count))


def test_failed_checks_raise_check_errors():
    program = kvcache.jit("""
func.func @check(%x: i1) { cf.assert %x, "x is false" return }
""")
    function = program.function("check")
    for _ in range(3):
        with pytest.raises(kvcache.CheckError, match="x is false"):
            function(False)
        assert function(True) is None


def test_calls_nest():
    """A check that fails returns to the innermost call."""
    outer = kvcache.jit('func.func @outer(%x: i1) { cf.assert %x, "outer" return }')
    inner = kvcache.jit('func.func @inner(%x: i1) { cf.assert %x, "inner" return }')

    def call(x, y):
        with pytest.raises(kvcache.CheckError, match="inner"):
            inner.call("inner", x)
        return outer.call("outer", y)

    packed = tvm_ffi.convert(call)
    with pytest.raises(kvcache.CheckError, match="outer"):
        packed(False, False)
    assert packed(False, True) is None


# Numbers


def decode(dtype, codes):
    return codes.astype(np.uint8).view(dtype).astype(np.float64)


FLOATS = [name for name in dtypes._FLOATS if name not in ("f64", "f32", "f16", "bf16")]


@pytest.mark.parametrize("name", FLOATS)
def test_every_number_of_a_narrow_float(name):
    """Each number is equal after a round trip as double."""
    try:
        program = kvcache.jit(identity(name), opt_level=0)
    except kvcache.CompileError:
        pytest.skip(f"{name} has no lowering")
    dtype = np.dtype(dtypes.dtype(name))
    bits = ml_dtypes.finfo(dtype).bits
    for value in decode(dtype, np.arange(1 << bits)):
        result = program.call("identity", value)
        if not np.isnan(value):
            assert result == value and np.signbit(result) == np.signbit(value)
        elif name not in ("f6E2M3FN", "f6E3M2FN", "f4E2M1FN"):
            assert np.isnan(result)


@pytest.mark.parametrize("name", ["f16", "bf16", "f8E4M3FN", "f8E5M2", "f8E8M0FNU"])
@given(st.floats(1e-30, 1e30) | st.floats(2**-10, 2**10))
@settings(max_examples=60, deadline=None)
def test_floats_round_as_ml_dtypes_do(name, value):
    program = _identity(name)
    dtype = dtypes.dtype(name)
    with np.errstate(all="ignore"):
        # Through f32, as ml_dtypes rounds.
        expected = float(np.asarray(np.float32(value)).astype(dtype))
    result = program.call("identity", float(np.float32(value)))
    assert result == expected or (np.isnan(result) and np.isnan(expected))


_PROGRAMS = {}


def _identity(name):
    if name not in _PROGRAMS:
        _PROGRAMS[name] = kvcache.jit(identity(name), opt_level=0)
    return _PROGRAMS[name]


@pytest.mark.parametrize("number", [-(2**63) - 1, 2**64, -(2**100), 2**1000])
def test_integers_of_more_than_64_bits(number):
    with pytest.raises(OverflowError, match="expects an int from .* got"):
        kvcache.jit(identity("index")).call("identity", number)


def test_unsigned_and_signed_integers():
    unsigned = kvcache.jit(identity("ui8"))
    assert unsigned.call("identity", 255) == 255
    with pytest.raises(OverflowError, match="from 0 to 255 for ui8, got -1"):
        unsigned.call("identity", -1)
    signed = kvcache.jit(identity("si8"))
    assert signed.call("identity", -128) == -128
    with pytest.raises(OverflowError, match="from -128 to 127 for si8, got 128"):
        signed.call("identity", 128)


# Arrays


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "element, array",
    [
        ("bf16", np.ones(2, ml_dtypes.bfloat16)),
        ("f8E4M3FN", np.ones(2, ml_dtypes.float8_e4m3fn)),
        ("f8E5M2", np.ones(2, ml_dtypes.float8_e5m2)),
        ("f8E8M0FNU", np.ones(2, ml_dtypes.float8_e8m0fnu)),
        ("i1", np.ones(2, np.bool_)),
        ("i64", np.ones(2, np.int64)),
        ("f16", np.ones(2, np.float16)),
    ],
)
def test_arrays_of_each_type(element, array, target):
    assert first(element, target=target).call("first", array) == 1


def test_elements_of_another_type():
    for element, array, wanted, given_ in [
        ("bf16", np.ones(2, np.uint16), "bfloat16", "uint16"),
        ("f8E4M3FN", np.ones(2, ml_dtypes.float8_e5m2), "float8_e4m3fn", "float8_e5m2"),
        ("i32", np.ones(2, np.float32), "int32 or uint32", "float32"),
        ("si32", np.ones(2, np.uint32), "int32", "uint32"),
        ("i8", np.ones(2, np.bool_), "int8 or uint8", "bool"),
        ("f32", np.ones(2, np.complex64), "float32", "complex64"),
    ]:
        with pytest.raises(
            TypeError, match=f"expects an array of {wanted} for .*, got one of {given_}$"
        ):
            kvcache.jit(
                f"func.func @f(%m: memref<?x{element}>) {{ return }}", opt_level=0
            ).call("f", array)


def test_arrays_of_tvm_ffi():
    array = np.arange(4, 8, dtype=np.int32)
    assert first("i32").call("first", tvm_ffi.from_dlpack(array)) == 4
    kvcache.jit(SET).call("set", tvm_ffi.from_dlpack(array))
    assert array[0] == 7


def test_strides_may_be_negative_or_zero():
    program = first("i32", ", strided<[?]>", " {llvm.readonly}")
    array = np.arange(9, dtype=np.int32)
    assert program.call("first", array[::-2]) == 8
    assert program.call("first", np.broadcast_to(array[3:4], 5)) == 3
    packed = first("i32", attributes=" {llvm.readonly}")
    with pytest.raises(ValueError, match=r"C-contiguous array .* got strides \(-8,\)"):
        packed.call("first", array[::-2])


def test_strides_between_elements():
    array = np.zeros(4, [("a", "i1"), ("b", "i4")])["b"]
    message = r"strides of whole numbers of elements .* got strides \(5,\) in bytes"
    with pytest.raises(ValueError, match=message):
        first("i32", ", strided<[?]>").call("first", array)


def test_memory_of_another_device():
    """A tensor of the CPU with the device of a GPU."""
    import ctypes

    tensor = tvm_ffi.from_dlpack(np.zeros(4, np.int32))
    device = ctypes.c_int32.from_address(tensor.__chandle__() + 32)
    assert device.value == 1
    device.value = 2
    try:
        with pytest.raises(
            ValueError, match="memory of the CPU for memref<.*, got memory of cuda:0"
        ):
            first("i32").call("first", tensor)
    finally:
        device.value = 1


def test_kinds_of_scalars():
    program = kvcache.jit(identity("f32"))
    for value in (
        np.float32(2),
        np.bool_(True),
        ml_dtypes.bfloat16(2),
        np.int64(2),
        10**30,
    ):
        assert program.call("identity", value) == np.float32(float(value))


def test_arguments_of_strange_kinds():
    program = first("i32")
    for value, got in [
        (None, "None"),
        ("text", "a str"),
        ("a longer text", "a str"),
        (b"bytes", "bytes"),
        ([1, 2], "a list or tuple"),
        ({1: 2}, "a dict"),
        (object(), "an object that is neither an array nor a number"),
        (lambda: 1, "an object of type ffi.Function"),
        (tvm_ffi.dtype("int32"), "a dtype"),
        (1.5, r"a float \(1.5\)"),
        (True, r"a bool \(True\)"),
        (2**64, "an int of more than 64 bits"),
    ]:
        with pytest.raises(TypeError, match=f"for memref<.*>, got {got}$"):
            program.function("first")(value)
        with pytest.raises(TypeError, match="expects an array .*for memref<.*>, got "):
            program.call("first", value)


def test_missing_lock_is_ignored():
    """Functions release the lock of the interpreter only where a thread holds it."""
    function = first("i32").function("first")
    array = tvm_ffi.from_dlpack(np.arange(3, 5, dtype=np.int32))
    function.release_gil = True
    assert function(array) == 3


@pytest.mark.skipif("torch" in sys.modules, reason="PyTorch is loaded")
def test_the_package_does_not_load_pytorch():
    """Only a call needs TVM-FFI."""
    import subprocess

    program = "import sys, kvcache; assert 'tvm_ffi' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_errors_have_names():
    first("i32")
    assert core.ERROR_NAME_TO_TYPE["kvcache.CheckError"] is kvcache.CheckError


def test_operations_take_tensors_as_tables_and_outputs():
    params = kvcache.KVCacheParams("f32", 2, 8, page_size=4, total_num_layers=1)
    blocks, new = np.zeros((4, 2, 1, 4, 2, 8), np.float32), np.ones((2, 3, 2, 8), np.float32)
    tables = {
        "lengths": np.array([0, 0], np.int32),
        "lut": np.array([[1, 2, 0], [3, 0, 0]], np.int32),
        "row_offsets": np.array([0, 2, 3], np.int32),
    }
    tensors = {name: tvm_ffi.from_dlpack(table) for name, table in tables.items()}
    inputs = kvcache.StepInputs.of(blocks=tvm_ffi.from_dlpack(blocks), **tensors)
    kvcache.ops.append(params)(inputs, 0, *map(tvm_ffi.from_dlpack, new))
    q, out = (tvm_ffi.from_dlpack(array) for array in (new[0], np.zeros_like(new[0])))
    attend = kvcache.ops.attention(params, 2)
    attend(inputs, 0, q, out=out, scale=1.0)
    np.testing.assert_array_equal(np.from_dlpack(out), new[0])
    with pytest.raises(ValueError, match="'out' to share no memory with 'q'"):
        attend(inputs, 0, q, out=q, scale=1.0)
    wide = tvm_ffi.from_dlpack(np.array([0, 0]))
    with pytest.raises(TypeError, match="'lengths' to be of int32 or uint32 .* got int64"):
        kvcache.StepInputs.of(blocks=blocks, **{**tensors, "lengths": wide})
