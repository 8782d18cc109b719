"""Tests of groups with zero points, and groups of tokens: all kinds of values, bit for bit."""

import functools
from dataclasses import dataclass
from fractions import Fraction

import devices
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import DTYPES, examples, place
from quantization import (
    ELEMENTS,
    RESULTS,
    SCALES,
    check_encodings,
    dequantize,
    dequantize_with_zero_points,
    fma_f32,
    pack,
    quantize,
    quantize_with_zero_points,
    unpack,
)
from quantized_programs import QUANTIZED_DTYPES, SCALE_DTYPES

PAGE_SIZE = 32


@dataclass(frozen=True)
class Groups:
    """A cache of one head, whose groups are of elements, or of tokens."""

    scale: str
    granularity: int
    tokens: int = 1
    dtype: str = "i4"
    head_size: int = 32

    @property
    def has_zero_points(self):
        return self.dtype == "i4"

    @property
    def stored(self):
        """The stored elements of a head, and their type."""
        return (self.head_size // 2, "i8") if self.has_zero_points else (self.head_size, self.dtype)

    @property
    def groups(self):
        return -(-self.head_size // self.granularity)

    @property
    def numbers(self):
        return self.groups * (2 if self.has_zero_points else 1)

    @property
    def cache(self):
        more = f", zero_point = {self.scale}" if self.has_zero_points else ""
        if self.tokens > 1:
            more += f", token_granularity = {self.tokens}"
        return (
            f"!kvcache.paged<{self.dtype}, #kvcache.params<num_heads = 1, head_size = {self.head_size}>,"
            f" page_size = {PAGE_SIZE}, scale = {self.scale}, granularity = {self.granularity}{more}>"
        )

    @property
    def stores(self):
        """Functions that quantize and store rows."""
        has_op = self.has_zero_points and self.tokens == 1 and self.head_size % self.granularity == 0
        return ("store", "quantize") if has_op else ("store",)

    def quantize(self, values):
        """Quantizes f32 values ``[tokens, lanes]`` to encodings, scales, and zero points if any."""
        if self.has_zero_points:
            return quantize_with_zero_points(values, self.granularity, SCALES[self.scale])
        elements, scales = quantize(values.T, self.tokens, ELEMENTS[self.dtype], SCALES[self.scale])
        return elements.T, scales.ravel()


# Each value type with each scale type, and groups of all kinds.
ALL = [
    *((wide, Groups(scale, 32)) for wide in ("f32", "f16", "bf16") for scale in ("f32", "f16", "bf16")),
    ("bf16", Groups("f16", 8)),
    ("f32", Groups("f16", 24, head_size=56)),
    ("f32", Groups("f32", 1, tokens=32, head_size=4)),
    ("bf16", Groups("f16", 1, tokens=8, head_size=4)),
    ("f16", Groups("bf16", 1, tokens=2, head_size=2)),
    ("bf16", Groups("f32", 1, tokens=8, dtype="i8", head_size=3)),
    ("f32", Groups("f8E8M0FNU", 1, tokens=4, dtype="f8E4M3FN", head_size=4)),
    ("f16", Groups("bf16", 1, tokens=4, dtype="f8E5M2", head_size=2)),
]
# Heads of several chunks, which a CPU converts together.
WIDE = [("bf16", Groups("f16", 32, head_size=128)), ("bf16", Groups("bf16", 64, head_size=256))]
each = pytest.mark.parametrize(
    ("case", "target"), [*((case, "cpu") for case in ALL + WIDE), *devices.spread(ALL)], ids=str
)

HEADER = """func.func @{name}(%elements: !elements, %lengths: memref<?xi32>,
    %table: memref<?x?xi32>, %scales: !scales, %n: index, %io: memref<?x?x{lane}>) {{
  %c0 = arith.constant 0 : index
  %step = arith.constant {step} : index
  %zero = arith.constant 0 : i32
  %k = kvcache.paged_cache %elements, %lengths, %table, %zero, %zero scales %scales
      : !elements, memref<?xi32>, memref<?x?xi32>, !scales -> !cache
  scf.for %t = %c0 to %n step %step {{
{body}  }}
  return
}}
"""
AT = "%k[%c0, %c0, %t, %c0]"


@functools.cache
def compiled(case, target):
    wide, groups = case
    size, tokens = groups.head_size, groups.tokens
    columns, stored = groups.stored
    text = f"""!cache = {groups.cache}
!elements = memref<?x{PAGE_SIZE}x1x{columns}x{stored}>
!scales = memref<?x{PAGE_SIZE // tokens}x1x{groups.numbers}x{groups.scale}>
"""
    row = f"vector<{size}x{wide}>"
    memref = f"memref<?x?x{wide}>"
    body, value, type = f"  %v = vector.load %io[%t, %c0] : {memref}, {row}\n", "%v", row
    if tokens > 1:
        type = f"vector<{tokens}x{size}x{wide}>"
        body, value = f"  %m0 = arith.constant dense<0.0> : {type}\n", f"%m{tokens}"
    for token in range(tokens if tokens > 1 else 0):
        body += (
            f"  %c{token}_ = arith.constant {token} : index\n"
            f"  %t{token} = arith.addi %t, %c{token}_ : index\n"
            f"  %v{token} = vector.load %io[%t{token}, %c0] : {memref}, {row}\n"
            f"  %m{token + 1} = vector.insert %v{token}, %m{token} [{token}] : {row} into {type}\n"
        )
    body += f"  kvcache.store_quantized {value}, {AT} : {type}, !cache\n"
    text += HEADER.format(name="store", lane=wide, step=tokens, body=body)
    if "quantize" in groups.stores:
        scales = groups.scale if groups.groups == 1 else f"vector<{groups.groups}x{groups.scale}>"
        body = (
            f"  %v = vector.load %io[%t, %c0] : {memref}, {row}\n"
            f"  %w, %s, %z = kvcache.quantize %v : {row} -> vector<{size}xi4>, {scales}, {scales}\n"
            f"  kvcache.store %w, {AT} : vector<{size}xi4>, !cache\n"
            f"  kvcache.store_scale %s, {AT} : {scales}, !cache\n"
            f"  kvcache.store_scale %z, {AT} {{zero_point}} : {scales}, !cache\n"
        )
        text += HEADER.format(name="quantize", lane=wide, step=1, body=body)
    for result in RESULTS:
        type = f"vector<{size}x{result}>"
        body = f"  %v = kvcache.load {AT} : !cache -> {type}\n"
        body += f"  vector.store %v, %io[%t, %c0] : memref<?x?x{result}>, {type}\n"
        text += HEADER.format(name=f"load_{result}", lane=result, step=1, body=body)
    return devices.jit(text, target, opt_level=0)


def check(case, target, rows):
    """``rows`` are f32 values ``[rows, lanes]``, of which each ``tokens`` are groups."""
    wide, groups = case
    scale = SCALES[groups.scale]
    tokens = groups.tokens
    rows = rows[: len(rows) // tokens * tokens]
    with np.errstate(over="ignore", invalid="ignore"):
        rows = rows.astype(DTYPES[wide])
    pages = -(-len(rows) // PAGE_SIZE)
    elements = place(np.zeros((pages, PAGE_SIZE, 1, groups.stored[0]), np.uint8))
    scales = place(np.zeros((pages, PAGE_SIZE // tokens, 1, groups.numbers), scale.uint))
    memory = (
        elements.view(QUANTIZED_DTYPES[groups.dtype]),
        np.zeros(1, np.uint32),
        np.arange(pages, dtype=np.uint32)[np.newaxis],
        scales.view(SCALE_DTYPES[groups.scale]),
        len(rows),
    )
    exact = rows.astype(np.float32).reshape(-1, tokens, rows.shape[1])
    expected = [groups.quantize(values) for values in exact]
    for function in groups.stores:
        elements[...], scales[...] = 0, 0
        compiled(case, target).call(function, *memory, place(rows))
        stored = elements.reshape(-1, groups.stored[0])[: len(rows)]
        encodings = unpack(stored) if groups.has_zero_points else stored
        numbers = scales.reshape(-1, groups.numbers)[: len(exact)]
        check_encodings(scale, numbers, np.stack([np.concatenate(part[1:]) for part in expected]))
        check_encodings(
            ELEMENTS[groups.dtype], encodings, np.concatenate([part[0] for part in expected])
        )
    check_loads(case, target, memory, encodings, numbers)


def check_loads(case, target, memory, encodings, numbers):
    """Checks that loads return the stored values, for every result type."""
    _, groups = case
    format = SCALES[groups.scale]
    lanes = np.arange(groups.head_size) // groups.granularity
    values = ELEMENTS[groups.dtype].decode(encodings)
    parts = np.split(format.decode(numbers), groups.numbers // groups.groups, axis=1)
    parts = [np.repeat(part[:, lanes], groups.tokens, axis=0) for part in parts]
    for name, result in RESULTS.items():
        out = place(np.zeros(encodings.shape, result.uint))
        compiled(case, target).call(f"load_{name}", *memory, out.view(DTYPES[name]))
        if groups.has_zero_points:
            check_encodings(result, out, dequantize_with_zero_points(values, *parts, result))
        else:
            check_encodings(result, out, dequantize(values, *parts, format, result))


def special_rows(case):
    """Groups of zeros, of one value, far from zero, tiny, huge, and NaN."""
    _, groups = case
    size = groups.head_size
    rng = np.random.default_rng(size)
    normal = rng.normal(size=(groups.tokens, size))
    kinds = [
        normal * 0,
        normal * -0.0,
        np.full_like(normal, 0.1),
        np.full_like(normal, -3e38),
        np.full_like(normal, 1e-45),
        normal * 1e-44,
        normal * 1e38,
        np.sign(normal) * 3.4e38,
        *(10.0**exponent + normal for exponent in range(-4, 6)),
        *(-(10.0**exponent) + normal for exponent in range(-4, 6)),
        *(normal * 2.0**exponent for exponent in range(-140, 124, 9)),
        normal * np.exp2(np.linspace(-30, 20, size)),  # groups of tiny and of large ones
        np.abs(normal),
        -np.abs(normal),
        np.rint(np.abs(normal) * 4).clip(0, 15),  # numbers that are elements
        np.linspace(0, 7.5, normal.size).reshape(normal.shape),  # ties
    ]
    for special in (np.nan, np.inf, -np.inf):
        for others in (normal, normal * 0 + special):
            group = others.copy()
            group[rng.integers(groups.tokens), rng.integers(size)] = special
            kinds.append(group)
    return np.concatenate(kinds)


@each
def test_groups(case, target):
    rng = np.random.default_rng(3)
    random = rng.normal(size=(96, case[1].head_size)) * np.exp2(rng.uniform(-20, 20, (96, 1)))
    with np.errstate(over="ignore"):
        rows = np.concatenate([special_rows(case), random]).astype(np.float32)
    check(case, target, rows)


@given(st.data())
@examples(20)
def test_groups_of_any_bits(data):
    case = data.draw(st.sampled_from(ALL))
    tokens, size = case[1].tokens, case[1].head_size
    some = data.draw(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=2 * size))
    bits = np.resize(np.array(some, np.uint32), (2 * tokens, size))
    if data.draw(st.booleans()):  # Exponents that are close together.
        bits = bits & np.uint32(0x81FFFFFF) | np.uint32(data.draw(st.integers(0, 250)) << 23)
    check(case, "cpu", bits.view(np.float32))


def test_elements_lie_in_the_low_bits_first():
    """The smallest and the largest value of a group are 0 and 15, in this order."""
    case = ("f32", Groups("f32", 2, head_size=4))
    rows = np.array([[-1, 14, 7, -8]], np.float32)
    encodings, scales, zero_points = case[1].quantize(rows)
    assert pack(encodings.astype(np.uint8)).tolist() == [[0xF0, 0x0F]]
    assert (scales.tolist(), zero_points.tolist()) == ([1, 1], [-1, -8])
    check(case, "cpu", rows)


def test_sums_of_the_model_are_rounded_once():
    """Tests sums that f64 rounds to a midpoint of two numbers of f32, too."""
    for q, s, z in [(3.0, 2.0**-25 + 2.0**-47, 1.0), (1.0, 2.0**-24 + 2.0**-47, -1.0), (15.0, 2.0**-60, 1.0)]:
        exact = Fraction(q) * Fraction(s) + Fraction(z)
        found = Fraction(float(fma_f32(np.float64(q), np.float64(s), np.float64(z))))
        units = Fraction(2) ** -24
        assert abs(found - exact) <= units / (1 if abs(exact) >= 1 else 2)
