"""Tests that checks find tensors of a collection that do not fit each other."""

import functools

import numpy as np
import pytest
from programs import DTYPES

import kvcache

COLLECTION = """
#kv = #kvcache.params<num_heads = 1, head_size = 8>
!collection = !kvcache.paged_collection<f32, #kv, page_size = 4>
!blocks = memref<?x2x?x4x1x8xf32, strided<[?, ?, ?, 8, 8, 1], offset: ?>>

func.func @length(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %b: index) -> index {
  %max = arith.constant 1 : i32
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
      : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
  %n = kvcache.cache_length %c[%b] : !collection
  return %n : index
}
"""


def collection_length(page_distance, sequences, rows):
    """Queries a length; pages are `page_distance` elements apart."""
    flat = np.zeros(4 * page_distance, np.float32)
    blocks = np.lib.stride_tricks.as_strided(
        flat, (2, 2, 1, 4, 1, 8), [4 * n for n in (page_distance, 32, 32, 8, 8, 1)]
    )
    program = kvcache.jit(COLLECTION, target="cpu", bounds_checks=True)
    lengths = np.arange(sequences, dtype=np.uint32)
    return program.call("length", blocks, lengths, np.zeros((rows, 3), np.uint32), 0)


def test_consistent_collections_pass():
    assert collection_length(64, sequences=2, rows=2) == 0
    assert collection_length(68, sequences=2, rows=5) == 0


def test_sequences_without_a_row_of_the_table():
    with pytest.raises(kvcache.CheckError, match=r"'lookup_table'.* 3 is not in \[0, 2\)"):
        collection_length(64, sequences=3, rows=1)


def test_pages_that_are_not_aligned():
    # Also without checks in the code, since a wide access would fault.
    with pytest.raises(ValueError, match="strides that are multiples of 16 bytes"):
        collection_length(65, sequences=2, rows=2)


ROW_COUNTS = """
#kv = #kvcache.params<num_heads = 1, head_size = 24>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 4, scale = f32, granularity = 8>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 4, scale = f32, granularity = 8>
!rows = !kvcache.row_indices<rows = 4, page_size = 4>
!blocks = memref<?x2x1x4x1x24xf8E4M3FN, strided<[?, ?, ?, 24, 24, 1], offset: ?>>
!scales = memref<?x2x1x4x1x3xf32, strided<[?, ?, ?, 3, 3, 1], offset: ?>>
"""
COUNTS = {
    "num_kv_rows": "%r = kvcache.num_kv_rows %k : !cache",
    "row_index": "%r = kvcache.row_index %k[%c0, %c0] : !cache",
    "tma_row": "%r = kvcache.tma_row %k[%c0] : !cache",
    "populate": """%rows = kvcache.populate %k[%c0, %c0] : !cache -> !rows
  %r = kvcache.get_row %rows[%c0] : !rows""",
    "num_scale_rows": "%r = kvcache.num_scale_rows %k : !cache",
    "scale_row_index": "%r = kvcache.scale_row_index %k[%c0, %c0] : !cache",
}


@functools.cache
def compile_counts():
    functions = (
        f"""func.func @{name}(%blocks: !blocks, %scales: !scales, %lengths: memref<?xi32>, %lut: memref<?x?xi32>)
    -> index {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %zero, %zero scales %scales
      : !blocks, memref<?xi32>, memref<?x?xi32>, !scales -> !collection
  %k = kvcache.paged_view key %c[%c0] : !collection
  {body}
  return %r : index
}}"""
        for name, body in COUNTS.items()
    )
    return kvcache.jit(ROW_COUNTS + "\n".join(functions), target="cpu", bounds_checks=True, opt_level=0)


def count(name, pages, distance, scale_distance):
    """Compiles a query of a row, with dynamic distances of pages of elements and scales."""
    flat = np.zeros(distance + 192, np.uint8).view(DTYPES["f8E4M3FN"])
    strides = distance, 96, 192, 24, 24, 1
    blocks = np.lib.stride_tricks.as_strided(flat, (pages, 2, 1, 4, 1, 24), strides)
    strides = [4 * n for n in (scale_distance, 12, 24, 3, 3, 1)]
    flat = np.zeros(scale_distance + 24, np.float32)
    scales = np.lib.stride_tricks.as_strided(flat, (pages, 2, 1, 4, 1, 3), strides)
    tables = np.zeros(1, np.uint32), np.zeros((1, 1), np.uint32)
    return compile_counts().call(name, blocks, scales, *tables)


@pytest.mark.parametrize("name", COUNTS)
def test_rows_are_counted_through_pages_whole_rows_apart(name):
    count(name, 2, 216, 27)
    checks_scales = "scale" in name
    # The distance of other tensors, and of a single page, is not checked.
    count(name, 2, *((200, 27) if checks_scales else (216, 25)))
    count(name, 1, 200, 25)
    row, rest = (3, 1) if checks_scales else (24, 8)
    expected = rf"{name}' op distance between pages modulo a row \({row} elements\).* {rest} is not in \[0, 1\)"
    with pytest.raises(kvcache.CheckError, match=expected):
        count(name, 2, 200, 25)
