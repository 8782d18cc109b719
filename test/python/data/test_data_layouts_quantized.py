"""Elements and scales of any layout against NumPy views of the same bytes."""

import functools
from dataclasses import dataclass

import numpy as np
import pytest
from bodies import give, lanes, take
from devices import TARGETS, jit
from model import FORMATS
from programs import DTYPES, place
from quantization import ELEMENTS, SCALES, VALUES, check_encodings, dequantize, pack, quantize, unpack
from quantized_programs import QUANTIZED_DTYPES, SCALE_DTYPES, give_elements

HEADS, HEAD_SIZE, PAGE_SIZE, BATCH, COLUMNS = 3, 16, 3, 2, 2
PAGES = BATCH * COLUMNS + 1


@dataclass(frozen=True)
class Window:
    """Elements or scales in a page: distances in bytes of tokens, heads and pages."""

    start: int
    token: int
    head: int
    page: int

    def view(self, memory, uint, width):
        """Encodings ``[page, token, head, width]``."""
        size = uint.itemsize
        shape = (PAGES, PAGE_SIZE, HEADS, width)
        strides = (self.page, self.token, self.head, size)
        items = memory[self.start : self.start + memory[self.start :].size // size * size]
        return np.lib.stride_tricks.as_strided(items.view(uint), shape, strides)


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

    def __str__(self):
        return self.name

    @property
    def per_byte(self):
        return 2 if self.dtype == "f4E2M1FN" else 1

    @property
    def groups(self):
        return HEAD_SIZE // self.granularity

    @property
    def stored_dtype(self):
        return "i8" if self.per_byte == 2 else self.dtype

    @property
    def aliases(self):
        kv = f"#kvcache.params<num_heads = {HEADS}, head_size = {HEAD_SIZE}>"
        bytes = np.dtype(SCALE_DTYPES[self.scale]).itemsize
        elements = (self.elements.token, "?" if self.is_open else self.elements.head)
        scales = (
            self.scales.token // bytes,
            "?" if self.is_open else self.scales.head // bytes,
        )

        def memref(distances, width, dtype):
            token, head = distances
            sizes = f"?x{PAGE_SIZE}x{HEADS}x{width}x{dtype}"
            return f"memref<{sizes}, strided<[?, {token}, {head}, 1], offset: ?>>"

        return f"""!cache = !kvcache.paged<{self.dtype}, {kv}, page_size = {PAGE_SIZE},
    scale = {self.scale}, granularity = {self.granularity},
    layout = [token = {elements[0]}, head = {elements[1]}],
    scale_layout = [token = {scales[0]}, head = {scales[1]}]>
!elements = {memref(elements, HEAD_SIZE // self.per_byte, self.stored_dtype)}
!scales = {memref(scales, self.groups, self.scale)}
"""

    def read_elements(self, memory):
        return self.elements.view(memory, np.dtype(np.uint8), HEAD_SIZE // self.per_byte)

    def read_scales(self, memory):
        return self.scales.view(memory, SCALES[self.scale].uint, self.groups)

    @functools.cached_property
    def table(self):
        return np.array([[3, 0], [4, 1]], np.uint32)

    def arguments(self, memory):
        elements = self.read_elements(memory).view(QUANTIZED_DTYPES[self.dtype])
        scales = self.read_scales(memory).view(SCALE_DTYPES[self.scale])
        return elements, np.zeros(BATCH, np.uint32), self.table, scales

    def make_memory(self):
        """Random elements, and ordinary scales."""
        rng = np.random.default_rng(7)
        memory = place(rng.integers(0, 256, self.size, np.uint8))
        if self.dtype != "f4E2M1FN":
            self.read_elements(memory)[...] &= 0x77  # Not a NaN.
        scales = self.read_scales(memory)
        values = np.exp2(rng.integers(-7, 4, scales.shape))
        scales[...] = SCALES[self.scale].encode(values)
        return memory


def behind_heads(token, head, page, scales_at):
    """Scales in the bytes behind the elements of each head."""
    return Window(0, token, head, page), Window(scales_at, token, head, page)


def heads_first(width, start=0):
    """The tokens of a head follow each other."""
    head = PAGE_SIZE * width
    return Window(start, width, head, -(-HEADS * head // 16) * 16)


INLINE = behind_heads(32, 32 * PAGE_SIZE, 32 * PAGE_SIZE * HEADS, scales_at=16)
TIGHT = behind_heads(24, 24 * PAGE_SIZE, 24 * PAGE_SIZE * HEADS, scales_at=16)
ROWS = behind_heads(24 * HEADS, 24, 24 * HEADS * PAGE_SIZE, scales_at=16)
SPACE = PAGES * 32 * PAGE_SIZE * HEADS
CASES = [
    Case("inline", *INLINE, SPACE),
    Case("inline-tight", *TIGHT, SPACE),
    Case("inline-rows", *ROWS, SPACE),
    Case("inline-open", *INLINE, SPACE, is_open=True),
    Case("hnd", heads_first(16), heads_first(8, start=SPACE), 2 * SPACE),
    Case("hnd-open", heads_first(16), heads_first(8, start=SPACE), 2 * SPACE, is_open=True),
    Case("i8", *INLINE, SPACE, "i8", "bf16"),
    Case("nvfp4", heads_first(8), heads_first(1, start=SPACE), 2 * SPACE, "f4E2M1FN", "f8E4M3FN", 16),
    Case("mx", *INLINE, SPACE, "f8E5M2", "f8E8M0FNU", 4),
]
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


def program_of(case):
    """An access of each kind, to a whole head."""
    text = case.aliases

    def add(name, lane, body):
        nonlocal text
        text += HEADER.format(name=name, lane=lane, body=body)

    io = lambda lane: ("%io", f"memref<?x{lane}>")
    wide, stored = lanes(HEAD_SIZE, "f32"), lanes(HEAD_SIZE, case.dtype)
    scales = lanes(case.groups, case.scale)
    add("load", "f32", f"  %v = kvcache.load {AT} : !cache -> {wide}\n{give('%v', io('f32'), wide)}")
    add(
        "load_quantized",
        case.stored_dtype,
        f"  %v = kvcache.load_quantized {AT} : !cache -> {stored}\n"
        + give_elements("%v", io(case.stored_dtype), HEAD_SIZE, case.dtype),
    )
    add(
        "load_scale",
        case.scale,
        f"  %v = kvcache.load_scale {AT} : !cache -> {scales}\n{give('%v', io(case.scale), scales)}",
    )
    add(
        "store_scale",
        case.scale,
        f"{take('%v', io(case.scale), scales)}  kvcache.store_scale %v, {AT} : {scales}, !cache\n",
    )
    add(
        "store_quantized",
        "f32",
        f"{take('%v', io('f32'), wide)}  kvcache.store_quantized %v, {AT} : {wide}, !cache\n",
    )
    return text


@functools.cache
def compiled(case, target):
    return jit(program_of(case), target)


def check(case, target, places):
    program = compiled(case, target)
    element, scale = ELEMENTS[case.dtype], SCALES[case.scale]
    rng = np.random.default_rng(9)
    for b, h, t in places:
        memory = case.make_memory()
        arguments = (*case.arguments(memory), b, h, t, 0)
        at = (int(case.table[b, t // PAGE_SIZE]), t % PAGE_SIZE, h)
        stored = case.read_elements(memory)[at].copy()
        encodings = unpack(stored) if case.per_byte == 2 else stored
        scales = case.read_scales(memory)[at].copy()

        out = np.zeros(HEAD_SIZE // case.per_byte, np.uint8)
        program.call("load_quantized", *arguments, out.view(QUANTIZED_DTYPES[case.dtype]))
        np.testing.assert_array_equal(out, stored)
        found = np.zeros(case.groups, scale.uint)
        program.call("load_scale", *arguments, found.view(SCALE_DTYPES[case.scale]))
        np.testing.assert_array_equal(found, scales)
        values = np.zeros(HEAD_SIZE, np.float32)
        program.call("load", *arguments, values)
        of_lanes = np.repeat(scale.decode(scales), case.granularity)
        expected = dequantize(element.decode(encodings), of_lanes, scale, VALUES["f32"])
        np.testing.assert_array_equal(values, expected.astype(np.float32))

        model = memory.copy()
        case.read_scales(model)[at] = scales[::-1]
        program.call("store_scale", *arguments, scales[::-1].copy().view(SCALE_DTYPES[case.scale]))
        np.testing.assert_array_equal(memory, model)

        values = rng.normal(0, 3, HEAD_SIZE).astype(np.float32)
        numbers, of_groups = quantize(values, case.granularity, element, scale)
        encoded = element.encode(numbers).astype(np.uint8)
        case.read_elements(model)[at] = pack(encoded) if case.per_byte == 2 else encoded
        case.read_scales(model)[at] = scale.encode(of_groups)
        program.call("store_quantized", *arguments, values)
        np.testing.assert_array_equal(memory, model)


PLACES = [(0, 0, 0), (1, 2, 5), (0, 1, 4), (1, 0, 2)]


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
