"""Tests of elements and scales of any layout against NumPy views of the same bytes."""

import numpy as np
import pytest
from devices import TARGETS, jit
from model import FORMATS
from programs import DTYPES, place
from quantization import SCALES, check_encodings, unpack
from quantized_layouts import CASES, COLUMNS, PAGES, compiled
from quantized_programs import QUANTIZED_DTYPES, SCALE_DTYPES

each_case = pytest.mark.parametrize("case", CASES, ids=str)


def check(case, target, places):
    program = compiled(case, target)
    rng = np.random.default_rng(9)
    for b, h, token in places:
        t = token % (COLUMNS * case.page_size)
        memory = case.make_memory()
        model = memory.copy()
        arguments = (*case.arguments(memory), b, h, t, 0)
        check_loads(case, program, arguments, memory)
        store_scales(case, program, arguments, model)
        np.testing.assert_array_equal(memory, model)
        values = rng.normal(0, 3, (case.token_granularity, case.head_size)).astype(np.float32)
        first = t - t % case.token_granularity
        store_tokens(case, model, b, h, first, values)
        program.call("store_quantized", *arguments[:-2], first, 0, values.ravel())
        np.testing.assert_array_equal(memory, model)


def find_rows(case, b, h, t):
    """The rows of the elements and the scales of a token."""
    page, row = int(case.table[b, t // case.page_size]), t % case.page_size
    return (page, row, h), (page, row // case.token_granularity, h)


def check_loads(case, program, arguments, memory):
    at, at_scales = find_rows(case, *arguments[-4:-1])
    stored = case.read_elements(memory)[at].copy()
    encodings = unpack(stored) if case.per_byte == 2 else stored
    numbers = case.read_scales(memory)[at_scales].copy()
    out = np.zeros(case.head_size // case.per_byte, np.uint8)
    program.call("load_quantized", *arguments, out.view(QUANTIZED_DTYPES[case.dtype]))
    np.testing.assert_array_equal(out, stored)
    for name, expected in zip(("load_scale", "load_zero_point"), np.split(numbers, case.numbers // case.groups)):
        found = np.zeros_like(expected)
        program.call(name, *arguments, found.view(SCALE_DTYPES[case.scale]))
        np.testing.assert_array_equal(found, expected)
    values = np.zeros(case.head_size, np.float32)
    program.call("load", *arguments, values)
    expected = case.dequantize(encodings, numbers)
    np.testing.assert_array_equal(values, expected.astype(np.float32))


def store_scales(case, program, arguments, model):
    """Stores the scales of a token the other way round, and its zero points."""
    _, at = find_rows(case, *arguments[-4:-1])
    all_scales = case.read_scales(model)
    parts = np.split(all_scales[at].copy(), case.numbers // case.groups)
    for name, part in zip(("store_scale", "store_zero_point"), parts):
        program.call(name, *arguments, part[::-1].copy().view(SCALE_DTYPES[case.scale]))
    all_scales[at] = np.concatenate([part[::-1] for part in parts])
    case.write_scales(model, all_scales)


def store_tokens(case, model, b, h, t, values):
    """Writes the values of the tokens that share scales, from token t on."""
    (page, row, _), at = find_rows(case, b, h, t)
    elements, numbers = case.quantize(values)
    case.read_elements(model)[page, row : row + len(values), h] = elements
    all_scales = case.read_scales(model)
    all_scales[at] = numbers
    case.write_scales(model, all_scales)


PLACES = [(0, 0, 0), (1, 2, 5), (0, 1, 127), (1, 0, 66)]


def check_tiles(case, target):
    """The last row of the tile of a page of one head."""
    program = compiled(case, target)
    memory = case.make_memory()
    dtypes = {"tile": QUANTIZED_DTYPES[case.dtype], "scales_tile": SCALE_DTYPES[case.scale]}
    for b, h in ((0, 2), (1, 1)):
        for name, all_rows in (("tile", case.read_elements(memory)), ("scales_tile", case.read_scales(memory))):
            if name == "scales_tile" and not case.has_scale_rows:
                continue
            expected = all_rows[case.table[b, 1], case.page_size - 1, h]
            if name == "scales_tile":
                expected = expected[: case.groups].copy()
            out = np.zeros_like(expected)
            arguments = (*case.arguments(memory), b, h, case.page_size, 0)
            program.call(name, *arguments, out.view(dtypes[name]))
            np.testing.assert_array_equal(out, expected)


@each_case
def test_tiles(case):
    check_tiles(case, "cpu")


@each_case
def test_rows_of_elements_and_scales(case):
    """The distance of rows equals that of tokens; rows of scales have another distance."""
    program = compiled(case, "cpu")
    memory = case.make_memory()
    for window, row, number in (
        (case.elements, "row_index", "num_kv_rows"),
        (case.scales, "scale_row_index", "num_scale_rows"),
    ):
        if window.page % window.token or (window is case.scales and not case.has_scale_rows):
            continue
        distance = window.page // window.token
        for b, t in ((0, 0), (1, 2 * case.page_size - 1)):
            page = int(case.table[b, t // case.page_size])
            found = program.call(row, *case.arguments(memory), b, t)
            assert found == page * distance + t % case.page_size
        found = program.call(number, *case.arguments(memory), 0, 0)
        assert found == (PAGES - 1) * distance + case.page_size


@each_case
def test_accesses(case):
    check(case, "cpu", PLACES)


# Some cases, with the chips in turn: more kill no more mutants of the lowering. Cases of fp4 and MX scales become
# another program for sm_100a.
IN_TURN = [(case, TARGETS[i % len(TARGETS)]) for i, case in enumerate(CASES) if i % 3 == 1]
OTHER_PROGRAMS = [
    (case, TARGETS[-1])
    for case in CASES[::2]
    if (case.dtype == "f4E2M1FN" or case.scale == "f8E8M0FNU") and (case, TARGETS[-1]) not in IN_TURN
]


@pytest.mark.parametrize(("case", "target"), [*IN_TURN, *OTHER_PROGRAMS], ids=str)
def test_accesses_in_kernels(case, target):
    check(case, target, PLACES)


# Pipes


PIPE = """!tile = !kvcache.tile<8x{width}x{stored}>
!pipe = !kvcache.pipe<2, !tile>
!bytes = vector<16x{stored}>
!groups = vector<{groups}x{scale}>
!tiles = memref<?x{width}x{stored}>
!found = memref<?x{groups}x{scale}>
func.func @run(%elements: !elements, %lengths: memref<?xi32>, %table: memref<?x?xi32>, %scales: !scales,
    %b: index, %h: index, %n: index, %tiles: !tiles, %found: !found) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %rows = arith.constant 8 : index
  %columns = arith.constant {width} : index
  %zero = arith.constant 0 : i32
  %k = kvcache.paged_cache %elements, %lengths, %table, %zero, %zero scales %scales
      : !elements, memref<?xi32>, memref<?x?xi32>, !scales -> !cache
  %ring = kvcache.pipe : !pipe
  scf.for %i = %c0 to %n step %c1 {{
    %t = arith.muli %i, %rows : index
    kvcache.produce %ring[%i] : !pipe {{
    ^bb0(%tile: !tile):
      kvcache.async_load_tile %k[%b, %h, %t, %c0] to %tile : !cache, !tile
    }}
    kvcache.consume %ring[%i] : !pipe {{
    ^bb0(%tile: !tile):
      scf.for %r = %c0 to %rows step %c1 {{
        %token = arith.addi %t, %r : index
        %s = kvcache.load_scale %k[%b, %h, %token, %c0] : !cache -> !groups
        vector.store %s, %found[%token, %c0] : !found, !groups
        scf.for %c = %c0 to %columns step %c16 {{
          %v = kvcache.tile_load %tile[%r, %c] : !tile -> !bytes
          vector.store %v, %tiles[%token, %c] : !tiles, !bytes
        }}
      }}
    }}
  }}
  return
}}
"""
# Tokens with separate scales and no zero points: the kernel reads one scale per group.
PIPES = [
    case
    for case in CASES
    if case.page_size == 16
    and case.head_size // case.per_byte >= 16
    and case.token_granularity == 1
    and case.dtype != "i4"
]


@pytest.mark.parametrize("target", ["cpu", *TARGETS])
@pytest.mark.parametrize("case", PIPES, ids=str)
def test_pipes_of_elements_with_their_scales(case, target):
    """Consumers of a tile get the scales of its tokens from any place."""
    width = case.head_size // case.per_byte
    text = PIPE.format(width=width, stored=case.stored_dtype, groups=case.groups, scale=case.scale)
    program = jit(case.aliases + text, target, threads=64)
    memory = case.make_memory()
    elements, scales = case.read_elements(memory), case.read_scales(memory)
    tokens, scale = COLUMNS * case.page_size, SCALES[case.scale]
    for b, h in ((0, 2), (1, 0)):
        tiles, found = np.zeros((tokens, width), np.uint8), np.zeros((tokens, case.groups), scale.uint)
        program.call(
            *("run", *case.arguments(memory), b, h, tokens // 8),
            *(tiles.view(QUANTIZED_DTYPES[case.dtype]), found.view(SCALE_DTYPES[case.scale])),
        )
        np.testing.assert_array_equal(tiles, elements[case.table[b], :, h].reshape(tokens, -1))
        np.testing.assert_array_equal(found, scales[case.table[b], :, h].reshape(tokens, -1))


# Static scales


STATIC = """
!cache = !kvcache.paged<{dtype}, #kvcache.params<num_heads = 2, head_size = 16>, page_size = 4, layout = hnd>
!pages = memref<?x4x2x16x{dtype}, strided<[?, 16, 64, 1], offset: ?>>
func.func @store_and_load(%pages: !pages, %lengths: memref<?xi32>, %table: memref<?x?xi32>,
    %scale: f32, %in: memref<?xf32>, %out: memref<?xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %k = kvcache.paged_cache %pages, %lengths, %table, %zero, %zero
      : !pages, memref<?xi32>, memref<?x?xi32> -> !cache
  %v = vector.load %in[%c0] : memref<?xf32>, vector<16xf32>
  kvcache.store_quantized %v, %k[%c0, %c1, %c1, %c0] tensor_scale %scale : vector<16xf32>, !cache
  %x = kvcache.load %k[%c0, %c1, %c1, %c0] tensor_scale %scale : !cache -> vector<16xf32>
  vector.store %x, %out[%c0] : memref<?xf32>, vector<16xf32>
  return
}}
"""


@pytest.mark.parametrize("target", ["cpu", TARGETS[0]])
@pytest.mark.parametrize("dtype", ["f8E4M3FN", "f8E5M2"])
def test_static_scales(dtype, target):
    """Tests a cache without scales: the stored values times the scale of the tensor."""
    program = jit(STATIC.format(dtype=dtype), target)
    format = FORMATS[dtype]
    memory = place(np.zeros(2 * 128, np.uint8))
    pages = np.lib.stride_tricks.as_strided(memory, (2, 4, 2, 16), (128, 16, 64, 1))
    scale = np.float32(0.37)
    rng = np.random.default_rng(3)
    values = rng.normal(0, 100, 16).astype(np.float32)
    values[:2] = [1e30, -1e30]
    out = np.zeros(16, np.float32)
    table = np.ones((1, 1), np.uint32)
    program.call(
        "store_and_load", pages.view(DTYPES[dtype]), np.zeros(1, np.uint32), table, scale, values, out
    )
    stored = format.encode((values / scale).astype(np.float64))
    check_encodings(format, pages[1, 1, 1], (values / scale).astype(np.float64))
    expected = format.decode(stored).astype(np.float32) * scale
    np.testing.assert_array_equal(out, expected)
    assert not memory[:128].any()


# Distances that violate the contract


@pytest.mark.parametrize(
    ("dimension", "more", "message"),
    [
        (0, 2, "strides of whole numbers of elements"),
        (1, 4, "expects a stride of 8 elements in dimension 1"),
        (0, -10**6, "expects strides that are not negative"),
    ],
)
def test_scales_at_other_distances(dimension, more, message):
    """The distance of scales among elements is a whole number of scales, as in the type."""
    case = CASES[0]
    memory = case.make_memory()
    elements, lengths, table, scales = case.arguments(memory)
    strides = list(scales.strides)
    strides[dimension] += more
    broken = np.lib.stride_tricks.as_strided(scales, scales.shape, strides)
    program = compiled(case, "cpu")
    out = np.zeros(case.groups, np.float32)
    with pytest.raises(ValueError, match=message):
        program.call("load_scale", elements, lengths, table, broken, 0, 0, 0, 0, out)
