"""Tests of gathers into tiles by any number of threads, with ids read one by one or together."""

import devices
import ml_dtypes
import numpy as np
import pytest
from swizzles import NAMES, stored

PAGES, PAGE_SIZE, SIZE = 5, 12, 320
ROWS = PAGES * PAGE_SIZE

# Rows, columns, swizzle and threads.
CASES = [
    (20, 96, "none", 72),  # rounds of 6 rows, and a rest
    (20, 64, "128b", 96),  # a round of 12 rows, and a rest
    (24, 128, "128b", 33),  # by chunks
    (24, 128, "128b", 100),  # half a chunk's row at once, no whole round
    (64, 64, "128b", 32),  # rows with different swizzles
    (64, 192, "64b", 36),  # three 16-byte chunks of a row in each of 6 spans
    (64, 320, "128b", 32),  # a loop
    (64, 40, "none", 32),  # bulk copies if the chip has them, and a warp that zeroes rows
    (32, 40, "none", 24),  # the same in less than a warp
]

def compile_gather(case, alignment, target):
    rows, columns, swizzle, threads = case
    bytes_ = rows * columns * 2
    source = f"""
#kv = #kvcache.params<num_heads = 1, head_size = {SIZE}>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = {PAGE_SIZE}>
!cache = !kvcache.paged<bf16, #kv, page_size = {PAGE_SIZE}>
!tile = !kvcache.tile<{rows}x{columns}xbf16{NAMES[swizzle]}>
!blocks = memref<?x2x?x{PAGE_SIZE}x1x{SIZE}xbf16>
!memory = memref<{bytes_}xi8, #gpu.address_space<workgroup>>
func.func @gather(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %ids: memref<{rows}xi32>,
                  %raw: memref<{bytes_}xi8>) {{
  %c0 = arith.constant 0 : index
  %bytes = arith.constant {bytes_} : index
  %threads = arith.constant {threads} : index
  %zero = arith.constant 0 : i32
  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %zero, %zero
      : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
  %k = kvcache.paged_view value %collection[%c0] : !collection
  %tile = kvcache.alloc_tile : !tile
  %aligned = memref.assume_alignment %ids, {alignment} : memref<{rows}xi32>
  %token = kvcache.async_gather_tile %k[%c0, %c0] rows %aligned to %tile : !cache, memref<{rows}xi32>, !tile
  kvcache.wait %token
  %memory = kvcache.tile_memory %tile : !tile -> !memory
  %thread = gpu.thread_id x
  scf.for %i = %thread to %bytes step %threads {{
    %x = memref.load %memory[%i] : !memory
    memref.store %x, %raw[%i] : memref<{bytes_}xi8>
  }}
  return
}}
"""
    return devices.jit(source, target, threads=threads)

@pytest.mark.parametrize("alignment", [4, 16])
@pytest.mark.parametrize("target", devices.TARGETS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_any_number_of_threads_gathers_a_tile(case, target, alignment):
    rows, columns, swizzle, _ = case
    rng = np.random.default_rng(rows)
    shape = PAGES, 2, 1, PAGE_SIZE, 1, SIZE
    blocks = rng.integers(0, 2**16, shape, np.uint16).view(ml_dtypes.bfloat16)
    ids = rng.integers(0, ROWS, rows).astype(np.int32)
    ids[[2, 5, 9, 11, 12, rows - 1]] = -1, ROWS, -(2**31), 2**31 - 1, -1, -1
    cache = blocks[:, 1].reshape(ROWS, SIZE)
    expected = np.zeros((rows, columns), blocks.dtype)
    is_row = (ids >= 0) & (ids < ROWS)
    expected[is_row] = cache[ids[is_row], :columns]

    raw = np.full(rows * columns * 2, 77, np.int8)
    program = compile_gather(case, alignment, target)
    program.call("gather", blocks, np.zeros(1, np.uint32), np.zeros((1, 1), np.uint32), ids, raw)

    assert (raw.view(np.uint8) == stored(expected, swizzle)).all()
