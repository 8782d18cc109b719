"""Tests of append with keys, values and queries whose heads take different numbers of threads."""

import ml_dtypes
import numpy as np
import pytest
from quantization import ELEMENTS, SCALES, quantize
from whole_caches import TARGETS, rms

import kvcache

DIFFERENT = """
#k = #kvcache.params<num_heads = {heads}, head_size = {key_size}>
#v = #kvcache.params<num_heads = {heads}, head_size = {value_size}>
!keys = !kvcache.paged<bf16, #k, page_size = 16>
!values = !kvcache.paged<f8E4M3FN, #v, page_size = 16, scale = f32, granularity = 32>
!k = memref<?x16x{heads}x{key_size}xbf16>
!v = memref<?x16x{heads}x{value_size}xf8E4M3FN>
!s = memref<?x16x{heads}x{groups}xf32>
func.func @f(%kb: !k, %vb: !v, %scales: !s, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
             %k: memref<?x{heads}x{key_size}xf32>, %v: memref<?x{heads}x{value_size}xf32>,
             %offsets: memref<?xi32>, %norm: memref<{key_size}xf32>,
             %q: memref<?x{query_heads}x{key_size}xf32>) {{
  %m = arith.constant 3 : i32
  %keys = kvcache.paged_cache %kb, %lengths, %lut, %m, %m : !k, memref<?xi32>, memref<?x?xi32> -> !keys
  %values = kvcache.paged_cache %vb, %lengths, %lut, %m, %m scales %scales
    : !v, memref<?xi32>, memref<?x?xi32>, !s -> !values
  kvcache.append %k, %v to %keys, %values rows %offsets norm %norm query_norm %norm queries %q
    : memref<?x{heads}x{key_size}xf32>, memref<?x{heads}x{value_size}xf32>, !keys, !values, memref<?xi32>,
      memref<{key_size}xf32>, memref<{key_size}xf32>, memref<?x{query_heads}x{key_size}xf32>
  return
}}
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("heads", "query_heads", "key_size", "value_size"),
    [(2, 5, 64, 96), (2, 4, 128, 64), (3, 6, 40, 32), (1, 3, 32, 160), (4, 32, 256, 96)],
)
def test_append_of_different_heads(heads, query_heads, key_size, value_size, target):
    source = DIFFERENT.format(
        heads=heads,
        query_heads=query_heads,
        key_size=key_size,
        value_size=value_size,
        groups=value_size // 32,
    )
    program = kvcache.jit(source, target=target)
    rng = np.random.default_rng(5)

    def draw(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    lengths, new = np.array([14, 0, 3], np.int32), [3, 1, 1]
    offsets = np.concatenate([[0], np.cumsum(new)]).astype(np.int32)
    lut = np.pad(np.array([[4, 2], [0, 9], [7, 9]], np.uint32), ((0, 0), (0, 6)))
    total = offsets[-1]
    keys, values, queries = (
        draw(total, *shape)
        for shape in ((heads, key_size), (heads, value_size), (query_heads, key_size))
    )
    weights, normed = draw(key_size), queries.copy()
    key_blocks = np.zeros((10, 16, heads, key_size), ml_dtypes.bfloat16)
    value_blocks = np.zeros((10, 16, heads, value_size), ml_dtypes.float8_e4m3fn)
    scales = np.zeros((10, 16, heads, value_size // 32), np.float32)
    program.call(
        "f",
        key_blocks,
        value_blocks,
        scales,
        lengths,
        lut,
        keys,
        values,
        offsets,
        weights,
        normed,
    )

    def expect(rows):
        return rms(rows.astype(np.float64), weights.astype(np.float64), 1e-6)

    np.testing.assert_allclose(normed, expect(queries), rtol=2e-6, atol=2e-6)
    elements, their_scales = quantize(values, 32, ELEMENTS["f8E4M3FN"], SCALES["f32"])
    wanted = [np.zeros(a.shape) for a in (key_blocks, value_blocks, scales)]
    places = [(b, lengths[b] + i) for b in range(3) for i in range(new[b])]
    for row, (b, t) in enumerate(places):
        at = lut[b, t // 16], t % 16
        for array, rows in zip(wanted, (expect(keys), elements, their_scales)):
            array[at] = rows[row]
    np.testing.assert_allclose(
        key_blocks.astype(np.float64), wanted[0], rtol=2**-8, atol=1e-6
    )
    np.testing.assert_array_equal(value_blocks.astype(np.float64), wanted[1])
    np.testing.assert_array_equal(scales, wanted[2])
