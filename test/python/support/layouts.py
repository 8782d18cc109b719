"""Caches of any layout in memory of any order, and functions over them."""

import functools
from dataclasses import dataclass

import numpy as np
from bodies import give, lanes, take
from devices import jit
from programs import DTYPES, place

HEADS, HEAD_SIZE, LAYERS, BATCH, COLUMNS = 3, 16, 2, 2, 3
WIDTHS = (0, 4, 8, 16)


@dataclass(frozen=True)
class Strides:
    """The dimensions of blocks from the slowest to the fastest, and the layout of types.

    ``said`` is the layout in the text of a type, from the strides of tokens and heads. ``padding``
    elements follow each head.
    """

    name: str
    order: str
    said: str
    padding: int = 0

    def __str__(self):
        return self.name

    def distances(self, sizes, unit):
        """The strides in elements of the dimensions ``prlthe``."""
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


@dataclass(frozen=True)
class Case:
    """A cache of one layout: its types, its memory, and a view of the memory."""

    strides: Strides
    dtype: str = "bf16"
    page_size: int = 3
    is_open: bool = False
    is_view: bool = False
    table_kind: str = "dense"
    head_size: int = HEAD_SIZE
    columns: int = COLUMNS

    def __str__(self):
        size = f"{self.page_size}{'-open' if self.is_open else ''}"
        form = "-view" if self.is_view else ""
        return f"{self.strides}-{self.dtype}-p{size}{form}-{self.table_kind}"

    @property
    def sizes(self):
        pages = BATCH * self.columns + 1
        return {
            "p": pages,
            "r": 2,
            "l": LAYERS,
            "t": self.page_size,
            "h": HEADS,
            "e": self.head_size,
        }

    @property
    def unit(self):
        """The number of elements in 16 bytes."""
        return 16 // DTYPES[self.dtype].itemsize

    @property
    def distances(self):
        return self.strides.distances(self.sizes, self.unit)

    @property
    def token(self):
        """The stride of tokens in the type, whose heads are packed."""
        is_packed = self.strides.said == "nhd" or (
            self.strides.said == "hnd" and self.page_size == 1 and not self.is_open
        )
        return HEADS * self.head_size if is_packed else self.distances[0][3]

    @property
    def aliases(self):
        strides, _ = self.distances
        token, head = strides[3:5]
        said = self.strides.said.format(t=token, h=head)
        size = "?" if self.is_open else self.page_size
        if said == "hnd" and self.is_open or "?" in said:
            head = "?"
        kv = f"#kvcache.params<num_heads = {HEADS}, head_size = {self.head_size}>"
        types = f"<{self.dtype}, {kv}, page_size = {size}, layout = {said}, table = {self.table_kind}>"
        outer, open_strides = ("?", "?") if self.is_view else ("?x2x?", "?, ?, ?")
        blocks = f"{outer}x{size}x{HEADS}x{self.head_size}x{self.dtype}"
        table = (
            "memref<?xi32>"
            if self.table_kind == "csr"
            else "memref<?x?xi32, strided<[?, 1]>>"
        )
        return f"""!collection = !kvcache.paged_collection{types}
!cache = !kvcache.paged{types}
!blocks = memref<{blocks}, strided<[{open_strides}, {self.token}, {head}, 1], offset: ?>>
!table = {table}
"""

    @functools.cached_property
    def memory(self):
        rng = np.random.default_rng(7)
        uint = np.dtype(f"u{DTYPES[self.dtype].itemsize}")
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
        return rng.permutation(BATCH * self.columns).astype(np.uint32).reshape(BATCH, -1)

    def indexed_table(self):
        """The lookup table in the form of the type, and its index, if there is one."""
        junk = 0x7FFFFFFF
        if self.table_kind == "dense":
            return (self.table,)
        if self.table_kind == "csr":
            starts = np.arange(BATCH + 1, dtype=np.uint32) * self.columns + 5
            return np.r_[[np.uint32(junk)] * 5, self.table.ravel()], starts
        rows = np.full((BATCH + 2, -(-self.columns // 8) * 8), junk, np.uint32)
        index = np.arange(BATCH, dtype=np.uint32)[::-1] + np.uint32(1)
        rows[index, : self.columns] = self.table
        return rows[:, : self.columns], index

    def arguments(self, memory, role=0, layer=0):
        """The first arguments of functions."""
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
    """The functions of loads, stores and tiles of keys and values."""
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
