"""Tests that the NumPy model agrees with ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest
from model import F64, FORMATS
from programs import DTYPES, random_encodings
from quantization import ELEMENTS, F4E2M1FN, SCALES, pack, quantize, unpack

each_dtype = pytest.mark.parametrize("dtype", FORMATS)


def some_encodings(dtype):
    bits = FORMATS[dtype].bits
    if bits <= 16:
        return np.arange(1 << bits).astype(FORMATS[dtype].uint)
    return random_encodings(np.random.default_rng(3), 1 << 16, dtype)


@each_dtype
def test_decode(dtype):
    encodings = some_encodings(dtype)
    with np.errstate(invalid="ignore"):
        expected = encodings.view(DTYPES[dtype]).astype(np.float64)
    np.testing.assert_array_equal(FORMATS[dtype].decode(encodings), expected)


@each_dtype
def test_encodings_round_trip(dtype):
    encodings = some_encodings(dtype)
    values = FORMATS[dtype].decode(encodings)
    numbers = np.isfinite(values)
    np.testing.assert_array_equal(
        FORMATS[dtype].encode(values[numbers]), encodings[numbers]
    )


@each_dtype
@pytest.mark.parametrize("source", FORMATS)
def test_encode(source, dtype):
    format = FORMATS[dtype]
    values = FORMATS[source].decode(some_encodings(source))
    values = values[~np.isnan(values)]
    if format.saturates:
        values = np.clip(values, -format.largest(), format.largest())
    with np.errstate(over="ignore", under="ignore"):
        expected = values.astype(DTYPES[source]).astype(DTYPES[dtype])
    np.testing.assert_array_equal(format.encode(values), expected.view(format.uint))


def test_f64_holds_everything():
    values = np.array([1.5, -0.0, 2.0**-1074, -np.inf, np.pi])
    np.testing.assert_array_equal(F64.encode(values), values.view(np.uint64))


# Formats that only quantized caches have


def test_fp4():
    """Tests the 16 numbers, and ties between them."""
    encodings = np.arange(16, dtype=np.uint8)
    dtype = np.dtype(ml_dtypes.float4_e2m1fn)
    expected = encodings.view(dtype).astype(np.float64)
    np.testing.assert_array_equal(F4E2M1FN.decode(encodings), expected)
    np.testing.assert_array_equal(F4E2M1FN.encode(expected), encodings)
    values = np.arange(-8, 8, 1 / 32)
    expected = np.clip(values, -6, 6).astype(dtype).view(np.uint8)
    np.testing.assert_array_equal(F4E2M1FN.encode(values), expected)


def test_bytes_of_fp4():
    encodings = np.arange(16, dtype=np.uint8)
    assert pack(encodings)[:2].tolist() == [0x10, 0x32]
    np.testing.assert_array_equal(unpack(pack(encodings)), encodings)


def test_powers_of_two():
    format, dtype = SCALES["f8E8M0FNU"], ml_dtypes.float8_e8m0fnu
    encodings = np.arange(256, dtype=np.uint8)
    expected = encodings.view(dtype).astype(np.float64)
    np.testing.assert_array_equal(format.decode(encodings), expected)
    np.testing.assert_array_equal(format.encode(expected[:-1]), encodings[:-1])
    # Up to the next one: neither the nearest one nor the one below.
    values = [1, 1 + 2.0**-23, 1.25, 1.99, 2, 3, 0.75, 2.0**-149, 2.0**127, 3e38]
    expected = [1, 2, 2, 2, 2, 4, 1, 2.0**-127, 2.0**127, 2.0**127]
    assert format.decode(format.encode(values)).tolist() == expected


def test_integers():
    format = ELEMENTS["i8"]
    values = [0.5, 1.5, -0.5, -2.5, 127.4, 127.6, -128, 1e9, -np.inf]
    expected = [0, 2, 0, -2, 127, 127, -127, 127, -127]
    assert format.decode(format.encode(values)).tolist() == expected
    assert format.decode(np.array([0x80, 0xFF], np.uint8)).tolist() == [-128, -1]


def test_quantization_by_hand():
    """Tests numbers that are small enough for mental arithmetic."""
    f8, i8, f32 = ELEMENTS["f8E4M3FN"], ELEMENTS["i8"], SCALES["f32"]
    values = np.array([[448, -224, 1, 0, 0, 0, 254, -127]], np.float32)
    elements, scales = quantize(values, 2, f8, f32)
    assert scales.tolist() == [
        [1, float(np.float32(1 / 448)), 1, float(np.float32(254 / 448))]
    ]
    assert elements.tolist() == [[448, -224, 448, 0, 0, 0, 448, -224]]
    elements, scales = quantize(values[:, 4:], 4, i8, SCALES["f8E8M0FNU"])
    assert scales.tolist() == [[2]]
    assert elements.tolist() == [[0, 0, 127, -64]]
    # The last group may be shorter.
    elements, scales = quantize(values[:, :5] * 0 + np.arange(5), 3, i8, f32)
    assert scales.shape == (1, 2)
    assert elements[0, [2, 4]].tolist() == [127, 127]


@pytest.mark.parametrize("element", ELEMENTS)
def test_largest_numbers(element):
    """Tests the largest numbers, by which the documentation divides."""
    largest = {"f8E4M3FN": 448, "f8E5M2": 57344, "i8": 127, "f4E2M1FN": 6, "i4": 15}
    assert ELEMENTS[element].largest() == largest[element]
