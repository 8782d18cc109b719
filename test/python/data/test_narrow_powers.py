"""Tests of f8E8M0FNU, the powers of two, and of conversions between bf16 and f64."""

import string

import devices
import ml_dtypes
import numpy as np
import pytest
from narrow_floats import (
    E8M0,
    WIDE,
    extend,
    from_bits,
    lane_counts,
    near,
    random_bits,
    special_values,
    truncate,
    wide_types,
)

# --- f8E8M0FNU --------------------------------------------------------------------

roundings = pytest.mark.parametrize("rounding", ["", "upward", "toward_zero"])


def nearest_power(values, rounding):
    """Encodes f8E8M0FNU, from the exponents of the values."""
    values = values.astype(np.float64)
    is_nan = ~(values >= 0)
    infinite = np.isinf(values)
    fractions, exponents = np.frexp(np.where(is_nan | infinite, 1, values))
    fractions, exponents = 2 * fractions, exponents.astype(np.int64) - 1
    if rounding == "upward":
        exponents += fractions > 1
    elif rounding == "":
        exponents += fractions >= 1.5
    codes = np.clip(exponents, -127, 127) + 127
    codes = np.where(values == 0, 0, np.where(infinite, 254, codes))
    return np.where(is_nan, 255, codes).astype(np.uint8)


def power_inputs(wide):
    dtype = WIDE[wide]
    if dtype.itemsize == 2:
        return from_bits(np.arange(1 << 16), dtype)
    powers = np.exp2(np.arange(-149.0 if wide == "f32" else -400.0, 128))
    border = np.concatenate([powers, 1.5 * powers])
    if wide == "f64":
        border = np.concatenate([border, np.exp2([128.0, 129, 500])])
    return np.concatenate(
        [special_values(dtype), near(border, dtype), random_bits(dtype, 1 << 16)]
    )


@wide_types
@lane_counts
def test_powers_of_two_extend_exactly(wide, lanes):
    codes = np.arange(256, dtype=np.uint8)
    result = extend(codes, E8M0, wide, lanes)
    with np.errstate(over="ignore"):
        expected = np.exp2(codes[:255] - 127.0).astype(WIDE[wide])
    np.testing.assert_array_equal(result[:255], expected)
    assert np.isnan(result[255])


@wide_types
@lane_counts
@roundings
def test_truncation_to_powers_of_two(wide, lanes, rounding):
    values = power_inputs(wide)
    result = truncate(values, wide, E8M0, lanes, rounding)
    with np.errstate(invalid="ignore"):  # some NaNs are signaling
        expected = nearest_power(values, rounding)
    np.testing.assert_array_equal(result, expected)


CONSTANT_NANS = """
func.func private @chosen(%always: i1, %x: f8E8M0FNU) -> f8E8M0FNU {
  %other = arith.constant 0xFF : f8E8M0FNU
  %result = arith.select %always, %x, %other : f8E8M0FNU
  return %result : f8E8M0FNU
}

func.func @constants(%to: memref<6x$wide>) {
  %c0 = arith.constant 0 : index
  %always = arith.constant true
  %negative = arith.constant -2.0 : f32
  %bits = arith.constant -1 : i8
  %pair = arith.constant dense<[0xFF, 2.0]> : vector<2xf8E8M0FNU>
  %number = vector.extract %pair[1] : f8E8M0FNU from vector<2xf8E8M0FNU>
  %nan = arith.constant 0xFF : f8E8M0FNU
  %cast = arith.bitcast %bits : i8 to f8E8M0FNU
  %truncated = arith.truncf %negative : f32 to f8E8M0FNU
  %called = func.call @chosen(%always, %nan) : (i1, f8E8M0FNU) -> f8E8M0FNU
  %extracted = vector.extract %pair[0] : f8E8M0FNU from vector<2xf8E8M0FNU>
  %all = vector.from_elements %nan, %cast, %truncated, %called, %extracted, %number
      : vector<6xf8E8M0FNU>
  %wide = arith.extf %all : vector<6xf8E8M0FNU> to vector<6x$wide>
  %one = arith.extf %nan : f8E8M0FNU to $wide
  %result = vector.insert %one, %wide[0] : $wide into vector<6x$wide>
  vector.store %result, %to[%c0] : memref<6x$wide>, vector<6x$wide>
  return
}
"""


@wide_types
@pytest.mark.parametrize("target", ["cpu", *devices.TARGETS])
def test_constant_nans_of_powers_stay_nans(wide, target):
    """MLIR folds these conversions to infinity, and that of a negative number."""
    program = devices.jit(string.Template(CONSTANT_NANS).substitute(wide=wide), target)
    result = np.zeros(6, WIDE[wide])
    program.call("constants", result)
    np.testing.assert_array_equal(result.astype(np.float64), [np.nan] * 5 + [2.0])


def test_model_of_powers_agrees_with_ml_dtypes_below_saturation():
    values = power_inputs("f32")
    # It converts zero to NaN, and rounds up subnormals of f32.
    magnitudes = np.abs(values)
    values = values[(magnitudes >= 2.0**-126) & (magnitudes < 1.5 * 2.0**127)]
    expected = values.astype(ml_dtypes.float8_e8m0fnu).view(np.uint8)
    np.testing.assert_array_equal(nearest_power(values, ""), expected)


# --- bf16 and f64 -----------------------------------------------------------------


def nearest_bf16(values):
    """Converts f64 to bf16 in one rounding, to even, by comparison with the neighbours."""
    with np.errstate(over="ignore", invalid="ignore"):
        truncated = values.astype(np.float32).view(np.uint32)
    bits = (truncated >> 16).astype(np.int64)
    magnitude = np.abs(values)
    best = np.full(values.shape, -1, np.int64)
    least = np.full(values.shape, np.inf)
    for candidate in (bits - 1, bits, bits + 1):
        candidate = np.where((candidate & 0x7FFF) > 0x7F80, bits, candidate) & 0xFFFF
        size = candidate & 0x7FFF
        decoded = (size << 16).astype(np.uint32).view(np.float32).astype(np.float64)
        # Infinity takes the place of the next number.
        decoded = np.where(size == 0x7F80, 2.0**128, decoded)
        distance = np.abs(decoded - magnitude)
        same_sign = (candidate >> 15) == np.signbit(values)
        better = (distance < least) | ((distance == least) & (candidate & 1 == 0))
        best = np.where(better & same_sign, candidate, best)
        least = np.where(better & same_sign, distance, least)
    return best.astype(np.uint16)


@lane_counts
def test_f64_rounds_to_bf16_once(lanes):
    finite = np.arange(0x7F80, dtype=np.uint32) << 16
    values = finite.view(np.float32).astype(np.float64)
    ties = values + np.diff(values, append=2.0**128) / 2
    # Just off a tie: rounded to f32 first, these would become the tie.
    off = [ties * (1 + sign * 2.0**-40) for sign in (-1, 1)]
    values = np.concatenate([values, ties, *off, -ties, *(-x for x in off)])
    result = truncate(values, "f64", "bf16", lanes)
    np.testing.assert_array_equal(result.view(np.uint16), nearest_bf16(values))


@lane_counts
def test_f64_specials_to_bf16(lanes):
    values = np.array([np.inf, -np.inf, 0.0, -0.0, 1e-300, -1e-300, 1e300, np.nan])
    result = truncate(values, "f64", "bf16", lanes)
    expected = [0x7F80, 0xFF80, 0, 0x8000, 0, 0x8000, 0x7F80]
    assert result.view(np.uint16)[:-1].tolist() == expected
    assert np.isnan(result[-1].astype(np.float32))


@lane_counts
def test_bf16_extends_to_f64_exactly(lanes):
    values = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(WIDE["bf16"])
    result = extend(values, "bf16", "f64", lanes)
    expected = (values.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(result, expected.astype(np.float64))
