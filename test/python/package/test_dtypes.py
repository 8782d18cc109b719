"""Tests of the names of element types."""

import ml_dtypes
import numpy as np
import pytest

import kvcache
from kvcache import dtypes, ir
from kvcache._formats import FORMATS


@pytest.mark.parametrize(
    "spec, dtype, name",
    [
        ("bf16", ml_dtypes.bfloat16, "bf16"),
        ("bfloat16", ml_dtypes.bfloat16, "bf16"),
        (ml_dtypes.bfloat16, ml_dtypes.bfloat16, "bf16"),
        (np.dtype(ml_dtypes.float8_e4m3fn), ml_dtypes.float8_e4m3fn, "f8E4M3FN"),
        ("float8_e5m2", ml_dtypes.float8_e5m2, "f8E5M2"),
        ("f8E8M0FNU", ml_dtypes.float8_e8m0fnu, "f8E8M0FNU"),
        ("float4_e2m1fn", ml_dtypes.float4_e2m1fn, "f4E2M1FN"),
        (np.float32, np.float32, "f32"),
        (float, np.float64, "f64"),
        ("i8", np.int8, "i8"),
        (np.uint32, np.uint32, "i32"),
        ("ui32", np.uint32, "ui32"),
        ("index", np.int64, "index"),
        (bool, np.bool_, "i1"),
    ],
)
def test_dtypes(spec, dtype, name):
    assert dtypes.dtype(spec) == np.dtype(dtype)
    assert dtypes.mlir_name(spec) == name


@pytest.mark.parametrize(
    "spec",
    [
        "f8",
        "i5",
        "float",
        "",
        "nothing",
        None,
        3,
        complex,
        object,
        ">f4",
        np.dtype(">f4"),
    ],
)
def test_dtype_rejects_other_values(spec):
    with pytest.raises(TypeError, match="expects a dtype of array elements"):
        dtypes.dtype(spec)


def test_memrefs_that_arrays_stand_for():
    assert dtypes.array_dtypes("i32") == (np.dtype(np.int32), np.dtype(np.uint32))
    assert dtypes.array_dtypes("i7") == ()


# --- The table of formats ---------------------------------------------------------


def is_accepted(make):
    try:
        make()
    except kvcache.CompileError:
        return False
    return True


def is_cache(element, **scales):
    params = ir.ParamsAttr(num_heads=2, head_size=64)
    return is_accepted(lambda: ir.PagedCacheType(element, params, 16, **scales))


def is_cache_with_scales(element):
    forms = [
        {"scale": scale, "granularity": granularity, "zero_point": zero_point}
        for scale in ("f32", "f8E4M3FN", "f8E8M0FNU")
        for granularity in (16, 32)
        for zero_point in (None, scale)
    ]
    return any(is_cache(element, **form) for form in forms)


def is_operand(op, operands, results):
    """Whether an op has a form with pairs of these types."""
    operands, results = ([f"vector<2x{name}>" for name in names] for names in (operands, results))
    arguments = ", ".join(f"%a{i}: {type}" for i, type in enumerate(operands))
    names = ", ".join(f"%a{i}" for i, _ in enumerate(operands))
    text = f"""func.func @f({arguments}) {{
      %r:{len(results)} = {op} {names} : {", ".join(operands)} -> {", ".join(results)}
      return
    }}"""
    return is_accepted(lambda: ir.Module.parse(text))


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_uses_of_formats_are_the_verifier_s(row):
    uses = set(row.uses.split(" | "))
    assert is_cache(row.name) == ("Element" in uses)
    assert is_cache_with_scales(row.name) == ("Scaled" in uses)
    assert is_cache("i8", scale=row.name, granularity=16) == ("Scale" in uses)
    is_scaled = "Scaled" in uses and "ZeroPoint" not in uses
    dequantize, name = "kvcache.dequantize", row.name
    assert is_operand(dequantize, [name, "f32"], ["f32"]) == is_scaled
    assert is_operand(dequantize, ["i8", name], ["f32"]) == ("Scale" in uses)
    assert is_operand(dequantize, ["i8", "f32"], [name]) == ("Wide" in uses)
    quantize = "kvcache.quantize"
    assert is_operand(quantize, ["f32"], [name, "f32"]) == is_scaled
    assert is_operand(quantize, ["f32"], ["i8", name]) == ("Scale" in uses)


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_conversions_of_formats_are_lowered(row):
    narrow = f"func.func @f(%a: {row.name}) -> f32 {{ %r = arith.extf %a : {row.name} to f32 return %r : f32 }}"
    uses = set(row.uses.split(" | "))
    if "Narrow" in uses:
        kvcache.jit(narrow)
    elif row.bits < 16 and row.name.startswith("f"):
        with pytest.raises(kvcache.CompileError, match="no lowering"):
            kvcache.jit(narrow)


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_dtypes_of_formats_have_their_width(row):
    dtype = dtypes.dtype(row.name)
    info = ml_dtypes.iinfo if row.name.startswith("i") else ml_dtypes.finfo
    assert info(dtype).bits == row.bits
    assert dtypes.bits(row.name) == row.bits
    assert dtypes.mlir_name(dtype) == row.name
