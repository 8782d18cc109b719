"""Tests of scales as a separate operand, and of their queries, against the NumPy model."""

import functools
import itertools
from dataclasses import replace

import numpy as np
import pytest
from bodies import give, lanes, take
from devices import spread
from hypothesis import given
from hypothesis import strategies as st
from programs import Source, examples, padded_rows, page_span, place
from quantized_programs import INDICES, QuantizedShape, places, quantized_caches

SHAPES = [
    QuantizedShape("f8E4M3FN", 1, 80, 1, False, "f32", 32, own_table=True),
    QuantizedShape("i8", 2, 96, 3, False, "f16", 16, own_table=True),
    QuantizedShape("f8E4M3FN", 1, 320, 64, True, "bf16", 128),
    QuantizedShape("f8E5M2", 3, 64, 48, False, "f8E4M3FN", 24, own_table=True),
    QuantizedShape("f8E4M3FN", 1, 32, 16, False, "f32", 40, own_table=True),
    QuantizedShape("f4E2M1FN", 2, 96, 7, False, "f8E8M0FNU", 32, own_table=True),
]
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)

# (name, op, indices, results): of the scales %s, of the cache %k, and of both.
OF_SCALES = [
    ("num_kv_rows", "", "index"),
    ("max_context_length", "", "index"),
    ("cache_length", "b", "index"),
    ("page_id", "bt", "index"),
    ("row_index", "bt", "index"),
    ("tma_row", "e", "index"),
    ("tma_coords", "bt", "index, index"),
]
OF_CACHES = [
    ("num_scale_rows", "", "index"),
    ("scale_row_index", "bt", "index"),
    ("scale_tma_coords", "bt", "index, index"),
    ("num_kv_rows", "", "index"),
    ("row_index", "bt", "index"),
    ("page_id", "bt", "index"),
    ("tma_coords", "bt", "index, index"),
    ("col_index", "h", "index"),
    ("max_prompt_length", "", "index"),
    ("empty_cache", "", "i1"),
]
EXTENTS = ("batch", "pages", "tokens")


def add_query(source, name, op, view, indices, results, **options):
    operands = f"[{', '.join(f'%{index}' for index in indices)}]" if indices else ""
    type = "!scales" if view == "%s" else "!cache"
    values = ", ".join(f"%r{i}" for i, _ in enumerate(results.split(", ")))
    made = "  %s = kvcache.scales_view %k : !cache\n" if view == "%s" else ""
    body = f"{made}  {values} = kvcache.{op} {view}{operands} : {type}\n"
    body += f"  return {values} : {results}"
    source.add(name, [f"{i}: index" for i in indices], body, results, **options)


@functools.cache
def compile_queries(shape, target="cpu"):
    source = Source(shape)
    for role in shape.roles:
        view = {"views": f"%k = {role}"}
        for op, indices, results in OF_SCALES:
            add_query(
                source, f"of_scales_{op}_{role}", op, "%s", indices, results, **view
            )
        for op, indices, results in OF_CACHES:
            add_query(source, f"{op}_{role}", op, "%k", indices, results, **view)
        for extent in EXTENTS:
            op = f"extent {extent}"
            name = f"extent_{extent}_{role}"
            add_query(source, f"of_scales_{name}", op, "%s", "", "index", **view)
            add_query(source, name, op, "%k", "", "index", **view)
    for pages in (1, 4):
        rows = pages * shape.page_size
        type = f"!kvcache.row_indices<rows = {rows}, page_size = {shape.page_size}>"
        source.add(
            f"get_row_{pages}",
            ["b: index", "base: index", "o: index"],
            f"""  %s = kvcache.scales_view %k : !cache
  %rows = kvcache.populate %s[%b, %base] : !scales -> {type}
  %r = kvcache.get_row %rows[%o] : {type}
  return %r : index""",
            "index",
            views=f"%k = {shape.roles[-1]}",
        )
    return source.compile(target=target)


any_word = st.integers(0, 2**32 - 1) | st.sampled_from((0, 2**31 - 1, 2**31, 2**32 - 1))


@st.composite
def far_caches(draw, shape):
    """Draws caches whose pages may be far apart, with any ids: nothing is read from them."""
    cache = draw(quantized_caches(shape, 5 * shape.page_size, 4 * shape.page_size))
    word = draw(any_word)
    elements, scales = cache.elements, cache.scales
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    table, own = (
        rng.integers(0, 2**32, t.shape, np.uint32)
        for t in (elements.table, scales.table)
    )
    apart = {}
    for name, part, row in (
        ("elements", elements, shape.elements.row),
        ("scales", scales, shape.scales.row),
    ):
        step = int(np.lcm(row, getattr(shape, name).alignment))
        # Rows have 64 bits: the last of the last page is below 2^63.
        most = min(2**28, (2**31 - 1) * row // step)
        least = -(-page_span(part) // step)
        distance = step * draw(
            st.integers(least, most) | st.sampled_from((least, most // 2))
        )
        apart[name] = replace(
            part,
            # Arrays keep no distance along a dimension of one.
            shape=(draw(st.integers(2, 2**31 - 1)), *part.shape[1:]),
            distances=(distance, *part.distances[1:]),
            table=own if name == "scales" and shape.own_table else table,
            max_seq=word,
            max_cache=word,
        )
    return replace(cache, **apart)


@each_shape
@given(st.data())
@examples(25)
def test_queries(shape, data):
    check_queries(shape, data, data.draw(far_caches(shape)))


@pytest.mark.parametrize(("shape", "target"), spread(SHAPES))
@given(st.data())
@examples(3)
def test_queries_in_kernels(shape, target, data):
    cache = data.draw(quantized_caches(shape, 5 * shape.page_size, 4 * shape.page_size))
    elements, scales = (
        padded_rows(part.table) for part in (cache.elements, cache.scales)
    )
    cache = cache.with_tables(elements, scales if shape.own_table else elements)
    check_queries(shape, data, cache, target)


def check_queries(shape, data, cache, target="cpu"):
    program = compile_queries(shape, target)
    layer = data.draw(st.integers(0, cache.elements.shape[2] - 1))
    b = data.draw(st.integers(0, len(cache.elements.lengths) - 1))
    tokens = cache.view(0, 0).tokens()
    t, h = data.draw(st.integers(0, tokens - 1)), shape.heads - 1
    encoded = data.draw(st.integers(-5, shape.page_size * 2**32 - 1))
    given_indices = {"b": b, "t": t, "h": h, "e": encoded}

    def ask(function, *indices):
        return program.call(function, *cache.arguments(shape), layer, *indices)

    for number, role in enumerate(shape.roles):
        view = cache.view(number, layer)
        for op, indices, _ in OF_SCALES:
            at = [given_indices[index] for index in indices]
            answer = getattr(view.scales, op)(*at)
            if op == "tma_coords":
                answer = view.scale_tma_coords(*at)
            assert ask(f"of_scales_{op}_{role}", *at) == answer, op
        assert ask(f"num_scale_rows_{role}") == view.scales.num_kv_rows()
        assert ask(f"scale_row_index_{role}", b, t) == view.scales.row_index(b, t)
        assert ask(f"scale_tma_coords_{role}", b, t) == view.scale_tma_coords(b, t)
        # Queries of elements count bytes if two elements share one.
        assert ask(f"num_kv_rows_{role}") == view.elements.num_kv_rows()
        assert ask(f"row_index_{role}", b, t) == view.elements.row_index(b, t)
        assert ask(f"page_id_{role}", b, t) == view.elements.page_id(b, t)
        assert ask(f"tma_coords_{role}", b, t) == view.elements.tma_coords(b, t)
        assert ask(f"col_index_{role}", h) == h * shape.head_size
        assert ask(f"max_prompt_length_{role}") == view.elements.max_prompt_length()
        assert ask(f"empty_cache_{role}") == view.elements.empty_cache()
        for name, part in (("", cache.elements), ("of_scales_", cache.scales)):
            assert ask(f"{name}extent_batch_{role}") == len(part.lengths)
            assert ask(f"{name}extent_pages_{role}") == part.shape[0]
            columns = part.table.shape[1] * shape.page_size
            assert ask(f"{name}extent_tokens_{role}") == columns
    view = cache.view(len(shape.roles) - 1, layer).scales
    for pages in (1, 4):
        rows = pages * shape.page_size
        base = rows * data.draw(st.integers(0, tokens // rows - 1))
        for offset in (0, rows - 1, data.draw(st.integers(0, rows - 1))):
            answer = view.get_row(b, base, offset, rows, rows)
            assert ask(f"get_row_{pages}", b, base, offset) == answer


# Access


def list_windows(shape):
    """(tokens, columns) of windows."""
    P, groups = shape.page_size, shape.groups
    return sorted({(P, groups), (1, 1), (1, groups), (P, 1)})


def copy_elements(ends, types, tokens, columns):
    """A copy in a kernel, which has no memref.copy."""
    return f"""  %tokens = arith.constant {tokens} : index
  %columns = arith.constant {columns} : index
  scf.for %i = %c0 to %tokens step %c1 {{
    scf.for %j = %c0 to %columns step %c1 {{
      %x = memref.load {ends[0]}[%i, %j] : {types[0]}
      memref.store %x, {ends[1]}[%i, %j] : {types[1]}
    }}
  }}"""


@functools.cache
def compile_accesses(shape, target="cpu"):
    source = Source(shape)
    memref = f"memref<?x{shape.scale}>"
    made = "  %s = kvcache.scales_view %k : !cache\n"
    # The two names of an access to scales by their view, in turn.
    names = itertools.cycle((("load", "store_scale"), ("load_scale", "store")))
    for role in shape.roles:
        view = {"views": f"%k = {role}"}
        for width, (load, store) in zip(shape.scale_widths(), names, strict=False):
            type = lanes(width, shape.scale)
            source.add(
                f"load_{role}_{width}",
                [*INDICES, f"io: {memref}"],
                f"{made}  %v = kvcache.{load} %s[%b, %h, %t, %d] : !scales -> {type}\n"
                f"{give('%v', ('%io', memref), type)}  return",
                **view,
            )
            source.add(
                f"store_{role}_{width}",
                [*INDICES, f"io: {memref}"],
                f"{made}{take('%v', ('%io', memref), type)}"
                f"  kvcache.{store} %v, %s[%b, %h, %t, %d] : {type}, !scales\n  return",
                **view,
            )
    row = shape.heads * shape.groups
    for tokens, columns in list_windows(shape):
        copy = f"memref<{tokens}x{columns}x{shape.scale}>"
        tile = (
            f"memref<{tokens}x{columns}x{shape.scale}, strided<[{row}, 1], offset: ?>>"
        )
        view = "%k", "!cache"
        if tokens == 1:
            view = "%s", "!scales"
        for name, op in (
            ("tile", "block_tile %s[%b, %h, %t, %d] : !scales"),
            (
                "scales_tile",
                f"scales_block_tile {view[0]}[%b, %h, %t, %d] : {view[1]}",
            ),
        ):
            for direction, ends in (("read", "%m, %io"), ("write", "%io, %m")):
                types = (tile, copy) if direction == "read" else (copy, tile)
                copy_text = f"  memref.copy {ends} : {types[0]} to {types[1]}"
                if target != "cpu":
                    copy_text = copy_elements(ends.split(", "), types, tokens, columns)
                source.add(
                    f"{direction}_{name}_{tokens}_{columns}",
                    [*INDICES, f"io: {copy}"],
                    f"""{made}  %m = kvcache.{op} -> {tile}
{copy_text}
  return""",
                    views=f"%k = {shape.roles[-1]}",
                )
    groups, heads, P = shape.groups, shape.heads, shape.page_size
    window = (
        f"memref<?x{P}x{heads}x{groups}x{shape.scale}, "
        f"strided<[?, {row}, {groups}, 1], offset: ?>>"
    )
    for role, base in zip(shape.roles, ("%s : !scales", "%k : !cache"), strict=False):
        source.add(
            f"base_{role}",
            ["page: index", "p: index", "h: index", "g: index", f"io: {memref}"],
            f"""{made}  %w = kvcache.scales_base {base}
  %v = memref.load %w[%page, %p, %h, %g] : {window}
  memref.store %v, %io[%c0] : {memref}
  %pages = memref.dim %w, %c0 : {window}
  return %pages : index""",
            "index",
            views=f"%k = {role}",
        )
    return source.compile(
        target=target, opt_level=0 if shape.mla or target != "cpu" else 2
    )


@each_shape
@given(st.data())
@examples(15)
def test_accesses(shape, data):
    """Indices count elements; wide accesses read the scales after an element's scale."""
    check_accesses(shape, data)


@pytest.mark.parametrize(("shape", "target"), spread(SHAPES))
@given(st.data())
@examples(2)
def test_accesses_in_kernels(shape, target, data):
    check_accesses(shape, data, target)
    check_tiles(shape, data, target)
    check_memory_of_scales(shape, data, target)


def check_accesses(shape, data, target="cpu"):
    program = compile_accesses(shape, target)
    cache = data.draw(quantized_caches(shape, 3 * shape.page_size))
    expected = cache.copy()
    for width in shape.scale_widths():
        number, layer, b, h, t = data.draw(places(cache))
        count = max(width, 1)
        group = count * data.draw(st.integers(0, shape.groups // count - 1))
        d = group * shape.granularity
        d += data.draw(st.integers(0, min(shape.granularity, shape.head_size - d) - 1))
        role, at = shape.roles[number], (layer, b, h, t, d)
        io = place(np.zeros(count, shape.scales.uint))
        given_arguments = (*cache.arguments(shape), *at, io.view(shape.scale_numpy))
        program.call(f"load_{role}_{width}", *given_arguments)
        view = expected.view(number, layer)
        np.testing.assert_array_equal(io, view.read_scales(b, h, t, d, count))
        io[...] = ~io
        program.call(f"store_{role}_{width}", *given_arguments)
        view.write_scales(b, h, t, d, io)
        cache.check_memory(expected)


@each_shape
@given(st.data())
@examples(15)
def test_tiles(shape, data):
    check_tiles(shape, data)


def check_tiles(shape, data, target="cpu"):
    program = compile_accesses(shape, target)
    cache = data.draw(quantized_caches(shape, 3 * shape.page_size))
    expected = cache.copy()
    number = len(shape.roles) - 1
    for tokens, columns in list_windows(shape):
        _, layer, b, h, t = data.draw(places(cache))
        t -= t % tokens
        d = shape.granularity * data.draw(st.integers(0, shape.groups - columns))
        d -= d % (shape.granularity * columns)
        d = min(
            d + data.draw(st.integers(0, shape.granularity - 1)), shape.head_size - 1
        )
        if shape.granularity * columns > shape.head_size:
            d = min(d, shape.granularity - 1)
        name = (
            f"{data.draw(st.sampled_from(('tile', 'scales_tile')))}_{tokens}_{columns}"
        )
        io = np.zeros((tokens, columns), shape.scales.uint)
        arguments = (*cache.arguments(shape), layer, b, h, t, d)
        program.call(f"read_{name}", *arguments, io.view(shape.scale_numpy))
        view = expected.view(number, layer)
        all_tokens = t + np.arange(tokens)
        read = view.read_scales(b, h, all_tokens, d, columns)
        np.testing.assert_array_equal(io, read)
        io[...] = ~io
        program.call(f"write_{name}", *arguments, io.view(shape.scale_numpy))
        view.write_scales(b, h, all_tokens, d, io)
        cache.check_memory(expected)


@each_shape
@given(st.data())
@examples(8)
def test_memory_of_the_scales(shape, data):
    check_memory_of_scales(shape, data)


def check_memory_of_scales(shape, data, target="cpu"):
    program = compile_accesses(shape, target)
    cache = data.draw(quantized_caches(shape, 3 * shape.page_size))
    pages = cache.scales.shape[0]
    for number, role in enumerate(shape.roles):
        layer = data.draw(st.integers(0, cache.scales.shape[2] - 1))
        page = data.draw(st.integers(0, pages - 1))
        p = data.draw(st.integers(0, shape.page_size - 1))
        h, g = shape.heads - 1, shape.groups - 1
        io = np.zeros(1, shape.scales.uint)
        arguments = (*cache.arguments(shape), layer, page, p, h, g)
        got = program.call(f"base_{role}", *arguments, io.view(shape.scale_numpy))
        assert got == pages
        blocks = cache.scales.blocks(shape.scales.uint)
        assert io[0] == blocks[page, number, layer, p, h, g]
