"""Sources over a quantized cache, and their memory.

The stored elements and the scales are two unquantized caches, of a format with elements of equal
size.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
from bodies import give, lanes, take
from edits import edit
from hypothesis import strategies as st
from model import Cache, PagedView
from programs import DTYPES, Shape, caches, place, placements, small_cache
from quantization import ELEMENTS, SCALES, QuantizedCache

QUANTIZED_DTYPES = {
    "f8E4M3FN": DTYPES["f8E4M3FN"],
    "f8E5M2": DTYPES["f8E5M2"],
    "i8": np.dtype(np.int8),
    "f4E2M1FN": np.dtype(np.int8),
    "i4": np.dtype(np.int8),
}
PACKED = ("f4E2M1FN", "i4")  # Two elements share a byte.
SCALE_DTYPES = {
    "f32": DTYPES["f32"],
    "f16": DTYPES["f16"],
    "bf16": DTYPES["bf16"],
    "f8E4M3FN": DTYPES["f8E4M3FN"],
    "f8E8M0FNU": np.dtype(ml_dtypes.float8_e8m0fnu),
}
# A format of a cache with elements of equal size.
OF_SIZE = {1: "f8E4M3FN", 2: "f16", 4: "f32"}

FORMATS_OF_CACHES = [
    *(("f8E4M3FN", scale) for scale in SCALES),
    *(("f8E5M2", scale) for scale in SCALES),
    *(("i8", scale) for scale in SCALES),
    ("f4E2M1FN", "f8E4M3FN"),
    ("f4E2M1FN", "f8E8M0FNU"),
]
each_format = pytest.mark.parametrize("element, scale", FORMATS_OF_CACHES)


@dataclass(frozen=True)
class QuantizedShape(Shape):
    """The parameters of the types of a quantized cache, and whether its scales have a table."""

    dtype: str = "f8E4M3FN"
    scale: str = "f32"
    granularity: int = 8
    own_table: bool = False

    def __str__(self):
        table = "-table" if self.own_table else ""
        return f"{super().__str__()}-{self.scale}g{self.granularity}{table}"

    @property
    def per_byte(self):
        return 2 if self.dtype == "f4E2M1FN" else 1

    @property
    def groups(self):
        """The number of scales of a head."""
        return -(-self.head_size // self.granularity)

    @property
    def elements(self):
        """The shape of the stored elements."""
        size = self.head_size // self.per_byte
        return self._packed("f8E4M3FN", size)

    @property
    def scales(self):
        """The shape of the scales."""
        dtype = OF_SIZE[self.scale_numpy.itemsize]
        return self._packed(dtype, self.groups)

    def _packed(self, dtype, size):
        return Shape(
            dtype, self.heads, size, self.page_size, self.mla, is_open=self.is_open
        )

    @property
    def stored_dtype(self):
        """The element type of the blocks."""
        return "i8" if self.per_byte == 2 else self.dtype

    @property
    def numpy(self):
        return QUANTIZED_DTYPES[self.dtype]

    @property
    def scale_numpy(self):
        return SCALE_DTYPES[self.scale]

    @property
    def uint(self):
        return np.dtype(np.uint8)

    @property
    def row(self):
        """The number of stored elements in a row."""
        return self.heads * self.head_size // self.per_byte

    @property
    def quantization(self):
        return f", scale = {self.scale}, granularity = {self.granularity}"

    @property
    def tensors(self):
        table = {"scales_table": ("lookup", "!table")} if self.own_table else {}
        return {"scales": ("scales", "!scale_blocks"), **table}

    def blocks_type(self, packed=False):
        return _blocks_type(self.elements, self.stored_dtype, packed)

    def aliases(self, packed=False, tables=None):
        return f"""{super().aliases(packed, tables)}
!scale_blocks = {_blocks_type(self.scales, self.scale, packed)}
!scales = !kvcache.scales<!cache>
"""

    def widths(self, candidates=(0, 1, 2, 3, 4, 6, 8, 16, 24, 64)):
        """The numbers of lanes of an access; 0 stands for a scalar."""
        widths = [w for w in candidates if w < self.head_size] + [self.head_size]
        if self.per_byte == 2:
            widths = [w for w in widths if w and w % 2 == 0]
        return widths

    def scale_widths(self):
        return [0, *(w for w in (1, 2, 3, 4, 8, 16) if w < self.groups), self.groups]


def _blocks_type(shape, dtype, packed):
    """The type of blocks of a shape, with another element type."""
    return edit(shape.blocks_type(packed), (f"x{shape.dtype}", f"x{dtype}"))


# Bodies of functions


def take_elements(value, memref, width, dtype, at="%c0"):
    """The text of `take` for quantized elements; 4-bit elements are pairs in bytes."""
    if dtype not in PACKED:
        return take(value, memref, lanes(width, dtype), at)
    bytes = f"vector<{width // 2}xi8>"
    return (
        take(f"{value}_bytes", memref, bytes, at)
        + f"  {value} = vector.bitcast {value}_bytes : {bytes} to {lanes(width, dtype)}\n"
    )


def give_elements(value, memref, width, dtype, at="%c0"):
    if dtype not in PACKED:
        return give(value, memref, lanes(width, dtype), at)
    bytes = f"vector<{width // 2}xi8>"
    return (
        f"  {value}_bytes = vector.bitcast {value} : {lanes(width, dtype)} to {bytes}\n"
        + give(f"{value}_bytes", memref, bytes, at)
    )


INDICES = [f"{index}: index" for index in "bhtd"]
AT = "%k[%b, %h, %t, %d]"


def _add_read(source, name, op, width, element, **options):
    """Adds a function that reads lanes into its last argument."""
    memref, type = f"memref<?x{element}>", lanes(width, element)
    source.add(
        name,
        [*INDICES, f"out: {memref}"],
        f"  %v = kvcache.{op} {AT} : !cache -> {type}\n"
        f"{give('%v', ('%out', memref), type)}  return",
        **options,
    )


def add_load(source, name, width, result, **options):
    """Adds a function that dequantizes elements into its last argument."""
    _add_read(source, name, "load", width, result, **options)


def add_load_quantized(source, name, width, **options):
    shape = source.shape
    memref = f"memref<?x{shape.stored_dtype}>"
    source.add(
        name,
        [*INDICES, f"out: {memref}"],
        f"  %v = kvcache.load_quantized {AT} : !cache -> {lanes(width, shape.dtype)}\n"
        f"{give_elements('%v', ('%out', memref), width, shape.dtype)}  return",
        **options,
    )


def add_store(source, name, width, **options):
    shape = source.shape
    memref = f"memref<?x{shape.stored_dtype}>"
    source.add(
        name,
        [*INDICES, f"in: {memref}"],
        f"{take_elements('%v', ('%in', memref), width, shape.dtype)}"
        f"  kvcache.store %v, {AT} : {lanes(width, shape.dtype)}, !cache\n  return",
        **options,
    )


def add_load_scale(source, name, width, **options):
    _add_read(source, name, "load_scale", width, source.shape.scale, **options)


def add_store_scale(source, name, width, **options):
    scale = source.shape.scale
    memref, type = f"memref<?x{scale}>", lanes(width, scale)
    source.add(
        name,
        [*INDICES, f"in: {memref}"],
        f"{take('%v', ('%in', memref), type)}"
        f"  kvcache.store_scale %v, {AT} : {type}, !cache\n  return",
        **options,
    )


def add_store_quantized(source, name, width, value="f32", tensor_scale=False, **more):
    memref, type = f"memref<?x{value}>", lanes(width, value)
    parameters = [*INDICES, f"in: {memref}"]
    with_scale = ""
    if tensor_scale:
        parameters.append("tensor_scale: f32")
        with_scale = " tensor_scale %tensor_scale"
    source.add(
        name,
        parameters,
        f"{take('%v', ('%in', memref), type)}"
        f"  kvcache.store_quantized %v, {AT}{with_scale} : {type}, !cache\n  return",
        **more,
    )


# Caches


def tame(rng, count, scale):
    """Draws encodings of scales: random bits, and as many ordinary numbers."""
    format = SCALES[scale]
    any_bits = rng.integers(0, 1 << format.bits, count, np.uint64).astype(format.uint)
    ordinary = np.exp2(rng.uniform(-7, 4, count))
    return np.where(rng.random(count) < 0.5, format.encode(ordinary), any_bits)


def quantized_cache(shape, elements, scales):
    return QuantizedCache(
        elements,
        scales,
        ELEMENTS[shape.dtype],
        SCALES[shape.scale],
        shape.head_size,
        shape.granularity,
    )


def small_quantized_cache(shape, seed=7, **options):
    """A packed cache of random bits; ``options`` are those of ``small_cache``."""
    elements = small_cache(shape.elements, seed=seed, **options)
    scales = small_cache(shape.scales, seed=seed + 1, **options)
    if not shape.own_table:
        scales = scales.with_tables(elements.table, elements.lengths)
    rng = np.random.default_rng(seed)
    scales.memory[...] = tame(rng, scales.memory.size, shape.scale)
    return quantized_cache(shape, elements, scales)


@st.composite
def quantized_caches(draw, shape, max_tokens=24, min_tokens=1, **options):
    """Draws small caches of random bits in any layout; the scales have another layout."""
    options = {"row_padding": False, **options}
    elements = draw(caches(shape.elements, max_tokens, min_tokens, **options))
    batch, columns = elements.table.shape
    pages, table = elements.shape[0], elements.table
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if shape.own_table:
        columns += draw(st.integers(0, 2))
        pages = batch * columns + draw(st.integers(0, 2))
        table = rng.permutation(pages)[: batch * columns].astype(np.uint32)
        table = table.reshape(batch, columns)
    layers, tokens = elements.shape[2], shape.page_size
    placed = placements(shape.scales, pages, layers, tokens, options["row_padding"])
    distances, span = draw(placed)
    base = shape.scales.alignment * draw(st.integers(0, 3))
    scales = Cache(
        PagedView,
        place(tame(rng, base + span, shape.scale)),
        base,
        (pages, *elements.shape[1:4], shape.heads, shape.groups),
        distances,
        table,
        elements.lengths,
        elements.max_seq,
        elements.max_cache,
    )
    return quantized_cache(shape, elements, scales)


@st.composite
def places(draw, cache):
    """Draws a role, a layer, and a token and head of a sequence."""
    pages, roles, layers, page_size, heads, _ = cache.elements.shape
    role = draw(st.integers(0, roles - 1))
    layer = draw(st.integers(0, layers - 1))
    b = draw(st.integers(0, len(cache.elements.lengths) - 1))
    t = draw(st.integers(0, cache.view(0, 0).tokens() - 1))
    return role, layer, b, draw(st.integers(0, heads - 1)), t
