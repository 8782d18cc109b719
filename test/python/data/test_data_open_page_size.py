"""Tests of caches with an open page size: one program for pages of any size."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from bodies import CONSTANTS, read_all, write_all
from devices import TARGETS
from programs import Shape, Source, everything, small_cache
from quantized_programs import (
    QuantizedShape,
    add_load,
    add_load_scale,
    add_store_quantized,
    small_quantized_cache,
)
from swizzles import stored
from tile_copies import ROWS, compile_copies, make_cache, run

import kvcache

PAGE_SIZES = (1, 3, 16, 48, 64)
OPEN = Shape("bf16", 2, 8, is_open=True)
QUANTIZED = QuantizedShape(heads=2, head_size=16, is_open=True)

each_target = pytest.mark.parametrize("target", ["cpu", *TARGETS])


def caches_of_all_sizes(make=small_cache, shape=OPEN):
    """Makes a cache for each page size, with the size in its shape."""
    return [make(replace(shape, page_size=P, is_open=False)) for P in PAGE_SIZES]


# Accesses


@functools.cache
def compile_accesses(target):
    source = Source(OPEN)
    for name, body in (("read", read_all), ("write", write_all)):
        parameters, text = body(8, OPEN.dtype)
        source.add(name, parameters, CONSTANTS + text, views="%k = value")
    return source.compile(target=target)


@each_target
def test_loads_and_stores(target):
    program = compile_accesses(target)
    for cache in caches_of_all_sizes():
        (batch, tokens, *rest), indices = everything(cache)
        addresses = cache.view(1, 1).address(*indices)
        arguments = (*cache.arguments(OPEN.numpy), 1, batch, tokens)
        out = np.zeros((batch, tokens, *rest), OPEN.uint)
        program.call("read", *arguments, out.view(OPEN.numpy))
        np.testing.assert_array_equal(out, cache.memory[addresses])

        expected = cache.memory.copy()
        expected[addresses] = out + 1
        program.call("write", *arguments, (out + 1).view(OPEN.numpy))
        np.testing.assert_array_equal(cache.memory, expected)


# Queries

QUERIES = {
    "row_index": "bt",
    "page_id": "bt",
    "tma_row": "t",
    "num_kv_rows": "",
    "extent page_size": "",
    "extent tokens": "",
}


@functools.cache
def compile_queries(target):
    source = Source(OPEN)
    for op, indices in QUERIES.items():
        operands = "[" + ", ".join(f"%{i}" for i in indices) + "]" if indices else ""
        source.add(
            op.replace(" ", "_"),
            [f"{i}: index" for i in indices],
            f"  %r = kvcache.{op} %k{operands} : !cache\n  return %r : index",
            "index",
        )
    source.add(
        "tma_coords",
        ["b: index", "t: index"],
        "  %r, %p = kvcache.tma_coords %k[%b, %t] : !cache\n  return %r, %p : index, index",
        "index, index",
    )
    rows = "!kvcache.row_indices<rows = 3, page_size = ?>"
    source.add(
        "populate",
        ["b: index", "t: index", "o: index"],
        f"  %rows = kvcache.populate %k[%b, %t] : !cache -> {rows}\n"
        f"  %r = kvcache.get_row %rows[%o] : {rows}\n  return %r : index",
        "index",
    )
    return source.compile(target=target)


@each_target
def test_queries(target):
    program = compile_queries(target)
    for P, cache in zip(PAGE_SIZES, caches_of_all_sizes()):
        view = cache.view(0, 1)
        arguments = (*cache.arguments(OPEN.numpy), 1)
        ask = functools.partial(lambda name, *i: program.call(name, *arguments, *i))
        assert ask("extent_page_size") == P
        assert ask("extent_tokens") == view.tokens()
        assert ask("num_kv_rows") == view.num_kv_rows()
        for t in {0, P - 1, P, view.tokens() - 1}:
            page = view.page_id(1, t)
            assert ask("page_id", 1, t) == page
            assert ask("row_index", 1, t) == view.row_index(1, t)
            assert ask("tma_coords", 1, t) == (t % P, page)
            assert ask("tma_row", page * P + t % P) == view.row_index(1, t)
        assert ask("tma_row", -1) == -1
        if P >= 3:
            assert ask("populate", 1, P, 2) == view.row_index(1, P + 2)


def test_pages_without_rows_are_valid():
    program = compile_queries("cpu")
    cache = small_cache(replace(OPEN, page_size=4, is_open=False))
    blocks, *rest = cache.arguments(OPEN.numpy)
    empty = np.zeros((*blocks.shape[:3], 0, *blocks.shape[4:]), blocks.dtype)
    for entry, token in ((0, 0), (2, 2)):
        got = program.call("page_id", empty, *rest, 1, 1, token)
        assert got == cache.table[1, entry]


# Scales


@functools.cache
def compile_quantized(target):
    source = Source(QUANTIZED)
    add_load(source, "load", 16, "f32")
    add_load_scale(source, "load_scale", 0)
    add_store_quantized(source, "store_quantized", 16)
    return source.compile(target=target)


@each_target
def test_scales_have_pages_of_the_same_size(target):
    program = compile_quantized(target)
    known = {}
    for P in PAGE_SIZES:
        shape = replace(QUANTIZED, page_size=P, is_open=False)
        cache = small_quantized_cache(shape)
        arguments = (*cache.arguments(QUANTIZED), 1)
        last = (1, 1, cache.view(0, 0).tokens() - 1, 0)
        values = np.linspace(-3, 5, 16, dtype=np.float32)
        program.call("store_quantized", *arguments, *last, values)
        found = np.zeros(16, np.float32)
        program.call("load", *arguments, *last, found)
        scale = np.zeros(1, np.float32)
        program.call("load_scale", *arguments, *last, scale)
        assert scale[0] == np.float32(np.abs(values[:8]).max()) / np.float32(448)
        np.testing.assert_allclose(found, values, rtol=0.07, atol=0.02)
        known[P] = found.tobytes()
    assert len(set(known.values())) == 1


# Copies into tiles


@each_target
def test_copies(target):
    program = compile_copies("?", "128b", target)
    for P in PAGE_SIZES:
        cache = make_cache(P)
        blocks, _, lut = cache
        tokens = np.arange(7, 7 + ROWS)
        rows = blocks[lut[1, tokens // P], 1, 1, tokens % P, 2, 64:]
        rows[5:] = 0
        found = run(program, "load", cache, 2, 64, 1, 7, 5)
        assert (found == stored(rows, "128b")).all()

        ids = np.arange(ROWS, dtype=np.int32) * 5 % (len(blocks) * P)
        rows = blocks[ids // P, 1, 1, ids % P, 2, 32:96]
        rows[3], ids[3] = 0, -1
        found = run(program, "gather", cache, 2, 32, ids)
        assert (found == stored(rows, "128b")).all()


# Checks

TILE = f"memref<4x8x{OPEN.dtype}, strided<[{OPEN.row}, 1], offset: ?>>"
ROWS_TYPE = "!kvcache.row_indices<rows = 3, page_size = ?>"


@functools.cache
def compile_checked():
    source = Source(OPEN)
    source.add(
        "tile",
        ["t: index"],
        f"""  %m = kvcache.block_tile %k[%c1, %c1, %t, %c0] : !cache -> {TILE}
  %offset = memref.extract_aligned_pointer_as_index %m : {TILE} -> index
  return""",
    )
    source.add(
        "populate",
        ["t: index"],
        f"""  %rows = kvcache.populate %k[%c1, %t] {{base_alignment = 1}} : !cache -> {ROWS_TYPE}
  %r = kvcache.get_row %rows[%c1] : {ROWS_TYPE}
  return""",
    )
    return source.compile(bounds_checks=True)


@pytest.mark.parametrize(
    "function, page_size, token, message",
    [
        ("tile", 16, 8, None),
        ("tile", 6, 4, "page size modulo 4, which must be 0, is out of range: 2 is"),
        ("tile", 16, 6, "token modulo 4, which must be 0, is out of range: 2 is"),
        ("tile", 16, 48, r"token is out of range: 48 is not in \[0, 48\)"),
        ("populate", 3, 3, None),
        ("populate", 5, 7, None),
        ("populate", 5, 8, r"last row in the base's page is .* 5 is not in \[0, 5\)"),
        ("populate", 2, 0, r"last row in the base's page is .* 2 is not in \[0, 2\)"),
        ("populate", 0, 0, "0, which must be below the page size, is out of range: 0"),
    ],
)
def test_checks(function, page_size, token, message):
    """Errors that a page size in the type would exclude are found at run time."""
    cache = small_cache(replace(OPEN, page_size=page_size or 4, is_open=False))
    blocks, *rest = cache.arguments(OPEN.numpy)
    if not page_size:
        blocks = blocks[:, :, :, :0]
    call = functools.partial(compile_checked().call, function, blocks, *rest, 1, token)
    if message is None:
        call()
        return
    with pytest.raises(kvcache.CheckError, match=message):
        call()


def test_scales_of_other_pages_are_found():
    source = Source(QUANTIZED)
    add_load(source, "load", 16, "f32")
    program = source.compile(bounds_checks=True)
    shape = replace(QUANTIZED, page_size=4, is_open=False)
    blocks, lengths, table, *maxima, scales = small_quantized_cache(shape).arguments(shape)
    arguments = (1, 1, 1, 11, 0, np.zeros(16, np.float32))
    program.call("load", blocks, lengths, table, *maxima, scales, *arguments)
    with pytest.raises(kvcache.CheckError, match="page sizes of 'scales' and 'blocks'"):
        program.call(
            "load", blocks, lengths, table, *maxima, scales[:, :, :, :3], *arguments
        )
