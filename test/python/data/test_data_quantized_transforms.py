"""Tests that passes keep the meaning of programs over a quantized cache.

As in test_data_transforms.py, each function is written as a source and in Python.
"""

import functools
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import PIPELINES, Source, examples, guard
from quantization import F32, quantize
from quantized_programs import QuantizedShape, quantized_caches

SHAPES = [
    QuantizedShape("f8E4M3FN", 2, 48, 3, False, "f32", 16, own_table=True),
    QuantizedShape("i8", 1, 32, 4, False, "f16", 32),
    QuantizedShape("f4E2M1FN", 2, 32, 1, False, "f8E4M3FN", 16, own_table=True),
    QuantizedShape("f8E5M2", 1, 64, 48, False, "f8E8M0FNU", 64, own_table=True),
]

# (body, what it returns in Python). Functions take b, t, m, n.
FUNCTIONS = {}


def function(name, body):
    def register(meaning):
        FUNCTIONS[name] = (body, meaning)
        return meaning

    return register


def bits(value, name, type="f32"):
    """Text that makes the bits of a number an index."""
    integer = {"f32": "i32", "!scale": "!scale_bits"}[type]
    return f"""%{name}_bits = arith.bitcast {value} : {type} to {integer}
    %{name} = arith.index_castui %{name}_bits : {integer} to index"""


def runs(low, high):
    return range(low, max(low, high))


def add_bits(numbers):
    return int(np.sum(np.asarray(numbers, np.uint64), dtype=np.uint64))


def value_bits(view, b, h, t, d, width=2):
    """The sum of the bits of loaded f32 values."""
    return add_bits(F32.encode(view.load(b, h, t, d, width, F32)))


def scale_bits(view, b, h, t, d):
    return int(view.read_scales(b, h, t, d)[0])


SUM = """
    %vi = arith.bitcast %x : vector<2xf32> to vector<2xi32>
    %vx = arith.extui %vi : vector<2xi32> to vector<2xi64>
    %vs = vector.reduction <add>, %vx : vector<2xi64> into i64
    %e = arith.index_cast %vs : i64 to index"""


@function(
    "nest",
    f"""
  %s = kvcache.scales_view %k : !cache
  %r = scf.for %i = %c0 to %m step %c1 iter_args(%a = %c0) -> (index) {{
    %r0 = scf.for %j = %i to %n step %c1 iter_args(%a0 = %a) -> (index) {{
    %x = kvcache.load %v[%b, %c0, %t, %c0] : !cache -> vector<2xf32>
    {SUM}
    %scale = kvcache.load_scale %k[%b, %c0, %t, %last] : !cache -> !scale
    {bits("%scale", "f", "!scale")}
    %h = arith.remui %j, %heads : index
    %other = kvcache.load %s[%b, %h, %t, %c0] : !scales -> !scale
    {bits("%other", "g", "!scale")}
    %row = kvcache.scale_row_index %v[%b, %t] : !cache
    %row_of_view = kvcache.row_index %s[%b, %t] : !scales
    %page = kvcache.page_id %s[%b, %t] : !scales
    %own = kvcache.page_id %k[%b, %t] : !cache
    %a1 = arith.addi %a0, %e : index
    %a2 = arith.addi %a1, %f : index
    %a3 = arith.addi %a2, %g : index
    %a4 = arith.addi %a3, %row : index
    %a5 = arith.addi %a4, %row_of_view : index
    %a6 = arith.addi %a5, %page : index
    %a7 = arith.muli %own, %j : index
    %a8 = arith.addi %a6, %a7 : index
    scf.yield %a8 : index
    }}
    scf.yield %r0 : index
  }}
  return %r : index""",
)
def nest(k, v, b, t, m, n):
    total = 0
    for i in runs(0, m):
        for j in runs(i, n):
            total += value_bits(v, b, 0, t, 0)
            total += scale_bits(k, b, 0, t, k.head_size - 1)
            total += scale_bits(k, b, j % k.scales.heads, t, 0)
            total += 2 * int(k.scales.row_index(b, t)) + int(k.scales.page_id(b, t))
            total += int(k.elements.page_id(b, t)) * j
    return total


@function(
    "stores",
    f"""
  %r = scf.for %i = %c0 to %m step %c1 iter_args(%a = %c0) -> (index) {{
    %raw = kvcache.load_quantized %k[%b, %c0, %t, %c0] : !cache -> vector<2x$element>
    kvcache.store %raw, %v[%b, %c0, %t, %c2] : vector<2x$element>, !cache
    %x = kvcache.load %v[%b, %c0, %t, %c2] : !cache -> vector<2xf32>
    {SUM}
    %scale = kvcache.load_scale %v[%b, %c0, %t, %c0] : !cache -> !scale
    kvcache.store_scale %scale, %k[%b, %c0, %t, %last] : !scale, !cache
    %group = vector.broadcast %x0 : f32 to !group
    kvcache.store_quantized %group, %v[%b, %c0, %t, %c0] : !group, !cache
    %after = kvcache.load_scale %v[%b, %c0, %t, %c0] : !cache -> !scale
    {bits("%after", "f", "!scale")}
    %z = arith.muli %f, %i : index
    %a1 = arith.addi %a, %e : index
    %a2 = arith.addi %a1, %z : index
    scf.yield %a2 : index
  }}
  return %r : index""",
)
def stores(k, v, b, t, m, n):
    total, size = 0, k.head_size
    for i in runs(0, m):
        v.write_elements(b, 0, t, 2, k.read_elements(b, 0, t, 0, 2))
        total += value_bits(v, b, 0, t, 2)
        k.write_scales(b, 0, t, size - 1, v.read_scales(b, 0, t, 0))
        v.store_quantized(b, 0, t, 0, np.full(k.granularity, 3.25, np.float32))
        total += scale_bits(v, b, 0, t, 0) * i
    return total


@function(
    "carried",
    f"""
  %s0 = kvcache.scales_view %k : !cache
  %r:3 = scf.for %i = %c0 to %m step %c1 iter_args(%a = %c0, %y = %v, %s = %s0)
      -> (index, !cache, !scales) {{
    %x = kvcache.load %y[%b, %c0, %t, %c0] : !cache -> vector<2xf32>
    {SUM}
    %scale = kvcache.load %s[%b, %c0, %t, %c0] : !scales -> !scale
    {bits("%scale", "f", "!scale")}
    %w = arith.addi %f, %i : index
    %a1 = arith.muli %a, %w : index
    %a2 = arith.addi %a1, %e : index
    %next = kvcache.scales_view %y : !cache
    %less = arith.cmpi slt, %i, %n : index
    %z = arith.select %less, %k, %v : !cache
    scf.yield %a2, %z, %next : index, !cache, !scales
  }}
  %row = kvcache.row_index %r#2[%b, %t] : !scales
  %sum = arith.addi %r#0, %row : index
  return %sum : index""",
)
def carried(k, v, b, t, m, n):
    total, y, s = 0, v, k
    for i in runs(0, m):
        total = total * (scale_bits(s, b, 0, t, 0) + i) + value_bits(y, b, 0, t, 0)
        s, y = y, k if i < n else v
    return total + int(s.scales.row_index(b, t))


@function(
    "chosen",
    f"""
  %less = arith.cmpi slt, %m, %n : index
  %y, %s = scf.if %less -> (!cache, !scales) {{
    %s = kvcache.scales_view %v : !cache
    scf.yield %k, %s : !cache, !scales
  }} else {{
    %s = kvcache.scales_view %k : !cache
    scf.yield %v, %s : !cache, !scales
  }}
  %f = func.call @scale_of(%s, %b, %t) : (!scales, index, index) -> index
  %z = func.call @other(%c, %y, %layer) : (!collection, !cache, index) -> !cache
  %x = kvcache.load %z[%b, %c0, %t, %c0] : !cache -> vector<2xf32>
    {SUM}
  %r = arith.addi %e, %f : index
  return %r : index""",
)
def chosen(k, v, b, t, m, n):
    y, s = (k, v) if m < n else (v, k)
    z = y if y.elements.empty_cache() else v
    return value_bits(z, b, 0, t, 0) + scale_bits(s, b, 0, t, 0)


@function(
    "tiles",
    f"""
  %r = scf.for %i = %c0 to %m step %c1 iter_args(%a = %c0) -> (index) {{
    %r0 = scf.for %j = %c0 to %n step %c1 iter_args(%a0 = %a) -> (index) {{
      %tile = kvcache.scales_block_tile %v[%b, %c0, %t, %c0] : !cache -> !tile
      %scale = memref.load %tile[%c0, %c0] : !tile
      {bits("%scale", "f", "!scale")}
      %from = kvcache.load_scale %k[%b, %c0, %t, %c0] : !cache -> !scale
      memref.store %from, %tile[%c0, %c0] : !tile
      %a1 = arith.addi %a0, %f : index
      scf.yield %a1 : index
    }}
    scf.yield %r0 : index
  }}
  return %r : index""",
)
def tiles(k, v, b, t, m, n):
    total = 0
    for _ in runs(0, m):
        for _ in runs(0, n):
            total += scale_bits(v, b, 0, t, 0)
            v.write_scales(b, 0, t, 0, k.read_scales(b, 0, t, 0))
    return total


@function(
    "rows",
    """
  %s = kvcache.scales_view %k : !cache
  %z = kvcache.scales_view %v : !cache
  %r = scf.for %i = %c0 to %m step %c1 iter_args(%a = %c0) -> (index) {
    %o = arith.remui %i, %num_rows : index
    %x = kvcache.populate %s[%b, %c0] : !scales -> !rows
    %q = kvcache.get_row %x[%o] : !rows
    %y = kvcache.populate %z[%b, %c0] : !scales -> !rows
    %l = kvcache.get_row %y[%c0] : !rows
    %a1 = arith.addi %a, %q : index
    %a2 = arith.addi %a1, %l : index
    scf.yield %a2 : index
  }
  return %r : index""",
)
def rows(k, v, b, t, m, n):
    count = 2 * k.scales.page_size
    return sum(
        k.scales.get_row(b, 0, i % count, count, count)
        + v.scales.get_row(b, 0, 0, count, count)
        for i in runs(0, m)
    )


@function(
    "values",
    f"""
  %r = scf.for %i = %c0 to %m step %c1 iter_args(%a = %c0) -> (index) {{
    %y = kvcache.load %k[%b, %c0, %t, %c0] : !cache -> vector<2xf32>
    %w, %scale = kvcache.quantize %y : vector<2xf32> -> vector<2x$element>, f32
    %x = kvcache.dequantize %w, %scale : vector<2x$element>, f32 -> vector<2xf32>
    {SUM}
    {bits("%scale", "f")}
    %a1 = arith.addi %a, %e : index
    %a2 = arith.addi %a1, %f : index
    scf.yield %a2 : index
  }}
  return %r : index""",
)
def values(k, v, b, t, m, n):
    loaded = k.load(b, 0, t, 0, 2, F32).astype(np.float32)
    elements, scale = quantize(loaded, 2, k.element_format, F32)
    product = add_bits(F32.encode(F32.round(elements * scale)))
    return len(runs(0, m)) * (product + int(F32.encode(scale)[0]))


HELPERS = """
func.func private @other(%c: !collection, %k: !cache, %layer: index) -> !cache {
  %v = kvcache.paged_view value %c[%layer] : !collection
  %empty = kvcache.empty_cache %k : !cache
  %r = arith.select %empty, %k, %v : !cache
  return %r : !cache
}
func.func private @scale_of(%s: !scales, %b: index, %t: index) -> index {
  %c0 = arith.constant 0 : index
  %scale = kvcache.load %s[%b, %c0, %t, %c0] : !scales -> !scale
  %bits = arith.bitcast %scale : !scale to !scale_bits
  %r = arith.index_castui %bits : !scale_bits to index
  return %r : index
}
"""


@functools.cache
def compile_functions(shape, pipeline, optimize):
    source = Source(shape)
    row = shape.heads * shape.groups
    names = f"""!element = {shape.dtype}
!scale = {shape.scale}
!scale_bits = i{8 * shape.scale_numpy.itemsize}
!group = vector<{shape.granularity}xf32>
!tile = memref<1x1x{shape.scale}, strided<[{row}, 1], offset: ?>>
!rows = !kvcache.row_indices<rows = {2 * shape.page_size}, page_size = {shape.page_size}>
"""
    source.functions.append(names + HELPERS)
    constants = f"""  %heads = arith.constant {shape.heads} : index
  %last = arith.constant {shape.head_size - 1} : index
  %num_rows = arith.constant {2 * shape.page_size} : index
  %c2 = arith.constant 2 : index
  %x0 = arith.constant 3.25 : f32
"""
    parameters = [f"{index}: index" for index in "btmn"]
    for name, (body, _) in FUNCTIONS.items():
        text, views = constants + body, "%k = key, %v = value"
        # An alias can't be an element of a vector in text.
        text = string.Template(text).substitute(element=shape.dtype)
        source.add(name, parameters, text, "index", views=views)
    return source.compile(*PIPELINES[pipeline], opt_level=2 if optimize else 0)


@st.composite
def cases(draw, shape):
    """A cache of finite numbers, a layer, a sequence and a token."""
    P = shape.page_size
    cache = draw(quantized_caches(shape, 4 * P, 2 * P))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scales = cache.scales.memory
    scales[...] = cache.scale_format.encode(np.exp2(rng.uniform(-6, 6, scales.size)))
    if shape.per_byte == 1:
        elements = cache.elements.memory
        decoded = cache.element_format.decode(elements)
        elements[~np.isfinite(decoded)] = 0x17
    layer = draw(st.integers(0, cache.elements.shape[2] - 1))
    b = draw(st.integers(0, len(cache.elements.lengths) - 1))
    return cache, layer, b, draw(st.integers(0, cache.view(0, 0).tokens() - 1))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    "pipeline", ["plain", "simplified", "simplified-hoisted", "ranges"]
)
@given(st.data())
@examples(8)
def test_passes_keep_the_meaning(shape, pipeline, data):
    optimize = shape in SHAPES[1:3] and pipeline == "simplified"
    program = compile_functions(shape, pipeline, optimize)
    cache, layer, b, t = data.draw(cases(shape))
    for name, (_, meaning) in FUNCTIONS.items():
        m, n = (data.draw(st.integers(-2, 4)) for _ in range(2))
        expected = cache.copy()
        result = meaning(expected.view(0, layer), expected.view(1, layer), b, t, m, n)
        got = program.call(name, *cache.arguments(shape), layer, b, t, m, n)
        assert got == (result + 2**63) % 2**64 - 2**63, name
        cache.check_memory(expected)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("pipeline", ["simplified", "simplified-hoisted"])
@pytest.mark.parametrize("where", ["at_end", "at_start"])
def test_no_trips_read_nothing(shape, pipeline, where):
    """Tests invalid indices, and tables next to guard pages."""
    optimize = shape in SHAPES[1:3] and pipeline == "simplified"
    program = compile_functions(shape, pipeline, optimize)
    table = np.zeros((2, 3), np.uint32)
    shapes = (
        (shape.elements, shape.numpy),
        (shape.scales, shape.scale_numpy),
    )
    blocks = [
        guard(np.zeros((1, 2, 1, s.page_size, s.heads, s.head_size), dtype), "at_start")
        for s, dtype in shapes
    ]
    lengths = guard(np.zeros(2, np.uint32), where)
    own = (guard(table, where),) if shape.own_table else ()
    arguments = (blocks[0], lengths, guard(table, where), 0, 0, blocks[1], *own, 0)
    for name in FUNCTIONS.keys() - {"carried", "chosen"}:
        for b, t in ((2**20, 0), (2**30, 2**30), (2**40, 2**31 - 1)):
            for m, n in ((0, 0), (-1, 3), (-(2**40), -1)):
                assert program.call(name, *arguments, b, t, m, n) == 0
