"""Tests of caches next to guard pages: nothing outside of the arguments may be accessed.

The memory beyond the edges can't be read, so an access there ends the process. Caches of more than 2^31 elements are
sparse: only accessed pages take memory.
"""

import functools

import numpy as np
import pytest
from devices import spread
from hypothesis import given
from hypothesis import strategies as st
from model import Cache, ContinuousView, PagedView
from programs import (
    Shape,
    Source,
    examples,
    guard,
    random_encodings,
    small_cache,
    sparse,
)

each_end = pytest.mark.parametrize("where", ["at_end", "at_start"])


def beside_guards(cache, where):
    """A copy of the cache, with table and lengths next to guard pages."""
    return cache.with_tables(guard(cache.table, where), guard(cache.lengths, where))


# The table and the lengths

SHAPES = [
    Shape("f32", 1, 4, 1),
    Shape("bf16", 2, 8, 3),
    Shape("f8E4M3FN", 2, 16, 48),
    Shape("bf16", 2, 8, 16, mla=True),
    Shape("f16", 1, 8, None),
]
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)
PAGES_OF_ROWS = (1, 2, 3, 4, 6, 8, 12, 16)


def rows_type(shape, pages):
    page = f", page_size = {shape.page_size}" if shape.page_size else ""
    return f"!kvcache.row_indices<rows = {pages * (shape.page_size or 1)}{page}>"


@functools.cache
def compile_lookups(shape):
    source = Source(shape)
    for op, indices, result in (
        ("cache_length", "%b", "index"),
        ("row_index", "%b, %t", "index"),
        ("page_id", "%b, %t", "index"),
        ("load", "%b, %c0, %t, %c0", shape.dtype),
    ):
        arrow = f" -> {result}" if op == "load" else ""
        once = f"  %r = kvcache.{op} %k[{indices}] : !cache{arrow}\n"
        parameters = ["b: index", "t: index"]
        source.add(op, parameters, f"{once}  return %r : {result}", result)
        # Loops that may not run: the sequence and the token need not exist.
        source.add(
            f"{op}_in_loops",
            [*parameters, "m: index", "n: index", f"out: memref<1x{result}>"],
            f"""  %count = scf.for %i = %c0 to %m step %c1 iter_args(%s = %c0) -> (index) {{
    %inner = scf.for %j = %i to %n step %c1 iter_args(%q = %s) -> (index) {{
{once}      memref.store %r, %out[%c0] : memref<1x{result}>
      %next = arith.addi %q, %c1 : index
      scf.yield %next : index
    }}
    scf.yield %inner : index
  }}
  return %count : index""",
            "index",
        )
    for pages in PAGES_OF_ROWS:
        for unit in (1, 2, 8) if shape.page_size else (1,):
            alignment = unit * (shape.page_size or 1)
            source.add(
                f"populate_{pages}_{unit}",
                ["b: index", "t: index", "o: index"],
                f"""  %rows = kvcache.populate %k[%b, %t] {{base_alignment = {alignment}}}
         : !cache -> {rows_type(shape, pages)}
  %r = kvcache.get_row %rows[%o] : {rows_type(shape, pages)}
  %last = arith.constant {pages * (shape.page_size or 1) - 1} : index
  %q = kvcache.get_row %rows[%last] : {rows_type(shape, pages)}
  return %r, %q : index, index""",
                "index, index",
            )
    return source.compile()


@each_shape
@each_end
@pytest.mark.parametrize("columns", [1, 2, 3, 8, 17])
def test_lookups_stay_in_the_table(shape, where, columns):
    program = compile_lookups(shape)
    cache = beside_guards(small_cache(shape, batch=3, columns=columns), where)
    view = cache.view(0, 0)
    arguments = (*cache.arguments(shape.numpy), 0)
    for b in range(3):
        assert program.call("cache_length", *arguments, b, 0) == view.cache_length(b)
        for t in {0, view.tokens() // 2, view.tokens() - 1}:
            assert program.call("row_index", *arguments, b, t) == view.row_index(b, t)
            assert program.call("page_id", *arguments, b, t) == view.page_id(b, t)
            program.call("load", *arguments, b, t)


@each_shape
@each_end
@pytest.mark.parametrize("columns", [1, 2, 3, 8, 17])
def test_populate_stays_in_the_table(shape, where, columns):
    program = compile_lookups(shape)
    cache = beside_guards(small_cache(shape, batch=3, columns=columns), where)
    view = cache.view(0, 0)
    P = shape.page_size or 1
    for pages in PAGES_OF_ROWS:
        rows = pages * P
        if rows > view.tokens():
            continue
        for unit in (1, 2, 8) if shape.page_size else (1,):
            first = (view.tokens() - rows) // P
            for column in {0, first // unit * unit}:
                for b, offset in ((0, rows - 1), (2, rows - 1), (2, 0), (2, rows // 2)):
                    base = column * P
                    got = program.call(
                        f"populate_{pages}_{unit}",
                        *cache.arguments(shape.numpy),
                        0,
                        b,
                        base,
                        offset,
                    )
                    expected = (
                        view.get_row(b, base, o, rows, P) for o in (offset, rows - 1)
                    )
                    assert got == tuple(expected)


@each_shape
@each_end
@pytest.mark.parametrize("op", ["cache_length", "row_index", "page_id", "load"])
def test_loops_that_do_not_run_read_nothing(shape, where, op):
    program = compile_lookups(shape)
    cache = beside_guards(small_cache(shape, batch=3, columns=2), where)
    arguments = (*cache.arguments(shape.numpy), 0)
    last = cache.view(0, 0).tokens() - 1
    out = np.zeros(1, shape.numpy if op == "load" else np.int64)
    # No such sequence or token: its entry lies in memory that can't be read.
    for b, t in ((2**20, 0), (3, last), (2**30, 2**30), (2**40, 2**31 - 1)):
        for m, n in ((0, 0), (0, 5), (5, 0), (-3, 4), (4, -3), (-(2**62), -1)):
            assert program.call(f"{op}_in_loops", *arguments, b, t, m, n, out) == 0
    assert program.call(f"{op}_in_loops", *arguments, 2, last, 3, 4, out) == 4 + 3 + 2


# The blocks

EDGES = [
    Shape("f8E4M3FN", 1, 3, 1),
    Shape("bf16", 1, 3, 3),
    Shape("f16", 1, 6, 1),
    Shape("bf16", 3, 12, 7),
    Shape("f32", 1, 3, 5),
    Shape("f8E5M2", 1, 24, 3, mla=True),
    Shape("f32", 2, 64, 2),
    Shape("bf16", 2, 6, None),
]


@pytest.mark.parametrize("shape", EDGES, ids=str)
@each_end
def test_accesses_stay_in_the_blocks(shape, where):
    """Accesses the first and last elements, with nothing before and after them."""
    source = Source(shape)
    widths = [w for w in (1, 2, 3, 4, 6, 8, 12, 16, 32, 64) if shape.head_size % w == 0]
    for width in widths:
        vector, memref = f"vector<{width}x{shape.dtype}>", f"memref<?x{shape.dtype}>"
        for role in shape.roles:
            source.add(
                f"exchange_{role}_{width}",
                [*(f"{index}: index" for index in "bhtd"), f"io: {memref}"],
                f"""  %old = kvcache.load %k[%b, %h, %t, %d] : !cache -> {vector}
  %new = vector.load %io[%c0] : {memref}, {vector}
  kvcache.store %new, %k[%b, %h, %t, %d] : {vector}, !cache
  vector.store %old, %io[%c0] : {memref}, {vector}
  return""",
                views=f"%k = {role}",
            )
    program = source.compile()
    cache = small_cache(shape, batch=1, columns=4, layers=2, spare_pages=0)
    # So that blocks which end at a guard page begin at 16 bytes.
    assert cache.memory.nbytes % 16 == 0
    cache = cache.with_memory(guard(cache.memory, where))
    for width in widths:
        for number, role in enumerate(shape.roles):
            for layer in (0, 1):
                view = cache.view(number, layer)
                for t in range(view.tokens()):
                    for h, d in ((0, 0), (shape.heads - 1, shape.head_size - width)):
                        expected = cache.memory.copy()
                        cache.with_memory(expected).view(number, layer).write(
                            0, h, t, d, np.arange(width)
                        )
                        old = view.read(0, h, t, d, width)
                        io = np.arange(width).astype(shape.uint)
                        program.call(
                            f"exchange_{role}_{width}",
                            *cache.arguments(shape.numpy),
                            layer,
                            *(0, h, t, d),
                            io.view(shape.numpy),
                        )
                        np.testing.assert_array_equal(io, old)
                        np.testing.assert_array_equal(cache.memory, expected)


# More than 2^31 elements

BIG = [
    (Shape("bf16", 8, 128, 64), 8300, 2),
    (Shape("f8E4M3FN", 8, 128, 48), 24000, 1),
    (Shape("f32", 2, 64, 3), 1500000, 2),
    (Shape("bf16", 8, 128, 64, is_open=True), 8300, 2),
    (Shape("f8E5M2", 1, 576, 1, mla=True), 2**31 // 576 // 2 + 300, 3),
]


@functools.cache
def compile_big(shape, target="cpu"):
    source = Source(shape)
    vector, memref = f"vector<8x{shape.dtype}>", f"memref<?x{shape.dtype}>"
    tile = f"memref<1x8x{shape.dtype}, strided<[{shape.row}, 1], offset: ?>>"
    indices = [f"{index}: index" for index in "bhtd"]
    for role in shape.roles:
        source.add(
            f"store_{role}",
            [*indices, f"io: {memref}"],
            f"""  %v = vector.load %io[%c0] : {memref}, {vector}
  kvcache.store %v, %k[%b, %h, %t, %d] : {vector}, !cache
  return""",
            views=f"%k = {role}",
        )
        source.add(
            f"load_{role}",
            [*indices, f"io: {memref}"],
            f"""  %v = kvcache.load %k[%b, %h, %t, %d] : !cache -> {vector}
  vector.store %v, %io[%c0] : {memref}, {vector}
  return""",
            views=f"%k = {role}",
        )
        source.add(
            f"tile_{role}",
            [*indices, f"io: {memref}"],
            f"""  %tile = kvcache.block_tile %k[%b, %h, %t, %d] : !cache -> {tile}
  %v = vector.load %tile[%c0, %c0] : {tile}, {vector}
  vector.store %v, %io[%c0] : {memref}, {vector}
  return""",
            views=f"%k = {role}",
        )
    source.add(
        "row",
        ["b: index", "t: index"],
        "  %r = kvcache.row_index %k[%b, %t] : !cache\n  return %r : index",
        "index",
    )
    source.add(
        "rows",
        [],
        "  %r = kvcache.num_kv_rows %k : !cache\n  return %r : index",
        "index",
    )
    return source.compile(target=target)


def check_big(cache, shape, target="cpu"):
    program = compile_big(shape, target)
    rng = np.random.default_rng(1)
    view = cache.view(0, 0)
    assert cache.memory.size > 2**31
    assert program.call("rows", *cache.arguments(shape.numpy), 0) == view.num_kv_rows()
    for number, role in enumerate(shape.roles):
        for layer in {0, cache.shape[2] - 1}:
            view = cache.view(number, layer)
            arguments = (*cache.arguments(shape.numpy), layer)
            for b in range(len(cache.lengths)):
                for t in {0, view.tokens() // 2, view.tokens() - 1}:
                    h, d = shape.heads - 1, shape.head_size - 8
                    address = view.address(b, h, t, d)
                    values = random_encodings(rng, 8, shape.dtype)
                    out = np.zeros_like(values)
                    at = (b, h, t, d)
                    program.call(
                        f"store_{role}", *arguments, *at, values.view(shape.numpy)
                    )
                    np.testing.assert_array_equal(
                        cache.memory[address : address + 8], values
                    )
                    assert not cache.memory[address - 8 : address].any()
                    for op in ("load", "tile"):
                        out[...] = 0
                        program.call(
                            f"{op}_{role}", *arguments, *at, out.view(shape.numpy)
                        )
                        np.testing.assert_array_equal(out, values)
                    cache.memory[address : address + 8] = 0
                    assert program.call("row", *arguments, b, t) == view.row_index(b, t)


@pytest.mark.parametrize("shape, pages, layers", BIG, ids=str)
def test_pages_beyond_2_31_elements(shape, pages, layers):
    check_pages_beyond(shape, pages, layers)


@pytest.mark.parametrize(("case", "target"), spread(BIG[:3]))
def test_pages_beyond_2_31_elements_in_kernels(case, target):
    check_pages_beyond(*case, target)


def check_pages_beyond(shape, pages, layers, target="cpu"):
    roles = len(shape.roles)
    layer = shape.page_size * shape.row
    distance = roles * layers * layer
    # The last pages, and those on both sides of element 2^31.
    border = 2**31 // distance
    table = np.array(
        [[pages - 1, border - 1, border], [0, border + 1, pages - 2]], np.uint32
    )
    cache = Cache(
        PagedView,
        sparse(pages * distance, shape.uint),
        0,
        (pages, roles, layers, shape.page_size, shape.heads, shape.head_size),
        (distance, layers * layer, layer),
        table,
        np.zeros(2, np.uint32),
    )
    check_big(cache, shape, target)


@pytest.mark.parametrize("target", ["cpu", "emulator:sm_90a"])
def test_rows_beyond_2_31_elements_of_a_page(target):
    """A type with a page size can't have so many."""
    shape = Shape("f8E4M3FN", 1, 16, 2**28, mla=True, is_open=True)
    page = shape.page_size * shape.row
    cache = Cache(
        PagedView,
        sparse(4 * page, shape.uint),
        0,
        (4, 1, 1, shape.page_size, shape.heads, shape.head_size),
        (page, page, page),
        np.array([[3, 1], [0, 2]], np.uint32),
        np.zeros(2, np.uint32),
    )
    check_big(cache, shape, target)


def test_layers_and_roles_beyond_2_31_elements():
    """Layers and roles are far apart instead of pages."""
    shape = Shape("f8E4M3FN", 4, 64, 16)
    layer = shape.page_size * shape.row
    cache = Cache(
        PagedView,
        sparse(2**32 + 2**31 + 10 * layer, shape.uint),
        0,
        (5, 2, 2, shape.page_size, shape.heads, shape.head_size),
        (layer, 2**31 + 5 * layer, 2**31 + 2**30),
        np.array([[4, 1], [0, 3]], np.uint32),
        np.zeros(2, np.uint32),
    )
    check_big(cache, shape)


def test_blocks_beyond_2_31_elements():
    """One block of a continuous cache has more."""
    shape = Shape("f8E4M3FN", 2, 64, None)
    tokens = 2**31 // 128 + 1000
    block = tokens * 128
    cache = Cache(
        ContinuousView,
        sparse(2 * 2 * block, shape.uint),
        0,
        (2, 2, 1, tokens, 2, 64),
        (2 * block, block, block),
        np.array([1, 0], np.uint32),
        np.zeros(2, np.uint32),
    )
    check_big(cache, shape)


# Empty pages


@pytest.mark.parametrize("shape", SHAPES[:4], ids=str)
@given(st.data())
@examples(10)
def test_tokens_past_the_used_pages(shape, data):
    """Unused entries name the sentinel page, whose content is read."""
    cache = small_cache(shape, batch=2, columns=5, spare_pages=1)
    sentinel = cache.shape[0] - 1
    used = data.draw(st.integers(0, 4))
    cache.table[:, used:] = sentinel
    program = compile_scalar_load(shape)
    for t in range(cache.view(0, 0).tokens()):
        for layer in (0, 1):
            view = cache.view(0, layer)
            out = np.zeros(1, shape.uint)
            arguments = (
                *cache.arguments(shape.numpy),
                layer,
                1,
                t,
                out.view(shape.numpy),
            )
            program.call("load", *arguments)
            assert out[0] == view.read(1, 0, t, 0)[0]
            if t // shape.page_size >= used:
                inside = view.base + sentinel * view.page_distance
                assert out[0] == view.memory[inside + t % shape.page_size * shape.row]


@functools.cache
def compile_scalar_load(shape):
    source = Source(shape)
    memref = f"memref<1x{shape.dtype}>"
    source.add(
        "load",
        ["b: index", "t: index", f"out: {memref}"],
        f"""  %v = kvcache.load %k[%b, %c0, %t, %c0] : !cache -> {shape.dtype}
  memref.store %v, %out[%c0] : {memref}
  return""",
    )
    return source.compile()


def test_sequences_may_share_rows_of_the_table():
    shape = SHAPES[1]
    cache = small_cache(shape, batch=1, columns=4)
    shared = np.lib.stride_tricks.as_strided(cache.table, (3, 4), (0, 4))
    cache = cache.with_tables(shared, np.arange(3, dtype=np.uint32))
    program = compile_lookups(shape)
    for b in range(3):
        got = program.call("row_index", *cache.arguments(shape.numpy), 0, b, 11)
        assert got == cache.view(0, 0).row_index(0, 11)
