"""Tests of copies into tiles against plain indexing: equal bytes on all targets."""

import devices
import ml_dtypes
import numpy as np
import pytest
from pairs import pairwise
from swizzles import NAMES, SWIZZLES, stored
from tile_copies import COLUMNS, LAYERS, PAGES, ROW, ROWS, compile_copies, get_strides, make_cache, run

import kvcache

lays = pytest.mark.parametrize("swizzle", SWIZZLES)
PAGE_SIZES = [1, 2, 3, 16, 48, 256]
TARGETS = ["cpu", *devices.TARGETS]
targets = pytest.mark.parametrize("target", TARGETS)


def with_swizzles(names, *axes, swizzles=("none", "128b")):
    """Combinations with every two values of two axes, where swizzles are an axis."""
    return pytest.mark.parametrize(f"{names}, swizzle", pairwise(*axes, swizzles))


every_page_size = with_swizzles("page_size, target", PAGE_SIZES, TARGETS, swizzles=tuple(SWIZZLES))

OPEN = "strided<[?, ?, ?, 384, 128, 1], offset: ?>"


def padded_layout(page_size, padding):
    """The layout of blocks with `padding` elements after each page."""
    strides = [*get_strides(page_size, padding), ROW, 128, 1]
    return f"strided<[{', '.join(map(str, strides))}]>"


def make_padded_cache(page_size, padding):
    """A cache with `padding` elements after each page."""
    blocks, lengths, lut = make_cache(page_size)
    strides = [2 * stride for stride in (*get_strides(page_size, padding), ROW, 128, 1)]
    flat = np.full(PAGES * strides[0] // 2, 1, ml_dtypes.bfloat16)
    padded = np.lib.stride_tricks.as_strided(flat, blocks.shape, strides)
    padded[...] = blocks
    return padded, lengths, lut


def check_load(program, cache, page_size, swizzle):
    blocks, _, lut = cache
    for b, h, t, d, valid in [(0, 0, 0, 0, 16), (1, 2, 7, 64, 5), (1, 1, 16, 8, 0)]:
        expected = np.zeros((ROWS, COLUMNS), blocks.dtype)
        for row in range(valid):
            page, inside = lut[b, (t + row) // page_size], (t + row) % page_size
            expected[row] = blocks[page, 1, 1, inside, h, d : d + COLUMNS]
        found = run(program, "load", cache, h, d, b, t, valid)
        assert (found == stored(expected, swizzle)).all()


def check_gather(program, cache, page_size, swizzle):
    blocks = cache[0]
    rng = np.random.default_rng(3)
    ids = rng.integers(0, PAGES * page_size, ROWS).astype(np.int32)
    ids[[2, 5, 9, 11]] = -1, PAGES * page_size, -(2**31), 2**31 - 1
    expected = np.zeros((ROWS, COLUMNS), blocks.dtype)
    for row, id_ in enumerate(ids):
        if 0 <= id_ < PAGES * page_size:
            page, inside = divmod(int(id_), page_size)
            expected[row] = blocks[page, 1, 1, inside, 2, 32 : 32 + COLUMNS]
    found = run(program, "gather", cache, 2, 32, ids)
    assert (found == stored(expected, swizzle)).all()


@every_page_size
def test_load_copies_tokens_through_the_table(page_size, swizzle, target):
    program = compile_copies(page_size, swizzle, target)
    check_load(program, make_cache(page_size), page_size, swizzle)


@every_page_size
def test_gather_copies_any_rows_and_zeros_others(page_size, swizzle, target):
    program = compile_copies(page_size, swizzle, target)
    check_gather(program, make_cache(page_size), page_size, swizzle)


KINDS = [
    ("sm_80", "plain", "plain"),
    ("sm_80", "cp_async", "cp_async"),
    ("sm_90a", "plain", "cp_async"),
    ("sm_90a", "cp_async", "bulk_rows"),
    ("sm_90a", "tensor_boxes", "tensor_rows"),
    ("sm_100a", "cp_async", "plain"),
    ("sm_100a", "tensor_boxes", "tensor_rows"),
    ("sm_120a", "plain", "bulk_rows"),
]


@pytest.mark.parametrize(("chip", "load", "gather"), KINDS)
@pytest.mark.parametrize("page_size", [1, 48])
def test_every_kind_of_copy_moves_the_same_bytes(page_size, chip, load, gather):
    program = compile_copies(page_size, "none", f"emulator:{chip}", kinds=(load, gather))
    check_load(program, make_cache(page_size), page_size, "none")
    check_gather(program, make_cache(page_size), page_size, "none")


# Padded pages: by 16 bytes, by a row, and by half a row.

PADDINGS = (8, ROW, ROW + ROW // 2)


@with_swizzles("page_size, padding, target", [1, 3, 16, 48], PADDINGS, [*TARGETS, "emulator:sm_120a"])
def test_distance_of_pages_follows_the_type(page_size, padding, swizzle, target):
    layout = padded_layout(page_size, padding)
    program = compile_copies(page_size, swizzle, target, layout=layout)
    cache = make_padded_cache(page_size, padding)
    check_load(program, cache, page_size, swizzle)
    check_gather(program, cache, page_size, swizzle)


@pytest.mark.parametrize("target", [*TARGETS, "emulator:sm_120a"])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("page_size", [3, 16])
def test_distance_of_pages_may_be_dynamic(page_size, padding, target):
    program = compile_copies(page_size, "128b", target, layout=OPEN)
    cache = make_padded_cache(page_size, padding)
    for check in check_load, check_gather:
        if padding == ROW or target in ("cpu", "emulator:sm_80"):
            check(program, cache, page_size, "128b")
            continue
        rest = padding % ROW
        with pytest.raises(kvcache.CheckError, match=rf"a row \(384 elements\).* {rest} is not in \[0, 1\)"):
            check(program, cache, page_size, "128b")


# Continuous caches: a block of tokens per sequence.

TOKENS = 40


def make_continuous_cache(padding):
    blocks, lengths, lut = make_padded_cache(TOKENS, padding)
    return blocks, lengths, lut[:, 0].copy()


@with_swizzles("padding, target", [0, *PADDINGS], [*TARGETS, "emulator:sm_120a"])
def test_blocks_lie_any_distance_apart(padding, swizzle, target):
    layout = f"strided<[{get_strides(TOKENS, padding)[0]}, ?, ?, {ROW}, 128, 1]>"
    program = compile_copies(None, swizzle, target, layout=layout)
    blocks, lengths, lut = make_continuous_cache(padding)
    for b, h, t, d, valid in [(0, 0, 0, 0, 16), (1, 2, 24, 64, 16), (1, 1, 39, 8, 1), (0, 1, 0, 0, 0)]:
        expected = np.zeros((ROWS, COLUMNS), blocks.dtype)
        expected[:valid] = blocks[lut[b], 1, 1, t : t + valid, h, d : d + COLUMNS]
        found = run(program, "load", (blocks, lengths, lut), h, d, b, t, valid)
        assert (found == stored(expected, swizzle)).all()
    distance, rest = divmod(get_strides(TOKENS, padding)[0], ROW)
    if rest:
        return
    rng = np.random.default_rng(4)
    places = np.stack([rng.integers(0, PAGES, ROWS), rng.integers(0, TOKENS, ROWS)], 1)
    ids = (places @ [distance, 1]).astype(np.int32)
    expected = blocks[places[:, 0], 1, 1, places[:, 1], 2, 32 : 32 + COLUMNS]
    missing = [2, 5, 9, 11]
    ids[missing] = -1, (PAGES - 1) * distance + TOKENS, -(2**31), 2**31 - 1
    expected[missing] = 0
    found = run(program, "gather", (blocks, lengths, lut), 2, 32, ids)
    assert (found == stored(expected, swizzle)).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("page_size", [None, 16])
def test_caches_without_pages_have_no_rows(page_size, target):
    """Threads fill tiles with zeros; a tensor map has no size 0."""
    program = compile_copies(page_size, "128b", target, layout=OPEN)
    blocks, lengths, lut = make_cache(page_size or TOKENS)
    cache = blocks[:0], lengths, lut if page_size else lut[:, 0].copy()
    ids = np.arange(-2, ROWS - 2, dtype=np.int32)
    for name, arguments in ("load", (0, 0, 0)), ("gather", (ids,)):
        if target in ("cpu", "emulator:sm_80"):
            assert not run(program, name, cache, 0, 0, *arguments).any()
            continue
        with pytest.raises(kvcache.CheckError, match="a cache without pages has no tensor map"):
            run(program, name, cache, 0, 0, *arguments)


def test_a_single_page_is_at_no_distance():
    program = compile_copies(16, "128b", "emulator:sm_100a", layout=OPEN)
    blocks, lengths, lut = make_padded_cache(16, 8)
    cache = blocks[3:4], lengths, np.zeros_like(lut)
    check_load(program, cache, 16, "128b")


@targets
@lays
@pytest.mark.parametrize(
    ("format", "scale", "numbers"),
    [
        ("f4E2M1FN", "scale = f8E8M0FNU, granularity = 32", 8),
        ("i4", "scale = f16, granularity = 64, zero_point = f16", 8),
    ],
)
def test_4_bit_tiles_are_bytes(format, scale, numbers, swizzle, target):
    rows, page_size, scale_type = 8, 4, scale.split()[2].strip(",")
    source = f"""
#kv = #kvcache.params<num_heads = 2, head_size = 256>
!collection = !kvcache.paged_collection<{format}, #kv, page_size = {page_size}, {scale}>
!cache = !kvcache.paged<{format}, #kv, page_size = {page_size}, {scale}>
!tile = !kvcache.tile<{rows}x64xi8{NAMES[swizzle]}>
!blocks = memref<?x2x?x{page_size}x2x128xi8>
!scales = memref<?x2x?x{page_size}x2x{numbers}x{scale_type}>
func.func @load(%blocks: !blocks, %scales: !scales, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                %d: index, %out: memref<{rows}x64xi8>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %rows = arith.constant {rows} : index
  %zero = arith.constant 0 : i32
  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %zero, %zero scales %scales
      : !blocks, memref<?xi32>, memref<?x?xi32>, !scales -> !collection
  %k = kvcache.paged_view key %collection[%c0] : !collection
  %tile = kvcache.alloc_tile : !tile
  %token = kvcache.async_load_tile %k[%c0, %c1, %c3, %d] to %tile : !cache, !tile
  kvcache.wait %token
  scf.for %r = %c0 to %rows step %c1 {{
    scf.for %c = %c0 to %c64 step %c16 {{
      %v = kvcache.tile_load %tile[%r, %c] : !tile -> vector<16xi8>
      vector.store %v, %out[%r, %c] : memref<{rows}x64xi8>, vector<16xi8>
    }}
  }}
  return
}}"""
    program = devices.jit(source, target, threads=32)
    rng = np.random.default_rng(4)
    blocks = rng.integers(-128, 128, (5, 2, 1, page_size, 2, 128), np.int8)
    scales = np.ones((5, 2, 1, page_size, 2, numbers), kvcache.dtypes.dtype(scale_type))
    lut = rng.integers(0, 5, (1, 4)).astype(np.uint32)
    out = np.zeros((rows, 64), np.int8)
    program.call("load", blocks, scales, np.zeros(1, np.uint32), lut, 64, out)
    tokens = 3 + np.arange(rows)
    expected = blocks[lut[0, tokens // page_size], 0, 0, tokens % page_size, 1, 32:96]
    assert (out == expected).all()


@pytest.mark.parametrize("target", [*TARGETS, "emulator:sm_120a"])
@pytest.mark.parametrize("page_size", [16, None])
def test_boxes_have_rows_of_more_than_256_elements(page_size, target):
    """Uses boxes of 64-bit integers: 512 of 576 bytes, from byte 64 on."""
    rows, valid = 32, 19
    paged = f"paged{{}}<f8E4M3FN, #mla, page_size = {page_size}>" if page_size else "continuous{}<f8E4M3FN, #mla>"
    view, lut_type = ("paged", "memref<?x?xi32>") if page_size else ("continuous", "memref<?xi32>")
    source = f"""
#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!collection = !kvcache.{paged.format("_collection")}
!cache = !kvcache.{paged.format("")}
!tile = !kvcache.tile<{rows}x512xf8E4M3FN>
!blocks = memref<?x1x?x{page_size or "?"}x1x576xf8E4M3FN>
!out = memref<{rows}x512xf8E4M3FN>
func.func @load(%blocks: !blocks, %lengths: memref<?xi32>, %lut: {lut_type}, %n: index, %all: !out, %part: !out) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %rows = arith.constant {rows} : index
  %zero = arith.constant 0 : i32
  %collection = kvcache.{view}_collection %blocks, %lengths, %lut, %zero, %zero
      : !blocks, memref<?xi32>, {lut_type} -> !collection
  %k = kvcache.{view}_view key %collection[%c1] : !collection
  %a = kvcache.alloc_tile : !tile
  %b = kvcache.alloc_tile : !tile
  %copy = kvcache.async_load_tile %k[%c1, %c0, %c16, %c64] to %a : !cache, !tile
  %other = kvcache.async_load_tile %k[%c1, %c0, %c16, %c64] valid %n to %b : !cache, !tile
  kvcache.wait %copy
  kvcache.wait %other
  scf.for %r = %c0 to %rows step %c1 {{
    scf.for %c = %c0 to %c512 step %c16 {{
      %v = kvcache.tile_load %a[%r, %c] : !tile -> vector<16xf8E4M3FN>
      vector.store %v, %all[%r, %c] : !out, vector<16xf8E4M3FN>
      %w = kvcache.tile_load %b[%r, %c] : !tile -> vector<16xf8E4M3FN>
      vector.store %w, %part[%r, %c] : !out, vector<16xf8E4M3FN>
    }}
  }}
  return
}}"""
    program = devices.jit(source, target, threads=32)
    rng = np.random.default_rng(5)
    shape = 7, 1, LAYERS, page_size or 64, 1, 576
    blocks = rng.integers(0, 127, shape, np.uint8).view(ml_dtypes.float8_e4m3fn)
    lut = rng.integers(0, 7, (2, 4) if page_size else 2).astype(np.uint32)
    all_rows, part = np.ones((2, rows, 512), blocks.dtype)
    program.call("load", blocks, np.zeros(2, np.uint32), lut, valid, all_rows, part)
    tokens = 16 + np.arange(rows)
    pages = lut[1, tokens // page_size] if page_size else np.full(rows, lut[1])
    expected = blocks[pages, 0, 1, tokens % (page_size or 64), 0, 64:].copy()
    assert (all_rows == expected).all()
    expected[valid:] = 0
    assert (part == expected).all()


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_checks_look_at_every_token_that_is_read(page_size):
    program, cache = compile_copies(page_size, "none", bounds_checks=True), make_cache(page_size)
    lut = cache[2]
    tokens = lut.shape[1] * page_size
    for t, valid in [(0, ROWS), (tokens - 3, 3), (tokens, 0), (5 * tokens, -1), (0, 99)]:
        run(program, "load", cache, 0, 0, 0, t, valid)
    with pytest.raises(kvcache.CheckError, match="last token"):
        run(program, "load", cache, 0, 0, 0, tokens - 3, 4)
    with pytest.raises(kvcache.CheckError, match="token"):
        run(program, "load", cache, 0, 0, 0, tokens, 1)
    with pytest.raises(kvcache.CheckError, match="element modulo 8"):
        run(program, "load", cache, 0, 4, 0, 0, 0)
    # Steps of a page's size from the first token may skip the page of the last one.
    lut[0, (ROWS + 1) // page_size] = PAGES
    run(program, "load", cache, 0, 0, 0, 2, (ROWS + 1) // page_size * page_size - 2)
    with pytest.raises(kvcache.CheckError, match="page id"):
        run(program, "load", cache, 0, 0, 0, 2, ROWS)


def test_checks_include_promised_alignment():
    program, cache = compile_copies(16, "none", bounds_checks=True), make_cache(16)
    run(program, "promised", cache, 0, 0, 0, 8)
    with pytest.raises(kvcache.CheckError, match="token modulo 4"):
        run(program, "promised", cache, 0, 0, 0, 6)


# The text of types, and the dimensions of blocks from the slowest to the fastest: page, role, layer, token, head, and
# the elements after each head.
LAYOUTS = {
    "hnd": ("hnd", "prlht", 0),
    "LBHNC": ("[token = {t}, head = {h}]", "lphtr", 0),
    "BHLNC": ("[token = {t}, head = ?]", "phltr", 0),
    "padded": ("[token = {t}, head = {h}]", "prlth", 8),
    "8-bytes": ("[token = {t}, head = {h}]", "prlht", 4),
    "2-bytes": ("[token = {t}, head = {h}]", "prlht", 1),
}


def make_cache_with_layout(name, page_size):
    """A cache in a layout, the layout in its type, and that of the memref."""
    said, order, padding = LAYOUTS[name]
    blocks, lengths, lut = make_cache(page_size)
    sizes = dict(zip("prlth", blocks.shape))
    strides, distance = {}, 128 + padding
    for dimension in reversed(order):
        strides[dimension] = distance
        distance *= sizes[dimension]
    in_order = [2 * strides[dimension] for dimension in "prlth"] + [2]
    flat = np.full(distance + 8, 1, ml_dtypes.bfloat16)
    start = -flat.ctypes.data % 16 // 2
    laid_out = np.lib.stride_tricks.as_strided(flat[start:], blocks.shape, in_order)
    laid_out[...] = blocks
    token, head = (strides[dimension] for dimension in "th")
    said = said.format(t=token, h=head)
    if said == "hnd":
        token, head = 128, page_size * 128
    open_head = "?" if "?" in said else head
    layout = f"strided<[?, ?, ?, {token}, {open_head}, 1], offset: ?>"
    return (laid_out, lengths, lut), said, layout


@with_swizzles("name, page_size, target", LAYOUTS, [1, 3, 16, 64], TARGETS)
def test_tiles_of_any_layout(name, page_size, swizzle, target):
    cache, said, layout = make_cache_with_layout(name, page_size)
    program = compile_copies(page_size, swizzle, target, layout=layout, said=said)
    check_load(program, cache, page_size, swizzle)
    check_gather(program, cache, page_size, swizzle)


class Indexed:
    """A program whose lookup table is not dense, for callers with a dense one."""

    def __init__(self, program, kind):
        self.program, self.kind = program, kind

    def call(self, name, blocks, lengths, lut, *arguments):
        batch, columns = lut.shape
        if self.kind == "csr":
            starts = np.arange(batch + 1, dtype=np.uint32) * columns + 3
            table = np.r_[[np.uint32(2**31)] * 3, lut.ravel()], starts
        else:
            rows = np.full((batch + 2, -(-columns // 8) * 8), 2**31, np.uint32)
            index = np.arange(batch, dtype=np.uint32)[::-1] + np.uint32(1)
            rows[index, :columns] = lut
            table = rows[:, :columns], index
        return self.program.call(name, blocks, lengths, *table, *arguments)


@targets
@pytest.mark.parametrize("page_size", [1, 16])
@pytest.mark.parametrize("name", ["hnd", "BHLNC"])
@pytest.mark.parametrize("table", ["csr", "rows"])
def test_tiles_through_other_tables(table, name, page_size, target):
    cache, said, layout = make_cache_with_layout(name, page_size)
    program = compile_copies(page_size, "128b", target, layout=layout, said=said, table=table)
    check_load(Indexed(program, table), cache, page_size, "128b")
    check_gather(Indexed(program, table), cache, page_size, "128b")
