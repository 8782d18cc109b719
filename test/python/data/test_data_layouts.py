"""Accesses and queries of pages of any layout against NumPy views of the same bytes."""

import functools
import itertools
import re
from dataclasses import dataclass

import kvcache
import numpy as np
import pytest
from bodies import give, lanes, take
from devices import TARGETS, jit
from model import FORMATS
from programs import DTYPES, place

HEADS, HEAD_SIZE, LAYERS, BATCH, COLUMNS = 3, 16, 2, 2, 3
WIDTHS = (0, 4, 8, 16)


@dataclass(frozen=True)
class Strides:
    """The dimensions of blocks from the slowest to the fastest, and what types say.

    ``said`` is the layout in the text of a type, from the strides of tokens and heads.
    ``padding`` elements follow each head.
    """

    name: str
    order: str
    said: str
    padding: int = 0

    def __str__(self):
        return self.name

    def distances(self, sizes, unit):
        """Strides in elements of the dimensions ``prlthe``."""
        strides, distance = {"e": 1}, sizes["e"] + self.padding * unit
        for dimension in reversed(self.order):
            strides[dimension] = distance
            distance *= sizes[dimension]
        return [strides[dimension] for dimension in "prlthe"], distance


LAYOUTS = [
    Strides("nhd", "prlth", "nhd"),
    Strides("nhd-padded", "prlth", "[token = {t}, head = {h}]", padding=1),
    Strides("hnd", "prlht", "hnd"),
    Strides("hnd-strides", "rlpht", "[token = {t}, head = {h}]", padding=2),
    Strides("LBHNC", "lphtr", "[token = {t}, head = {h}]"),
    Strides("LBNHC", "lpthr", "[token = {t}, head = {h}]"),
    Strides("LHBNC", "lhptr", "[token = {t}, head = ?]"),
    Strides("BLHNC", "plhtr", "[token = {t}, head = {h}]"),
    Strides("BHLNC", "phltr", "[token = {t}, head = ?]"),
    Strides("HBLNC", "hpltr", "[token = {t}, head = ?]", padding=1),
]
each_layout = pytest.mark.parametrize("strides", LAYOUTS, ids=str)


@dataclass(frozen=True)
class Case:
    """A cache of one layout: its types, its memory, and a view of the memory."""

    strides: Strides
    dtype: str = "bf16"
    page_size: int = 3
    is_open: bool = False
    is_view: bool = False
    table_kind: str = "dense"

    def __str__(self):
        size = f"{self.page_size}{'-open' if self.is_open else ''}"
        form = "-view" if self.is_view else ""
        return f"{self.strides}-{self.dtype}-p{size}{form}-{self.table_kind}"

    @property
    def sizes(self):
        pages = BATCH * COLUMNS + 1
        return {
            "p": pages,
            "r": 2,
            "l": LAYERS,
            "t": self.page_size,
            "h": HEADS,
            "e": HEAD_SIZE,
        }

    @property
    def unit(self):
        """Elements in 16 bytes."""
        return 16 // DTYPES[self.dtype].itemsize

    @property
    def distances(self):
        return self.strides.distances(self.sizes, self.unit)

    @property
    def token(self):
        """The stride of tokens in the type: the heads of one token are packed."""
        is_packed = self.strides.said == "nhd" or (
            self.strides.said == "hnd" and self.page_size == 1 and not self.is_open
        )
        return HEADS * HEAD_SIZE if is_packed else self.distances[0][3]

    @property
    def aliases(self):
        strides, _ = self.distances
        token, head = strides[3:5]
        said = self.strides.said.format(t=token, h=head)
        size = "?" if self.is_open else self.page_size
        if said == "hnd" and self.is_open or "?" in said:
            head = "?"
        kv = f"#kvcache.params<num_heads = {HEADS}, head_size = {HEAD_SIZE}>"
        types = f"<{self.dtype}, {kv}, page_size = {size}, layout = {said}, table = {self.table_kind}>"
        outer, open_strides = ("?", "?") if self.is_view else ("?x2x?", "?, ?, ?")
        blocks = f"{outer}x{size}x{HEADS}x{HEAD_SIZE}x{self.dtype}"
        table = "memref<?xi32>" if self.table_kind == "csr" else "memref<?x?xi32, strided<[?, 1]>>"
        return f"""!collection = !kvcache.paged_collection{types}
!cache = !kvcache.paged{types}
!blocks = memref<{blocks}, strided<[{open_strides}, {self.token}, {head}, 1], offset: ?>>
!table = {table}
"""

    @functools.cached_property
    def memory(self):
        rng = np.random.default_rng(7)
        uint = FORMATS[self.dtype].uint
        _, span = self.distances
        return place(rng.integers(0, np.iinfo(uint).max, span, uint))

    def blocks(self, memory):
        """The blocks ``[page, role, layer, token, head, element]`` of the memory."""
        strides, _ = self.distances
        sizes = [self.sizes[dimension] for dimension in "prlthe"]
        return np.lib.stride_tricks.as_strided(
            memory, sizes, [s * memory.itemsize for s in strides]
        )

    @functools.cached_property
    def table(self):
        rng = np.random.default_rng(8)
        return rng.permutation(BATCH * COLUMNS).astype(np.uint32).reshape(BATCH, COLUMNS)

    def indexed_table(self):
        """The lookup table as the type wants it, and its index, if there is one."""
        junk = 0x7FFFFFFF
        if self.table_kind == "dense":
            return (self.table,)
        if self.table_kind == "csr":
            starts = np.arange(BATCH + 1, dtype=np.uint32) * COLUMNS + 5
            return np.r_[[np.uint32(junk)] * 5, self.table.ravel()], starts
        rows = np.full((BATCH + 2, -(-COLUMNS // 8) * 8), junk, np.uint32)
        index = np.arange(BATCH, dtype=np.uint32)[::-1] + np.uint32(1)
        rows[index, :COLUMNS] = self.table
        return rows[:, :COLUMNS], index

    def arguments(self, memory, role=0, layer=0):
        """What functions take first."""
        lengths = np.zeros(BATCH, np.uint32)
        blocks = self.blocks(memory).view(DTYPES[self.dtype])
        if self.is_view:
            blocks = blocks[:, role, layer]
        return blocks, lengths, *self.indexed_table(), layer


HEADER = """func.func @{name}(%blocks: !blocks, %lengths: memref<?xi32>, %table: !table,
    {index}%layer: index{parameters}) -> ({results}) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
{view}
{body}
}}
"""
COLLECTION = """  %c = kvcache.paged_collection %blocks, %lengths, %table{index}, %zero, %zero
      : !blocks, memref<?xi32>, !table{index_type} -> !collection
  %k = kvcache.paged_view {role} %c[%layer] : !collection"""
VIEW = """  %k = kvcache.paged_cache %blocks, %lengths, %table{index}, %zero, %zero
      : !blocks, memref<?xi32>, !table{index_type} -> !cache"""
INDICES = "".join(f", %{index}: index" for index in "bhtd")
AT = "%k[%b, %h, %t, %d]"


def function(case, name, role, parameters, body, results=""):
    has_index = case.table_kind != "dense"
    view = (VIEW if case.is_view else COLLECTION).format(
        role=role,
        index=" index %index" if has_index else "",
        index_type=" index memref<?xi32>" if has_index else "",
    )
    return HEADER.format(
        name=name,
        index="%index: memref<?xi32>, " if has_index else "",
        parameters=parameters,
        view=view,
        body=body,
        results=results,
    )


def accesses(case):
    """Loads, stores and tiles of keys and values."""
    dtype, text = case.dtype, case.aliases
    memref = f"memref<?x{dtype}>"
    for role in ("key", "value"):
        for width in WIDTHS:
            type = lanes(width, dtype)
            text += function(
                case,
                f"load_{role}_{width}",
                role,
                f"{INDICES}, %out: {memref}",
                f"  %v = kvcache.load {AT} : !cache -> {type}\n"
                f"{give('%v', ('%out', memref), type)}  return",
            )
            text += function(
                case,
                f"store_{role}_{width}",
                role,
                f"{INDICES}, %in: {memref}",
                f"{take('%v', ('%in', memref), type)}"
                f"  kvcache.store %v, {AT} : {type}, !cache\n  return",
            )
        tile = f"memref<{case.page_size}x8x{dtype}, strided<[{case.token}, 1], offset: ?>>"
        text += function(
            case,
            f"tile_{role}",
            role,
            f"{INDICES}, %i: index, %out: {memref}",
            f"  %m = kvcache.block_tile {AT} : !cache -> {tile}\n"
            f"{take('%v', ('%m', tile), dtype, '%i, %c0')}"
            f"{give('%v', ('%out', memref), dtype)}  return",
        )
    return text


QUERIES = {
    "col_index": ("%h: index", "kvcache.col_index %k[%h] : !cache"),
    "row_index": ("%b: index, %t: index", "kvcache.row_index %k[%b, %t] : !cache"),
    "tma_row": ("%e: index", "kvcache.tma_row %k[%e] : !cache"),
    "num_kv_rows": ("", "kvcache.num_kv_rows %k : !cache"),
}


def queries(case):
    text = case.aliases
    for name, (parameters, op) in QUERIES.items():
        text += function(
            case,
            name,
            "value",
            f", {parameters}" if parameters else "",
            f"  %r = {op}\n  return %r : index",
            "index",
        )
    return text


@functools.cache
def compiled(make, case, target):
    return jit(make(case), target)


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
# Every layout with every type and page size, with the form of the cache in turn.
FORMS = [(False, "dense"), (True, "csr"), (True, "rows"), (True, "dense"), (False, "csr")]
PAGES = [(1, False), (3, False), (16, False), (64, False), (3, True)]
ALL = [
    Case(strides, dtype, *pages, *form)
    for (strides, pages, dtype), form in zip(
        itertools.product(LAYOUTS, PAGES, ("bf16", "f8E4M3FN", "f32")),
        itertools.cycle([*FORMS, *FORMS[:2]]),
    )
]


def check_accesses(case, target, places):
    program = compiled(accesses, case, target)
    memory = case.memory.copy()
    memory = place(memory)
    blocks = case.blocks(memory)
    numpy, uint = DTYPES[case.dtype], FORMATS[case.dtype].uint
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
    check_accesses(case, "cpu", some_places(case, 12))


@pytest.mark.parametrize("case", CASES[::3], ids=str)
def test_accesses_in_kernels(case):
    check_accesses(case, TARGETS[CASES.index(case) % len(TARGETS)], some_places(case, 2))


@pytest.mark.slow
@pytest.mark.parametrize("case", ALL, ids=str)
def test_all_accesses(case):
    check_accesses(case, "cpu", some_places(case, 40))


@pytest.mark.slow
@pytest.mark.parametrize(("case", "target"), zip(ALL, itertools.cycle([*TARGETS, TARGETS[0]])), ids=str)
def test_all_accesses_in_kernels(case, target):
    check_accesses(case, target, some_places(case, 4))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_queries(case):
    """Rows are as far apart as tokens, in all pages."""
    strides, _ = case.distances
    if strides[0] % case.token:
        pytest.skip("pages are not a whole number of rows apart")
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


# Strides that break the contract


BROKEN = [
    ("page", 0, 2, "expects strides that are multiples of 16 bytes"),
    ("head", 4, 2, "expects strides that are multiples of 16 bytes"),
    ("back", 4, -(10**4), "expects strides that are not negative"),
    ("layer", 2, -(10**6), "expects strides that are not negative"),
    ("token", 3, 16, "expects a stride of 32 elements in dimension 3"),
    ("element", 5, 2, "expects a stride of 1 elements in dimension 5"),
]


@pytest.mark.parametrize("name, dimension, more, message", BROKEN, ids=lambda value: str(value))
def test_strides_that_calls_refuse(name, dimension, more, message):
    case = Case(next(strides for strides in LAYOUTS if strides.name == "BHLNC"))
    program = compiled(queries, case, "cpu")
    blocks, *arguments = case.arguments(case.memory)
    strides = list(blocks.strides)
    strides[dimension] += more
    # Only the strides count: nothing is read.
    broken = np.lib.stride_tricks.as_strided(blocks[:1], blocks.shape, strides)
    with pytest.raises(ValueError, match=re.escape(message)):
        program.call("num_kv_rows", broken, *arguments)


def test_checks_of_open_strides():
    """The bounds checks find heads that overlap, and pages that are too near."""
    case = Case(next(strides for strides in LAYOUTS if strides.name == "BHLNC"))
    program = jit(queries(case), "cpu", bounds_checks=True)
    blocks, *arguments = case.arguments(case.memory)
    program.call("col_index", blocks, *arguments, 1)
    strides = list(blocks.strides)
    strides[4] = 2 * strides[3]
    overlapping = np.lib.stride_tricks.as_strided(blocks, blocks.shape, strides)
    with pytest.raises(kvcache.CheckError, match="elements overlap"):
        program.call("col_index", overlapping, *arguments, 1)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("csr", lambda table, index: (table, index[:-1]), "with a start and an end in 'table_index'"),
        ("rows", lambda table, index: (table, index[:-1]), "with a row in 'table_index'"),
        ("rows", lambda table, index: (table.copy(), index), "row stride of 'lookup_table' modulo 8"),
    ],
)
def test_checks_of_tables(kind, change, message):
    """The bounds checks find tables without what they must have for all sequences."""
    case = Case(LAYOUTS[2], table_kind=kind)
    program = jit(queries(case), "cpu", bounds_checks=True)
    blocks, lengths, table, index, layer = case.arguments(case.memory)
    program.call("row_index", blocks, lengths, table, index, layer, 0, 0)
    with pytest.raises(kvcache.CheckError, match=message):
        program.call("row_index", blocks, lengths, *change(table, index), layer, 0, 0)


@pytest.mark.parametrize("name, dimension, more, message", BROKEN, ids=lambda value: str(value))
def test_strides_that_functions_of_tvm_ffi_refuse(name, dimension, more, message):
    """What calls refuse, whoever calls: the check is in the compiled function."""
    case = Case(next(strides for strides in LAYOUTS if strides.name == "BHLNC"), "f32")
    program = compiled(queries, case, "cpu")
    blocks, *arguments = case.arguments(case.memory)
    function = program.function("num_kv_rows")
    function(blocks, *arguments)
    strides = list(blocks.strides)
    strides[dimension] += 2 * more
    broken = np.lib.stride_tricks.as_strided(blocks[:1], blocks.shape, strides)
    with pytest.raises(ValueError, match=re.escape(message)):
        function(broken, *arguments)
