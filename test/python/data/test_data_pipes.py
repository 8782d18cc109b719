"""Pipes: every tile that a loop consumes is the one that was produced for it."""

import functools

import devices
import ml_dtypes
import numpy as np
import pytest

ROWS, COLUMNS, PAGE, PAGES = 8, 64, 16, 6


@functools.cache
def compile_pipe(stages, ahead, target):
    """`out[i]` becomes tile i of keys and of the rows that `ids` names, produced `ahead` tiles before its use."""
    source = f"""
#kv = #kvcache.params<num_heads = 2, head_size = {COLUMNS}>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = {PAGE}>
!cache = !kvcache.paged<bf16, #kv, page_size = {PAGE}>
!dense = !kvcache.tile<{ROWS}x{COLUMNS}xbf16, swizzle_128b>
!sparse = !kvcache.tile<{ROWS}x{COLUMNS}xbf16, swizzle_64b>
!row = vector<8xbf16>
!blocks = memref<?x2x?x{PAGE}x2x{COLUMNS}xbf16>
!out = memref<?x2x{ROWS}x{COLUMNS}xbf16>

func.func private @write(%tile: !dense, %other: !sparse, %out: !out, %i: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %rows = arith.constant {ROWS} : index
  %columns = arith.constant {COLUMNS} : index
  scf.for %r = %c0 to %rows step %c1 {{
    scf.for %c = %c0 to %columns step %c8 {{
      %v = kvcache.tile_load %tile[%r, %c] : !dense -> !row
      %w = kvcache.tile_load %other[%r, %c] : !sparse -> !row
      vector.store %v, %out[%i, %c0, %r, %c] : !out, !row
      vector.store %w, %out[%i, %c1, %r, %c] : !out, !row
    }}
  }}
  return
}}

func.func @run(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %b: index, %h: index,
               %length: index, %ids: memref<{ROWS}xi32>, %n: index, %out: !out) -> index {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = arith.constant {ROWS} : index
  %ahead = arith.constant {ahead} : index
  %zero = arith.constant 0 : i32
  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %zero, %zero
      : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
  %k = kvcache.paged_view key %collection[%c1] : !collection
  %ring = kvcache.pipe : !kvcache.pipe<{stages}, !dense, !sparse>
  %first = arith.minui %ahead, %n : index
  scf.for %i = %c0 to %first step %c1 {{
    %t = arith.muli %i, %rows : index
    %valid = arith.subi %length, %t : index
    kvcache.produce %ring[%i] : !kvcache.pipe<{stages}, !dense, !sparse> {{
    ^bb0(%dense: !dense, %sparse: !sparse):
      kvcache.async_load_tile %k[%b, %h, %t, %c0] valid %valid to %dense : !cache, !dense
      kvcache.async_gather_tile %k[%h, %c0] rows %ids to %sparse : !cache, memref<{ROWS}xi32>, !sparse
    }}
  }}
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c0) -> (index) {{
    %next = arith.addi %i, %ahead : index
    %more = arith.cmpi ult, %next, %n : index
    scf.if %more {{
      %t = arith.muli %next, %rows : index
      %valid = arith.subi %length, %t : index
      kvcache.produce %ring[%next] : !kvcache.pipe<{stages}, !dense, !sparse> {{
      ^bb0(%dense: !dense, %sparse: !sparse):
        kvcache.async_load_tile %k[%b, %h, %t, %c0] valid %valid to %dense : !cache, !dense
        kvcache.async_gather_tile %k[%h, %c0] rows %ids to %sparse : !cache, memref<{ROWS}xi32>, !sparse
      }}
    }}
    %r = kvcache.consume %ring[%i] : !kvcache.pipe<{stages}, !dense, !sparse> -> (index) {{
    ^bb0(%dense: !dense, %sparse: !sparse):
      func.call @write(%dense, %sparse, %out, %i) : (!dense, !sparse, !out, index) -> ()
      %one = arith.addi %s, %c1 : index
      kvcache.yield %one : index
    }}
    scf.yield %r : index
  }}
  return %sum : index
}}
"""
    return devices.jit(source, target, threads=64)


@pytest.mark.parametrize("target", ["cpu", *devices.TARGETS])
@pytest.mark.parametrize("tiles", [0, 1, 2, 7])
@pytest.mark.parametrize(("stages", "ahead"), [(1, 0), (2, 0), (2, 1), (3, 2), (4, 2), (4, 3)])
def test_each_tile_is_that_of_its_index(stages, ahead, tiles, target):
    rng = np.random.default_rng(stages)
    blocks = rng.integers(0, 2**16, (PAGES, 2, 2, PAGE, 2, COLUMNS), np.uint16).view(ml_dtypes.bfloat16)
    lut = rng.integers(0, PAGES, (2, 5)).astype(np.uint32)
    ids = rng.integers(0, PAGES * PAGE, ROWS).astype(np.int32)
    ids[3] = -1
    length = max(tiles * ROWS - 3, 0)
    out = np.zeros((max(tiles, 1), 2, ROWS, COLUMNS), ml_dtypes.bfloat16)
    expected = np.zeros_like(out)
    for token in range(length):
        page, inside = lut[1, token // PAGE], token % PAGE
        expected[token // ROWS, 0, token % ROWS] = blocks[page, 0, 1, inside, 1]
    for i in range(tiles):
        for row, id_ in enumerate(ids):
            if id_ >= 0:
                expected[i, 1, row] = blocks[id_ // PAGE, 0, 1, id_ % PAGE, 1]
    lengths = np.zeros(2, np.uint32)
    used = compile_pipe(stages, ahead, target).call("run", blocks, lengths, lut, 1, 1, length, ids, tiles, out)
    assert used == tiles
    assert (out.view(np.uint16) == expected.view(np.uint16)).all()
