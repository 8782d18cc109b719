"""Tests of kvcache.copy to caches of other formats, and of kvcache.remap_rows."""

import ml_dtypes
import numpy as np
import pytest
from edits import edit
from quantization import (
    ELEMENTS,
    SCALES,
    divide_f32,
    pack,
    quantize_with_zero_points,
)
from whole_caches import CPU, STATIC_SCALES, TARGETS, as_uint, write_attributes

import kvcache

COPY = """
#kv = #kvcache.params<num_heads = {heads}, head_size = 64>
!from = !kvcache.paged_collection<{source}, #kv, page_size = 16>
!to = !kvcache.paged_collection<{target}, #kv, page_size = 4>
func.func @f(%a: memref<?x2x?x16x{heads}x64x{source}>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %m: i32,
             %b: memref<?x2x?x4x{heads}x64x{target}>, %lut2: memref<?x?xi32>, %begin: memref<?xi32>, %end: memref<?xi32>,
             %scale: f32, %scales: memref<{heads}xf32>) {{
  %c0 = arith.constant 0 : index
  %from = kvcache.paged_collection %a, %lengths, %lut, %m, %m : memref<?x2x?x16x{heads}x64x{source}>, memref<?xi32>, memref<?x?xi32> -> !from
  %to = kvcache.paged_collection %b, %lengths, %lut2, %m, %m : memref<?x2x?x4x{heads}x64x{target}>, memref<?xi32>, memref<?x?xi32> -> !to
  %x = kvcache.paged_view value %from[%c0] : !from
  %y = kvcache.paged_view key %to[%c0] : !to
  kvcache.copy %x to %y {options} : !kvcache.paged<{source}, #kv, page_size = 16>, !kvcache.paged<{target}, #kv, page_size = 4>{types}
  return
}}
"""


@pytest.mark.parametrize("target", [CPU, "emulator:sm_90a"])
@pytest.mark.parametrize(
    ("source", "to", "scale_of"),
    [
        ("bf16", "bf16", ""),
        ("i16", "i16", ""),
        ("i64", "i64", ""),
        ("bf16", "f32", ""),
        ("bf16", "f8E4M3FN", ""),
        ("bf16", "f8E4M3FN", "target"),
        ("f8E4M3FN", "f32", "source"),
        ("f8E4M3FN", "f8E4M3FN", "source"),
        ("f8E4M3FN", "f8E4M3FN", "source and target"),
    ],
)
@pytest.mark.parametrize("ranged", [False, True])
def test_copy(source, to, scale_of, ranged, target):
    """Copies from a static scale to one scale per head."""
    options, types = ["begin %begin end %end"] * ranged, [", memref<?xi32>, memref<?xi32>"] * ranged
    if "source" in scale_of:
        options.append("source_scale %scale"), types.append(", f32")
    if "target" in scale_of:
        options.append("target_scale %scales"), types.append(", memref<3xf32>")
    hints = "block_threads = 32, heads_per_thread = 1"
    options += [f"{{source_head = 1, target_head = 0, heads = 2, {hints}}}"] * ranged
    text = COPY.format(
        heads=3, source=source, target=to, options=" ".join(options), types="".join(types)
    )
    program = kvcache.jit(text, target=target)
    rng = np.random.default_rng(5)
    a = rng.standard_normal((8, 2, 1, 16, 3, 64)).astype(kvcache.dtypes.dtype(source))
    if source.startswith("i"):  # no bit is lost, as one of f64 would be
        unsigned = f"u{a.itemsize}"
        a = rng.integers(0, 2 ** (8 * a.itemsize), a.shape, unsigned, endpoint=False)
    b = np.zeros((30, 2, 1, 4, 3, 64), a.dtype if a.dtype.kind == "u" else kvcache.dtypes.dtype(to))
    lengths = np.array([30, 0, 17], np.int32)
    lut = np.pad(np.array([[5, 1], [7, 7], [2, 3]], np.uint32), ((0, 0), (0, 22)), constant_values=7)
    lut2 = np.pad(rng.permutation(29)[:24].reshape(3, 8).astype(np.uint32), ((0, 0), (0, 24)), constant_values=29)
    begin, end = np.array([3, 0, 16], np.int32), np.array([30, 0, 19], np.int32)
    program.call("f", a, lengths, lut, 30, b, lut2, begin, end, 1.7, STATIC_SCALES)
    expected = np.zeros(b.shape, b.dtype)
    heads = (slice(1, 3), slice(0, 2)) if ranged else (slice(0, 3), slice(0, 3))
    for s in range(3):
        for t in range(begin[s] if ranged else 0, end[s] if ranged else lengths[s]):
            values = a[lut[s, t // 16], 1, 0, t % 16, heads[0]]
            values = values if a.dtype.kind == "u" else values.astype(np.float32)
            if "source" in scale_of:
                values *= np.float32(1.7)
            if "target" in scale_of:
                values = divide_f32(values, STATIC_SCALES[heads[1], None])
            values = ELEMENTS[to].round(values) if to in ELEMENTS else values
            expected[lut2[s, t // 4], 0, 0, t % 4, heads[1]] = values.astype(b.dtype)
    np.testing.assert_array_equal(as_uint(b), as_uint(expected))


COPY_GROUPS = """
#kv = #kvcache.params<num_heads = 2, head_size = 8>
!from = !kvcache.paged<{source}, #kv, page_size = 12{of_source}>
!to = !kvcache.paged<i4, #kv, page_size = 8, scale = f16, zero_point = f16, token_granularity = 4>
func.func @f(%a: memref<?x12x2x{width}x{stored}>, %sa: memref<?x3x2x16xf16>, %b: memref<?x8x2x4xi8>,
             %sb: memref<?x2x2x16xf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
             %begin: memref<?xi32>, %end: memref<?xi32>, %m: i32) {{
  %from = kvcache.paged_cache %a, %lengths, %lut, %m, %m{scales} : memref<?x12x2x{width}x{stored}>, memref<?xi32>, memref<?x?xi32>{scales_type} -> !from
  %to = kvcache.paged_cache %b, %lengths, %lut, %m, %m scales %sb : memref<?x8x2x4xi8>, memref<?xi32>, memref<?x?xi32>, memref<?x2x2x16xf16> -> !to
  kvcache.copy %from to %to begin %begin end %end : !from, !to, memref<?xi32>, memref<?xi32>
  return
}}
"""
PLAIN = {"source": "bf16", "width": 8, "stored": "bf16", "of_source": "", "scales": "", "scales_type": ""}
KIVI = {
    "source": "i4", "width": 4, "stored": "i8", "scales": " scales %sa",
    "of_source": ", scale = f16, zero_point = f16, token_granularity = 4",
    "scales_type": ", memref<?x3x2x16xf16>",
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", [PLAIN, KIVI], ids=["quantized", "bits"])
def test_copy_of_groups_of_tokens(source, target):
    """Only groups with all of their tokens in the range are written."""
    program = kvcache.jit(COPY_GROUPS.format(**source), target=target)
    rng = np.random.default_rng(8)
    a = rng.standard_normal((8, 12, 2, 8)) * 3 + 9 * (np.arange(8) == 5)
    a = a.astype(ml_dtypes.bfloat16) if source is PLAIN else rng.integers(-128, 128, (8, 12, 2, 4), np.int8)
    scales = rng.standard_normal((8, 3, 2, 16)).astype(np.float16)
    b = rng.integers(-128, 128, (12, 8, 2, 4), np.int8)
    scales_of_b = rng.standard_normal((12, 2, 2, 16)).astype(np.float16)
    expected, expected_scales = b.copy(), scales_of_b.copy()
    lut = np.pad(np.array([[5, 1, 4], [7, 6, 0]], np.uint32), ((0, 0), (0, 21)))
    begin, end = np.array([3, 8], np.int32), np.array([23, 11], np.int32)
    for s, first in [(0, 4), (0, 8), (0, 12), (0, 16)]:
        at = [(lut[s, t // 8], t % 8) for t in range(first, first + 4)]
        of = [(lut[s, t // 12], t % 12) for t in range(first, first + 4)]
        for h in range(2):
            page, row = at[0]
            if source is KIVI:
                numbers = scales[of[0][0], of[0][1] // 4, h]
                elements = np.stack([a[p, t, h] for p, t in of])
            else:
                values = np.stack([a[p, t, h] for p, t in of]).astype(np.float32)
                elements, *numbers = quantize_with_zero_points(values, 1, SCALES["f16"])
                elements = pack(elements.astype(np.uint8)).view(np.int8)
                numbers = np.concatenate(numbers).astype(np.float16)
            expected[page, row : row + 4, h] = elements
            expected_scales[page, row // 4, h] = numbers
    lengths = np.zeros(2, np.uint32)
    program.call("f", a, scales, b, scales_of_b, lengths, lut, begin, end, 24)
    np.testing.assert_array_equal(b, expected)
    np.testing.assert_array_equal(as_uint(scales_of_b), as_uint(expected_scales))


REMAP = """
#kv = #kvcache.params<num_heads = 1, head_size = 64, is_mla = true>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 16>
func.func @f(%blocks: memref<?x1x?x16x1x64xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %m: i32,
             %tokens: memref<?x?xi32>, %offsets: memref<?xi32>, %ids: memref<?x?xi32>) {
  %c0 = arith.constant 0 : index
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %m, %m : memref<?x1x?x16x1x64xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %k = kvcache.paged_view key %c[%c0] : !collection
  kvcache.remap_rows %tokens, %k rows %offsets outs(%ids)
    : memref<?x?xi32>, !kvcache.paged<bf16, #kv, page_size = 16>, memref<?xi32>, memref<?x?xi32>
  return
}
"""


@pytest.mark.parametrize(
    ("target", "threads"), [(CPU, None), *(("emulator:sm_90a", threads) for threads in (None, 32, 1024))]
)
def test_remap_rows(target, threads):
    rng = np.random.default_rng(6)
    offsets = np.array([0, 2, 2, 300], np.int32)
    lut = np.pad(rng.integers(0, 8, (3, 4)).astype(np.uint32), ((0, 0), (0, 24)))
    tokens = rng.integers(-1, 64, (302, 70)).astype(np.int32)
    ids = np.full((302, 70), 99, np.int32)
    blocks = np.zeros((8, 1, 1, 16, 1, 64), ml_dtypes.bfloat16)
    hint = write_attributes(block_threads=threads)
    program = kvcache.jit(edit(REMAP, ("outs(%ids)", f"outs(%ids){hint}")), target=target)
    program.call("f", blocks, np.array([64, 64, 64], np.int32), lut, 64, tokens, offsets, ids)
    expected = tokens.copy()
    for row in range(300):
        b = 0 if row < 2 else 2
        pages = lut[b, np.maximum(tokens[row], 0) // 16].astype(np.int32)
        expected[row] = np.where(tokens[row] < 0, tokens[row], pages * 16 + tokens[row] % 16)
    np.testing.assert_array_equal(ids, expected)
