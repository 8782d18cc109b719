"""Tests of the names of element types."""

import ml_dtypes
import numpy as np
import pytest

from kvcache import dtypes


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
