"""The NumPy model agrees with ml_dtypes where the two mean the same."""

import numpy as np
import pytest
from model import F64, FORMATS
from programs import DTYPES, random_encodings

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
def test_encodings_come_back(dtype):
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
