"""Tests of loads, stores and tiles of a cache against the NumPy model, bit for bit."""

import functools

import numpy as np
import pytest
from bodies import CONSTANTS, lanes, read_all, write_all
from devices import TARGETS, jit, spread
from hypothesis import given
from hypothesis import strategies as st
from model import F64, FORMATS
from programs import DTYPES, Shape, Source, caches, everything, examples, max_tokens, place, places, small_cache

WIDTHS = (0, 1, 2, 3, 4, 8, 16, 32, 64)
RESULTS = {**FORMATS, "f64": F64}
each_dtype = pytest.mark.parametrize("dtype", FORMATS)


class Converted:
    """The expected loads of ``encodings``: equal bits, or rounded to nearest even."""

    def __init__(self, encodings, source, target):
        self.format = RESULTS[target]
        self.is_move = source == target
        self.encodings = encodings
        if not self.is_move:
            values = FORMATS[source].decode(encodings)
            self.is_nan = np.isnan(values)
            self.encodings = self.format.encode(np.where(self.is_nan, 0, values))

    def check(self, result):
        if self.is_move:
            np.testing.assert_array_equal(result, self.encodings)
            return
        wrong = np.where(self.is_nan, False, result != self.encodings)
        np.testing.assert_array_equal(result[wrong], self.encodings[wrong])
        assert self.format.is_nan(result[self.is_nan]).all()


# Every width, every pair of types, with all encodings that 16 bits have

WIDE = {"head_size": 192, "heads": 2}


@functools.cache
def wide_cache(dtype):
    shape = Shape(dtype, page_size=48, **WIDE)
    cache = small_cache(shape, batch=2, columns=2, layers=2)
    if FORMATS[dtype].bits <= 16:
        # All encodings, in any order, as the values of layer 1.
        _, (b, h, t, d) = everything(cache)
        addresses = cache.view(1, 1).address(b, h, t, d).ravel()
        assert addresses.size >= 1 << 16
        order = np.random.default_rng(5).permutation(addresses.size)
        cache.memory[addresses] = order.astype(cache.memory.dtype)
    else:
        add_ties(cache)
    return shape, cache


def add_ties(cache):
    """Adds midpoints of neighbours of each narrower format, and numbers next to them."""
    rng = np.random.default_rng(6)
    numbers = []
    for format in FORMATS.values():
        if format.bits == 32:
            continue
        codes = np.unique(rng.integers(0, format.sign, 800)).astype(format.uint)
        values = format.decode(codes)
        upper = format.decode(codes + format.uint.type(1))
        middle = ((values + upper) / 2)[np.isfinite(values + upper)].astype(np.float32)
        largest = np.float32(format.largest())
        middle = np.concatenate([middle, [largest, largest * np.float32(1 + 2**-12)]])
        middle = middle.astype(np.float32)
        for number in (
            middle,
            np.nextafter(middle, np.inf),
            np.nextafter(middle, -np.inf),
        ):
            numbers += [number, -number]
    encodings = np.concatenate(numbers).astype(np.float32).view(np.uint32)
    places = rng.permutation(cache.memory.size)[: encodings.size]
    cache.memory[places] = encodings


@each_dtype
@pytest.mark.parametrize("result", RESULTS)
def test_loads(dtype, result):
    """Loads keys of any layer without optimization, values of one layer with it.

    Optimizing takes most of the time: every other width for every other result.
    """
    shape, cache = wide_cache(dtype)
    optimized = WIDTHS[list(RESULTS).index(result) % 2 :: 2]
    keys, values = Source(shape, packed=True), Source(shape, packed=True)
    for width in WIDTHS:
        parameters, body = read_all(width, result)
        body = CONSTANTS + body
        keys.add(f"read_{width}", parameters, body)
        if width in optimized:
            values.add(f"read_{width}", parameters, body, views="%k = value", layer=1)
    before = cache.memory.copy()
    sizes, indices = everything(cache)

    def load(program, width, layer):
        out = np.zeros(sizes, DTYPES[result])
        arguments = (*cache.arguments(shape.numpy), layer, *sizes[:2], out)
        program.call(f"read_{width}", *arguments)
        return out.view(RESULTS[result].uint)

    program = keys.compile(opt_level=0)
    for layer in (0, 1):
        expected = Converted(cache.view(0, layer).read(*indices)[..., 0], dtype, result)
        for width in WIDTHS:
            expected.check(load(program, width, layer))
    program = values.compile()
    expected = Converted(cache.view(1, 1).read(*indices)[..., 0], dtype, result)
    for width in optimized:
        expected.check(load(program, width, 99))
    np.testing.assert_array_equal(cache.memory, before)


@each_dtype
@pytest.mark.parametrize("opt_level", [0, 2])
def test_stores(dtype, opt_level):
    shape, cache = wide_cache(dtype)
    source = Source(shape, packed=True)
    widths = WIDTHS if opt_level == 0 else WIDTHS[::2]
    for width in widths:
        parameters, body = write_all(width, dtype)
        role = shape.roles[width % 2]
        source.add(f"write_{width}", parameters, CONSTANTS + body, views=f"%k = {role}")
    program = source.compile(opt_level=opt_level)
    sizes, indices = everything(cache)
    values = cache.view(1, 1).read(*indices)[..., 0]
    before = cache.memory.copy()
    for width in widths:
        role, layer = width % 2, (width // 2) % 2
        changed = cache.with_memory(place(~cache.memory))
        expected = cache.with_memory(changed.memory.copy())
        expected.view(role, layer).write(*indices, values[..., np.newaxis])
        program.call(
            f"write_{width}",
            *changed.arguments(shape.numpy),
            layer,
            *sizes[:2],
            values.view(shape.numpy),
        )
        np.testing.assert_array_equal(changed.memory, expected.memory)
        np.testing.assert_array_equal(cache.memory, before)


@pytest.mark.parametrize("target", TARGETS)
@each_dtype
def test_loads_and_stores_in_kernels(dtype, target):
    """Converts to each type, one element and eight at a time."""
    shape = Shape(dtype, page_size=3, heads=2, head_size=32)
    cache = small_cache(shape)
    source = Source(shape, packed=True)
    for result in FORMATS:
        for width in (0, 8):
            parameters, body = read_all(width, result)
            source.add(f"read_{result}_{width}", parameters, CONSTANTS + body)
    parameters, body = write_all(8, dtype)
    source.add("write", parameters, CONSTANTS + body, views="%k = value")
    program = source.compile(target=target)
    sizes, indices = everything(cache)
    arguments = (*cache.arguments(shape.numpy), 1, *sizes[:2])
    encodings = cache.view(0, 1).read(*indices)[..., 0]
    for result in FORMATS:
        for width in (0, 8):
            out = np.zeros(sizes, DTYPES[result])
            program.call(f"read_{result}_{width}", *arguments, out)
            Converted(encodings, dtype, result).check(out.view(RESULTS[result].uint))
    expected = cache.with_memory(cache.memory.copy())
    expected.view(1, 1).write(*indices, encodings[..., np.newaxis])
    program.call("write", *arguments, encodings.view(shape.numpy))
    np.testing.assert_array_equal(cache.memory, expected.memory)


# Every layout

SHAPES = [
    Shape("f32", 1, 4, 1),
    Shape("bf16", 2, 24, 3),
    Shape("f8E4M3FN", 3, 48, 48),
    Shape("f16", 4, 64, 64),
    Shape("f8E5M2", 2, 8, 256),
    Shape("bf16", 1, 72, 16, mla=True),
    Shape("bf16", 3, 3, 7),
    Shape("f8E4M3FN", 1, 1, 1),
    Shape("f32", 2, 12, None),
    Shape("f16", 1, 40, None, mla=True),
    Shape("f8E4M3FN", 5, 24, None),
]
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def list_widths(shape, target):
    """The widths up to a head; for kernels every other one, in turn."""
    widths = [w for w in (*WIDTHS, 6, 24, 48) if w <= shape.head_size]
    return widths if target == "cpu" or len(widths) < 3 else widths[SHAPES.index(shape) % 2 :: 2]


@functools.cache
def compile_accesses(shape, target="cpu"):
    source = Source(shape)
    for width in list_widths(shape, target):
        type, memref = lanes(width, shape.dtype), f"memref<?x{shape.dtype}>"
        of = f"{memref}, {type}" if width else memref
        kind = "vector" if width else "memref"
        indices = [f"{index}: index" for index in "bhtd"]
        for role in shape.roles:
            source.add(
                f"load_{role}_{width}",
                [*indices, f"out: {memref}"],
                f"""  %v = kvcache.load %k[%b, %h, %t, %d] : !cache -> {type}
  {kind}.store %v, %out[%c0] : {of}
  return""",
                views=f"%k = {role}",
            )
            source.add(
                f"store_{role}_{width}",
                [*indices, f"in: {memref}"],
                f"""  %v = {kind}.load %in[%c0] : {of}
  kvcache.store %v, %k[%b, %h, %t, %d] : {type}, !cache
  return""",
                views=f"%k = {role}",
            )
    return source.compile(target=target)


@each_shape
@given(st.data())
@examples(14)
def test_accesses_in_any_layout(shape, data):
    check_accesses(shape, data)


@pytest.mark.parametrize(("shape", "target"), spread(SHAPES))
@given(st.data())
@examples(2)
def test_accesses_in_kernels(shape, target, data):
    check_accesses(shape, data, target)


def check_accesses(shape, data, target="cpu"):
    program = compile_accesses(shape, target)
    cache = data.draw(caches(shape, max_tokens(shape), row_padding=False))
    arguments = cache.arguments(shape.numpy)
    for width in list_widths(shape, target):
        role, layer, b, h, t = data.draw(places(cache))
        count = max(width, 1)
        d = count * data.draw(st.integers(0, shape.head_size // count - 1))
        view = cache.view(role, layer)
        out = np.zeros(count, shape.uint)
        name = f"{shape.roles[role]}_{width}"
        at = (layer, b, h, t, d)
        program.call(f"load_{name}", *arguments, *at, out.view(shape.numpy))
        np.testing.assert_array_equal(out, view.read(b, h, t, d, count))

        expected = cache.with_memory(cache.memory.copy())
        values = ~out
        expected.view(role, layer).write(b, h, t, d, values)
        program.call(f"store_{name}", *arguments, *at, values.view(shape.numpy))
        np.testing.assert_array_equal(cache.memory, expected.memory)


# Pages that are known


@functools.cache
def compile_known_pages(shape, target="cpu"):
    source = Source(shape)
    memref, vector = f"memref<?x{shape.dtype}>", f"vector<4x{shape.dtype}>"
    tile = f"memref<1x4x{shape.dtype}, strided<[{shape.row}, 1], offset: ?>>"
    indices = [f"{index}: index" for index in ("b", "h", "t", "d", "page")]
    at = "%k[%b, %h, %t, %d] page %page"
    for name, body in (
        (
            "load",
            f"""  %v = kvcache.load {at} : !cache -> {vector}
  vector.store %v, %io[%c0] : {memref}, {vector}""",
        ),
        (
            "store",
            f"""  %v = vector.load %io[%c0] : {memref}, {vector}
  kvcache.store %v, {at} : {vector}, !cache""",
        ),
        (
            "tile",
            f"""  %m = kvcache.block_tile {at} : !cache -> {tile}
  %v = vector.load %m[%c0, %c0] : {tile}, {vector}
  vector.store %v, %io[%c0] : {memref}, {vector}""",
        ),
    ):
        source.add(name, [*indices, f"io: {memref}"], f"{body}\n  return")
    return source.compile(target=target)


@pytest.mark.parametrize("shape", SHAPES[1:5] + SHAPES[8:], ids=str)
@given(st.data())
@examples(10)
def test_known_pages(shape, data):
    """The page is given, and the table, which is invalid, is not read."""
    check_known_pages(shape, data)


@pytest.mark.parametrize(("shape", "target"), spread(SHAPES[1:4]))
@given(st.data())
@examples(2)
def test_known_pages_in_kernels(shape, target, data):
    check_known_pages(shape, data, target)


def check_known_pages(shape, data, target="cpu"):
    program = compile_known_pages(shape, target)
    cache = data.draw(caches(shape, max_tokens(shape), row_padding=False))
    _, layer, b, h, t = data.draw(places(cache))
    page = data.draw(st.integers(0, cache.shape[0] - 1))
    d = 4 * data.draw(st.integers(0, shape.head_size // 4 - 1))
    model = cache.with_tables(np.full_like(cache.table, page), cache.lengths).view(
        0, layer
    )
    cache = cache.with_tables(cache.table[:0], cache.lengths)
    arguments = (*cache.arguments(shape.numpy), layer, b, h, t, d, page)
    for name in ("load", "tile", "store", "load"):
        io = np.arange(4).astype(shape.uint)
        expected = cache.with_memory(cache.memory.copy())
        if name == "store":
            address = model.address(b, h, t, d)
            expected.memory[address : address + 4] = io
        program.call(name, *arguments, io.view(shape.numpy))
        if name != "store":
            np.testing.assert_array_equal(io, model.read(b, h, t, d, 4))
        np.testing.assert_array_equal(cache.memory, expected.memory)


@functools.cache
def compile_wide_copy(strides, target):
    """Copies the first 16 elements of 8 rows of layer 1, from values to ``%out`` and to keys."""
    layout = f"strided<[{', '.join(strides)}, 48, 48, 1]>"
    source = f"""
#kv = #kvcache.params<num_heads = 1, head_size = 48>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 4>
!cache = !kvcache.paged<bf16, #kv, page_size = 4>
!blocks = memref<?x2x?x4x1x48xbf16, {layout}>
func.func @copy(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %out: memref<8x16xbf16>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0 : i32
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %zero, %zero
      : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
  %k = kvcache.paged_view key %c[%c1] : !collection
  %v = kvcache.paged_view value %c[%c1] : !collection
  scf.for %t = %c0 to %c8 step %c1 {{
    %x = kvcache.load %v[%c0, %c0, %t, %c0] : !cache -> vector<16xbf16>
    vector.store %x, %out[%t, %c0] : memref<8x16xbf16>, vector<16xbf16>
    kvcache.store %x, %k[%c0, %c0, %t, %c0] : vector<16xbf16>, !cache
  }}
  return
}}"""
    return jit(source, target)


@pytest.mark.parametrize("target", ["cpu", *TARGETS, "emulator:sm_120a"])
@pytest.mark.parametrize("are_static", [False, True])
@pytest.mark.parametrize("odd", range(3))
def test_pages_16_bytes_apart_modulo_32_are_read_at_once(odd, are_static, target):
    strides = [1600, 800, 400]
    strides[odd] += 8
    program = compile_wide_copy(tuple(map(str, strides)) if are_static else ("?",) * 3, target)
    rng = np.random.default_rng(odd)
    memory = place(rng.integers(0, 2**16, 5 * 1616, np.uint16))
    bytes_apart = [2 * stride for stride in (*strides, 48, 48, 1)]
    blocks = np.lib.stride_tricks.as_strided(memory, (4, 2, 2, 4, 1, 48), bytes_apart)
    lut = np.array([[3, 1]], np.uint32)
    expected = blocks[lut[0], 1, 1, :, 0, :16].reshape(8, 16).copy()
    out = np.zeros((8, 16), np.uint16)
    bf16 = DTYPES["bf16"]
    program.call("copy", blocks.view(bf16), np.zeros(1, np.uint32), lut, out.view(bf16))
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(blocks[lut[0], 0, 1, :, 0, :16].reshape(8, 16), expected)
