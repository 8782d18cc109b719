"""Accesses and queries of pages of any layout against NumPy views of the same bytes."""

import functools
from dataclasses import dataclass

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
    def aliases(self):
        strides, _ = self.distances
        token, head = strides[3:5]
        said = self.strides.said.format(t=token, h=head)
        size = "?" if self.is_open else self.page_size
        token_text = HEADS * HEAD_SIZE if said == "nhd" else token
        if said == "hnd" and self.is_open or "?" in said:
            head = "?"
        kv = f"#kvcache.params<num_heads = {HEADS}, head_size = {HEAD_SIZE}>"
        types = f"<{self.dtype}, {kv}, page_size = {size}, layout = {said}>"
        blocks = f"?x2x?x{size}x{HEADS}x{HEAD_SIZE}x{self.dtype}"
        return f"""!collection = !kvcache.paged_collection{types}
!cache = !kvcache.paged{types}
!blocks = memref<{blocks}, strided<[?, ?, ?, {token_text}, {head}, 1], offset: ?>>
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

    def arguments(self, memory):
        lengths = np.zeros(BATCH, np.uint32)
        return self.blocks(memory).view(DTYPES[self.dtype]), lengths, self.table


HEADER = """func.func @{name}(%blocks: !blocks, %lengths: memref<?xi32>, %table: memref<?x?xi32>,
    %layer: index{parameters}) -> ({results}) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %c = kvcache.paged_collection %blocks, %lengths, %table, %zero, %zero
      : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
  %k = kvcache.paged_view {role} %c[%layer] : !collection
{body}
}}
"""
INDICES = "".join(f", %{index}: index" for index in "bhtd")
AT = "%k[%b, %h, %t, %d]"


def function(name, role, parameters, body, results=""):
    return HEADER.format(
        name=name, role=role, parameters=parameters, body=body, results=results
    )


def accesses(case):
    """Loads, stores and tiles of keys and values."""
    dtype, text = case.dtype, case.aliases
    token = case.distances[0][3] if case.strides.said != "nhd" else HEADS * HEAD_SIZE
    memref = f"memref<?x{dtype}>"
    for role in ("key", "value"):
        for width in WIDTHS:
            type = lanes(width, dtype)
            text += function(
                f"load_{role}_{width}",
                role,
                f"{INDICES}, %out: {memref}",
                f"  %v = kvcache.load {AT} : !cache -> {type}\n"
                f"{give('%v', ('%out', memref), type)}  return",
            )
            text += function(
                f"store_{role}_{width}",
                role,
                f"{INDICES}, %in: {memref}",
                f"{take('%v', ('%in', memref), type)}"
                f"  kvcache.store %v, {AT} : {type}, !cache\n  return",
            )
        tile = f"memref<{case.page_size}x8x{dtype}, strided<[{token}, 1], offset: ?>>"
        text += function(
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


CASES = [
    Case(strides, dtype, page_size, is_open)
    for index, strides in enumerate(LAYOUTS)
    for dtype, page_size, is_open in (
        ("bf16", 3, False),
        (("f8E4M3FN", "f32", "f16", "f8E5M2")[index % 4], (1, 16, 64)[index % 3], False),
        (("f32", "f8E4M3FN")[index % 2], 4, True),
    )
]
SLOW = [
    Case(strides, dtype, page_size, is_open)
    for strides in LAYOUTS
    for dtype in ("bf16", "f8E4M3FN", "f32")
    for page_size, is_open in ((1, False), (3, False), (16, False), (64, False), (3, True))
]


def check_accesses(case, target, places):
    program = compiled(accesses, case, target)
    memory = case.memory.copy()
    memory = place(memory)
    blocks = case.blocks(memory)
    numpy, uint = DTYPES[case.dtype], FORMATS[case.dtype].uint
    arguments = case.arguments(memory)
    for role, layer, b, h, t, group in places:
        page, row = case.table[b, t // case.page_size], t % case.page_size
        name = ("key", "value")[role]
        head = blocks[page, role, layer, row, h]
        for width in WIDTHS:
            count = max(width, 1)
            d = group * count % HEAD_SIZE
            out = np.zeros(count, uint)
            program.call(f"load_{name}_{width}", *arguments, layer, b, h, t, d, out.view(numpy))
            np.testing.assert_array_equal(out, head[d : d + count])
            before = memory.copy()
            case.blocks(before)[page, role, layer, row, h, d : d + count] = ~out
            program.call(
                f"store_{name}_{width}", *arguments, layer, b, h, t, d, (~out).view(numpy)
            )
            np.testing.assert_array_equal(memory, before)
        first, d = t - row, group % 2 * 8
        out = np.zeros(1, uint)
        program.call(f"tile_{name}", *arguments, layer, b, h, first, d, row, out.view(numpy))
        assert out[0] == head[d]


def some_places(case, count, seed=0):
    rng = np.random.default_rng(seed)
    limits = (2, LAYERS, BATCH, HEADS, COLUMNS * case.page_size, HEAD_SIZE)
    return [tuple(int(rng.integers(limit)) for limit in limits) for _ in range(count)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_accesses(case):
    check_accesses(case, "cpu", some_places(case, 12))


@pytest.mark.parametrize("case", CASES[::4], ids=str)
def test_accesses_in_kernels(case):
    check_accesses(case, TARGETS[CASES.index(case) % len(TARGETS)], some_places(case, 2))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", *TARGETS])
@pytest.mark.parametrize("case", SLOW, ids=str)
def test_all_accesses(case, target):
    check_accesses(case, target, some_places(case, 40 if target == "cpu" else 4))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_queries(case):
    """Rows are as far apart as tokens, in all pages."""
    strides, _ = case.distances
    token = HEADS * HEAD_SIZE if case.strides.said == "nhd" else strides[3]
    if strides[0] % token:
        pytest.skip("pages are not a whole number of rows apart")
    program = compiled(queries, case, "cpu")
    arguments = (*case.arguments(case.memory), 1)
    rows = strides[0] // token
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
