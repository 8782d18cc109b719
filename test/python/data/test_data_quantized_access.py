"""Tests of loads and stores of quantized caches against the NumPy model, bit for bit."""

import functools

import numpy as np
import pytest
from bodies import CONSTANTS, lanes, read_all
from devices import spread
from hypothesis import given
from hypothesis import strategies as st
from programs import DTYPES, Source, examples, place
from quantization import RESULTS, SCALES, check_encodings
from quantized_programs import (
    FORMATS_OF_CACHES,
    INDICES,
    QuantizedShape,
    add_load,
    add_load_quantized,
    add_load_scale,
    add_store,
    add_store_quantized,
    add_store_scale,
    give_elements,
    places,
    quantized_caches,
    small_quantized_cache,
    take_elements,
)

# Every format, width and type of values


def shapes_of_formats():
    """Heads of each format, with different granularities."""
    granularities = (32, 24, 96, 40, 1, 64, 3)
    for number, (element, scale) in enumerate(FORMATS_OF_CACHES):
        granularity = granularities[number % len(granularities)]
        if element == "f4E2M1FN":
            granularity = 16 if scale == "f8E4M3FN" else 32
        own_table = number % 2 == 1
        yield QuantizedShape(element, 2, 96, 3, False, scale, granularity, own_table)


@pytest.mark.parametrize("shape", list(shapes_of_formats()), ids=str)
def test_loads(shape):
    """Loads all values of a layer of a packed cache."""
    source = Source(shape, packed=True)
    for result in RESULTS:
        candidates = {} if result == "f32" else {"candidates": (0, 16)}
        for width in shape.widths(**candidates):
            if shape.head_size % max(width, 1):
                continue
            parameters, body = read_all(width, result)
            name, body = f"read_{result}_{width}", CONSTANTS + body
            source.add(name, parameters, body, views="%k = value", layer=1)
    program = source.compile(opt_level=2 if shape.granularity == 24 else 0)
    cache = small_quantized_cache(shape, batch=2, columns=3)
    before, view = cache.copy(), cache.view(1, 1)
    sizes = (2, view.tokens(), shape.heads, shape.head_size)
    b, t, h = np.ix_(*map(np.arange, sizes[:-1]))
    for result, format in RESULTS.items():
        expected = view.load(b, h, t, 0, shape.head_size, format)
        for name in program.functions:
            if name.startswith(f"read_{result}_"):
                out = np.zeros(sizes, DTYPES[result])
                program.call(name, *cache.arguments(shape), 99, *sizes[:2], out)
                check_encodings(format, out.view(format.uint), expected)
    cache.check_memory(before)


# Every layout

SHAPES = [
    QuantizedShape("f8E4M3FN", 1, 80, 1, False, "f32", 32),
    QuantizedShape("i8", 2, 96, 3, False, "f16", 64, own_table=True),
    QuantizedShape("f8E4M3FN", 1, 320, 64, True, "bf16", 128, own_table=True),
    QuantizedShape("f8E5M2", 2, 128, 48, False, "f8E4M3FN", 24),
    QuantizedShape("f8E4M3FN", 3, 64, 16, False, "f32", 64, own_table=True),
    QuantizedShape("i8", 1, 48, 7, False, "bf16", 100),
    QuantizedShape("f8E4M3FN", 2, 6, 5, False, "f16", 4, own_table=True),
    QuantizedShape("i8", 3, 5, 2, False, "f32", 1),
    QuantizedShape("f8E4M3FN", 2, 64, 4, False, "f8E8M0FNU", 16, own_table=True),
    QuantizedShape("f4E2M1FN", 2, 80, 3, False, "f8E4M3FN", 16, own_table=True),
    QuantizedShape("f4E2M1FN", 1, 72, 16, True, "f8E8M0FNU", 32),
]
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)
VALUE_TYPES = ("f32", "bf16", "f16")


def choose_role(shape, width):
    return len(shape.roles) - 1 if width % 2 else 0


def element_widths(shape, target):
    """The widths up to a head; for kernels every other one, in turn."""
    return shape.widths() if target == "cpu" else shape.widths()[SHAPES.index(shape) % 2 :: 2]


def quantized_widths(shape):
    """Whole groups, or the head."""
    widths = [w for w in shape.widths() if w and w % shape.granularity == 0]
    if shape.granularity < shape.head_size and shape.granularity not in widths:
        widths.append(shape.granularity)
    return sorted({*widths, shape.head_size})


@functools.cache
def compile_accesses(shape, target="cpu"):
    source = Source(shape)
    for width in element_widths(shape, target):
        view = {"views": f"%k = {shape.roles[choose_role(shape, width)]}"}
        add_load(source, f"load_{width}", width, "f32", **view)
        add_load_quantized(source, f"load_quantized_{width}", width, **view)
        add_store(source, f"store_{width}", width, **view)
    for width in shape.scale_widths():
        view = {"views": f"%k = {shape.roles[choose_role(shape, width)]}"}
        add_load_scale(source, f"load_scale_{width}", width, **view)
        add_store_scale(source, f"store_scale_{width}", width, **view)
    for number, width in enumerate(quantized_widths(shape)):
        view = {"views": f"%k = {shape.roles[choose_role(shape, width)]}"}
        value = VALUE_TYPES[number % 3]
        add_store_quantized(source, f"store_quantized_{width}", width, value, **view)
        if shape.scale == "f8E4M3FN":
            name = f"store_quantized_tensor_{width}"
            add_store_quantized(source, name, width, value, True, **view)
            add_load_with_tensor_scale(source, f"load_tensor_{width}", width, **view)
    optimize = target == "cpu" and shape.granularity == 24
    return source.compile(target=target, opt_level=2 if optimize else 0)


def add_load_with_tensor_scale(source, name, width, **options):
    type = lanes(width, "bf16")
    source.add(
        name,
        [*INDICES, "out: memref<?xbf16>", "tensor_scale: f32"],
        f"""  %v = kvcache.load %k[%b, %h, %t, %d] tensor_scale %tensor_scale : !cache -> {type}
  vector.store %v, %out[%c0] : memref<?xbf16>, {type}
  return""",
        **options,
    )


class Access:
    """A random place of a cache, and calls that change memory and model there."""

    def __init__(self, data, shape, cache, program):
        self.data, self.shape, self.cache, self.program = data, shape, cache, program
        self.rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))

    def at(self, width, unit=1):
        """Draws a place; ``unit`` elements of it are a lane. Returns the model's view."""
        _, self.layer, *self.place = self.data.draw(places(self.cache))
        count = max(width, 1)
        last = -(-self.shape.head_size // unit) // count - 1
        d = count * unit * self.data.draw(st.integers(0, last))
        if unit > 1:
            d += self.data.draw(st.integers(0, unit - 1))
        self.indices = (*self.place, min(d, self.shape.head_size - 1))
        return self.cache.view(choose_role(self.shape, width), self.layer)

    def call(self, name, *arguments):
        given = self.cache.arguments(self.shape)
        self.program.call(name, *given, self.layer, *self.indices, *arguments)

    def values(self, width, dtype):
        """Finite values, with zeros among them, and the same as f32."""
        values = self.rng.normal(size=width) * 2.0 ** self.rng.integers(-20, 12)
        values = np.where(self.rng.random(width) < 0.1, 0, values)
        values = values.astype(np.float32).astype(DTYPES[dtype])
        return values, values.astype(np.float32)


@each_shape
@given(st.data())
@examples(6)
def test_elements_in_any_layout(shape, data):
    check_elements(shape, data)


@pytest.mark.long
@pytest.mark.parametrize(("shape", "target"), spread(SHAPES[2:]))
@given(st.data())
@examples(1)
def test_accesses_in_kernels(shape, target, data):
    check_elements(shape, data, target)
    check_scales(shape, data, target)
    check_quantized_stores(shape, data, target)


def check_elements(shape, data, target="cpu"):
    program = compile_accesses(shape, target)
    cache = data.draw(quantized_caches(shape, 3 * shape.page_size))
    access = Access(data, shape, cache, program)
    for width in element_widths(shape, target):
        view = access.at(width)
        count = max(width, 1)
        before = cache.copy()
        out = place(np.zeros(count, np.float32))
        access.call(f"load_{width}", out)
        expected = view.load(*access.indices, count, RESULTS["f32"])
        check_encodings(RESULTS["f32"], out.view(np.uint32), expected)

        stored = place(np.zeros(count // shape.per_byte, np.uint8))
        access.call(f"load_quantized_{width}", stored.view(shape.numpy))
        d = access.indices[-1] // shape.per_byte
        read = view.elements.read(*access.indices[:-1], d, stored.size)
        np.testing.assert_array_equal(stored, read)
        cache.check_memory(before)

        access.call(f"store_{width}", (~stored).view(shape.numpy))
        before.view(choose_role(shape, width), access.layer).elements.write(
            *access.indices[:-1], d, ~stored
        )
        cache.check_memory(before)


@each_shape
@given(st.data())
@examples(6)
def test_scales_in_any_layout(shape, data):
    """Any element of a group finds its scale."""
    check_scales(shape, data)


def check_scales(shape, data, target="cpu"):
    program = compile_accesses(shape, target)
    cache = data.draw(quantized_caches(shape, 3 * shape.page_size))
    access = Access(data, shape, cache, program)
    for width in shape.scale_widths():
        view = access.at(width, shape.granularity)
        out = place(np.zeros(max(width, 1), SCALES[shape.scale].uint))
        before = cache.copy()
        access.call(f"load_scale_{width}", out.view(shape.scale_numpy))
        np.testing.assert_array_equal(out, view.read_scales(*access.indices, out.size))
        cache.check_memory(before)

        access.call(f"store_scale_{width}", (~out).view(shape.scale_numpy))
        before.view(choose_role(shape, width), access.layer).write_scales(
            *access.indices, ~out
        )
        cache.check_memory(before)


@each_shape
@given(st.data())
@examples(6)
def test_quantized_stores_in_any_layout(shape, data):
    check_quantized_stores(shape, data)


def check_quantized_stores(shape, data, target="cpu"):
    program = compile_accesses(shape, target)
    cache = data.draw(quantized_caches(shape, 2 * shape.page_size))
    access = Access(data, shape, cache, program)
    for number, width in enumerate(quantized_widths(shape)):
        variants = ("", "tensor_") if shape.scale == "f8E4M3FN" else ("",)
        for variant in variants:
            access.at(width)
            values, exact = access.values(width, VALUE_TYPES[number % 3])
            tensor_scale = (2.0**-6 * 1.3,) if variant else ()
            expected = cache.copy()
            view = expected.view(choose_role(shape, width), access.layer)
            view.store_quantized(*access.indices, exact, *tensor_scale)
            name = f"store_quantized_{variant}{width}"
            access.call(name, place(values), *tensor_scale)
            cache.check_memory(expected)
            if variant:
                out = place(np.zeros(width, DTYPES["bf16"]))
                access.call(f"load_tensor_{width}", out, *tensor_scale)
                loaded = view.load(
                    *access.indices, width, RESULTS["bf16"], *tensor_scale
                )
                check_encodings(RESULTS["bf16"], out.view(np.uint16), loaded)


# Pages that are known


@functools.cache
def compile_known_pages(shape):
    """Accesses to two lanes, or to a head."""
    source = Source(shape)
    stored, size = shape.stored_dtype, shape.head_size
    pages = ["page: index", "scale_page: index"]
    at = "%k[%b, %h, %t, %d]"
    both, own, scale_operands = (
        f"{at} page %page scale_page %scale_page",
        f"{at} page %page",
        f"{at} scale_page %scale_page",
    )
    for name, io, body in (
        (
            "load",
            "f32",
            f"  %v = kvcache.load {both} : !cache -> vector<2xf32>\n"
            "  vector.store %v, %io[%c0] : memref<?xf32>, vector<2xf32>",
        ),
        (
            "load_quantized",
            stored,
            f"  %v = kvcache.load_quantized {own} : !cache -> {lanes(2, shape.dtype)}\n"
            + give_elements("%v", ("%io", f"memref<?x{stored}>"), 2, shape.dtype),
        ),
        (
            "load_scale",
            shape.scale,
            f"  %v = kvcache.load_scale {scale_operands} : !cache -> {shape.scale}\n"
            f"  memref.store %v, %io[%c0] : memref<?x{shape.scale}>",
        ),
        (
            "store",
            stored,
            take_elements("%v", ("%io", f"memref<?x{stored}>"), 2, shape.dtype)
            + f"  kvcache.store %v, {own} : {lanes(2, shape.dtype)}, !cache",
        ),
        (
            "store_scale",
            shape.scale,
            f"  %v = memref.load %io[%c0] : memref<?x{shape.scale}>\n"
            f"  kvcache.store_scale %v, {scale_operands} : {shape.scale}, !cache",
        ),
        (
            "store_quantized",
            "f32",
            f"  %v = vector.load %io[%c0] : memref<?xf32>, vector<{size}xf32>\n"
            f"  kvcache.store_quantized %v, {both} : vector<{size}xf32>, !cache",
        ),
    ):
        parameters = [*INDICES, *pages, f"io: memref<?x{io}>"]
        source.add(name, parameters, f"{body}\n  return")
    source.add(
        "scale_row_index",
        ["b: index", "t: index", "scale_page: index"],
        "  %r = kvcache.scale_row_index %k[%b, %t] scale_page %scale_page : !cache\n"
        "  return %r : index",
        "index",
    )
    return source.compile()


@pytest.mark.parametrize("shape", [SHAPES[1], SHAPES[4], SHAPES[8], SHAPES[9]], ids=str)
@given(st.data())
@examples(6)
def test_known_pages(shape, data):
    """Pages are given, and the tables, which are invalid, are not read."""
    program = compile_known_pages(shape)
    cache = data.draw(quantized_caches(shape, 3 * shape.page_size))
    access = Access(data, shape, cache, program)
    access.at(2)
    page = data.draw(st.integers(0, cache.elements.shape[0] - 1))
    scale_page = data.draw(st.integers(0, cache.scales.shape[0] - 1))
    model = cache.copy().with_tables(
        np.full_like(cache.elements.table, page),
        np.full_like(cache.scales.table, scale_page),
    )
    view = model.view(0, access.layer)
    access.cache = cache.with_tables(cache.elements.table[:0], cache.scales.table[:0])
    indices = access.indices
    byte = indices[-1] // shape.per_byte

    out = np.zeros(2, np.float32)
    access.call("load", page, scale_page, out)
    expected = view.load(*indices, 2, RESULTS["f32"])
    check_encodings(RESULTS["f32"], out.view(np.uint32), expected)
    stored = np.zeros(2 // shape.per_byte, np.uint8)
    access.call("load_quantized", page, scale_page, stored.view(shape.numpy))
    read = view.elements.read(*indices[:-1], byte, stored.size)
    np.testing.assert_array_equal(stored, read)
    scale = np.zeros(1, SCALES[shape.scale].uint)
    access.call("load_scale", page, scale_page, scale.view(shape.scale_numpy))
    np.testing.assert_array_equal(scale, view.read_scales(*indices))

    access.call("store", page, scale_page, (~stored).view(shape.numpy))
    view.elements.write(*indices[:-1], byte, ~stored)
    access.call("store_scale", page, scale_page, (~scale).view(shape.scale_numpy))
    view.write_scales(*indices, ~scale)
    cache.check_memory(model)
    access.indices = (*indices[:-1], 0)
    values, exact = access.values(shape.head_size, "f32")
    access.call("store_quantized", page, scale_page, values)
    view.store_quantized(*access.indices, exact)
    cache.check_memory(model)
    b, _, t, _ = indices
    arguments = (*access.cache.arguments(shape), access.layer, b, t)
    row = program.call("scale_row_index", *arguments, scale_page)
    assert row == view.scales.row_index(b, t)
