"""Tests of FlashMLA's rows: fields of several dtypes in the bytes of one allocation.

The model follows the description of FlashMLA's quantizer, in NumPy and ml_dtypes: scales are 2^ceil(log2(max(amax /
448, 1e-4))), and loads return element times scale in bf16.
"""

import functools
import itertools

import ml_dtypes
import numpy as np
import pytest
from devices import TARGETS, jit, spread
from swizzles import stored

import kvcache
from kvcache import Layout

BF16, E4M3 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e4m3fn)
NAMES = ["FlashMLA-V3.2", "FlashMLA-V4"]
PAGES, BATCH, COLUMNS, IDS = 5, 2, 2, 16
each_name = pytest.mark.parametrize("name", NAMES)
PAGE_SIZES = [1, 3, 64]
each_page_size = pytest.mark.parametrize("page_size", PAGE_SIZES)


def quantize(values, granularity):
    """Elements and scales of f32 values."""
    groups = values.reshape(*values.shape[:-1], -1, granularity)
    amax = np.abs(groups).max(-1)
    scales = np.exp2(np.ceil(np.log2(np.maximum(amax / np.float32(448), np.float32(1e-4)))))
    return (groups / scales[..., None]).reshape(values.shape).astype(E4M3), scales


def dequantize(elements, scales, granularity):
    lanes = np.repeat(scales.astype(np.float32), granularity, -1)
    return (elements.astype(np.float32) * lanes).astype(BF16)


def make_bytes(name, page_size):
    """Makes bytes of a cache with other bytes after each page."""
    layout = Layout.from_name(name)
    distance = layout.page_bytes(page_size) + layout.page_unit
    memory = np.random.default_rng(1).integers(0, 0x70, (PAGES, distance), np.uint8)
    return layout, memory


VIEWS = """
!content = {content.type}
!rope = {rope.type}
!row = {row.type}
!contents = {content.memref}
!scales = {scales.memref}
!ropes = {rope.memref}
!rows = {row.memref}
!table = memref<?x?xi32>
!new = memref<?x1x{width}xbf16>
!new_rope = memref<?x1x64xbf16>
"""
MAKE = """  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %k = kvcache.paged_cache %contents, %lengths, %table, %zero, %zero scales %scales
      : !contents, memref<?xi32>, !table, !scales -> !content
  %r = kvcache.paged_cache %ropes, %lengths, %table, %zero, %zero
      : !ropes, memref<?xi32>, !table -> !rope
"""
ARGUMENTS = "%contents: !contents, %scales: !scales, %ropes: !ropes, %lengths: memref<?xi32>, %table: !table"
# One kernel writes, another reads all three fields.
ACCESSES = """
func.func @store({arguments}, %new: memref<?xbf16>, %new_rope: memref<?xbf16>, %b: index, %t: index) {{
{make}
  %v = vector.load %new[%c0] : memref<?xbf16>, vector<{width}xbf16>
  %p = vector.load %new_rope[%c0] : memref<?xbf16>, vector<64xbf16>
  kvcache.store_quantized %v, %k[%b, %c0, %t, %c0] {{power_of_two}} : vector<{width}xbf16>, !content
  kvcache.store %p, %r[%b, %c0, %t, %c0] : vector<64xbf16>, !rope
  return
}}
func.func @load({arguments}, %out: memref<?xbf16>, %out_rope: memref<?xbf16>, %b: index, %t: index) {{
{make}
  %v = kvcache.load %k[%b, %c0, %t, %c0] : !content -> vector<{width}xbf16>
  %p = kvcache.load %r[%b, %c0, %t, %c0] : !rope -> vector<64xbf16>
  vector.store %v, %out[%c0] : memref<?xbf16>, vector<{width}xbf16>
  vector.store %p, %out_rope[%c0] : memref<?xbf16>, vector<64xbf16>
  return
}}
"""
APPEND = """
func.func @append({arguments}, %new: !new, %new_rope: !new_rope, %offsets: memref<?xi32>) {{
{make}
  kvcache.append %new to %k rows %offsets {{power_of_two}} : !new, !content, memref<?xi32>
  kvcache.append %new_rope to %r rows %offsets : !new_rope, !rope, memref<?xi32>
  return
}}
"""
GATHER = """
!tile = !kvcache.tile<{ids}x{row_bytes}xf8E4M3FN>
!memory = memref<{tile_bytes}xi8, #gpu.address_space<workgroup>>
func.func @gather(%rows: !rows, %lengths: memref<?xi32>, %table: !table, %ids: memref<{ids}xi32>, %raw: memref<{tile_bytes}xi8>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %bytes = arith.constant {tile_bytes} : index
  %zero = arith.constant 0 : i32
  %k = kvcache.paged_cache %rows, %lengths, %table, %zero, %zero : !rows, memref<?xi32>, !table -> !row
  %tile = kvcache.alloc_tile : !tile
  %token = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %tile : !row, memref<{ids}xi32>, !tile
  kvcache.wait %token
  %memory = kvcache.tile_memory %tile : !tile -> !memory
  scf.for %i = %c0 to %bytes step %c16 {{
    %x = vector.load %memory[%i] : !memory, vector<16xi8>
    vector.store %x, %raw[%i] : memref<{tile_bytes}xi8>, vector<16xi8>
  }}
  return
}}
"""


@functools.cache
def compiled(name, page_size, text, target):
    layout, memory = make_bytes(name, page_size)
    views = layout.views(memory, page_size)
    width, row_bytes = views["content"].array.shape[-1], views["row"].array.shape[-1]
    facts = {
        "arguments": ARGUMENTS, "make": MAKE, "width": width, "ids": IDS,
        "row_bytes": row_bytes, "tile_bytes": IDS * row_bytes,
    }  # fmt: skip
    return jit(VIEWS.format(**views, **facts) + text.format(**facts), target, threads=64)


def make_case(name, page_size, seed=2):
    """The layout, the memory, its views, a table, and random rows of content and rope."""
    layout, memory = make_bytes(name, page_size)
    views = layout.views(memory, page_size)
    rng = np.random.default_rng(seed)
    table = rng.permutation(PAGES)[: BATCH * COLUMNS].astype(np.uint32).reshape(BATCH, COLUMNS)
    width = views["content"].array.shape[-1]
    # Groups of zeros, of tiny numbers, and with an amax at a power of two times 448.
    values = rng.normal(size=(6, width)) * np.exp2(rng.integers(-20, 8, (6, 1)))
    values[0, : layout.granularity] = 0
    values[1] *= 1e-9
    values[2, ::32] = 448 * 2.0**-3
    return layout, memory, views, table, values.astype(BF16), rng.normal(size=(6, 64)).astype(BF16)


def write(layout, views, page, row, values, rope):
    elements, scales = quantize(values.astype(np.float32), layout.granularity)
    views["content"].array[page, row, 0] = elements
    views["scales"].array[page, row, 0] = scales.astype(views["scales"].array.dtype)
    views["rope"].array[page, row, 0] = rope


def get_fields(views):
    return tuple(views[field].array for field in ("content", "scales", "rope"))


@pytest.mark.parametrize(("case", "target"), spread(itertools.product(PAGE_SIZES, NAMES), with_cpu=True))
def test_fields_of_one_row(case, target):
    """Kernels may access all views of one allocation: none writes data that another accesses."""
    page_size, name = case
    layout, memory, views, table, values, ropes = make_case(name, page_size)
    program = compiled(name, page_size, ACCESSES, target)
    model = memory.copy()
    lengths = np.zeros(BATCH, np.uint32)
    for i, (b, t) in enumerate([(0, 0), (1, page_size), (1, 0), (0, 2 * page_size - 1)]):
        page, row = table[b, t // page_size], t % page_size
        program.call("store", *get_fields(views), lengths, table, values[i], ropes[i], b, t)
        write(layout, layout.views(model, page_size), page, row, values[i], ropes[i])
        np.testing.assert_array_equal(memory, model)
        out, out_rope = np.zeros(values.shape[1], BF16), np.zeros(64, BF16)
        program.call("load", *get_fields(views), lengths, table, out, out_rope, b, t)
        elements, scales = quantize(values[i].astype(np.float32), layout.granularity)
        expected = dequantize(elements, scales, layout.granularity)
        np.testing.assert_array_equal(out.view(np.uint16), expected.view(np.uint16))
        np.testing.assert_array_equal(out_rope.view(np.uint16), ropes[i].view(np.uint16))


@each_name
@pytest.mark.parametrize("target", ["cpu", "emulator:sm_90a"])
def test_append_to_rows_of_fields(name, target):
    layout, memory, views, table, values, ropes = make_case(name, 3)
    text = VIEWS.format(**views, width=values.shape[1]) + APPEND.format(arguments=ARGUMENTS, make=MAKE)
    program = kvcache.jit(text, target=target, opt_level=0)
    lengths, offsets = np.array([2, 0], np.uint32), np.array([0, 2, 6], np.uint32)
    model = memory.copy()
    program.call(
        "append", *get_fields(views), lengths, table, values[:, None], ropes[:, None], offsets.view(np.int32)
    )
    for row, (b, t) in enumerate([(0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3)]):
        page = table[b, t // 3]
        write(layout, layout.views(model, 3), page, t % 3, values[row], ropes[row])
    np.testing.assert_array_equal(memory, model)


@each_name
@pytest.mark.parametrize("page_size", [3, 64])
@pytest.mark.parametrize("target", ["cpu", *TARGETS, "emulator:sm_120a"])
def test_whole_rows_are_gathered(name, page_size, target):
    _, memory, views, table, *_ = make_case(name, page_size)
    program = compiled(name, page_size, GATHER, target)
    rows = views["row"].array.view(np.uint8)
    rng = np.random.default_rng(4)
    ids = rng.integers(0, PAGES * page_size, IDS).astype(np.int32)
    ids[[1, 7]] = -1, PAGES * page_size
    expected = np.zeros((IDS, rows.shape[-1]), np.uint8)
    for i, id_ in enumerate(ids):
        if 0 <= id_ < PAGES * page_size:
            expected[i] = rows[id_ // page_size, id_ % page_size, 0]
    raw = np.full(expected.size, 77, np.int8)
    program.call("gather", views["row"].array, np.zeros(BATCH, np.uint32), table, ids, raw)
    np.testing.assert_array_equal(raw.view(np.uint8), stored(expected.view(E4M3), "none"))
