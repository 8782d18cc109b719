"""Tests that passes keep the meaning of programs.

Each function below is written twice, as a source and in Python over the NumPy model. It runs without passes, after
upstream's passes, and with the lookups hoisted before and after.
"""

import functools
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import PIPELINES, SHAPES, Source, caches, examples, guard, is_optimized

# (name, parameters besides b, t, m, n; body; what it returns in Python)
FUNCTIONS = {}


def function(name, body, helpers=""):
    def register(meaning):
        FUNCTIONS[name] = (body, helpers, meaning)
        return meaning

    return register


def bits(value, name):
    """Text that makes the bits of an element an index."""
    return f"""%{name}_bits = arith.bitcast {value} : !element to !bits
    %{name} = arith.index_castui %{name}_bits : !bits to index"""


def runs(low, high):
    return range(low, max(low, high))


@function(
    "nest",
    f"""
  %s = scf.for %i = %c0 to %m step %c1 iter_args(%a = %c0) -> (index) {{
    %s0 = scf.for %j = %i to %n step %c1 iter_args(%a0 = %a) -> (index) {{
      %row = kvcache.row_index %k[%b, %t] : !cache
      %length = kvcache.cache_length %v[%b] : !cache
      %page = kvcache.page_id %k[%b, %t] : !cache
      %e = kvcache.load %v[%b, %c0, %t, %c0] : !cache -> !element
      {bits("%e", "x")}
      %h = arith.remui %j, %heads : index
      %f = kvcache.load %k[%b, %h, %t, %c0] : !cache -> !element
      {bits("%f", "y")}
      %a1 = arith.addi %a0, %row : index
      %a2 = arith.addi %a1, %length : index
      %a3 = arith.addi %a2, %page : index
      %a4 = arith.addi %a3, %x : index
      %a5 = arith.addi %a4, %y : index
      scf.yield %a5 : index
    }}
    scf.yield %s0 : index
  }}
  return %s : index""",
)
def nest(k, v, b, t, m, n):
    total = 0
    for i in runs(0, m):
        for j in runs(i, n):
            total += int(k.row_index(b, t)) + k.cache_length(b) + int(k.page_id(b, t))
            total += int(v.read(b, 0, t, 0)[0]) + int(k.read(b, j % k.heads, t, 0)[0])
    return total


@function(
    "chain",
    f"""
  %s = scf.for %i = %c0 to %m step %c1 iter_args(%a = %c0) -> (index) {{
    %length = kvcache.cache_length %k[%b] : !cache
    %u = arith.remui %length, %tokens : index
    %s0 = scf.for %j = %c0 to %n step %c1 iter_args(%a0 = %a) -> (index) {{
      %e = kvcache.load %k[%b, %c0, %u, %c0] : !cache -> !element
      {bits("%e", "x")}
      %row = kvcache.row_index %v[%b, %u] : !cache
      %a1 = arith.addi %a0, %x : index
      %a2 = arith.addi %a1, %row : index
      scf.yield %a2 : index
    }}
    scf.yield %s0 : index
  }}
  return %s : index""",
)
def chain(k, v, b, t, m, n):
    u = k.cache_length(b) % k.tokens()
    each = int(k.read(b, 0, u, 0)[0]) + int(v.row_index(b, u))
    return len(runs(0, m)) * len(runs(0, n)) * each


@function(
    "conditional",
    f"""
  %s = scf.for %i = %c0 to %m step %c1 iter_args(%a = %c0) -> (index) {{
    %odd = arith.cmpi slt, %i, %n : index
    %s0 = scf.if %odd -> (index) {{
      %e = kvcache.load %k[%b, %c0, %t, %c0] : !cache -> !element
      {bits("%e", "x")}
      %a1 = arith.addi %a, %x : index
      scf.yield %a1 : index
    }} else {{
      scf.yield %a : index
    }}
    scf.yield %s0 : index
  }}
  return %s : index""",
)
def conditional(k, v, b, t, m, n):
    return sum(int(k.read(b, 0, t, 0)[0]) for i in runs(0, m) if i < n)


@function(
    "stores",
    f"""
  %s = scf.for %i = %c0 to %m step %c1 iter_args(%a = %c0) -> (index) {{
    %e = kvcache.load %k[%b, %c0, %t, %c0] : !cache -> !element
    kvcache.store %e, %v[%b, %c0, %t, %c1] : !element, !cache
    %f = kvcache.load %v[%b, %c0, %t, %c0] : !cache -> !element
    %g = kvcache.load %v[%b, %c0, %t, %c1] : !cache -> !element
    kvcache.store %g, %v[%b, %c0, %t, %c0] : !element, !cache
    kvcache.store %f, %k[%b, %c0, %t, %c0] : !element, !cache
    {bits("%f", "x")}
    {bits("%g", "y")}
    %z = arith.muli %y, %i : index
    %a1 = arith.addi %a, %x : index
    %a2 = arith.addi %a1, %z : index
    scf.yield %a2 : index
  }}
  return %s : index""",
)
def stores(k, v, b, t, m, n):
    total = 0
    for i in runs(0, m):
        e = k.read(b, 0, t, 0)
        v.write(b, 0, t, 1, e)
        f, g = v.read(b, 0, t, 0), v.read(b, 0, t, 1)
        v.write(b, 0, t, 0, g)
        k.write(b, 0, t, 0, f)
        total += int(f[0]) + int(g[0]) * i
    return total


@function(
    "carried",
    f"""
  %s:3 = scf.for %i = %c0 to %m step %c1 iter_args(%a = %c0, %x = %k, %y = %v)
      -> (index, !cache, !cache) {{
    %e = kvcache.load %x[%b, %c0, %t, %c0] : !cache -> !element
    {bits("%e", "z")}
    %w = arith.addi %z, %i : index
    %a1 = arith.muli %a, %w : index
    %a2 = arith.addi %a1, %z : index
    scf.yield %a2, %y, %x : index, !cache, !cache
  }}
  %e = kvcache.load %s#1[%b, %c0, %t, %c1] : !cache -> !element
  {bits("%e", "z")}
  %r = arith.addi %s#0, %z : index
  return %r : index""",
)
def carried(k, v, b, t, m, n):
    total, x, y = 0, k, v
    for i in runs(0, m):
        z = int(x.read(b, 0, t, 0)[0])
        total = total * (z + i) + z
        x, y = y, x
    return total + int(x.read(b, 0, t, 1)[0])


@function(
    "chosen",
    f"""
  %less = arith.cmpi slt, %m, %n : index
  %x, %y = scf.if %less -> (!cache, !cache) {{
    scf.yield %v, %k : !cache, !cache
  }} else {{
    scf.yield %k, %v : !cache, !cache
  }}
  %negative = arith.cmpi slt, %m, %c0 : index
  %z = arith.select %negative, %y, %x : !cache
  %w = scf.index_switch %m -> !cache
  case 1 {{
    scf.yield %y : !cache
  }}
  case 2 {{
    %q = func.call @other(%c, %z, %layer) : (!collection, !cache, index) -> !cache
    scf.yield %q : !cache
  }}
  default {{
    scf.yield %z : !cache
  }}
  %e = kvcache.load %w[%b, %c0, %t, %c0] : !cache -> !element
  {bits("%e", "r")}
  return %r : index""",
    """
func.func private @other(%c: !collection, %k: !cache, %layer: index) -> !cache {
  %v = kvcache.$view value %c[%layer] : !collection
  %empty = kvcache.empty_cache %k : !cache
  %r = arith.select %empty, %k, %v : !cache
  return %r : !cache
}
""",
)
def chosen(k, v, b, t, m, n):
    x, y = (v, k) if m < n else (k, v)
    z = y if m < 0 else x
    w = y if m == 1 else (z if k.empty_cache() else v) if m == 2 else z
    return int(w.read(b, 0, t, 0)[0])


@function(
    "branches",
    f"""
  cf.br ^head(%c0, %c0, %k, %v : index, index, !cache, !cache)
^head(%i: index, %a: index, %x: !cache, %y: !cache):
  %more = arith.cmpi slt, %i, %m : index
  cf.cond_br %more, ^body(%x : !cache), ^end(%a, %y : index, !cache)
^body(%q: !cache):
  %e = kvcache.load %q[%b, %c0, %t, %c0] : !cache -> !element
  {bits("%e", "z")}
  %a1 = arith.addi %a, %z : index
  %next = arith.addi %i, %c1 : index
  %even = arith.cmpi slt, %i, %n : index
  cf.cond_br %even, ^head(%next, %a1, %y, %q : index, index, !cache, !cache),
                    ^head(%next, %a1, %q, %q : index, index, !cache, !cache)
^end(%sum: index, %last: !cache):
  %l = kvcache.load %last[%b, %c0, %t, %c1] : !cache -> !element
  {bits("%l", "u")}
  %r = arith.addi %sum, %u : index
  return %r : index""",
)
def branches(k, v, b, t, m, n):
    total, x, y = 0, k, v
    for i in runs(0, m):
        total += int(x.read(b, 0, t, 0)[0])
        x, y = (y, x) if i < n else (x, x)
    return total + int(y.read(b, 0, t, 1)[0])


@function(
    "while_loop",
    f"""
  %s:3 = scf.while (%i = %c0, %a = %c0, %x = %k) : (index, index, !cache)
      -> (index, index, !cache) {{
    %more = arith.cmpi slt, %i, %m : index
    scf.condition(%more) %i, %a, %x : index, index, !cache
  }} do {{
  ^bb0(%i: index, %a: index, %x: !cache):
    %e = kvcache.load %x[%b, %c0, %t, %c0] : !cache -> !element
    {bits("%e", "z")}
    %a1 = arith.addi %a, %z : index
    %next = arith.addi %i, %c1 : index
    %swap = arith.cmpi sgt, %next, %n : index
    %y = arith.select %swap, %v, %k : !cache
    scf.yield %next, %a1, %y : index, index, !cache
  }}
  return %s#1 : index""",
)
def while_loop(k, v, b, t, m, n):
    total, x = 0, k
    for i in runs(0, m):
        total += int(x.read(b, 0, t, 0)[0])
        x = v if i + 1 > n else k
    return total


@function(
    "parallel",
    f"""
  %zero = arith.constant 0 : index
  %low = arith.maxsi %m, %zero : index
  %high = arith.maxsi %n, %zero : index
  %s = scf.parallel (%i, %j) = (%c0, %c0) to (%low, %high) step (%c1, %c1)
      init (%zero) -> index {{
    %h = arith.remui %j, %heads : index
    %e = kvcache.load %k[%b, %h, %t, %c0] : !cache -> !element
    {bits("%e", "z")}
    %row = kvcache.row_index %v[%b, %t] : !cache
    %w = arith.addi %z, %row : index
    scf.reduce(%w : index) {{
    ^bb0(%left: index, %right: index):
      %sum = arith.addi %left, %right : index
      scf.reduce.return %sum : index
    }}
  }}
  return %s : index""",
)
def parallel(k, v, b, t, m, n):
    return sum(
        int(k.read(b, j % k.heads, t, 0)[0]) + int(v.row_index(b, t))
        for _ in runs(0, m)
        for j in runs(0, n)
    )


@function(
    "tiles",
    f"""
  %s = scf.for %i = %c0 to %m step %c1 iter_args(%a = %c0) -> (index) {{
    %s0 = scf.for %j = %c0 to %n step %c1 iter_args(%a0 = %a) -> (index) {{
      %tile = kvcache.block_tile %v[%b, %c1_or_0, %t, %c0] : !cache -> !tile
      %d = arith.remui %j, %size : index
      %e = memref.load %tile[%c0, %d] : !tile
      {bits("%e", "z")}
      %w = arith.addi %z, %i : index
      memref.store %first, %tile[%c0, %c0] : !tile
      %a1 = arith.addi %a0, %w : index
      scf.yield %a1 : index
    }}
    scf.yield %s0 : index
  }}
  return %s : index""",
)
def tiles(k, v, b, t, m, n):
    total, h = 0, min(1, k.heads - 1)
    first = k.read(b, 0, 0, 0) if n > 0 and m > 0 else None
    for i in runs(0, m):
        for j in runs(0, n):
            total += int(v.read(b, h, t, j % k.head_size)[0]) + i
            v.write(b, h, t, 0, first)
    return total


@function(
    "rows",
    """
  %rows = kvcache.populate %k[%first_b, %c0] : !cache -> !rows
  %s:2 = scf.for %i = %c0 to %m step %c1 iter_args(%a = %c0, %x = %rows)
      -> (index, !rows) {
    %o = arith.remui %i, %num_rows : index
    %r = kvcache.get_row %x[%o] : !rows
    %y = kvcache.populate %v[%b, %base] : !cache -> !rows
    %q = kvcache.get_row %y[%o] : !rows
    %l = kvcache.get_row %y[%last_row] : !rows
    %a1 = arith.addi %a, %r : index
    %a2 = arith.addi %a1, %q : index
    %a3 = arith.addi %a2, %l : index
    scf.yield %a3, %y : index, !rows
  }
  return %s#0 : index""",
)
def rows(k, v, b, t, m, n):
    count = num_rows(k)
    total, x = 0, (0, 0)
    for i in runs(0, m):
        y = (b, 0)
        total += k.get_row(*x, i % count, count, count)
        total += k.get_row(*y, i % count, count, count)
        total += k.get_row(*y, count - 1, count, count)
        x = y
    return total


def num_rows(view):
    return 2 * view.page_size if view.table.ndim == 2 else 1


@functools.cache
def compile_functions(shape, pipeline, optimize):
    source = Source(shape)
    size = shape.numpy.itemsize
    page = f", page_size = {shape.page_size}" if shape.page_size else ""
    count = 2 * shape.page_size if shape.page_size else 1
    source.functions.append(
        f"!element = {shape.dtype}\n!bits = i{8 * size}\n"
        f"!tile = memref<1x{shape.head_size}x{shape.dtype}, strided<[{shape.row}, 1], offset: ?>>\n"
        f"!rows = !kvcache.row_indices<rows = {count}{page}>\n"
    )
    for name, (body, helpers, _) in FUNCTIONS.items():
        source.functions.append(string.Template(helpers).substitute(view=f"{shape.kind}_view"))
        constants = f"""  %heads = arith.constant {shape.heads} : index
  %size = arith.constant {shape.head_size} : index
  %num_rows = arith.constant {count} : index
  %last_row = arith.constant {count - 1} : index
  %c1_or_0 = arith.constant {min(1, shape.heads - 1)} : index
"""
        for extra, text in EXTRAS.items():
            if extra in body:
                constants += text
        source.add(
            name,
            [f"{index}: index" for index in "btmn"],
            constants + body,
            "index",
            views="%k = key, %v = value",
        )
    return source.compile(*PIPELINES[pipeline], opt_level=2 if optimize else 0)


# Made only when needed, because they read memory.
EXTRAS = {
    "%tokens": "  %tokens = kvcache.extent tokens %k : !cache\n",
    "%first,": """  %runs = arith.minsi %m, %n : index
  %any = arith.cmpi sgt, %runs, %c0 : index
  %first = scf.if %any -> (!element) {
    %element = kvcache.load %k[%b, %c0, %c0, %c0] : !cache -> !element
    scf.yield %element : !element
  } else {
    %element = ub.poison : !element
    scf.yield %element : !element
  }
""",
    "%first_b": "  %first_b = arith.constant 0 : index\n",
    "%base": "  %base = arith.constant 0 : index\n",
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("pipeline", PIPELINES)
@given(st.data())
@examples(6)
def test_passes_keep_the_meaning(shape, pipeline, data):
    optimize = is_optimized(shape, pipeline, every=2) and data.draw(st.booleans())
    program = compile_functions(shape, pipeline, optimize)
    max_tokens = 4 * (shape.page_size or 5)
    cache = data.draw(caches(shape, max_tokens, 2 * (shape.page_size or 1)))
    layer = data.draw(st.integers(0, cache.shape[2] - 1))
    b = data.draw(st.integers(0, len(cache.lengths) - 1))
    t = data.draw(st.integers(0, cache.view(0, 0).tokens() - 1))
    for name, (_, _, meaning) in FUNCTIONS.items():
        m, n = (data.draw(st.integers(-2, 5)) for _ in range(2))
        expected = cache.with_memory(cache.memory.copy())
        result = meaning(expected.view(0, layer), expected.view(1, layer), b, t, m, n)
        got = program.call(name, *cache.arguments(shape.numpy), layer, b, t, m, n)
        assert got == (result + 2**63) % 2**64 - 2**63, name
        np.testing.assert_array_equal(cache.memory, expected.memory, err_msg=name)


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("pipeline", PIPELINES)
@given(st.data())
@examples(3)
def test_no_trips_read_nothing(shape, pipeline, data):
    """Tests invalid indices, and tables next to guard pages."""
    cache = data.draw(
        caches(shape, 4 * (shape.page_size or 5), 2 * (shape.page_size or 1))
    )
    where = data.draw(st.sampled_from(("at_end", "at_start")))
    arguments = (
        cache.blocks(shape.numpy),
        guard(cache.lengths, where),
        guard(cache.table, where),
        0,
        0,
        0,
    )
    never = data.draw(st.sampled_from(((0, 0), (-1, 3), (-(2**40), -1))))
    for optimize in {False, is_optimized(shape, pipeline, every=2)}:
        program = compile_functions(shape, pipeline, optimize)
        for b, t in ((2**20, 0), (2**30, 2**30), (2**40, 2**31 - 1)):
            for name in FUNCTIONS.keys() - {"carried", "chosen", "branches"}:
                assert program.call(name, *arguments, b, t, *never) == 0
