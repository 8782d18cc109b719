"""Tests of quantized caches next to guard pages, and of more than 2^31 scales.

An access beyond an edge ends the process, as in test_data_memory.py.
"""

import functools
from dataclasses import replace

import numpy as np
import pytest
from model import Cache, PagedView
from programs import Source, guard, sparse
from quantization import RESULTS, check_encodings
from quantized_programs import (
    INDICES,
    QuantizedShape,
    add_load,
    add_load_quantized,
    add_load_scale,
    add_store_quantized,
    add_store_scale,
    quantized_cache,
    small_quantized_cache,
)

each_end = pytest.mark.parametrize("where", ["at_end", "at_start"])

EDGES = [
    QuantizedShape("f8E4M3FN", 1, 24, 1, False, "f32", 8, own_table=True),
    QuantizedShape("i8", 3, 20, 3, False, "f16", 16, own_table=True),
    QuantizedShape("f8E5M2", 1, 48, 5, True, "f8E4M3FN", 48),
    QuantizedShape("f4E2M1FN", 1, 24, 7, False, "f8E4M3FN", 16, own_table=True),
    QuantizedShape("f8E4M3FN", 2, 80, 2, False, "bf16", 32, own_table=True),
]
each_shape = pytest.mark.parametrize("shape", EDGES, ids=str)


@functools.cache
def compile_accesses(shape):
    source = Source(shape)
    for role in shape.roles:
        view = {"views": f"%k = {role}"}
        for width in shape.widths():
            add_load(source, f"load_{role}_{width}", width, "f32", **view)
            add_load_quantized(source, f"raw_{role}_{width}", width, **view)
        for width in shape.scale_widths():
            add_load_scale(source, f"scale_{role}_{width}", width, **view)
            add_store_scale(source, f"set_scale_{role}_{width}", width, **view)
        size = shape.head_size
        add_store_quantized(source, f"quantize_{role}", size, **view)
    # Optimized code takes longer to make.
    return source.compile(opt_level=2 if shape in (EDGES[0], EDGES[3]) else 0)


def with_memory_beside_guards(cache, where):
    """A copy of the cache, whose elements and scales begin, or end, at a guard page."""
    parts = {}
    for name in ("elements", "scales"):
        memory = getattr(cache, name).memory
        # So that arrays that end at the guard begin at 16 bytes.
        assert where == "at_start" or memory.nbytes % 16 == 0
        parts[name] = getattr(cache, name).with_memory(guard(memory, where))
    return replace(cache, **parts)


@each_shape
@each_end
def test_accesses_stay_in_the_cache(shape, where):
    """Accesses the first and last elements and scales of all pages, next to guards."""
    program = compile_accesses(shape)
    cache = small_quantized_cache(shape, batch=1, columns=16, layers=1, spare_pages=0)
    cache = with_memory_beside_guards(cache, where)
    expected = cache.copy()
    last = shape.head_size
    for number, role in enumerate(shape.roles):
        view = expected.view(number, 0)
        for t in range(view.tokens()):
            h = (t % 2) * (shape.heads - 1)
            arguments = (*cache.arguments(shape), 0, 0, h, t)
            for width in shape.widths():
                count = max(width, 1)
                for d in {0, last // count * count - count}:
                    out = np.zeros(count, np.float32)
                    program.call(f"load_{role}_{width}", *arguments, d, out)
                    values = view.load(0, h, t, d, count, RESULTS["f32"])
                    check_encodings(RESULTS["f32"], out.view(np.uint32), values)
                    raw = np.zeros(count // shape.per_byte, shape.numpy)
                    program.call(f"raw_{role}_{width}", *arguments, d, raw)
            for width in shape.scale_widths():
                count = max(width, 1)
                group = shape.groups // count * count - count
                d = min(group * shape.granularity + 1, last - 1)
                io = np.zeros(count, shape.scales.uint).view(shape.scale_numpy)
                program.call(f"scale_{role}_{width}", *arguments, d, io)
                program.call(f"set_scale_{role}_{width}", *arguments, d, io)
            cache.check_memory(expected)
            values = np.linspace(-3, 2, last).astype(np.float32)
            program.call(f"quantize_{role}", *arguments, 0, values)
            view.store_quantized(0, h, t, 0, values)
            cache.check_memory(expected)


# Tables


@functools.cache
def compile_lookups(shape):
    """Lookups of scales, once and in loops that may not run."""
    source = Source(shape)
    make_view = "  %s = kvcache.scales_view %k : !cache\n"
    element = shape.scale
    for name, op, result in (
        ("scale_row_index", "scale_row_index %k[%b, %t] : !cache", "index"),
        ("row_index", "row_index %s[%b, %t] : !scales", "index"),
        ("page_id", "page_id %s[%b, %t] : !scales", "index"),
        (
            "load_scale",
            f"load_scale %k[%b, %c0, %t, %c0] : !cache -> {element}",
            element,
        ),
        ("load", "load %k[%b, %c0, %t, %c0] : !cache -> f32", "f32"),
    ):
        if name == "load" and shape.per_byte == 2:
            continue
        parameters = ["b: index", "t: index", f"out: memref<1x{result}>"]
        once = (
            f"  %r = kvcache.{op}\n  memref.store %r, %out[%c0] : memref<1x{result}>\n"
        )
        source.add(name, parameters, f"{make_view}{once}  return")
        source.add(
            f"{name}_in_loops",
            [*parameters, "m: index", "n: index"],
            f"""{make_view}  scf.for %i = %c0 to %m step %c1 {{
    scf.for %j = %i to %n step %c1 {{
{once}    }}
  }}
  return""",
        )
    for pages in (1, 2, 3, 8):
        rows = pages * shape.page_size
        type = f"!kvcache.row_indices<rows = {rows}, page_size = {shape.page_size}>"
        source.add(
            f"populate_{pages}",
            ["b: index", "t: index"],
            f"""{make_view}  %rows = kvcache.populate %s[%b, %t] : !scales -> {type}
  %last = arith.constant {rows - 1} : index
  %r = kvcache.get_row %rows[%last] : {type}
  return %r : index""",
            "index",
        )
    return source.compile()


def with_tables_beside_guards(cache, where):
    """A copy of the cache, with tables of elements and scales and lengths next to guards."""
    lengths = guard(cache.elements.lengths, where)
    table = guard(cache.elements.table, where)
    own = guard(cache.scales.table, where)
    return cache.with_tables(table, own, lengths)


def make_result(shape, name):
    if name in ("load_scale", "load_scale_in_loops"):
        return np.zeros(1, shape.scale_numpy)
    return np.zeros(1, np.float32 if name.startswith("load") else np.int64)


@each_shape
@each_end
@pytest.mark.parametrize("columns", [1, 3, 8])
def test_lookups_stay_in_the_table(shape, where, columns):
    program = compile_lookups(shape)
    cache = small_quantized_cache(shape, batch=3, columns=columns)
    cache = with_tables_beside_guards(cache, where)
    scales = cache.view(0, 0).scales
    arguments = (*cache.arguments(shape), 0)
    for name in program.functions:
        if name.endswith("_in_loops") or name.startswith("populate"):
            continue
        for b in range(3):
            for t in {0, scales.tokens() // 2, scales.tokens() - 1}:
                out = make_result(shape, name)
                program.call(name, *arguments, b, t, out)
                if name.endswith("row_index"):
                    assert out[0] == scales.row_index(b, t)
    for pages in (1, 2, 3, 8):
        if pages <= columns:
            rows = pages * shape.page_size
            base = (scales.tokens() - rows) // rows * rows
            for b in (0, 2):
                got = program.call(f"populate_{pages}", *arguments, b, base)
                assert got == scales.get_row(b, base, rows - 1, rows, rows)


@each_shape
@each_end
def test_loops_that_do_not_run_read_nothing(shape, where):
    program = compile_lookups(shape)
    cache = small_quantized_cache(shape, batch=3, columns=2)
    cache = with_tables_beside_guards(cache, where)
    arguments = (*cache.arguments(shape), 0)
    for name in program.functions:
        if name.endswith("_in_loops"):
            out = make_result(shape, name)
            for b, t in ((2**20, 0), (2**30, 2**30), (2**40, 2**31 - 1)):
                for m, n in ((0, 0), (0, 5), (5, 0), (-3, 4), (4, -3)):
                    program.call(name, *arguments, b, t, out, m, n)


# More than 2^31 scales, and elements


def test_scales_beyond_2_31():
    """Scales of one element each, so that there are as many; pages of both are far apart."""
    shape = QuantizedShape("i8", 2, 64, 16, False, "f32", 1, own_table=True)
    check_big(shape, 8400 * 64, distance=None)


@pytest.mark.parametrize("scale", ["f16", "f8E8M0FNU", "f8E4M3FN"])
def test_pages_of_scales_far_apart(scale):
    """Tests pages of scales with gaps between them."""
    element = "f4E2M1FN" if scale == "f8E4M3FN" else "f8E4M3FN"
    granularity = 16 if element == "f4E2M1FN" else 32
    shape = QuantizedShape(element, 2, 96, 48, True, scale, granularity, own_table=True)
    check_big(shape, 9, distance=2**28 + 48)


def check_big(shape, pages, distance):
    """Accesses to the last pages, and to those on both sides of scale 2^31."""
    roles = len(shape.roles)
    parts = {}
    for name in ("elements", "scales"):
        part = getattr(shape, name)
        layer = part.page_size * part.row
        apart = distance or roles * layer
        border = 2**31 // apart
        table = np.array([[pages - 1, border], [0, border - 1]], np.uint32)
        parts[name] = Cache(
            PagedView,
            sparse(pages * apart, part.uint),
            0,
            (pages, roles, 1, part.page_size, part.heads, part.head_size),
            (apart, layer, layer),
            table if name == "elements" else table[::-1].copy(),
            np.zeros(2, np.uint32),
        )
    cache = quantized_cache(shape, parts["elements"], parts["scales"])
    assert cache.scales.memory.size > 2**31
    program = compile_big(shape)
    rng = np.random.default_rng(2)
    size = shape.head_size
    view = cache.view(roles - 1, 0)
    for b in (0, 1):
        for t in (0, view.tokens() // 2, view.tokens() - 1):
            h = shape.heads - 1
            arguments = (*cache.arguments(shape), 0, b, h, t)
            values = rng.normal(size=size).astype(np.float32)
            program.call("store", *arguments, 0, values)
            # The model writes the same over it.
            where = view.elements.address(b, h, t, 0), view.scales.address(b, h, t, 0)
            lengths = size // shape.per_byte, shape.groups
            memories = cache.elements.memory, cache.scales.memory
            got = [
                memory[first : first + n].copy()
                for memory, first, n in zip(memories, where, lengths, strict=True)
            ]
            assert all(part.any() for part in got)
            view.store_quantized(b, h, t, 0, values)
            for memory, first, part in zip(memories, where, got, strict=True):
                np.testing.assert_array_equal(memory[first : first + part.size], part)
                assert not memory[max(first - 8, 0) : first].any()
            out = np.zeros(16, np.float32)
            program.call("load", *arguments, size - 16, out)
            loaded = view.load(b, h, t, size - 16, 16, RESULTS["f32"])
            check_encodings(RESULTS["f32"], out.view(np.uint32), loaded)
            tile = np.zeros(1, shape.scales.uint)
            program.call("tile", *arguments, 0, tile.view(shape.scale_numpy))
            np.testing.assert_array_equal(tile, view.read_scales(b, h, t, 0))
            row = program.call("row", *arguments, 0)
            assert row == view.scales.row_index(b, t)
            for memory, first, part in zip(memories, where, got, strict=True):
                memory[first : first + part.size] = 0
    arguments = (*cache.arguments(shape), 0, 0, 0, 0, 0)
    assert program.call("rows", *arguments) == view.scales.num_kv_rows()


@functools.cache
def compile_big(shape):
    source = Source(shape)
    view = {"views": f"%k = {shape.roles[-1]}"}
    add_store_quantized(source, "store", shape.head_size, **view)
    add_load(source, "load", 16, "f32", **view)
    row = shape.heads * shape.groups
    tile = f"memref<1x1x{shape.scale}, strided<[{row}, 1], offset: ?>>"
    source.add(
        "tile",
        [*INDICES, f"io: memref<?x{shape.scale}>"],
        f"""  %m = kvcache.scales_block_tile %k[%b, %h, %t, %d] : !cache -> {tile}
  %v = memref.load %m[%c0, %c0] : {tile}
  memref.store %v, %io[%c0] : memref<?x{shape.scale}>
  return""",
        **view,
    )
    for name, op in (
        ("row", "scale_row_index %k[%b, %t]"),
        ("rows", "num_scale_rows %k"),
    ):
        body = f"  %r = kvcache.{op} : !cache\n  return %r : index"
        source.add(name, INDICES, body, "index", **view)
    return source.compile()


# Empty pages


def test_tokens_past_the_used_pages():
    """Unused entries name the sentinel page, whose content is read."""
    shape = EDGES[1]
    program = compile_accesses(shape)
    cache = small_quantized_cache(shape, batch=2, columns=5, spare_pages=1)
    for part in (cache.elements, cache.scales):
        part.table[:, 2:] = part.shape[0] - 1
    view = cache.view(0, 1)
    for t in range(view.tokens()):
        out = np.zeros(20, np.float32)
        program.call("load_key_20", *cache.arguments(shape), 1, 1, 2, t, 0, out)
        expected = view.load(1, 2, t, 0, 20, RESULTS["f32"])
        check_encodings(RESULTS["f32"], out.view(np.uint32), expected)
