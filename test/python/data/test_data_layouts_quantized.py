"""Elements and scales of any layout against NumPy views of the same bytes."""

import functools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from bodies import give, lanes, take
from devices import TARGETS, jit
from model import FORMATS
from programs import DTYPES, place
from quantization import (
    ELEMENTS,
    SCALES,
    VALUES,
    check_encodings,
    dequantize,
    dequantize_with_zero_points,
    pack,
    quantize,
    quantize_with_zero_points,
    unpack,
)
from quantized_programs import PACKED, QUANTIZED_DTYPES, SCALE_DTYPES, give_elements

HEADS, BATCH, COLUMNS = 3, 2, 2
PAGES = BATCH * COLUMNS + 1


@dataclass(frozen=True)
class Window:
    """Elements or scales in a page: distances in bytes of tokens, heads and pages."""

    start: int
    token: int
    head: int
    page: int

    def view(self, memory, uint, width, page_size):
        """Encodings ``[page, token, head, width]``."""
        size = uint.itemsize
        shape = (PAGES, page_size, HEADS, width)
        strides = (self.page, self.token, self.head, size)
        items = memory[self.start : self.start + memory[self.start :].size // size * size]
        return np.lib.stride_tricks.as_strided(items.view(uint), shape, strides)


def interleave(scales, tokens):
    """Scales ``[page, token, head, group]`` in the order of FlashInfer's
    ``nvfp4_quantize_paged_kv_cache``, for which ``tokens`` is 4: a token in four and a
    fourth of the groups change places."""
    pages, rows, heads, groups = scales.shape
    split = scales.reshape(pages, rows // tokens, tokens, heads, tokens, groups // tokens)
    return split.transpose(0, 1, 4, 3, 5, 2).reshape(scales.shape)


def deinterleave(stored, tokens):
    pages, rows, heads, groups = stored.shape
    split = stored.reshape(pages, rows // tokens, tokens, heads, groups // tokens, tokens)
    return split.transpose(0, 1, 5, 3, 2, 4).reshape(stored.shape)


@dataclass(frozen=True)
class Case:
    """A quantized cache whose elements and scales are windows of one allocation."""

    name: str
    elements: Window
    scales: Window
    size: int
    dtype: str = "f8E4M3FN"
    scale: str = "f32"
    granularity: int = 8
    is_open: bool = False
    page_size: int = 3
    is_page_open: bool = False
    interleave: int = 1
    head_size: int = 16
    token_granularity: int = 1

    def __str__(self):
        return f"{self.name}-p{self.page_size}{'-open' if self.is_page_open else ''}"

    @property
    def per_byte(self):
        return 2 if self.dtype in PACKED else 1

    @property
    def scale_bytes(self):
        return np.dtype(SCALE_DTYPES[self.scale]).itemsize

    @property
    def groups(self):
        return self.head_size // self.granularity

    @property
    def has_zero_points(self):
        return self.dtype == "i4"

    @property
    def numbers(self):
        """Scales of a head, and the zero points behind them."""
        return self.groups * (2 if self.has_zero_points else 1)

    @property
    def scale_rows(self):
        """Rows of scales in a page."""
        return self.page_size // self.token_granularity

    @property
    def has_scale_rows(self):
        """Whether ops on rows take the scales."""
        return self.interleave == 1 and self.token_granularity == 1

    @property
    def stored_dtype(self):
        return "i8" if self.per_byte == 2 else self.dtype

    @property
    def aliases(self):
        kv = f"#kvcache.params<num_heads = {HEADS}, head_size = {self.head_size}>"
        bytes = np.dtype(SCALE_DTYPES[self.scale]).itemsize
        elements = (self.elements.token, "?" if self.is_open else self.elements.head)
        scales = (
            self.scales.token // bytes,
            "?" if self.is_open else self.scales.head // bytes,
        )

        page_size = "?" if self.is_page_open else self.page_size
        interleave = f", interleave = {self.interleave}" if self.interleave > 1 else ""
        more = f", zero_point = {self.scale}" if self.has_zero_points else ""
        if self.token_granularity > 1:
            more += f", token_granularity = {self.token_granularity}"

        def memref(distances, width, dtype, rows=page_size):
            token, head = distances
            sizes = f"?x{rows}x{HEADS}x{width}x{dtype}"
            return f"memref<{sizes}, strided<[?, {token}, {head}, 1], offset: ?>>"

        return f"""!cache = !kvcache.paged<{self.dtype}, {kv}, page_size = {page_size},
    scale = {self.scale}, granularity = {self.granularity}{more},
    layout = [token = {elements[0]}, head = {elements[1]}],
    scale_layout = [token = {scales[0]}, head = {scales[1]}{interleave}]>
!elements = {memref(elements, self.head_size // self.per_byte, self.stored_dtype)}
!scales = {memref(scales, self.numbers, self.scale, "?" if self.is_page_open else self.scale_rows)}
"""

    def read_elements(self, memory):
        width = self.head_size // self.per_byte
        return self.elements.view(memory, np.dtype(np.uint8), width, self.page_size)

    def view_scales(self, memory):
        """The memory of the scales, of which ``interleave`` tokens may share their rows."""
        return self.scales.view(memory, SCALES[self.scale].uint, self.numbers, self.scale_rows)

    def read_scales(self, memory):
        """A copy of the scales: ``[page, token, head, group]``, zero points behind them."""
        return deinterleave(self.view_scales(memory), self.interleave)

    def write_scales(self, memory, scales):
        self.view_scales(memory)[...] = interleave(scales, self.interleave)

    @functools.cached_property
    def table(self):
        return np.array([[3, 0], [4, 1]], np.uint32)

    def arguments(self, memory):
        elements = self.read_elements(memory).view(QUANTIZED_DTYPES[self.dtype])
        scales = self.view_scales(memory).view(SCALE_DTYPES[self.scale])
        return elements, np.zeros(BATCH, np.uint32), self.table, scales

    def make_memory(self):
        """Random elements, and ordinary scales."""
        rng = np.random.default_rng(7)
        memory = place(rng.integers(0, 256, self.size, np.uint8))
        if self.dtype != "f4E2M1FN":
            self.read_elements(memory)[...] &= 0x77  # Not a NaN.
        scales = self.read_scales(memory)
        values = np.exp2(rng.integers(-7, 4, scales.shape))
        if self.has_zero_points:
            values[..., self.groups :] = rng.normal(0, 3, values[..., self.groups :].shape)
        self.write_scales(memory, SCALES[self.scale].encode(values))
        return memory

    def dequantize(self, encodings, numbers):
        """The f32 values of a head from its encodings and scales."""
        elements, format = ELEMENTS[self.dtype].decode(encodings), SCALES[self.scale]
        numbers = np.repeat(format.decode(numbers), self.granularity)
        if not self.has_zero_points:
            return dequantize(elements, numbers, format, VALUES["f32"])
        scales, zero_points = np.split(numbers, 2)
        return dequantize_with_zero_points(elements, scales, zero_points, VALUES["f32"])

    def quantize(self, values):
        """Stored elements ``[tokens, head]`` of f32 values, and their scales."""
        element, scale = ELEMENTS[self.dtype], SCALES[self.scale]
        if self.has_zero_points:
            elements, *numbers = quantize_with_zero_points(values, self.granularity, scale)
            numbers = np.concatenate(numbers)
        elif self.token_granularity > 1:
            elements, numbers = quantize(values.T, self.token_granularity, element, scale)
            elements, numbers = elements.T, numbers.ravel()
        else:
            elements, numbers = quantize(values[0], self.granularity, element, scale)
            elements = elements[np.newaxis]
        encoded = element.encode(elements).astype(np.uint8)
        return pack(encoded) if self.per_byte == 2 else encoded, scale.encode(numbers)


def behind_heads(token, head, page, scales_at):
    """Scales in the bytes behind the elements of each head."""
    return Window(0, token, head, page), Window(scales_at, token, head, page)


def heads_first(width, page_size, start=0):
    """The tokens of a head follow each other."""
    head = page_size * width
    return Window(start, width, head, -(-HEADS * head // 16) * 16)


def make_interleaved(page_size):
    """Scales of which those of several tokens share their rows, with tokens or heads first."""
    space = PAGES * 32 * page_size * HEADS + 32
    nvfp4 = heads_first(32, page_size), heads_first(4, page_size, start=space)
    token, page = 4 * HEADS, -(-4 * HEADS * page_size // 16) * 16
    rows = heads_first(32, page_size), Window(space, token, 4, page)
    f32 = heads_first(16, page_size), heads_first(16, page_size, start=space)
    return [
        Case(
            "nvfp4-interleaved", *nvfp4, 2 * space,
            "f4E2M1FN", "f8E4M3FN", 16, interleave=4, head_size=64,
        ),
        Case(
            "nvfp4-interleaved-nhd", *rows, 2 * space,
            "f4E2M1FN", "f8E4M3FN", 16, interleave=4, head_size=64,
        ),
        Case("f32-interleaved", *f32, 3 * space, "f8E4M3FN", "f32", 4, interleave=2),
        Case("f32-interleaved-open", *f32, 3 * space, "i8", "f32", 4, is_open=True, interleave=2),
    ]  # fmt: skip


def make_with_zero_points(page_size):
    """Pairs of i4, whose zero points follow the scales of a head."""
    space = PAGES * 64 * page_size * HEADS + 32
    inline = behind_heads(32, 32 * page_size, 32 * page_size * HEADS, 16)
    rows = Window(0, 8 * HEADS, 8, -(-8 * HEADS * page_size // 16) * 16), heads_first(8, page_size, space)
    wide = heads_first(24, page_size), heads_first(24, page_size, start=space)
    return [
        Case("i4-inline", *inline, space, "i4", "f16", 8, head_size=32),
        Case("i4-rows", *rows, 2 * space, "i4", "bf16", 8),
        Case("i4-token-open", *wide, 2 * space, "i4", "f32", 48, is_open=True, head_size=48),
        Case("i4-ragged", *wide, 2 * space, "i4", "f16", 8, head_size=48),
    ]  # fmt: skip


def make_shared_by_tokens(page_size):
    """Scales of channels: of four tokens, or of a page."""
    space = PAGES * 64 * page_size * HEADS + 32
    half = page_size // 4
    kivi = heads_first(8, page_size), heads_first(64, half, start=space)
    rows = Window(0, 16 * HEADS, 16, 16 * HEADS * page_size), Window(space, 64 * HEADS, 64, 64 * HEADS)
    return [
        Case("kivi", *kivi, 3 * space, "i4", "f16", 1, token_granularity=4),
        Case("kivi-open", *kivi, 3 * space, "i4", "bf16", 1, is_open=True, token_granularity=4),
        Case("channels-of-page", *rows, 3 * space, "i8", "f32", 1, token_granularity=page_size),
        Case("channels", *(heads_first(16, page_size), kivi[1]), 3 * space, "f8E4M3FN", "f32", 1, token_granularity=4),
    ]  # fmt: skip


def make_cases(page_size, is_page_open=False):
    """Scales behind each head, or in an allocation of their own, for every element type."""
    inline = behind_heads(32, 32 * page_size, 32 * page_size * HEADS, scales_at=16)
    tight = behind_heads(24, 24 * page_size, 24 * page_size * HEADS + 8 * (page_size * HEADS % 2), 16)
    rows = behind_heads(24 * HEADS, 24, (24 * HEADS * page_size + 15) // 16 * 16, scales_at=16)
    space = PAGES * 32 * page_size * HEADS + 32
    apart = heads_first(16, page_size), heads_first(8, page_size, start=space)
    cases = [
        Case("inline", *inline, space),
        Case("inline-tight", *tight, space),
        Case("inline-rows", *rows, space),
        Case("inline-open", *inline, space, is_open=True),
        Case("hnd", *apart, 2 * space),
        Case("hnd-open", *apart, 2 * space, is_open=True),
        Case("i8", *inline, space, "i8", "bf16"),
        Case(
            "nvfp4", heads_first(8, page_size), heads_first(1, page_size, start=space), 2 * space,
            "f4E2M1FN", "f8E4M3FN", 16,
        ),
        Case("mx", *inline, space, "f8E5M2", "f8E8M0FNU", 4),
    ]  # fmt: skip
    cases += make_with_zero_points(page_size)
    if page_size % 4 == 0 and not is_page_open:
        cases += make_interleaved(page_size)
        cases += make_shared_by_tokens(page_size)
    return [replace(case, page_size=page_size, is_page_open=is_page_open) for case in cases]


CASES = [*make_cases(3), *make_cases(16), *make_cases(1)[::2], *make_cases(64)[1::2], *make_cases(4, True)[::3]]
each_case = pytest.mark.parametrize("case", CASES, ids=str)

HEADER = """func.func @{name}(%elements: !elements, %lengths: memref<?xi32>,
    %table: memref<?x?xi32>, %scales: !scales, %b: index, %h: index, %t: index,
    %d: index, %io: memref<?x{lane}>) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %k = kvcache.paged_cache %elements, %lengths, %table, %zero, %zero scales %scales
      : !elements, memref<?xi32>, memref<?x?xi32>, !scales -> !cache
{body}  return
}}
"""
AT = "%k[%b, %h, %t, %d]"
HEADER_OF_QUERY = """func.func @{name}(%elements: !elements, %lengths: memref<?xi32>,
    %table: memref<?x?xi32>, %scales: !scales, %b: index, %t: index) -> index {{
  %zero = arith.constant 0 : i32
  %k = kvcache.paged_cache %elements, %lengths, %table, %zero, %zero scales %scales
      : !elements, memref<?xi32>, memref<?x?xi32>, !scales -> !cache
  %r = kvcache.{op} : !cache
  return %r : index
}}
"""
QUERIES = {
    "row_index": "row_index %k[%b, %t]",
    "num_kv_rows": "num_kv_rows %k",
    "scale_row_index": "scale_row_index %k[%b, %t]",
    "num_scale_rows": "num_scale_rows %k",
}


def take_tokens(case):
    """Text that reads the values of the tokens that share scales, and their type."""
    row = lanes(case.head_size, "f32")
    if case.token_granularity == 1:
        return take("%v", ("%io", "memref<?xf32>"), row), row
    type = f"vector<{case.token_granularity}x{case.head_size}xf32>"
    text = f"  %v_0 = arith.constant dense<0.0> : {type}\n"
    for token in range(case.token_granularity):
        last = "%v" if token == case.token_granularity - 1 else f"%v_{token + 1}"
        text += (
            f"  %at_{token} = arith.constant {token * case.head_size} : index\n"
            + take(f"%row_{token}", ("%io", "memref<?xf32>"), row, f"%at_{token}")
            + f"  {last} = vector.insert %row_{token}, %v_{token} [{token}] : {row} into {type}\n"
        )
    return text, type


def program_of(case):
    """An access of each kind, to a whole head."""
    text = case.aliases

    def add(name, lane, body):
        nonlocal text
        text += HEADER.format(name=name, lane=lane, body=body)

    io = lambda lane: ("%io", f"memref<?x{lane}>")
    wide, stored = lanes(case.head_size, "f32"), lanes(case.head_size, case.dtype)
    scales = lanes(case.groups, case.scale)
    for name, more in {"scale": "", **({"zero_point": " {zero_point}"} if case.has_zero_points else {})}.items():
        add(
            f"load_{name}",
            case.scale,
            f"  %v = kvcache.load_scale {AT}{more} : !cache -> {scales}\n{give('%v', io(case.scale), scales)}",
        )
        add(
            f"store_{name}",
            case.scale,
            f"{take('%v', io(case.scale), scales)}  kvcache.store_scale %v, {AT}{more} : {scales}, !cache\n",
        )
    add("load", "f32", f"  %v = kvcache.load {AT} : !cache -> {wide}\n{give('%v', io('f32'), wide)}")
    add(
        "load_quantized",
        case.stored_dtype,
        f"  %v = kvcache.load_quantized {AT} : !cache -> {stored}\n"
        + give_elements("%v", io(case.stored_dtype), case.head_size, case.dtype),
    )
    values, type = take_tokens(case)
    add("store_quantized", "f32", f"{values}  kvcache.store_quantized %v, {AT} : {type}, !cache\n")
    width = case.head_size // case.per_byte
    tiles = {
        "tile": (case.elements.token, width, case.stored_dtype, "block_tile"),
        "scales_tile": (case.scales.token // case.scale_bytes, case.groups, case.scale, "scales_block_tile"),
    }
    if not case.has_scale_rows:
        del tiles["scales_tile"]
    for name, (token, columns, dtype, op) in tiles.items():
        tile = f"memref<{case.page_size}x{columns}x{dtype}, strided<[{token}, 1], offset: ?>>"
        add(
            name,
            dtype,
            f"  %m = kvcache.{op} {AT} : !cache -> {tile}\n"
            f"  %i = arith.constant {case.page_size - 1} : index\n"
            f"  %v = vector.load %m[%i, %c0] : {tile}, vector<{columns}x{dtype}>\n"
            f"  vector.store %v, %io[%c0] : memref<?x{dtype}>, vector<{columns}x{dtype}>\n",
        )
    for name, op in QUERIES.items():
        if case.has_scale_rows or "scale" not in name:
            text += HEADER_OF_QUERY.format(name=name, op=op)
    return text


@functools.cache
def compiled(case, target):
    return jit(program_of(case), target)


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
    """Where the elements and the scales of a token are."""
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
    """Rows are as far apart as tokens, those of scales by a distance of their own."""
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


@pytest.mark.parametrize("case", CASES[1::3], ids=str)
def test_accesses_in_kernels(case):
    check(case, TARGETS[CASES.index(case) % len(TARGETS)], PLACES[1:3])


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@each_case
def test_all_accesses_in_kernels(case, target):
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
# Tokens with scales of their own and no zero points: the kernel reads one scale a group.
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
    """Who consumes a tile finds the scales of its tokens, wherever they lie."""
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
    """A cache without scales: the stored values times the scale of the tensor."""
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


# Distances that break the contract


@pytest.mark.parametrize(
    ("dimension", "more", "message"),
    [
        (0, 2, "strides of whole numbers of elements"),
        (1, 4, "expects a stride of 8 elements in dimension 1"),
        (0, -10**6, "expects strides that are not negative"),
    ],
)
def test_scales_at_other_distances(dimension, more, message):
    """Scales among the elements are a whole number of them apart, as the type says."""
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
