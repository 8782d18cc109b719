"""Tests of pipes: a loop consumes the tile that was produced for it."""

import functools
import itertools

import devices
import numpy as np
import pytest
from layouts import HEADS, LAYERS, LAYOUTS, Case, function
from programs import DTYPES
from swizzles import NAMES

ROWS = 8

TYPES = """!dense = !kvcache.tile<{rows}x{columns}x{dtype}{dense}>
!sparse = !kvcache.tile<{rows}x{columns}x{dtype}{sparse}>
!pipe = !kvcache.pipe<{stages}, !dense, !sparse>
!lanes = vector<{lanes}x{dtype}>
!out = memref<?x2x{rows}x{columns}x{dtype}>
func.func private @write(%tile: !dense, %other: !sparse, %out: !out, %i: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %lanes = arith.constant {lanes} : index
  %rows = arith.constant {rows} : index
  %columns = arith.constant {columns} : index
  scf.for %r = %c0 to %rows step %c1 {{
    scf.for %c = %c0 to %columns step %lanes {{
      %v = kvcache.tile_load %tile[%r, %c] : !dense -> !lanes
      %w = kvcache.tile_load %other[%r, %c] : !sparse -> !lanes
      vector.store %v, %out[%i, %c0, %r, %c] : !out, !lanes
      vector.store %w, %out[%i, %c1, %r, %c] : !out, !lanes
    }}
  }}
  return
}}
"""
PRODUCE = """%t = arith.muli {index}, %rows : index
    %valid = arith.subi %length, %t : index
    kvcache.produce %ring[{index}] : !pipe {{
    ^bb0(%dense: !dense, %sparse: !sparse):
      kvcache.async_load_tile %k[%b, %h, %t, %c0] valid %valid to %dense : !cache, !dense
      kvcache.async_gather_tile %k[%h, %c0] rows %ids to %sparse : !cache, memref<{rows}xi32>, !sparse
    }}"""
PARAMETERS = ", %b: index, %h: index, %length: index, %ids: memref<{rows}xi32>, %n: index, %out: !out"
LOOPS = """  %c1 = arith.constant 1 : index
  %rows = arith.constant {rows} : index
  %ahead = arith.constant {ahead} : index
  %ring = kvcache.pipe : !pipe
  %first = arith.minui %ahead, %n : index
  scf.for %i = %c0 to %first step %c1 {{
    {produce_first}
  }}
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c0) -> (index) {{
    %next = arith.addi %i, %ahead : index
    %more = arith.cmpi ult, %next, %n : index
    scf.if %more {{
    {produce_next}
    }}
    %r = kvcache.consume %ring[%i] : !pipe -> (index) {{
    ^bb0(%dense: !dense, %sparse: !sparse):
      func.call @write(%dense, %sparse, %out, %i) : (!dense, !sparse, !out, index) -> ()
      %one = arith.addi %s, %c1 : index
      kvcache.yield %one : index
    }}
    scf.yield %r : index
  }}
  return %sum : index"""


@functools.cache
def compile_pipe(case, stages, ahead, target):
    """`out[i]` becomes tile i of values and of the rows that `ids` names, produced `ahead` tiles before its use."""
    span = min(128, case.head_size * 16 // case.unit)
    text = case.aliases + TYPES.format(
        rows=ROWS,
        columns=case.head_size,
        dtype=case.dtype,
        dense=NAMES[f"{span}b"],
        sparse=NAMES[f"{span // 2}b"],
        stages=stages,
        lanes=case.unit,
    )
    produce_first, produce_next = (
        PRODUCE.format(rows=ROWS, index=index) for index in ("%i", "%next")
    )
    loops = LOOPS.format(
        rows=ROWS, ahead=ahead, produce_first=produce_first, produce_next=produce_next
    )
    text += function(case, "run", "value", PARAMETERS.format(rows=ROWS), loops, "index")
    return devices.jit(text, target, threads=64)


def check_tiles(case, stages, ahead, tiles, target):
    blocks = case.blocks(case.memory)[:, 1, LAYERS - 1]
    rng = np.random.default_rng(stages)
    b, h, length = 1, HEADS - 1, max(tiles * ROWS - 3, 0)
    ids = rng.integers(0, len(blocks) * case.page_size, ROWS).astype(np.int32)
    ids[3] = -1
    out = np.zeros((max(tiles, 1), 2, ROWS, case.head_size), blocks.dtype)
    expected = np.zeros_like(out)
    for token in range(length):
        page, inside = case.table[b, token // case.page_size], token % case.page_size
        expected[token // ROWS, 0, token % ROWS] = blocks[page, inside, h]
    for row, id_ in enumerate(ids):
        if id_ >= 0:
            expected[:tiles, 1, row] = blocks[
                id_ // case.page_size, id_ % case.page_size, h
            ]
    program = compile_pipe(case, stages, ahead, target)
    arguments = case.arguments(case.memory, 1, LAYERS - 1)
    used = program.call(
        "run", *arguments, b, h, length, ids, tiles, out.view(DTYPES[case.dtype])
    )
    assert used == tiles
    np.testing.assert_array_equal(out, expected)


PACKED = Case(LAYOUTS[0], page_size=16, head_size=64, columns=4)


@pytest.mark.parametrize("target", ["cpu", *devices.TARGETS])
@pytest.mark.parametrize("tiles", [0, 1, 2, 7])
@pytest.mark.parametrize(
    ("stages", "ahead"), [(1, 0), (2, 0), (2, 1), (3, 2), (4, 2), (4, 3)]
)
def test_tile_of_each_iteration_has_its_index(stages, ahead, tiles, target):
    check_tiles(PACKED, stages, ahead, tiles, target)


# Every layout, with pages that are larger and smaller than a tile, and tables of each kind.
CASES = [
    Case(
        strides,
        dtype,
        page_size,
        is_open,
        is_view,
        table_kind,
        head_size=64,
        columns=-(-32 // page_size),
    )
    for strides, (dtype, page_size, is_open, is_view, table_kind) in zip(
        LAYOUTS,
        itertools.cycle(
            [
                ("bf16", 16, False, False, "csr"),
                ("f8E4M3FN", 64, False, True, "dense"),
                ("f32", 4, False, False, "rows"),
                ("f16", 3, False, True, "csr"),
                ("bf16", 16, True, False, "rows"),
                ("i8", 8, False, True, "csr"),
                ("f32", 1, False, False, "rows"),
            ]
        ),
    )
]
# SGLang's tokens are pages, named by the requests of a batch.
CASES += [
    Case(LAYOUTS[0], "bf16", 1, is_view=True, table_kind="rows", head_size=64, columns=32)
]


@pytest.mark.parametrize(("case", "target"), devices.spread(CASES, with_cpu=True))
def test_each_tile_of_any_layout(case, target):
    check_tiles(case, stages=3, ahead=2, tiles=4, target=target)
