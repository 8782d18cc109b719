"""Conversions of narrow floats on data: every encoding in, every tie out.

What is right is worked out here from the values of the encodings alone; that
this agrees with ml_dtypes, which does not saturate, is a test of its own.
"""

import functools

import ml_dtypes
import numpy as np
import pytest

import kvcache

NARROW = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}
WIDE = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
SIGN = 0x80

narrow_types = pytest.mark.parametrize("narrow", NARROW)
wide_types = pytest.mark.parametrize("wide", WIDE)
lane_counts = pytest.mark.parametrize("lanes", [1, 16], ids=["scalar", "vector"])

SCALAR = """
func.func @convert(%from: memref<?x{source}>, %to: memref<?x{target}>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %from, %c0 : memref<?x{source}>
  scf.for %i = %c0 to %n step %c1 {{
    %x = memref.load %from[%i] : memref<?x{source}>
    %y = arith.{op} %x : {source} to {target}
    memref.store %y, %to[%i] : memref<?x{target}>
  }}
  return
}}
"""

VECTOR = """
func.func @convert(%from: memref<?x{source}>, %to: memref<?x{target}>) {{
  %c0 = arith.constant 0 : index
  %lanes = arith.constant {lanes} : index
  %n = memref.dim %from, %c0 : memref<?x{source}>
  scf.for %i = %c0 to %n step %lanes {{
    %x = vector.load %from[%i] : memref<?x{source}>, vector<{lanes}x{source}>
    %y = arith.{op} %x : vector<{lanes}x{source}> to vector<{lanes}x{target}>
    vector.store %y, %to[%i] : memref<?x{target}>, vector<{lanes}x{target}>
  }}
  return
}}
"""


@functools.lru_cache(maxsize=None)
def compiled(op, source, target, lanes):
    text = SCALAR if lanes == 1 else VECTOR
    text = text.format(op=op, source=source, target=target, lanes=lanes)
    return kvcache.jit(text, target="cpu")


def convert(op, values, source, target, dtype, lanes):
    """Converts `values`, of the MLIR type `source`, to `target` on the CPU."""
    padded = np.zeros(-(-values.size // lanes) * lanes, values.dtype)
    padded[: values.size] = values
    result = np.empty(padded.size, dtype)
    compiled(op, source, target, lanes).call("convert", padded, result)
    return result[: values.size]


def encodings(dtype):
    return np.arange(256, dtype=np.uint8).view(dtype)


def finite_magnitudes(dtype):
    """The finite numbers that are not negative, in order of their encodings."""
    values = encodings(dtype)[:SIGN].astype(np.float64)
    return values[np.isfinite(values)]


def saturating_nearest_even(values, dtype):
    """Encodings of `values`; those of NaNs are without meaning."""
    values = values.astype(np.float64)
    numbers = finite_magnitudes(dtype)
    ties = (numbers[1:] + numbers[:-1]) / 2
    magnitudes = np.abs(values)
    codes = np.searchsorted(ties, magnitudes, side="left")
    below = np.minimum(codes, ties.size - 1)
    is_tie = ties[below] == magnitudes
    codes = np.where(is_tie, codes + codes % 2, codes)
    return (codes + np.where(np.signbit(values), SIGN, 0)).astype(np.uint8)


def from_bits(bits, dtype):
    return bits.astype(f"u{dtype.itemsize}").view(dtype)


def random_bits(dtype, count):
    rng = np.random.default_rng(8)
    bits = rng.integers(0, 1 << 8 * dtype.itemsize, count, dtype=np.uint64)
    return from_bits(bits, dtype)


def near_encodings(narrow, dtype):
    """Each number, each tie, and their neighbours in `dtype`, of both signs."""
    numbers = finite_magnitudes(NARROW[narrow])
    ties = (numbers[1:] + numbers[:-1]) / 2
    beyond = numbers[-1] + (numbers[-1] - numbers[-2]) * np.array([0.5, 1, 2])
    exact = np.concatenate([numbers, ties, beyond]).astype(dtype)
    infinity = np.array(np.inf, dtype)
    values = np.concatenate(
        [exact, np.nextafter(exact, infinity), np.nextafter(exact, -infinity)]
    )
    return np.concatenate([values, -values])


def inputs(narrow, wide):
    dtype = WIDE[wide]
    if dtype.itemsize == 2:
        return from_bits(np.arange(1 << 16), dtype)
    info = np.finfo(dtype)
    special = np.array(
        [np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, 1e30], dtype
    )
    rng = np.random.default_rng(9)
    common = rng.normal(0, 1, 1 << 16) * np.exp2(rng.uniform(-18, 17, 1 << 16))
    return np.concatenate(
        [
            special,
            -special,
            near_encodings(narrow, dtype),
            common.astype(dtype),
            random_bits(dtype, 1 << 16),
        ]
    )


@narrow_types
@wide_types
@lane_counts
def test_extension_is_exact(narrow, wide, lanes):
    values = encodings(NARROW[narrow])
    result = convert("extf", values, narrow, wide, WIDE[wide], lanes)
    with np.errstate(invalid="ignore"):  # some NaNs are signaling
        np.testing.assert_array_equal(
            result.astype(np.float64), values.astype(np.float64)
        )
    np.testing.assert_array_equal(np.signbit(result), np.signbit(values))


@narrow_types
@wide_types
@lane_counts
def test_truncation_rounds_to_nearest_even_and_saturates(narrow, wide, lanes):
    values = inputs(narrow, wide)
    result = convert("truncf", values, wide, narrow, NARROW[narrow], lanes)
    with np.errstate(invalid="ignore"):  # some NaNs are signaling
        is_nan = np.isnan(values)
    np.testing.assert_array_equal(np.isnan(result), is_nan)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(values))
    np.testing.assert_array_equal(
        result.view(np.uint8)[~is_nan],
        saturating_nearest_even(values[~is_nan], NARROW[narrow]),
    )


@narrow_types
def test_infinity_becomes_the_largest_number(narrow):
    values = np.array([np.inf, -np.inf], np.float32)
    result = convert("truncf", values, "f32", narrow, NARROW[narrow], 1)
    largest = float(ml_dtypes.finfo(NARROW[narrow]).max)
    assert result.astype(np.float32).tolist() == [largest, -largest]


@narrow_types
@wide_types
def test_every_encoding_comes_back(narrow, wide):
    values = encodings(NARROW[narrow])
    values = values[np.isfinite(values.astype(np.float32))]
    wider = convert("extf", values, narrow, wide, WIDE[wide], 1)
    result = convert("truncf", wider, wide, narrow, NARROW[narrow], 1)
    np.testing.assert_array_equal(result.view(np.uint8), values.view(np.uint8))


@narrow_types
def test_model_agrees_with_ml_dtypes_below_saturation(narrow):
    dtype = NARROW[narrow]
    values = inputs(narrow, "f32")
    values = values[np.abs(values) <= float(ml_dtypes.finfo(dtype).max)]
    np.testing.assert_array_equal(
        saturating_nearest_even(values, dtype), values.astype(dtype).view(np.uint8)
    )


# --- bf16 and f64 -----------------------------------------------------------------


def nearest_bf16(values):
    """f64 to bf16 in one rounding, to even, by comparing with the neighbours."""
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
        # Infinity stands where the next number would be.
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
    result = convert("truncf", values, "f64", "bf16", WIDE["bf16"], lanes)
    np.testing.assert_array_equal(result.view(np.uint16), nearest_bf16(values))


@lane_counts
def test_f64_specials_to_bf16(lanes):
    values = np.array([np.inf, -np.inf, 0.0, -0.0, 1e-300, -1e-300, 1e300, np.nan])
    result = convert("truncf", values, "f64", "bf16", WIDE["bf16"], lanes)
    expected = [0x7F80, 0xFF80, 0, 0x8000, 0, 0x8000, 0x7F80]
    assert result.view(np.uint16)[:-1].tolist() == expected
    assert np.isnan(result[-1].astype(np.float32))


@lane_counts
def test_bf16_extends_to_f64_exactly(lanes):
    values = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(WIDE["bf16"])
    result = convert("extf", values, "bf16", "f64", WIDE["f64"], lanes)
    expected = (values.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(result, expected.astype(np.float64))
