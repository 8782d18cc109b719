"""Tests of bounds checks of a quantized cache: wrong indices raise, right ones pass."""

import functools
import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import Source, examples, guard
from quantized_programs import (
    INDICES,
    QuantizedShape,
    add_load,
    add_load_quantized,
    add_load_scale,
    add_store,
    add_store_quantized,
    add_store_scale,
    places,
    quantized_caches,
    small_quantized_cache,
)

import kvcache

SHARED = QuantizedShape("f8E4M3FN", 2, 64, 4, False, "f32", 8)
OWN = QuantizedShape("i8", 2, 48, 3, False, "f16", 8, own_table=True)
FP4 = QuantizedShape("f4E2M1FN", 1, 96, 8, True, "f8E4M3FN", 16, own_table=True)
SHAPES = (SHARED, OWN, FP4)
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)

# The ops that access elements, scales or both, and the number of lanes of each.
ELEMENTS = {"load": 16, "load_quantized": 8, "store": 8, "store_quantized": 16}
BOTH = ("load", "store_quantized")
SCALES = {"load_scale": 2, "store_scale": 2, "scales_block_tile": 2}
OF_VIEW = {"load": 2, "store": 2, "block_tile": 2}
"""Of the view of scales."""
ROWS = ("scale_row_index", "scale_tma_coords")
ROWS_OF_VIEW = ("row_index", "page_id", "tma_coords")


@functools.cache
def make_source(shape):
    source = Source(shape)
    add_load(source, "load", 16, "f32")
    add_load_quantized(source, "load_quantized", 8)
    add_store(source, "store", 8)
    add_store_quantized(source, "store_quantized", 16)
    add_load_scale(source, "load_scale", 2)
    add_store_scale(source, "store_scale", 2)
    scale, row = shape.scale, shape.heads * shape.groups
    tokens = 2 if shape.page_size % 2 == 0 else 3
    tile = f"memref<{tokens}x2x{scale}, strided<[{row}, 1], offset: ?>>"
    memref, vector = f"memref<?x{scale}>", f"vector<2x{scale}>"
    made = "  %s = kvcache.scales_view %k : !cache\n"
    for name, op in (
        ("scales_block_tile", "scales_block_tile %k[%b, %h, %t, %d] : !cache"),
        ("of_view_block_tile", "block_tile %s[%b, %h, %t, %d] : !scales"),
    ):
        source.add(
            name,
            [*INDICES, f"io: {memref}"],
            f"""{made}  %m = kvcache.{op} -> {tile}
  %v = vector.load %m[%c0, %c0] : {tile}, {vector}
  vector.store %v, %io[%c0] : {memref}, {vector}
  return""",
        )
    source.add(
        "of_view_load",
        [*INDICES, f"io: {memref}"],
        f"""{made}  %v = kvcache.load %s[%b, %h, %t, %d] : !scales -> {vector}
  vector.store %v, %io[%c0] : {memref}, {vector}
  return""",
    )
    source.add(
        "of_view_store",
        [*INDICES, f"io: {memref}"],
        f"""{made}  %v = vector.load %io[%c0] : {memref}, {vector}
  kvcache.store %v, %s[%b, %h, %t, %d] : {vector}, !scales
  return""",
    )
    for name, op, type in (
        *((name, f"{name} %k[%b, %t]", "!cache") for name in ROWS),
        *(
            (f"of_view_{name}", f"{name} %s[%b, %t]", "!scales")
            for name in ROWS_OF_VIEW
        ),
    ):
        values = "%r, %p" if "coords" in name else "%r"
        source.add(
            name,
            ["b: index", "t: index"],
            f"{made}  {values} = kvcache.{op} : {type}\n  return %r : index",
            "index",
        )
    rows = f"!kvcache.row_indices<rows = {2 * shape.page_size}, page_size = {shape.page_size}>"
    source.add(
        "of_view_populate",
        ["b: index", "t: index"],
        f"""{made}  %rows = kvcache.populate %s[%b, %t] : !scales -> {rows}
  %r = kvcache.get_row %rows[%c0] : {rows}
  return %r : index""",
        "index",
    )
    source.add(
        "of_view_tma_row",
        ["b: index", "e: index"],
        f"{made}  %r = kvcache.tma_row %s[%e] : !scales\n  return %r : index",
        "index",
    )
    source.add(
        "known_page",
        ["b: index", "t: index", "page: index"],
        "  %r = kvcache.scale_row_index %k[%b, %t] scale_page %page : !cache\n"
        "  return %r : index",
        "index",
    )
    return source


@functools.cache
def compile_checked(shape):
    source = make_source(shape)
    program = source.compile(
        filename="some/cache.mlir", bounds_checks=True, opt_level=0
    )
    return program, source.text.splitlines()


@functools.cache
def compile_plain(shape):
    return make_source(shape).compile(opt_level=0)


def get_op(function):
    return "kvcache." + function.removeprefix("of_view_")


def find_line(lines, function, op):
    start = next(i for i, line in enumerate(lines) if f"@{function}(" in line)
    return next(i for i in range(start, len(lines)) if f"{op} " in lines[i]) + 1


def make_cache(shape):
    """A cache of two sequences of three pages, two layers; tables next to a guard."""
    cache = small_quantized_cache(shape, batch=2, columns=3)
    lengths = guard(cache.elements.lengths, "at_end")
    table = guard(cache.elements.table, "at_end")
    own = guard(cache.scales.table, "at_end") if shape.own_table else table
    return cache.with_tables(table, own, lengths)


def make_io(shape, function):
    """The last argument of functions that access memory."""
    if function in ("load", "store_quantized"):
        return (np.ones(16, np.float32),)
    if function in ELEMENTS:
        return (np.ones(8 // shape.per_byte, np.uint8).view(shape.numpy),)
    if function in SCALES or function.removeprefix("of_view_") in OF_VIEW:
        return (np.ones(2, shape.scales.uint).view(shape.scale_numpy),)
    return ()


def check_fails(shape, cache, function, indices, what, value, bound):
    program, lines = compile_checked(shape)
    op, before = get_op(function), cache.copy()
    arguments = (*cache.arguments(shape), 0, *indices, *make_io(shape, function))
    with pytest.raises(kvcache.CheckError) as raised:
        program.call(function, *arguments)
    line = find_line(lines, function, op)
    pattern = (
        rf"some/cache\.mlir:{line}:\d+: error: '{op}' op {what},? is out of range: "
        rf"{value} is not in \[0, {bound}\)"
    )
    assert re.fullmatch(pattern, str(raised.value)), (str(raised.value), pattern)
    cache.check_memory(before)


ACCESSES = [*ELEMENTS, *SCALES, *(f"of_view_{name}" for name in OF_VIEW)]
LOOKUPS = [*ROWS, *(f"of_view_{name}" for name in ROWS_OF_VIEW)]
HUGE = (2**31, 2**63 - 1, -1, -(2**63))


def make_indices(function, b=0, h=0, t=0, d=0):
    return (b, h, t, d) if function in ACCESSES else (b, t)


@each_shape
@pytest.mark.parametrize("wrong", [2, *HUGE])
def test_sequences_and_heads(shape, wrong):
    cache = make_cache(shape)
    for function in (*ACCESSES, *LOOKUPS, "of_view_populate"):
        indices = make_indices(function, b=wrong)
        check_fails(shape, cache, function, indices, "sequence", wrong, 2)
    for function in ACCESSES:
        indices = make_indices(function, h=wrong)
        check_fails(shape, cache, function, indices, "head", wrong, shape.heads)


@each_shape
@pytest.mark.parametrize("wrong", [None, *HUGE])
def test_tokens(shape, wrong):
    cache = make_cache(shape)
    tokens = 3 * shape.page_size
    t = tokens if wrong is None else wrong
    for function in (*ACCESSES, *LOOKUPS, "of_view_populate"):
        what = "token" if function in ELEMENTS else "token of the scales"
        indices = make_indices(function, t=t)
        check_fails(shape, cache, function, indices, what, t, tokens)


@each_shape
@pytest.mark.parametrize("wrong", [None, *HUGE])
def test_elements(shape, wrong):
    cache = make_cache(shape)
    size, groups = shape.head_size, shape.groups
    d = size if wrong is None else wrong
    for function, width in ELEMENTS.items():
        indices = make_indices(function, d=d)
        bound = size - width + 1
        check_fails(shape, cache, function, indices, "element", d, bound)
    for function in (*SCALES, *(f"of_view_{name}" for name in OF_VIEW)):
        indices = make_indices(function, d=d)
        check_fails(shape, cache, function, indices, "element", d, size)
        # A group that is not a multiple of the lanes.
        d_of_group = shape.granularity + 3
        what = "group of the element modulo 2, which must be 0"
        indices = make_indices(function, d=d_of_group)
        check_fails(shape, cache, function, indices, what, 1, 1)
        # The last group, with one after it.
        what, indices = "group of the element", make_indices(function, d=size - 1)
        check_fails(shape, cache, function, indices, what, groups - 1, groups - 1)


@each_shape
def test_misaligned_elements(shape):
    cache = make_cache(shape)
    for function, width in ELEMENTS.items():
        for d in (1, width - 1):
            what = f"element modulo {width}, which must be 0"
            indices = make_indices(function, d=d)
            check_fails(shape, cache, function, indices, what, d, 1)


@each_shape
@pytest.mark.parametrize("page", [None, 2**31, 2**32 - 1])
def test_page_ids(shape, page):
    """Tests ids of elements, and of scales if they have a table."""
    t = shape.page_size
    for function in (*ACCESSES, *LOOKUPS):
        indices = make_indices(function, b=1, t=t)
        checks_elements = function in ELEMENTS
        checks_scales = function in BOTH or not checks_elements
        if checks_elements:
            cache = make_cache(shape)
            pages = cache.elements.shape[0]
            cache.elements.table[1, 1] = wrong = pages if page is None else page
            check_fails(shape, cache, function, indices, "page id", wrong, pages)
        if checks_scales and (shape.own_table or not checks_elements):
            cache = make_cache(shape)
            pages = cache.scales.shape[0]
            cache.scales.table[1, 1] = wrong = pages if page is None else page
            what = "page id of the scales"
            check_fails(shape, cache, function, indices, what, wrong, pages)
        if shape.own_table and not checks_scales:
            # Unread entries may be anything.
            cache = make_cache(shape)
            cache.scales.table[...] = 2**32 - 1
            arguments = (*cache.arguments(shape), 0, *indices)
            compile_checked(shape)[0].call(
                function, *arguments, *make_io(shape, function)
            )


@pytest.mark.parametrize("page", [7, 2**31, -1])
def test_known_pages(page):
    program, _ = compile_checked(OWN)
    cache = make_cache(OWN)
    assert cache.scales.shape[0] == 7
    with pytest.raises(
        kvcache.CheckError,
        match=rf"'kvcache.scale_row_index' op page id of the scales.* {page} is not in",
    ):
        program.call("known_page", *cache.arguments(OWN), 0, 0, 0, page)


def test_tokens_past_the_table_of_the_scales():
    """The table of the scales has fewer columns than that of the elements."""
    cache = make_cache(OWN)
    cache = cache.with_tables(cache.elements.table, cache.scales.table[:, :2])
    what = "token of the scales"
    for function in (*BOTH, *SCALES, *ROWS):
        check_fails(OWN, cache, function, make_indices(function, t=6), what, 6, 6)
    # Elements are there.
    program, _ = compile_checked(OWN)
    arguments = (*cache.arguments(OWN), 0, 0, 0, 8, 0)
    program.call("load_quantized", *arguments, *make_io(OWN, "load_quantized"))


def test_rows_of_the_scales():
    cache = make_cache(OWN)
    what = "base modulo 6, which must be 0"
    check_fails(OWN, cache, "of_view_populate", (0, 3), what, 3, 1)
    what = "last token of the scales"
    check_fails(OWN, cache, "of_view_populate", (1, 6), what, 11, 9)
    cache.scales.table[1, 1] = 99
    what = "page id of the scales"
    check_fails(OWN, cache, "of_view_populate", (1, 0), what, 99, 7)
    what = "page of the encoded row id"
    check_fails(OWN, cache, "of_view_tma_row", (0, 22), what, 7, 7)


def test_misaligned_tiles_of_the_scales():
    cache = make_cache(SHARED)
    what = "token modulo 2, which must be 0"
    for function in ("scales_block_tile", "of_view_block_tile"):
        check_fails(SHARED, cache, function, (0, 0, 1, 0), what, 1, 1)


@each_shape
@given(st.data())
@examples(15)
def test_right_programs_pass(shape, data):
    checked, _ = compile_checked(shape)
    plain = compile_plain(shape)
    sizes = (3 * shape.page_size, 2 * shape.page_size)
    # Row queries count whole rows through all pages.
    cache = data.draw(quantized_caches(shape, *sizes, row_padding=True))
    _, layer, b, h, t = data.draw(places(cache))
    for function in (*ACCESSES, *LOOKUPS):
        unit = ELEMENTS.get(function, 2 * shape.granularity)
        d = unit * data.draw(st.integers(0, shape.head_size // unit - 1))
        tokens = 2 if shape.page_size % 2 == 0 else 3
        at = t // tokens * tokens if "tile" in function else t
        results = []
        for program in (checked, plain):
            io = make_io(shape, function)
            arguments = (*cache.arguments(shape), layer)
            indices = make_indices(function, b, h, at, d)
            answer = program.call(function, *arguments, *indices, *io)
            parts = (*io, cache.elements.memory, cache.scales.memory)
            results.append((answer, [part.tobytes() for part in parts]))
        assert results[0] == results[1], function


# Consistency of a collection's tensors


def query_row(cache, shape, **given):
    """Queries a row, with some arguments replaced."""
    names = ("blocks", "lengths", "table", "max_seq", "max_cache", "scales", "own")
    arguments = dict(zip(names, cache.arguments(shape), strict=False), **given)
    program, _ = compile_checked(shape)
    return program.call("scale_row_index", *arguments.values(), 0, 0, 0)


def test_sequences_without_a_row_of_the_scales_table():
    cache = make_cache(OWN)
    with pytest.raises(
        kvcache.CheckError,
        match=r"'kvcache.paged_collection' op number of sequences with a row in "
        r"'scales_lookup_table' is out of range: 2 is not in \[0, 2\)",
    ):
        query_row(cache, OWN, own=cache.scales.table[:1])
    assert query_row(cache, OWN) == cache.view(0, 0).scales.row_index(0, 0)


MISALIGNED = """
#kv = #kvcache.params<num_heads = 2, head_size = 64>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 4, scale = f32, granularity = 8>
!blocks = memref<?x2x?x4x2x64xf8E4M3FN, strided<[?, ?, ?, 128, 64, 1], offset: ?>>
!scale_blocks = memref<?x2x?x4x2x8xf32, strided<[?, ?, ?, 16, 8, 1], offset: ?>>

func.func @length(%words: memref<?xf8E4M3FN>, %scales: memref<?xf32>, %lengths: memref<?xi32>,
                  %lut: memref<?x?xi32>, %page: index, %layer: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4096 = arith.constant 4096 : index
  %c8192 = arith.constant 8192 : index
  %max = arith.constant 1 : i32
  %b = memref.reinterpret_cast %words to offset: [%c0], sizes: [%c2, 2, %c1, 4, 2, 64],
         strides: [%c8192, %c4096, %c4096, 128, 64, 1] : memref<?xf8E4M3FN> to !blocks
  %s = memref.reinterpret_cast %scales to offset: [%c0], sizes: [%c2, 2, %c1, 4, 2, 8],
         strides: [%page, %layer, %layer, 16, 8, 1] : memref<?xf32> to !scale_blocks
  %c = kvcache.paged_collection %b, %lengths, %lut, %max, %max scales %s
      : !blocks, memref<?xi32>, memref<?x?xi32>, !scale_blocks -> !collection
  %n = kvcache.cache_length %c[%c0] : !collection
  return %n : index
}
"""


@functools.cache
def compile_distances():
    return kvcache.jit(MISALIGNED, bounds_checks=True, opt_level=0)


@pytest.mark.parametrize(
    "page, layer, what",
    [
        (257, 64, r"stride 0 of 'scales' modulo 4.*: 1 is not"),
        (256, 65, r"stride 1 of 'scales' modulo 4.*: 1 is not"),
        (-256, 64, r"stride 0 of 'scales' is out of range: -256 is not"),
        (256, 64, None),
    ],
)
def test_distances_of_scales(page, layer, what):
    words, scales = np.zeros(8, ml_dtypes.float8_e4m3fn), np.zeros(8, np.float32)
    arguments = (words, scales, np.array([5], np.uint32), np.zeros((1, 3), np.uint32))
    call = functools.partial(compile_distances().call, "length", *arguments)
    if what is None:
        assert call(page, layer) == 5
        return
    with pytest.raises(
        kvcache.CheckError, match=rf"'kvcache.paged_collection' op {what}"
    ):
        call(page, layer)
