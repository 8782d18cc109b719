"""Tests of conversions of narrow floats: from every encoding, to every tie.

Expected results are computed from the values of the encodings alone. Another test compares them with ml_dtypes, which
does not saturate.
"""

import re
import subprocess

import numpy as np
import pytest
from narrow_floats import (
    NARROW,
    WIDE,
    array_dtype,
    extend,
    inputs,
    lane_counts,
    program_text,
    saturating_nearest_even,
    truncate,
    wide_types,
)
from places import OPT

import kvcache

narrow_types = pytest.mark.parametrize("narrow", NARROW)


@narrow_types
def test_model_agrees_with_ml_dtypes_about_values(narrow):
    narrow = NARROW[narrow]
    values = narrow.codes.view(narrow.dtype).astype(np.float64)
    np.testing.assert_array_equal(narrow.decode(narrow.codes), values)


@narrow_types
def test_model_agrees_with_ml_dtypes_below_saturation(narrow):
    narrow = NARROW[narrow]
    values = inputs(narrow, "f32")
    values = values[np.abs(values) <= narrow.magnitudes[-1]]
    np.testing.assert_array_equal(
        saturating_nearest_even(values, narrow), values.astype(narrow.dtype).view(np.uint8)
    )


@narrow_types
@wide_types
@lane_counts
def test_extension_is_exact(narrow, wide, lanes):
    codes = NARROW[narrow].codes
    expected = NARROW[narrow].decode(codes)
    result = extend(codes, narrow, wide, lanes)
    with np.errstate(invalid="ignore"):  # some NaNs are signaling
        np.testing.assert_array_equal(result.astype(np.float64), expected)
    np.testing.assert_array_equal(np.signbit(result), codes >= NARROW[narrow].sign)


@narrow_types
@wide_types
@lane_counts
def test_truncation_rounds_to_nearest_even_and_saturates(narrow, wide, lanes):
    values = inputs(NARROW[narrow], wide)
    result = truncate(values, wide, narrow, lanes)
    with np.errstate(invalid="ignore"):  # some NaNs are signaling
        is_nan = np.isnan(values)
        expected = saturating_nearest_even(values, NARROW[narrow])
    if NARROW[narrow].first_nan is None:
        np.testing.assert_array_equal(result, expected)
        return
    np.testing.assert_array_equal(result[~is_nan], expected[~is_nan])
    assert np.isnan(NARROW[narrow].decode(result[is_nan])).all()
    np.testing.assert_array_equal(result >= NARROW[narrow].sign, np.signbit(values))


@narrow_types
def test_infinity_becomes_the_largest_number(narrow):
    values = np.array([np.inf, -np.inf], np.float32)
    result = NARROW[narrow].decode(truncate(values, "f32", narrow, 1))
    largest = NARROW[narrow].magnitudes[-1]
    assert result.tolist() == [largest, -largest]


@narrow_types
@wide_types
def test_every_encoding_round_trips(narrow, wide):
    codes = NARROW[narrow].codes
    codes = codes[np.isfinite(NARROW[narrow].decode(codes))]
    result = truncate(extend(codes, narrow, wide, 1), wide, narrow, 1)
    np.testing.assert_array_equal(result, codes)


# --- f4E2M1FN, two in a byte ------------------------------------------------------

PACKED = """
func.func @extend(%from: memref<256xi8>, %to: memref<512x{wide}>) {{
  affine.for %i = 0 to 256 step 32 {{
    %bytes = vector.load %from[%i] : memref<256xi8>, vector<32xi8>
    %x = vector.bitcast %bytes : vector<32xi8> to vector<64xf4E2M1FN>
    %y = arith.extf %x : vector<64xf4E2M1FN> to vector<64x{wide}>
    affine.vector_store %y, %to[2 * %i] : memref<512x{wide}>, vector<64x{wide}>
  }}
  return
}}
func.func @truncate(%from: memref<512x{wide}>, %to: memref<256xi8>) {{
  affine.for %i = 0 to 256 step 32 {{
    %x = affine.vector_load %from[2 * %i] : memref<512x{wide}>, vector<64x{wide}>
    %y = arith.truncf %x : vector<64x{wide}> to vector<64xf4E2M1FN>
    %bytes = vector.bitcast %y : vector<64xf4E2M1FN> to vector<32xi8>
    vector.store %bytes, %to[%i] : memref<256xi8>, vector<32xi8>
  }}
  return
}}
"""


@wide_types
def test_the_lower_half_of_a_byte_is_the_even_lane(wide):
    program = kvcache.jit(PACKED.format(wide=wide), target="cpu")
    packed = np.arange(256, dtype=np.uint8)
    lanes = np.stack([packed & 15, packed >> 4], axis=1).ravel()
    extended = np.empty(512, WIDE[wide])
    program.call("extend", packed, extended)
    expected = NARROW["f4E2M1FN"].decode(lanes)
    np.testing.assert_array_equal(extended.astype(np.float64), expected)
    back = np.empty(256, np.uint8)
    program.call("truncate", extended, back)
    np.testing.assert_array_equal(back, packed)


# --- the conversions of chips without cvt, by prmt in integers --------------------


def permutation():
    """The text of a function that computes prmt's default mode (PTX ISA, prmt)."""
    lines = [
        "func.func private @prmt(%selector: i32, %low: i32, %high: i32) -> i32 {",
        "  %high64 = arith.extui %high : i32 to i64",
        "  %low64 = arith.extui %low : i32 to i64",
        "  %selector64 = arith.extui %selector : i32 to i64",
        "  %c32 = arith.constant 32 : i64",
        "  %shifted = arith.shli %high64, %c32 : i64",
        "  %bytes = arith.ori %shifted, %low64 : i64",
        "  %c3 = arith.constant 3 : i64",
        "  %c7 = arith.constant 7 : i64",
        "  %c8 = arith.constant 8 : i64",
        "  %c255 = arith.constant 255 : i64",
        "  %r0 = arith.constant 0 : i64",
    ]
    for i in range(4):
        lines += [
            f"  %place{i} = arith.constant {4 * i} : i64",
            f"  %nibble{i} = arith.shrui %selector64, %place{i} : i64",
            f"  %index{i} = arith.andi %nibble{i}, %c7 : i64",
            f"  %offset{i} = arith.shli %index{i}, %c3 : i64",
            f"  %moved{i} = arith.shrui %bytes, %offset{i} : i64",
            f"  %byte{i} = arith.andi %moved{i}, %c255 : i64",
            f"  %sign{i} = arith.shrui %byte{i}, %c7 : i64",
            f"  %signs{i} = arith.muli %sign{i}, %c255 : i64",
            f"  %mode{i} = arith.andi %nibble{i}, %c8 : i64",
            f"  %copies{i} = arith.cmpi eq, %mode{i}, %c8 : i64",
            f"  %chosen{i} = arith.select %copies{i}, %signs{i}, %byte{i} : i64",
            f"  %to{i} = arith.constant {8 * i} : i64",
            f"  %put{i} = arith.shli %chosen{i}, %to{i} : i64",
            f"  %r{i + 1} = arith.ori %r{i}, %put{i} : i64",
        ]
    lines += ["  %result = arith.trunci %r4 : i64 to i32", "  return %result : i32", "}"]
    return "\n".join(lines)


def as_on_sm_80(program):
    """The program with sm_80's conversions, in ops that the CPU supports."""
    lowered = subprocess.run(
        [OPT, "--kvcache-narrow-floats=chip=sm_80"],
        input=program, capture_output=True, text=True, check=True,
    ).stdout
    assert "nvvm.prmt" in lowered
    lowered = re.sub(
        r"nvvm.prmt <default> (.*) : i32", r"func.call @prmt(\1) : (i32, i32, i32) -> i32", lowered
    )
    return lowered.rstrip().removesuffix("}") + permutation() + "\n}\n"


@pytest.mark.parametrize("lanes", [1, 3, 16])
@pytest.mark.parametrize("wide", ["f16", "f32"])
@pytest.mark.parametrize("narrow", ["f8E4M3FN", "f8E5M2"])
def test_permuted_bytes_extend_exactly(narrow, wide, lanes):
    program = kvcache.jit(as_on_sm_80(program_text("extf %x", narrow, wide, lanes)), target="cpu")
    codes = np.resize(np.arange(256, dtype=np.uint8), 288)  # all, and whole vectors
    result = np.empty(codes.size, WIDE[wide])
    program.call("convert", codes.view(array_dtype(narrow)), result)
    expected = NARROW[narrow].decode(codes)
    np.testing.assert_array_equal(result.astype(np.float64), expected)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result)[is_number], np.signbit(expected)[is_number])


@wide_types
def test_looked_up_halves_of_bytes_extend_exactly(wide):
    program = PACKED.format(wide=wide)
    program = program[: program.index("func.func @truncate")]
    packed = np.arange(256, dtype=np.uint8)
    lanes = np.stack([packed & 15, packed >> 4], axis=1).ravel()
    extended = np.empty(512, WIDE[wide])
    kvcache.jit(as_on_sm_80(program), target="cpu").call("extend", packed, extended)
    expected = NARROW["f4E2M1FN"].decode(lanes)
    np.testing.assert_array_equal(extended.astype(np.float64), expected)
    np.testing.assert_array_equal(np.signbit(extended), lanes >= 8)
