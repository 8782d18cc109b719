"""Tests of bounds checks: wrong indices raise with line and numbers, right ones pass."""

import functools
import re

import numpy as np
import pytest
from devices import spread
from hypothesis import given
from hypothesis import strategies as st
from programs import Shape, Source, caches, examples, guard, small_cache

import kvcache

PAGED = Shape("bf16", 2, 8, 4)
CONTINUOUS = Shape("f32", 2, 8, None)
MLA = Shape("f8E4M3FN", 1, 64, 16, mla=True)
SHAPES = (PAGED, CONTINUOUS, MLA)

ROWS = {PAGED: (1, 2, 4, 8, 12), CONTINUOUS: (1, 6), MLA: (16, 64)}


def tile_tokens(shape):
    return 2 if shape.page_size else 3


@functools.cache
def make_source(shape):
    source = Source(shape)
    tile_type = f"memref<{tile_tokens(shape)}x4x{shape.dtype}, strided<[{shape.row}, 1], offset: ?>>"
    vector = f"vector<4x{shape.dtype}>"
    memref = f"memref<4x{shape.dtype}>"
    indices = [f"{index}: index" for index in "bhtd"]
    for name, parameters, body, results in (
        ("cache_length", "b", "kvcache.cache_length %k[%b] : !cache", "index"),
        ("length", "b", "kvcache.cache_length %c[%b] : !collection", "index"),
        ("page_id", "bt", "kvcache.page_id %k[%b, %t] : !cache", "index"),
        ("row_index", "bt", "kvcache.row_index %k[%b, %t] : !cache", "index"),
        ("known_page", "btp", "kvcache.row_index %k[%b, %t] page %p : !cache", "index"),
        ("tma_row", "e", "kvcache.tma_row %k[%e] : !cache", "index"),
        ("col_index", "h", "kvcache.col_index %k[%h] : !cache", "index"),
    ):
        source.add(
            name,
            [f"{parameter}: index" for parameter in parameters],
            f"  %r = {body}\n  return %r : {results}",
            results,
        )
    if shape.page_size:
        source.add(
            "tma_coords",
            ["b: index", "t: index"],
            "  %r, %p = kvcache.tma_coords %k[%b, %t] : !cache\n"
            "  return %r, %p : index, index",
            "index, index",
        )
    source.add(
        "load",
        [*indices, f"io: {memref}"],
        f"""  %v = kvcache.load %k[%b, %h, %t, %d] : !cache -> {vector}
  vector.store %v, %io[%c0] : {memref}, {vector}
  return""",
    )
    source.add(
        "load_scalar",
        [*indices, f"io: {memref}"],
        f"""  %v = kvcache.load %k[%b, %h, %t, %d] : !cache -> {shape.dtype}
  memref.store %v, %io[%c0] : {memref}
  return""",
    )
    source.add(
        "store",
        [*indices, f"io: {memref}"],
        f"""  %v = vector.load %io[%c0] : {memref}, {vector}
  kvcache.store %v, %k[%b, %h, %t, %d] : {vector}, !cache
  return""",
    )
    source.add(
        "block_tile",
        [*indices, f"io: {memref}"],
        f"""  %m = kvcache.block_tile %k[%b, %h, %t, %d] : !cache -> {tile_type}
  %v = vector.load %m[%c1, %c0] : {tile_type}, {vector}
  vector.store %v, %io[%c0] : {memref}, {vector}
  return""",
    )
    page = f", page_size = {shape.page_size}" if shape.page_size else ""
    for rows in ROWS[shape]:
        type = f"!kvcache.row_indices<rows = {rows}{page}>"
        source.add(
            f"populate_{rows}",
            [f"{index}: index" for index in "bto"],
            f"""  %rows = kvcache.populate %k[%b, %t] : !cache -> {type}
  %r = kvcache.get_row %rows[%o] : {type}
  return %r : index""",
            "index",
        )
    if shape is PAGED:
        type = "!kvcache.row_indices<rows = 3, page_size = 4>"
        source.add(
            "within",
            [f"{index}: index" for index in "bto"],
            f"""  %rows = kvcache.populate %k[%b, %t] {{base_alignment = 1}} : !cache -> {type}
  %r = kvcache.get_row %rows[%o] : {type}
  return %r : index""",
            "index",
        )
    return source


@functools.cache
def compile_checked(shape, target="cpu"):
    source = make_source(shape)
    options = {"filename": "some/cache.mlir", "bounds_checks": True}
    program = source.compile(target=target, **options)
    return program, source.text.splitlines()


def find_line(lines, function, op):
    """The line of the first op of a name in a function, from 1."""
    start = next(i for i, line in enumerate(lines) if f"@{function}(" in line)
    return next(i for i in range(start, len(lines)) if op in lines[i]) + 1


def io(shape):
    return np.zeros(4, shape.uint).view(shape.numpy)


def check_fails(shape, cache, function, indices, what, value, bound, op=None, layer=0):
    program, lines = compile_checked(shape)
    op = op or f"kvcache.{function}"
    memory = cache.memory.copy()
    extra = (io(shape),) if function.startswith(("load", "store", "block")) else ()
    with pytest.raises(kvcache.CheckError) as raised:
        program.call(function, *cache.arguments(shape.numpy), layer, *indices, *extra)
    message = str(raised.value)
    line = find_line(lines, function, op)
    pattern = (
        rf"some/cache\.mlir:{line}:\d+: error: '{op}' op {what},? is out of range: "
        rf"{value} is not in \[0, {bound}\)"
    )
    assert re.fullmatch(pattern, message), (message, pattern)
    # Nothing is written.
    np.testing.assert_array_equal(cache.memory, memory)


def make_cache(shape):
    """A cache of two sequences of three pages (nine tokens), two layers; tables next to a guard."""
    cache = small_cache(shape, batch=2, columns=4 if shape is MLA else 3)
    return cache.with_tables(
        guard(cache.table, "at_end"), guard(cache.lengths, "at_end")
    )


def check_fails_in_kernel(shape, target, cache, function, indices, op, what):
    program, _ = compile_checked(shape, target)
    memory = cache.memory.copy()
    extra = (io(shape),) if function.startswith(("load", "store", "block")) else ()
    with pytest.raises(kvcache.CheckError) as raised:
        program.call(function, *cache.arguments(shape.numpy), 0, *indices, *extra)
    pattern = (
        rf"(?s).*launch of @{function}_kernel::@{function}_kernel: some/cache\.mlir:\d+:\d+: llvm\.call: "
        rf"thread \(0, 0, 0\) of block \(0, 0, 0\) fails an assertion: "
        rf"some/cache\.mlir:\d+: .*'{op}' op {what},? .*` failed: -?\d+ is not in \[0, \d+\)"
    )
    assert re.fullmatch(pattern, str(raised.value)), str(raised.value)
    np.testing.assert_array_equal(cache.memory, memory)


@pytest.mark.parametrize(("shape", "target"), spread(SHAPES))
def test_kernels_check_indices(shape, target):
    cache = small_cache(shape, batch=2, columns=4 if shape is MLA else 3)
    tokens = cache.view(0, 0).tokens()
    outside = {"b": ("sequence", 2), "t": ("token", tokens), "h": ("head", shape.heads), "d": ("element", -4)}
    for index, (what, wrong) in outside.items():
        for name, indices, op in functions_with(shape, index):
            if name == "load_scalar" and index == "d":
                continue
            arguments = at(indices, **{index: wrong})
            check_fails_in_kernel(shape, target, cache, name, arguments, op, what)
    for name, indices, op in functions_with(shape, "t"):
        wrong = cache.with_tables(np.full_like(cache.table, 2**31), cache.lengths)
        check_fails_in_kernel(shape, target, wrong, name, at(indices), op, "page id")
    program, _ = compile_checked(shape, target)
    got = program.call("row_index", *cache.arguments(shape.numpy), 0, 1, tokens - 1)
    assert got == cache.view(0, 0).row_index(1, tokens - 1)


each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)
HUGE = (2**31, 2**32, 2**63 - 1, -1, -(2**63))
BATCHED = {
    "cache_length": ("b", "kvcache.cache_length"),
    "length": ("b", "kvcache.cache_length"),
    "page_id": ("bt", "kvcache.page_id"),
    "row_index": ("bt", "kvcache.row_index"),
    "tma_coords": ("bt", "kvcache.tma_coords"),
    "load": ("bhtd", "kvcache.load"),
    "load_scalar": ("bhtd", "kvcache.load"),
    "store": ("bhtd", "kvcache.store"),
    "block_tile": ("bhtd", "kvcache.block_tile"),
}


def functions_with(shape, index):
    for name, (indices, op) in BATCHED.items():
        if index in indices and not (name == "tma_coords" and not shape.page_size):
            yield name, indices, op
    if index in "bt":
        for rows in ROWS[shape]:
            yield f"populate_{rows}", "bto", "kvcache.populate"


def at(indices, **given):
    return [given.get(index, 0) for index in indices]


@each_shape
@pytest.mark.parametrize("layer", [2, *HUGE])
def test_layers(shape, layer):
    cache = make_cache(shape)
    program, lines = compile_checked(shape)
    with pytest.raises(kvcache.CheckError) as raised:
        program.call("row_index", *cache.arguments(shape.numpy), layer, 0, 0)
    op = f"kvcache.{shape.kind}_view"
    assert f"some/cache.mlir:{find_line(lines, 'row_index', op)}:" in str(raised.value)
    assert f"'{op}' op layer is out of range: {layer} is not in [0, 2)" in str(
        raised.value
    )


@each_shape
@pytest.mark.parametrize("b", [2, *HUGE])
def test_sequences(shape, b):
    for name, indices, op in functions_with(shape, "b"):
        check_fails(
            shape, make_cache(shape), name, at(indices, b=b), "sequence", b, 2, op
        )


@each_shape
@pytest.mark.parametrize("h", [2, *HUGE])
def test_heads(shape, h):
    heads = shape.heads
    for name, indices, op in functions_with(shape, "h"):
        check_fails(
            shape, make_cache(shape), name, at(indices, h=h), "head", h, heads, op
        )
    check_fails(shape, make_cache(shape), "col_index", [h], "head", h, heads)


@each_shape
@pytest.mark.parametrize("t", [None, *HUGE])
def test_tokens(shape, t):
    cache = make_cache(shape)
    tokens = cache.view(0, 0).tokens()
    t = tokens if t is None else t
    for name, indices, op in functions_with(shape, "t"):
        check_fails(shape, cache, name, at(indices, t=t), "token", t, tokens, op)


@each_shape
@pytest.mark.parametrize("d", [None, *HUGE])
def test_elements(shape, d):
    size = shape.head_size
    for name in ("load", "store", "block_tile"):
        wrong = size if d is None else d
        check_fails(
            shape, make_cache(shape), name, (0, 0, 0, wrong), "element", wrong, size - 3
        )
    wrong = size if d is None else d
    check_fails(
        shape,
        make_cache(shape),
        "load_scalar",
        (0, 0, 0, wrong),
        "element",
        wrong,
        size,
        "kvcache.load",
    )


@each_shape
@pytest.mark.parametrize("d", [1, 2, 3])
def test_misaligned_elements(shape, d):
    for name in ("load", "store", "block_tile"):
        what = "element modulo 4, which must be 0"
        check_fails(shape, make_cache(shape), name, (0, 0, 0, d), what, d, 1)


@each_shape
def test_misaligned_tiles(shape):
    tokens = tile_tokens(shape)
    what = f"token modulo {tokens}, which must be 0"
    check_fails(shape, make_cache(shape), "block_tile", (0, 0, 1, 0), what, 1, 1)


def test_tiles_past_the_end():
    cache = make_cache(CONTINUOUS)
    tokens = cache.view(0, 0).tokens()
    assert tokens == 9
    check_fails(CONTINUOUS, cache, "block_tile", (0, 0, 8, 0), "last token", 10, 9)


@pytest.mark.parametrize("page", [7, 2**31, 2**32 - 1])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_page_ids_of_the_table(shape, page):
    for name, indices, op in functions_with(shape, "t"):
        cache = make_cache(shape)
        pages = cache.shape[0]
        page = max(page, pages)
        # The second page of the second sequence; its block.
        entry = (1, 1) if shape.page_size else 1
        cache.table[entry] = page
        rows = int(name[9:]) if name.startswith("populate") else 1
        given = {"b": 1, "t": (shape.page_size or 0) // rows * rows}
        check_fails(
            shape, cache, name, at(indices, **given), "page id", page, pages, op
        )
        # Other pages are right.
        program, _ = compile_checked(shape)
        extra = (io(shape),) if name.startswith(("load", "store", "block")) else ()
        arguments = (*cache.arguments(shape.numpy), 0, *at(indices, b=0))
        program.call(name, *arguments, *extra)


@pytest.mark.parametrize("page", [7, 2**31, -1])
def test_known_pages(page):
    what = ("page id", page, 7, "kvcache.row_index")
    check_fails(PAGED, make_cache(PAGED), "known_page", (0, 0, page), *what)


@pytest.mark.parametrize("shape", (PAGED, MLA), ids=str)
def test_encoded_rows(shape):
    cache = make_cache(shape)
    pages = cache.shape[0]
    program, _ = compile_checked(shape)
    for offset in (0, shape.page_size - 1):
        for page in (pages, 2**31, 2**40):
            encoded = page * shape.page_size + offset
            what = "page of the encoded row id"
            check_fails(shape, cache, "tma_row", [encoded], what, page, pages)
        for page in (0, pages - 1):
            encoded = page * shape.page_size + offset
            got = program.call("tma_row", *cache.arguments(shape.numpy), 0, encoded)
            assert got == cache.view(0, 0).tma_row(encoded)
    for encoded in (-1, -(2**63)):
        got = program.call("tma_row", *cache.arguments(shape.numpy), 0, encoded)
        assert got == encoded


@each_shape
@pytest.mark.parametrize("offset", [0, 1, *HUGE])
def test_row_offsets(shape, offset):
    for rows in ROWS[shape]:
        wrong = offset + rows if offset in (0, 1) else offset
        check_fails(
            shape,
            make_cache(shape),
            f"populate_{rows}",
            (1, 0, wrong),
            "row offset",
            wrong,
            rows,
            "kvcache.get_row",
        )


@each_shape
def test_bases(shape):
    cache = small_cache(shape, batch=2, columns=8)
    for rows in ROWS[shape]:
        if rows == 1:
            continue
        for base in (1, rows - 1):
            what = f"base modulo {rows}, which must be 0"
            values = (what, base, 1, "kvcache.populate")
            check_fails(shape, cache, f"populate_{rows}", (1, base, 0), *values)


def test_rows_of_one_page():
    """Three rows begin at the first or second row of a page of four."""
    cache = make_cache(PAGED)
    program, _ = compile_checked(PAGED)
    view = cache.view(0, 0)
    for base in range(10):
        if base % 4 < 2:
            got = program.call("within", *cache.arguments(PAGED.numpy), 0, 1, base, 2)
            assert got == view.get_row(1, base, 2, 3, 1)
        else:
            last = base % 4 + 2
            values = ("last row in the base's page", last, 4, "kvcache.populate")
            check_fails(PAGED, cache, "within", (1, base, 0), *values)


def test_rows_past_the_table():
    """A row of the table has three pages."""
    values = ("last token", 15, 12, "kvcache.populate")
    check_fails(PAGED, make_cache(PAGED), "populate_8", (1, 8, 0), *values)
    values = ("token", 12, 12, "kvcache.populate")
    check_fails(PAGED, make_cache(PAGED), "populate_12", (0, 12, 0), *values)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@given(st.data())
@examples(30)
def test_right_programs_pass(shape, data):
    checked, _ = compile_checked(shape)
    plain = compile_plain(shape)
    cache = data.draw(caches(shape, 2 * max(ROWS[shape]), max(ROWS[shape])))
    view = cache.view(0, 0)
    layer = data.draw(st.integers(0, cache.shape[2] - 1))
    drawn = {
        "b": data.draw(st.integers(0, len(cache.lengths) - 1)),
        "t": data.draw(st.integers(0, view.tokens() - 1)),
        "h": data.draw(st.integers(0, shape.heads - 1)),
        "d": 4 * data.draw(st.integers(0, shape.head_size // 4 - 1)),
        "e": data.draw(st.integers(-9, cache.shape[0] * (shape.page_size or 1) - 1)),
    }
    for name, indices, _ in [
        *functions_with(shape, "b"),
        ("tma_row", "e", None),
        ("col_index", "h", None),
    ]:
        given_here = dict(drawn)
        step = tile_tokens(shape) if name == "block_tile" else 1
        if name.startswith("populate"):
            step = int(name[9:])
            given_here["o"] = data.draw(st.integers(0, step - 1))
        given_here["t"] = min(drawn["t"], view.tokens() - step) // step * step
        results = []
        for program in (checked, plain):
            out = np.arange(4).astype(shape.uint)
            extra = (
                (out.view(shape.numpy),)
                if name.startswith(("load", "store", "block"))
                else ()
            )
            answer = program.call(
                name,
                *cache.arguments(shape.numpy),
                layer,
                *at(indices, **given_here),
                *extra,
            )
            results.append((answer, out.tolist(), cache.memory.tobytes()))
        assert results[0] == results[1], name


@functools.cache
def compile_plain(shape):
    return make_source(shape).compile()


def test_checks_in_loops_that_do_not_run():
    source = Source(PAGED)
    source.add(
        "loop",
        ["b: index", "t: index", "n: index"],
        """  %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0) -> (index) {
    %r = kvcache.row_index %k[%b, %t] : !cache
    %l = kvcache.cache_length %k[%b] : !cache
    %x = arith.addi %a, %r : index
    %y = arith.addi %x, %l : index
    scf.yield %y : index
  }
  return %s : index""",
        "index",
    )
    program = source.compile(bounds_checks=True)
    cache = make_cache(PAGED)
    arguments = (*cache.arguments(PAGED.numpy), 0)
    assert program.call("loop", *arguments, 99, 2**40, 0) == 0
    assert program.call("loop", *arguments, 1, 11, 2) == 2 * cache.view(0, 0).row_index(
        1, 11
    )
    with pytest.raises(kvcache.CheckError, match="sequence is out of range: 99 "):
        program.call("loop", *arguments, 99, 0, 1)
