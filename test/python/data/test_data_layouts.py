"""Tests of accesses and queries of pages of any layout against NumPy views of the same bytes."""

import itertools
import re

import numpy as np
import pytest
from devices import TARGETS, jit
from layouts import (
    BATCH,
    COLUMNS,
    HEAD_SIZE,
    HEADS,
    INDICES,
    LAYERS,
    LAYOUTS,
    WIDTHS,
    Case,
    accesses,
    compiled,
    function,
    queries,
)
from model import FORMATS
from pairs import pairwise
from programs import DTYPES, place

# Every layout once, with the other properties in turn.
CASES = [
    Case(strides, dtype, page_size, is_open, is_view, table_kind)
    for strides, (dtype, page_size, is_open, is_view, table_kind) in zip(
        LAYOUTS + LAYOUTS[::-1],
        itertools.cycle(
            [
                ("bf16", 3, False, False, "dense"),
                ("f8E4M3FN", 16, False, True, "csr"),
                ("f32", 1, False, False, "rows"),
                ("f16", 64, False, True, "dense"),
                ("bf16", 4, True, False, "csr"),
                ("f8E5M2", 3, True, True, "rows"),
                ("f32", 3, False, True, "csr"),
            ]
        ),
    )
]
# Elements loaded and stored without conversion.
CASES += [
    Case(strides, dtype, page_size, is_open, is_view, table_kind)
    for strides, (dtype, page_size, is_open, is_view, table_kind) in zip(
        (LAYOUTS[0], LAYOUTS[2], LAYOUTS[4], LAYOUTS[6]),
        [
            ("i8", 16, False, True, "dense"),
            ("i16", 3, False, False, "csr"),
            ("i32", 4, True, True, "rows"),
            ("f64", 1, False, False, "dense"),
        ],
    )
]
# Any two properties, such as every layout with every page size, and any three of page
# size, type and table.
ALL = [
    (Case(strides, dtype, *pages, is_view, table_kind), target)
    for strides, pages, dtype, is_view, table_kind, target in pairwise(
        LAYOUTS,
        [(1, False), (3, False), (16, False), (64, False), (3, True)],
        ("bf16", "f8E4M3FN", "f32", "i16"),
        (False, True),
        ("dense", "csr", "rows"),
        TARGETS,
        together=(1, 2, 4),
    )
]


def check_accesses(case, target, places):
    program = compiled(accesses, case, target)
    memory = case.memory.copy()
    memory = place(memory)
    blocks = case.blocks(memory)
    numpy = DTYPES[case.dtype]
    uint = np.dtype(f"u{numpy.itemsize}")
    for role, layer, b, h, t, group in places:
        arguments = case.arguments(memory, role, layer)
        page, row = case.table[b, t // case.page_size], t % case.page_size
        name = ("key", "value")[role]
        head = blocks[page, role, layer, row, h]
        for width in WIDTHS:
            count = max(width, 1)
            d = group * count % HEAD_SIZE
            out = np.zeros(count, uint)
            program.call(f"load_{name}_{width}", *arguments, b, h, t, d, out.view(numpy))
            np.testing.assert_array_equal(out, head[d : d + count])
            before = memory.copy()
            case.blocks(before)[page, role, layer, row, h, d : d + count] = ~out
            program.call(f"store_{name}_{width}", *arguments, b, h, t, d, (~out).view(numpy))
            np.testing.assert_array_equal(memory, before)
        first, d = t - row, group % 2 * 8
        out = np.zeros(1, uint)
        program.call(f"tile_{name}", *arguments, b, h, first, d, row, out.view(numpy))
        assert out[0] == head[d]


def some_places(case, count, seed=0):
    rng = np.random.default_rng(seed)
    limits = (2, LAYERS, BATCH, HEADS, COLUMNS * case.page_size, HEAD_SIZE)
    return [tuple(int(rng.integers(limit)) for limit in limits) for _ in range(count)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_accesses(case):
    check_accesses(case, "cpu", some_places(case, 40))


@pytest.mark.parametrize("case", CASES[::3], ids=str)
def test_accesses_in_kernels(case):
    check_accesses(case, TARGETS[CASES.index(case) % len(TARGETS)], some_places(case, 2))


# A third in kernels: the others kill no mutant of the lowering that the CPU does not.
@pytest.mark.parametrize(
    ("case", "target"),
    [(case, "cpu" if i % 3 else target) for i, (case, target) in enumerate(ALL)],
    ids=str,
)
def test_all_accesses(case, target):
    check_accesses(case, target, some_places(case, 4))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_queries(case):
    """The distance of rows equals that of tokens, in all pages."""
    strides, _ = case.distances
    assert strides[0] % case.token == 0
    program = compiled(queries, case, "cpu")
    arguments = case.arguments(case.memory, 1, 1)
    rows = strides[0] // case.token
    for h in range(HEADS):
        assert program.call("col_index", *arguments, h) == h * strides[4]
    for b in range(BATCH):
        for t in range(COLUMNS * case.page_size):
            page, row = int(case.table[b, t // case.page_size]), t % case.page_size
            assert program.call("row_index", *arguments, b, t) == page * rows + row
            encoded = page * case.page_size + row
            assert program.call("tma_row", *arguments, encoded) == page * rows + row
    assert program.call("tma_row", *arguments, -1) == -1
    expected = (case.sizes["p"] - 1) * rows + case.page_size
    assert program.call("num_kv_rows", *arguments) == expected


def parts(case):
    """An element, an entry of the table and a length, through the tensors of a view."""
    token, head = re.search(r"!blocks = .*, (\S+), (\S+), 1\], offset", case.aliases).groups()
    sizes = f"?x{'?' if case.is_open else case.page_size}x{HEADS}x{HEAD_SIZE}x{case.dtype}"
    window = f"memref<{sizes}, strided<[?, {token}, {head}, 1], offset: ?>>"
    is_flat = case.table_kind == "csr"
    table = "memref<?xi32, strided<[1], offset: ?>>" if is_flat else "memref<?x?xi32, strided<[?, 1], offset: ?>>"
    return case.aliases + function(
        case,
        "read",
        "value",
        f"{INDICES}, %row: index, %out: memref<?x{case.dtype}>",
        f"""  %blocks_of = kvcache.blocks %k : !cache
  %v = memref.load %blocks_of[%b, %t, %h, %d] : {window}
  memref.store %v, %out[%c0] : memref<?x{case.dtype}>
  %pages = memref.dim %blocks_of, %c0 : {window}
  %table_of = kvcache.lookup_table %k : !cache
  %entry = memref.load %table_of[{"" if is_flat else "%c0, "}%row] : {table}
  %lengths_of = kvcache.cache_lengths %k : !cache
  %batch = memref.dim %lengths_of, %c0 : memref<?xi32, strided<[1], offset: ?>>
  %length = memref.load %lengths_of[%c0] : memref<?xi32, strided<[1], offset: ?>>
  return %pages, %entry, %batch, %length : index, i32, index, i32""",
        "index, i32, index, i32",
    )


@pytest.mark.parametrize("case", CASES[::2], ids=str)
def test_tensors_of_views(case):
    program = compiled(parts, case, ("cpu", *TARGETS)[CASES.index(case) // 2 % (1 + len(TARGETS))])
    arguments = case.arguments(case.memory, role=1, layer=1)
    lengths, table = arguments[1], arguments[2]
    lengths[0] = 7
    out = np.zeros(1, DTYPES[case.dtype])
    pages, page, t, h, d = case.sizes["p"], 4, case.page_size - 1, 2, 9
    found = program.call("read", *arguments, page, h, t, d, 1, out)
    entry = table[1] if case.table_kind == "csr" else table[0, 1]
    assert tuple(int(number) for number in found) == (pages, int(entry), BATCH, 7)
    uint = np.dtype(f"u{out.itemsize}")
    assert out.view(uint)[0] == case.blocks(case.memory)[page, 1, 1, t, h, d]


def test_speculated_lookups():
    """Lookups out of loops read the tables of sequences that exist."""
    case = Case(LAYOUTS[2], table_kind="csr", is_view=True)
    text = case.aliases + function(
        case,
        "sum",
        "key",
        ", %n: index, %out: memref<?xf32>",
        """  %c1 = arith.constant 1 : index
  scf.for %b = %c0 to %n step %c1 {
    %p = kvcache.page_id %k[%b, %c1] : !cache
    %x = kvcache.load %k[%b, %c1, %c0, %c0] : !cache -> f32
    memref.store %x, %out[%b] : memref<?xf32>
  }
  return""",
    )
    program = jit(text, "cpu")
    out = np.zeros(BATCH, np.float32)
    program.call("sum", *case.arguments(case.memory), 0, out)
    assert not out.any()
    program.call("sum", *case.arguments(case.memory), BATCH, out)
    blocks = case.blocks(case.memory)[:, 0, 0, 0, 1, 0]
    values = FORMATS["bf16"].decode(blocks[case.table[:, 0]])
    np.testing.assert_array_equal(out, values.astype(np.float32))
