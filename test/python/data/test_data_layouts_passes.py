"""Tests of loops over pages of any layout after passes, and of caches that violate the contract."""

import re

import kvcache
import numpy as np
import pytest
from devices import jit
from layouts import BATCH, LAYOUTS, Case, compiled, function, queries
from programs import PIPELINES, place, run_passes

MOVES = """  %c1 = arith.constant 1 : index
  %heads = arith.constant 3 : index
  scf.for %t = %from to %to step %c1 {{
    scf.for %h = %c0 to %heads step %c1 {{
      %v = kvcache.load %k[%b, %h, %t, %c0] : !cache -> vector<16x{dtype}>
      kvcache.store %v, %k[%b, %h, %target, %c0] : vector<16x{dtype}>, !cache
      %r = kvcache.row_index %k[%b, %t] : !cache
      %e = arith.index_cast %r : index to i64
      memref.store %e, %rows[%t] : memref<?xi64>
    }}
  }}
  return"""
LAYOUTS_OF_MOVES = ("hnd", "LBNHC", "BHLNC")


@pytest.mark.parametrize("table_kind", ["dense", "csr", "rows"])
@pytest.mark.parametrize("name", LAYOUTS_OF_MOVES)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_loops_after_passes(pipeline, name, table_kind):
    """Lookups and addresses moved by passes keep their values, also in loops that do not run."""
    strides = next(strides for strides in LAYOUTS if strides.name == name)
    case = Case(strides, table_kind=table_kind, is_view=table_kind != "dense")
    parameters = ", %b: index, %from: index, %to: index, %target: index, %rows: memref<?xi64>"
    text = case.aliases + function(case, "move", "value", parameters, MOVES.format(dtype=case.dtype))
    for passes in PIPELINES[pipeline]:
        text = run_passes(text, passes)
    program = jit(text, "cpu")
    memory = case.memory.copy()
    memory = place(memory)
    arguments = case.arguments(memory, 1, 1)
    rows = np.full(9, -1, np.int64)
    before = memory.copy()
    program.call("move", *arguments, BATCH + 5, 3, 3, 2**31, rows)
    np.testing.assert_array_equal(memory, before)
    assert (rows == -1).all()
    program.call("move", *arguments, 1, 2, 7, 8, rows)
    blocks = case.blocks(before)
    blocks[case.table[1, 2], 1, 1, 2] = blocks[case.table[1, 2], 1, 1, 0]
    np.testing.assert_array_equal(memory, before)
    if case.distances[0][0] % case.token == 0:
        distance = case.distances[0][0] // case.token
        expected = [case.table[1, t // 3] * distance + t % 3 for t in range(2, 7)]
        np.testing.assert_array_equal(rows[2:7], expected)
    assert (rows[[0, 1, 7, 8]] == -1).all()


# Strides that violate the contract


BROKEN = [
    ("page", 0, 2, "expects strides that are multiples of 16 bytes"),
    ("head", 4, 2, "expects strides that are multiples of 16 bytes"),
    ("back", 4, -(10**4), "expects strides that are not negative"),
    ("layer", 2, -(10**6), "expects strides that are not negative"),
    ("token", 3, 16, "expects a stride of 32 elements in dimension 3"),
    ("element", 5, 2, "expects a stride of 1 elements in dimension 5"),
    ("near", 0, -32, "expects strides at which elements do not overlap, of at least "),
    ("same", 2, "zero", "expects strides at which elements do not overlap, of at least "),
]


def breaking(blocks, dimension, more):
    """Blocks with another stride along a dimension, in bytes; only the strides count."""
    strides = list(blocks.strides)
    strides[dimension] = 0 if more == "zero" else strides[dimension] + more
    return np.lib.stride_tricks.as_strided(blocks[:1], blocks.shape, strides)


@pytest.mark.parametrize("name, dimension, more, message", BROKEN, ids=lambda value: str(value))
def test_calls_reject_wrong_strides(name, dimension, more, message):
    case = Case(next(strides for strides in LAYOUTS if strides.name == "BHLNC"))
    program = compiled(queries, case, "cpu")
    blocks, *arguments = case.arguments(case.memory)
    with pytest.raises(ValueError, match=re.escape(message)):
        program.call("num_kv_rows", breaking(blocks, dimension, more), *arguments)


# Calls can't check the strides of a memref that a function makes.
VIEWED = """
!cache = !kvcache.paged<f32, #kvcache.params<num_heads = 3, head_size = 16>, page_size = 4,
                        layout = [token = 32, head = ?]>
!pages = memref<?x4x3x16xf32, strided<[?, 32, ?, 1], offset: ?>>
func.func @length(%memory: memref<?xf32>, %lengths: memref<?xi32>, %table: memref<?x?xi32>,
    %pages: index, %page: index, %head: index) -> index {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %view = memref.reinterpret_cast %memory to offset: [%c0], sizes: [%pages, 4, 3, 16],
      strides: [%page, 32, %head, 1] : memref<?xf32> to !pages
  %k = kvcache.paged_cache %view, %lengths, %table, %zero, %zero
      : !pages, memref<?xi32>, memref<?x?xi32> -> !cache
  %r = kvcache.cache_length %k[%c0] : !cache
  return %r : index
}
"""


def test_checks_of_strides():
    """The bounds checks find heads and pages that overlap."""
    program = jit(VIEWED, "cpu", bounds_checks=True)
    arguments = np.zeros(1024, np.float32), np.zeros(1, np.int32), np.zeros((1, 1), np.int32)

    def run(pages, page, head):
        return program.call("length", *arguments, pages, page, head)

    # Heads inside pages, pages inside heads, and pages in the gaps of tokens.
    for pages, page, head in ((2, 384, 128), (1, 0, 128), (0, 0, 128), (3, 128, 384), (2, 16, 128)):
        assert run(pages, page, head) == 0
    for pages, page, head, stride in (
        (2, 364, 128, 0), (2, 0, 128, 0), (2, 256, 128, 0), (3, 128, 256, 2), (2, 384, 64, 2), (2, 384, 0, 2),
    ):  # fmt: skip
        with pytest.raises(kvcache.CheckError, match=f"stride {stride} of 'blocks', at which elements overlap"):
            run(pages, page, head)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("csr", lambda table, index: (table, index[:-1]), "with a start and an end in 'table_index'"),
        ("rows", lambda table, index: (table, index[:-1]), "with a row in 'table_index'"),
        ("rows", lambda table, index: (table.copy(), index), "row stride of 'lookup_table' modulo 8"),
    ],
)
def test_checks_of_tables(kind, change, message):
    """The bounds checks find tables without what they must have for all sequences, or for a `populate`."""
    case = Case(LAYOUTS[2], table_kind=kind)
    rows = f"!kvcache.row_indices<rows = {case.page_size}, page_size = {case.page_size}>"
    populated = f"  %rows = kvcache.populate %k[%c0, %c0] : !cache -> {rows}\n  return"
    text = queries(case) + (function(case, "populated", "key", "", populated) if "stride" in message else "")
    program = jit(text, "cpu", bounds_checks=True)
    blocks, lengths, table, index, layer = case.arguments(case.memory)
    program.call("row_index", blocks, lengths, table, index, layer, 0, 0)
    with pytest.raises(kvcache.CheckError, match=message):
        program.call("row_index", blocks, lengths, *change(table, index), layer, 0, 0)


@pytest.mark.parametrize("name, dimension, more, message", BROKEN, ids=lambda value: str(value))
def test_tvm_ffi_functions_reject_wrong_strides(name, dimension, more, message):
    """The check is in the compiled function, so it applies to all callers."""
    case = Case(next(strides for strides in LAYOUTS if strides.name == "BHLNC"), "f32")
    program = compiled(queries, case, "cpu")
    blocks, *arguments = case.arguments(case.memory)
    function = program.function("num_kv_rows")
    function(blocks, *arguments)
    broken = breaking(blocks, dimension, more if more == "zero" else 2 * more)
    with pytest.raises(ValueError, match=re.escape(message)):
        function(broken, *arguments)


# The cost of copies of tiles

COPY = """
#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = {page_size}, layout = {layout}>
!tile = !kvcache.tile<64x128xbf16, swizzle_128b>
gpu.module @kernels {{
  gpu.func @copy(%k: !cache, %b: index, %h: index, %i: index, %ids: memref<64xi32>, %out: memref<?xbf16>) kernel {{
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %t = arith.muli %i, %c64 : index
    %tile = kvcache.alloc_tile : !tile
    %copied = {copy} to %tile : {types}
    kvcache.wait %copied
    %v = kvcache.tile_load %tile[%i, %c0] : !tile -> vector<8xbf16>
    vector.store %v, %out[%c0] : memref<?xbf16>, vector<8xbf16>
    gpu.return
  }}
}}
"""
LOAD = "kvcache.async_load_tile %k[%b, %h, %t, %c0]", "!cache, !tile"
GATHER = "kvcache.async_gather_tile %k[%h, %c0] rows %ids", "!cache, memref<64xi32>, !tile"


def count(layout, chip, page_size, copy):
    """Counts instructions, tensor copies and descriptors of a kernel that copies a tile of a head."""
    source = COPY.format(layout=layout, page_size=page_size, copy=copy[0], types=copy[1])
    kernel = kvcache.compile(source, target=chip).kernel("copy")
    instructions = re.findall(r"^\s+(?:@%\w+\s+)?([a-z]\S*)\s.*;$", kernel.ptx, re.MULTILINE)
    tensor_copies = [name for name in instructions if name.startswith("cp.async.bulk.tensor")]
    return len(instructions), len(tensor_copies), len(kernel.descriptors)


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("page_size", [16, 64])
@pytest.mark.parametrize("copy", [LOAD, GATHER], ids=["load", "gather"])
def test_a_tile_of_a_head_costs_no_more_with_hnd(copy, page_size, chip):
    instructions, copies, descriptors = count("nhd", chip, page_size, copy)
    other = count("hnd", chip, page_size, copy)
    assert instructions > 20
    assert other[0] <= instructions
    assert other[1:] == (copies, descriptors)
    assert (copies > 0) == (chip != "sm_80" and (copy == LOAD or chip == "sm_100a")) == (descriptors > 0)
