"""The gather of the benchmarks for any page size, against plain indexing."""

import functools

import ml_dtypes
import numpy as np
import pytest
from devices import TARGETS
from places import KERNELS

import kvcache

SOURCE = KERNELS / "gather_dynamic.mlir"


@functools.cache
def compile_kernel(target):
    return kvcache.jit(SOURCE, target=target)


@pytest.mark.parametrize("target", ["cpu", *TARGETS])
@pytest.mark.parametrize("page_size", [1, 16, 48])
def test_keys_arrive_and_rows_past_the_length_are_zero(page_size, target):
    rng = np.random.default_rng(page_size)
    lengths = np.array([19, 0, 11], np.uint32)
    columns, layer = 24 // page_size + 1, 1
    pages = 3 * columns
    shape = (pages, 2, 2, page_size, 8, 128)
    bits = rng.integers(0, 2**16, shape, np.uint16)
    lut = rng.permutation(pages).reshape(3, columns).astype(np.uint32)
    out = np.full((3, 21, 8, 128), 7, np.uint16)
    view = functools.partial(np.ndarray.view, dtype=ml_dtypes.bfloat16)
    program = compile_kernel(target)
    program.call(
        "gather_dynamic", view(bits), lengths, lut, 1, 19, layer, view(out)
    )
    for b, length in enumerate(lengths):
        t = np.arange(length)
        expected = bits[lut[b, t // page_size], 0, layer, t % page_size]
        np.testing.assert_array_equal(out[b, :length], expected)
        assert not out[b, length:].any()
