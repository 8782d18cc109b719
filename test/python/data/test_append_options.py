"""append's options on data: norm, rope, slots, and parts with heads of their own."""

import ml_dtypes
import numpy as np
import pytest
from quantization import ELEMENTS, SCALES, quantize

import kvcache

CPU = "cpu"
TARGETS = [CPU, "emulator:sm_80", "emulator:sm_90a", "emulator:sm_100a"]

APPEND = """
#kv = #kvcache.params<num_heads = 2, head_size = 64>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 16>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!rows = memref<?x2x64xf32>
func.func @f(%blocks: memref<?x2x?x16x2x64xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
             %max_seq: i32, %max_cache: i32, %layer: index, %k: !rows, %v: !rows, %offsets: memref<?xi32>,
             %extra_i: memref<?xi64>, %positions: memref<?xi32>, %table: memref<?x__R__xf32>,
             %norm: memref<__N__xf32>, %q: memref<?x4x64xf32>) {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
    : memref<?x2x?x16x2x64xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %keys = kvcache.paged_view key %c[%layer] : !collection
  %values = kvcache.paged_view value %c[%layer] : !collection
  kvcache.append %k, %v to %keys, %values rows %offsets __OPTIONS__
  return
}
"""


def round_bf16(values):
    return values.astype(np.float32).astype(ml_dtypes.bfloat16)


def rms(rows, weights, epsilon):
    size = len(weights)
    part = rows[..., :size]
    normed = part / np.sqrt((part**2).mean(-1, keepdims=True) + epsilon) * weights
    return np.concatenate([normed, rows[..., size:]], -1)


def rotate(rows, table, positions, begin, interleaved):
    rows, size = rows.copy(), table.shape[1]
    cosines, sines = table[positions][:, None, : size // 2], table[positions][:, None, size // 2 :]
    part = rows[..., begin : begin + size]
    first, second = (part[..., ::2], part[..., 1::2]) if interleaved else np.split(part, 2, -1)
    turned = [first * cosines - second * sines, second * cosines + first * sines]
    rows[..., begin : begin + size] = (
        np.stack(turned, -1).reshape(part.shape) if interleaved else np.concatenate(turned, -1)
    )
    return rows


@pytest.mark.parametrize("target", [CPU, "emulator:sm_80", "emulator:sm_100a"])
@pytest.mark.parametrize(
    ("norm", "rope", "begin", "interleaved", "slots"),
    [
        (64, 0, 0, False, False),
        (32, 0, 0, False, True),
        (0, 64, 0, False, False),
        (0, 32, 16, False, False),
        (0, 64, 0, True, False),
        (64, 16, 48, True, True),
        (64, 32, 32, False, True),
    ],
)
def test_append_with_norm_and_rope(norm, rope, begin, interleaved, slots, target):
    rng = np.random.default_rng(3)
    options, types = [], ["!rows", "!rows", "!cache", "!cache", "memref<?xi32>"]
    if slots:
        options.append("slots %extra_i"), types.append("memref<?xi64>")
    if norm:
        options += ["norm %norm query_norm %norm"]
        types += [f"memref<{norm}xf32>"] * 2
    if rope:
        options.append("rope %table positions %positions")
        types += [f"memref<?x{rope}xf32>", "memref<?xi32>"]
    options.append("queries %q"), types.append("memref<?x4x64xf32>")
    said = {"rope_begin": f"{begin} : i64", "epsilon": "1.0e-3 : f32"} if begin else {"epsilon": "1.0e-3 : f32"}
    attributes = ", ".join([f"{key} = {value}" for key, value in said.items()] + ["interleaved"] * interleaved)
    text = " ".join(options) + f" {{{attributes}}} : {', '.join(types)}"
    source = APPEND.replace("__OPTIONS__", text).replace("__R__", str(rope or 2)).replace("__N__", str(norm or 1))
    program = kvcache.jit(source, target=target)

    lengths, new = np.array([20, 0, 3], np.int32), [2, 1, 3]
    offsets = np.concatenate([[0], np.cumsum(new)]).astype(np.int32)
    total = offsets[-1]
    lut = np.array([[4, 2, 9], [0, 9, 9], [7, 9, 9]], np.uint32)
    lut = np.pad(lut, ((0, 0), (0, 21)))
    blocks = np.zeros((10, 2, 2, 16, 2, 64), ml_dtypes.bfloat16)
    keys, values = (rng.standard_normal((total + 1, 2, 64)).astype(np.float32) for _ in range(2))
    queries = rng.standard_normal((total + 1, 4, 64)).astype(np.float32)
    weights = rng.standard_normal(norm or 1).astype(np.float32)
    table = rng.standard_normal((50, rope or 2)).astype(np.float32)
    positions = rng.integers(0, 50, total + 1).astype(np.int32)
    slot_of = rng.permutation(160)[: total + 1].astype(np.int64)
    slot_of[1] = -1
    given = queries.copy()
    program.call("f", blocks, lengths, lut, 3, 20, 1, keys, values, offsets, slot_of, positions, table, weights, queries)

    def transform(rows):
        rows = rows.astype(np.float64)
        if norm:
            rows = rms(rows, weights.astype(np.float64), 1e-3)
        if rope:
            rows = rotate(rows, table.astype(np.float64), positions[:total], begin, interleaved)
        return rows

    np.testing.assert_allclose(queries[:total], transform(given[:total]), rtol=2e-6, atol=2e-6)
    np.testing.assert_array_equal(queries[total:], given[total:])
    expected = np.zeros((10, 2, 16, 2, 64))
    row = 0
    for b in range(3):
        for i in range(new[b]):
            page, offset = lut[b, (lengths[b] + i) // 16], (lengths[b] + i) % 16
            if slots:
                page, offset = divmod(slot_of[row], 16)
            if page >= 0:
                expected[page, 0, offset] = transform(keys[:total])[row]
                expected[page, 1, offset] = values[row]
            row += 1
    np.testing.assert_allclose(blocks[:, :, 1].astype(np.float64), expected, rtol=2**-8, atol=1e-6)
    assert not blocks[:, :, 0].astype(np.float32).any()


# Keys, values and queries whose heads take different numbers of threads.
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
        heads=heads, query_heads=query_heads, key_size=key_size, value_size=value_size, groups=value_size // 32
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
        draw(total, *shape) for shape in ((heads, key_size), (heads, value_size), (query_heads, key_size))
    )
    weights, normed = draw(key_size), queries.copy()
    key_blocks = np.zeros((10, 16, heads, key_size), ml_dtypes.bfloat16)
    value_blocks = np.zeros((10, 16, heads, value_size), ml_dtypes.float8_e4m3fn)
    scales = np.zeros((10, 16, heads, value_size // 32), np.float32)
    program.call("f", key_blocks, value_blocks, scales, lengths, lut, keys, values, offsets, weights, normed)

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
    np.testing.assert_allclose(key_blocks.astype(np.float64), wanted[0], rtol=2**-8, atol=1e-6)
    np.testing.assert_array_equal(value_blocks.astype(np.float64), wanted[1])
    np.testing.assert_array_equal(scales, wanted[2])


@pytest.mark.parametrize("target", [CPU, "emulator:sm_90a"])
def test_bounds_checks_find_slots_past_the_end(target):
    text = "slots %extra_i : !rows, !rows, !cache, !cache, memref<?xi32>, memref<?xi64>"
    source = APPEND.replace("__OPTIONS__", text).replace("__R__", "2").replace("__N__", "1")
    program = kvcache.jit(source, target=target, bounds_checks=True)
    blocks = np.zeros((10, 2, 2, 16, 2, 64), ml_dtypes.bfloat16)
    rows, table = np.ones((2, 2, 64), np.float32), np.zeros((4, 2), np.float32)
    lut = np.zeros((1, 24), np.uint32)

    def run(slots):
        program.call(
            "f", blocks, np.zeros(1, np.int32), lut, 2, 0, 1, rows, rows, np.array([0, 2], np.int32),
            np.array(slots, np.int64), np.zeros(2, np.int32), table, np.ones(1, np.float32),
            np.zeros((2, 4, 64), np.float32),
        )

    run([159, -1])
    assert blocks[9, 0, 1, 15].astype(np.float32).all()
    with pytest.raises(kvcache.CheckError, match="page"):
        run([0, 160])
