"""Tests that invalid blocks or scales of a quantized cache are rejected."""

import functools

import ml_dtypes
import numpy as np
import pytest
from programs import Source
from quantized_programs import QuantizedShape, small_quantized_cache

SHARED = QuantizedShape("f8E4M3FN", 2, 64, 4, False, "f32", 8)
OWN = QuantizedShape("i8", 2, 48, 3, False, "f16", 8, own_table=True)
FP4 = QuantizedShape("f4E2M1FN", 1, 96, 8, True, "f8E4M3FN", 16, own_table=True)
E8M0 = QuantizedShape("f8E4M3FN", 2, 64, 4, False, "f8E8M0FNU", 32)


@functools.cache
def compile_query(shape):
    source = Source(shape)
    body = "  %r = kvcache.scale_row_index %k[%c0, %c0] : !cache\n  return %r : index"
    source.add("row", [], body, "index")
    return source.compile(opt_level=0)


def call(shape, **changes):
    cache = small_quantized_cache(shape, batch=2, columns=3)
    names = ("blocks", "lengths", "table", "max_seq", "max_cache", "scales", "own")
    arguments = dict(zip(names, cache.arguments(shape), strict=False))
    for name, change in changes.items():
        arguments[name] = change(arguments[name])
    row = compile_query(shape).call("row", *arguments.values(), 0)
    assert row == cache.view(0, 0).scales.row_index(0, 0)


def refuse(shape, error, message, **changes):
    compile_query(shape)
    with pytest.raises(error, match=message):
        call(shape, **changes)


@pytest.mark.parametrize("shape", [SHARED, OWN, FP4, E8M0], ids=str)
def test_right_arrays_pass(shape):
    call(shape)
    if shape.numpy == np.int8:
        call(shape, blocks=lambda array: array.view(np.uint8))


def change_dtype(dtype):
    return lambda array: np.zeros(array.shape, dtype)


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "int8", "uint8", "float8_e4m3fn"]
)
def test_scales_of_a_wrong_dtype(dtype):
    wrong = np.dtype(getattr(ml_dtypes, dtype, dtype))
    message = (
        rf"'scales'.*expects an array of float8_e8m0fnu for .*got one of {dtype}"
    )
    refuse(E8M0, TypeError, message, scales=change_dtype(wrong))


def test_elements_of_a_wrong_dtype():
    message = "'blocks'.*expects an array of int8 or uint8 .*float4_e2m1fn"
    refuse(FP4, TypeError, message, blocks=change_dtype(ml_dtypes.float4_e2m1fn))
    message = "'blocks'.*expects an array of float8_e4m3fn .*float8_e5m2"
    refuse(SHARED, TypeError, message, blocks=change_dtype(ml_dtypes.float8_e5m2))


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda s: s[..., :-1], "'scales'.*size 8 in dimension 5.*got 7"),
        (lambda s: s[:, :, :, :3], "'scales'.*size 4 in dimension 3.*got 3"),
        (lambda s: s[:, :1], "'scales'.*size 2 in dimension 1.*got 1"),
        (lambda s: s[0], "'scales'.*6 dimensions.*got 5"),
        (lambda s: s.swapaxes(3, 4)[:, :, :, :2], "'scales'"),
        (lambda s: s[::, :, :, :, ::-1], "'scales'.*stride"),
    ],
)
def test_scales_of_a_wrong_shape(change, message):
    refuse(SHARED, ValueError, message, scales=lambda array: change(np.array(array)))


@pytest.mark.parametrize("shape", [SHARED, OWN, E8M0], ids=str)
@pytest.mark.parametrize("offset", [2, 4, 8])
def test_scales_that_are_misaligned(shape, offset):
    """Scales must start at a multiple of 16 bytes, like the blocks."""

    def misplace(array):
        memory = np.zeros(array.nbytes + 64, np.uint8)
        start = offset - memory.ctypes.data % 16
        memory = memory[start % 16 :][: array.nbytes]
        return memory.view(array.dtype).reshape(array.shape)

    for name in ("scales", "blocks"):
        message = rf"'{name}'.*expects data at a multiple of 16 bytes"
        refuse(shape, ValueError, message, **{name: misplace})


def test_pages_of_scales_that_are_misaligned():
    """Pages of 8 scales in a row, one scale too far apart."""

    def spread(array):
        flat = np.zeros(2 * array.size, np.float32)
        flat = flat[-(flat.ctypes.data // 4) % 4 :]
        strides = [array.strides[0] + 4, *array.strides[1:]]
        return np.lib.stride_tricks.as_strided(flat, array.shape, strides)

    message = r"'scales'.*strides that are multiples of 16 bytes"
    refuse(SHARED, ValueError, message, scales=spread)


def test_scales_that_are_read_only():
    def freeze(array):
        array.flags.writeable = False
        return array

    refuse(SHARED, ValueError, "'scales'.*writeable", scales=freeze)
