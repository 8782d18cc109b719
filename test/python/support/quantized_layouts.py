"""Quantized caches of any layout in memory, and functions over them."""

import functools
from dataclasses import dataclass, replace

import numpy as np
from bodies import give, lanes, take
from devices import jit
from programs import place
from quantization import (
    ELEMENTS,
    SCALES,
    VALUES,
    dequantize,
    dequantize_with_zero_points,
    pack,
    quantize,
    quantize_with_zero_points,
)
from quantized_programs import PACKED, QUANTIZED_DTYPES, SCALE_DTYPES, give_elements

HEADS, BATCH, COLUMNS = 3, 2, 2
PAGES = BATCH * COLUMNS + 1


@dataclass(frozen=True)
class Window:
    """The places of elements or scales: distances in bytes of tokens, heads and pages."""

    start: int
    token: int
    head: int
    page: int

    def view(self, memory, uint, width, page_size):
        """Views encodings ``[page, token, head, width]``."""
        size = uint.itemsize
        shape = (PAGES, page_size, HEADS, width)
        strides = (self.page, self.token, self.head, size)
        items = memory[self.start : self.start + memory[self.start :].size // size * size]
        return np.lib.stride_tricks.as_strided(items.view(uint), shape, strides)


def interleave(scales, tokens):
    """Reorders scales ``[page, token, head, group]`` as FlashInfer's
    ``nvfp4_quantize_paged_kv_cache``.

    ``tokens`` is 4 for it: a token in four and a fourth of the groups change places."""
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
        """The number of scales of a head, and of the zero points after them."""
        return self.groups * (2 if self.has_zero_points else 1)

    @property
    def scale_rows(self):
        """The number of rows of scales in a page."""
        return self.page_size // self.token_granularity

    @property
    def has_scale_rows(self):
        """Whether ops on rows accept the scales."""
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
        """The memory of the scales; ``interleave`` tokens may share rows."""
        return self.scales.view(memory, SCALES[self.scale].uint, self.numbers, self.scale_rows)

    def read_scales(self, memory):
        """Copies the scales: ``[page, token, head, group]``, then zero points."""
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
        """Makes random elements, and ordinary scales."""
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
        """Computes the f32 values of a head from its encodings and scales."""
        elements, format = ELEMENTS[self.dtype].decode(encodings), SCALES[self.scale]
        numbers = np.repeat(format.decode(numbers), self.granularity)
        if not self.has_zero_points:
            return dequantize(elements, numbers, format, VALUES["f32"])
        scales, zero_points = np.split(numbers, 2)
        return dequantize_with_zero_points(elements, scales, zero_points, VALUES["f32"])

    def quantize(self, values):
        """Computes stored elements ``[tokens, head]`` of f32 values, and their scales."""
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


def place_after_heads(token, head, page, scales_at):
    """Makes scales in the bytes after the elements of each head."""
    return Window(0, token, head, page), Window(scales_at, token, head, page)


def heads_first(width, page_size, start=0):
    """Makes a window in which the tokens of a head are consecutive."""
    head = page_size * width
    return Window(start, width, head, -(-HEADS * head // 16) * 16)


def make_interleaved(page_size):
    """Makes cases in which scales of several tokens share rows, with tokens or heads first."""
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
    """Makes cases of i4, whose zero points follow the scales of a head."""
    space = PAGES * 64 * page_size * HEADS + 32
    inline = place_after_heads(32, 32 * page_size, 32 * page_size * HEADS, 16)
    rows = Window(0, 8 * HEADS, 8, -(-8 * HEADS * page_size // 16) * 16), heads_first(8, page_size, space)
    wide = heads_first(24, page_size), heads_first(24, page_size, start=space)
    return [
        Case("i4-inline", *inline, space, "i4", "f16", 8, head_size=32),
        Case("i4-rows", *rows, 2 * space, "i4", "bf16", 8),
        Case("i4-token-open", *wide, 2 * space, "i4", "f32", 48, is_open=True, head_size=48),
        Case("i4-ragged", *wide, 2 * space, "i4", "f16", 8, head_size=48),
    ]  # fmt: skip


def make_shared_by_tokens(page_size):
    """Makes cases with scales of channels: of four tokens, or of a page."""
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
    """Makes cases for every element type, with scales after each head, or in another allocation."""
    inline = place_after_heads(32, 32 * page_size, 32 * page_size * HEADS, scales_at=16)
    tight = place_after_heads(24, 24 * page_size, 24 * page_size * HEADS + 8 * (page_size * HEADS % 2), 16)
    rows = place_after_heads(24 * HEADS, 24, (24 * HEADS * page_size + 15) // 16 * 16, scales_at=16)
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

HEADER = """func.func @{name}(%elements: !elements, %lengths: memref<?xi32>,
    %table: memref<?x?xi32>, %scales: !scales, %b: index, %h: index, %t: index,
    %d: index, %io: memref<?x{element}>) {{
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
    """The text that reads the values of the tokens that share scales, and their type."""
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


def write_program(case):
    """A program with an access of each kind, to a whole head."""
    text = case.aliases

    def add(name, element, body):
        nonlocal text
        text += HEADER.format(name=name, element=element, body=body)

    def io(element):
        return "%io", f"memref<?x{element}>"

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
    return jit(write_program(case), target)
