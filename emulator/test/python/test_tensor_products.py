"""tcgen05.mma of every kind against products in f64, with operands placed by the ISA's layouts."""

import dataclasses
import functools

import ml_dtypes
import numpy as np
import pytest
from tensor_operands import ELEMENTS, get_lanes, make_descriptor, place, to_bytes
from tensor_products import SCALES, WORDS, Case, write_program

import kvcache


# Bits of the ISA's tables, as CUTLASS's headers compute them on the host.
@pytest.mark.parametrize(
    ("case", "step", "expected"),
    [
        (Case("f16", "bf16", "bf16", "f32", 128, 128), 0, 0x08200490),
        (Case("f16", "bf16", "bf16", "f32", 128, 128, transposed=(False, True)), 0, 0x08210490),
        (Case("f8f6f4", "e4m3", "e4m3", "f32", 128, 256), 0, 0x08400010),
        (Case("mxf4nvf4", "packed e2m1", "packed e2m1", "f32", 128, 128, block=16, format="ue4m3"), 1, 0x08200480),
        (Case("mxf4", "packed e2m1", "packed e2m1", "f32", 128, 256, block=32), 1, 0x48C004A0),
        (Case("mxf8f6f4", "e4m3", "e5m2", "f32", 128, 64, block=32), 1, 0x28900410),
        (Case("mxf8f6f4", "e2m3", "e3m2", "f32", 256, 96, block=32), 3, 0x709811B0),
        (Case("mxf8f6f4", "e4m3", "e4m3", "f32", 128, 128, transposed=(True, False), block=32), 0, 0x08A08000),
    ],
    ids=str,
)
def test_golden_instruction_descriptors(case, step, expected):
    assert case.get_instruction(step) == expected


def test_golden_matrix_descriptor():
    assert make_descriptor(0, 16, 1024, "128") == 0x4000404000010000


# Data


def make_values(rng, element, shape):
    dtype = ELEMENTS[element][0]
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return rng.standard_normal(shape).astype(np.float32).astype(dtype)


def make_sums(rng, case):
    shape = case.m, case.n
    if case.d != "s32":
        return rng.standard_normal(shape)
    return rng.integers(-(1 << 31), 1 << 31, shape) if case.saturates else rng.integers(-9, 9, shape)


def to_f64(values, element):
    """The numbers that a product has of elements; of tf32 without the low bits."""
    if element == "tf32":
        values = (values.view(np.uint32) & ~np.uint32(0x1FFF)).view(np.float32)
    return values.astype(np.float64)


def encode_words(values, d):
    if d == "f16":
        return values.astype(np.float16).view(np.uint16).astype(np.int32)
    return values.astype(np.float32 if d == "f32" else np.int32).view(np.int32)


def decode_words(words, d):
    if d == "f16":
        return words.astype(np.uint16).view(np.float16).astype(np.float64)
    return words.view(np.float32 if d == "f32" else np.int32).astype(np.float64)


# Block scales


def make_scales(rng, case, rows):
    """Codes of scales, and what they stand for: by row, step and place in K."""
    shape = rows, case.steps, case.num_scales
    if case.format == "ue8m0":
        codes = rng.integers(120, 134, shape).astype(np.uint8)
        return codes, 2.0 ** (codes.astype(np.float64) - 127)
    values = (np.abs(rng.standard_normal(shape)) + 0.1).astype(ml_dtypes.float8_e4m3fn)
    return values.view(np.uint8), values.astype(np.float64)


def place_scales(case, codes, is_folded):
    """Images for tcgen05.cp: 1024 bytes for each word, of lanes of 16 bytes, which are four rows."""
    images = np.zeros((WORDS, 1024), np.uint8)
    rows = len(codes) // 2 if is_folded else len(codes)
    for row, step, i in np.ndindex(codes.shape):
        word, byte = case.get_scale_place(step)
        # The second half of N is 32 lanes after it; without halves, 128 rows are an image.
        half, n = divmod(row, rows)
        image, n = divmod(n, 128)
        lane = image * 32 + half * 32 + n % 32
        images[word, lane * 16 + n // 32 * 4 + byte + i] = codes[row, step, i]
    return images.reshape(SCALES)


# Products


def list_places(case):
    """The block of each element of D, its lane, and its column from the first one on."""
    rows, columns = case.m // case.blocks, case.n // (2 if case.is_folded else 1)
    row, n = np.meshgrid(np.arange(case.m), np.arange(case.n), indexing="ij")
    lanes = get_lanes(rows, case.lane) if case.blocks == 1 else np.arange(rows)
    return row // rows, lanes[row % rows] + 64 * (n // columns), n % columns


def place_parts(case, values, element, transposed):
    """A matrix in shared memory, of each block its part of the rows."""
    parts = [place(part, element, case.swizzle, transposed, case.steps) for part in np.split(values, case.blocks)]
    descriptors = np.array(parts[0].descriptors + [0] * (8 - case.steps), np.uint64)
    return np.concatenate([part.memory for part in parts]).view(np.int8), descriptors.view(np.int64)


def place_words(case, a):
    """A in tensor memory: where D is folded, with a copy for the upper lanes."""
    words = np.zeros((case.blocks, 128, 32), np.int32)
    if case.tensor_a:
        rows = case.m // case.blocks
        lanes = get_lanes(rows, case.lane) if case.blocks == 1 else np.arange(rows)
        for block, part in enumerate(np.split(to_bytes(a, case.a).view(np.int32), case.blocks)):
            words[block, lanes, : 8 * case.steps] = part
            if case.is_folded:
                words[block, 64 + lanes, : 8 * case.steps] = part
    return words


def multiply(case, a, b, scales, added):
    """Adds the products of all steps to D."""
    signs = [-1.0 if negated else 1.0 for negated in case.negated]
    for step in range(case.steps):
        part = slice(step * case.k, (step + 1) * case.k)
        a_part, b_part = signs[0] * to_f64(a[:, part], case.a), signs[1] * to_f64(b[:, part], case.b)
        if case.block:
            a_part, b_part = (
                values * np.repeat(row_scales[:, step], case.block, axis=1)
                for values, row_scales in zip((a_part, b_part), scales)
            )
        added = added * 2.0**-case.scale + a_part @ b_part.T
    return np.clip(added, -(1 << 31), (1 << 31) - 1) if case.saturates else added


def call(case, program, mask=(0, 0, 0, 0)):
    """Runs the kernel of the case. Returns D, and what it has to be: element by element, and as words elsewhere."""
    rng = np.random.default_rng(3)
    k = case.k * case.steps
    a, b = make_values(rng, case.a, (case.m, k)), make_values(rng, case.b, (case.n, k))
    memory_a, descriptors_a = place_parts(case, a, case.a, case.transposed[0])
    memory_b, descriptors_b = place_parts(case, b, case.b, case.transposed[1])
    codes_a, scales_a = make_scales(rng, case, case.m)
    codes_b, scales_b = make_scales(rng, case, case.n)
    images = [
        image
        for part in np.split(codes_a, case.blocks)
        for image in (place_scales(case, part, False), place_scales(case, codes_b, case.is_folded))
    ]
    blocks, lanes, columns = list_places(case)
    column = 256 - case.n
    d = rng.integers(0, 1 << 30, (case.blocks, 128, 256), dtype=np.int32)
    places = blocks, lanes, column + columns
    d[places] = encode_words(make_sums(rng, case), case.d)
    before = d.copy()
    program.call(
        case.kernel.name,
        memory_a,
        memory_b,
        np.concatenate(images).view(np.int8),
        descriptors_a,
        descriptors_b,
        place_words(case, a),
        d,
        case.lane << 16 | column,
        np.array([case.get_instruction(step) for step in range(8)], np.uint32).view(np.int32),
        int(case.accumulates),
        case.steps,
        np.array(mask, np.uint32).view(np.int32),
    )
    added = decode_words(before[places], case.d) if case.accumulates else 0
    is_on = np.array([not mask[lane // 32] >> lane % 32 & 1 for lane in lanes.flat]).reshape(lanes.shape)
    expected = multiply(case, a, b, (scales_a, scales_b), added)[is_on]
    return d, before, tuple(axis[is_on] for axis in places), expected


def run(case, sanitize=True, mask=(0, 0, 0, 0)):
    d, before, places, expected = call(case, compile(case.blocks, bool(case.block), sanitize), mask)
    tolerance = {"f16": 4e-3, "f32": 1e-5, "s32": 0}[case.d]
    np.testing.assert_allclose(decode_words(d[places], case.d), expected, tolerance, tolerance * 20)
    untouched = np.ones(d.shape, bool)
    untouched[places] = False
    np.testing.assert_array_equal(d[untouched], before[untouched])


# Cases

KINDS = [
    Case("f16", "bf16", "bf16", "f32", 128, 128),
    Case("f16", "f16", "f16", "f16", 64, 8),
    Case("tf32", "tf32", "tf32", "f32", 128, 64),
    Case("i8", "s8", "u8", "s32", 128, 48),
    Case("i8", "u8", "s8", "s32", 64, 24, saturates=True),
    *[
        Case("f8f6f4", a, b, "f32", 128, 32)
        for a, b in zip(("e4m3", "e5m2", "e2m3", "e3m2", "e2m1"), ("e2m1", "e4m3", "e5m2", "e2m3", "e3m2"))
    ],
    Case("f8f6f4", "e4m3", "e4m3", "f16", 64, 256),
]
LAYOUTS = [
    Case(kind, element, element, "f32", 128, 128, swizzle, (trans_a, trans_b), steps=2 if swizzle == "32" else 4)
    for kind, element in (("f16", "bf16"), ("f8f6f4", "e4m3"))
    for swizzle in ("none", "32", "64", "128")
    for trans_a in (False, True)
    for trans_b in (False, True)
] + [Case("tf32", "tf32", "tf32", "f32", 64, n, "128/32", (True, True)) for n in (32, 256)]
TENSOR_A = [
    Case(kind, a, a, d, m, 64, tensor_a=True, lane=lane)
    for kind, a, d in (("f16", "bf16", "f32"), ("tf32", "tf32", "f32"), ("f8f6f4", "e5m2", "f32"), ("i8", "s8", "s32"))
    for m, lane in ((128, 0), (64, 0), (64, 16))
]
OPTIONS = [
    dataclasses.replace(Case("f16", "f16", "f16", "f32", 128, 64), **change)
    for change in (
        {"accumulates": False},
        {"scale": 3},
        {"negated": (True, False)},
        {"negated": (False, True)},
        {"m": 64, "lane": 16},
    )
]
NVFP4 = Case("mxf4nvf4", "packed e2m1", "packed e2m1", "f32", 128, 256, block=16, format="ue4m3", steps=4)
SCALED = [
    # Scales of four steps are in one word; the number of rows of B is no multiple of 32.
    Case("mxf8f6f4", "e4m3", "e5m2", "f32", 128, 72, block=32, steps=4),
    Case("mxf8f6f4", "e2m3", "e2m1", "f32", 128, 256, block=32, negated=(True, False)),
    Case("mxf8f6f4", "e4m3", "e4m3", "f32", 128, 48, "128", (True, True), block=32),
    Case("mxf8f6f4", "e5m2", "e3m2", "f32", 128, 16, tensor_a=True, block=32),
    Case("mxf4", "packed e2m1", "packed e2m1", "f32", 128, 136, "128", block=32, steps=4),
    Case("mxf4nvf4", "packed e2m1", "packed e2m1", "f32", 128, 8, block=32),
    NVFP4,
    dataclasses.replace(NVFP4, swizzle="32", steps=1, accumulates=False, format="ue8m0"),
    dataclasses.replace(NVFP4, n=64, tensor_a=True),
]
PAIRS = [
    Case("f16", "bf16", "bf16", "f32", 256, 256, "128", steps=4, blocks=2),
    Case("f16", "f16", "f16", "f16", 128, 96, blocks=2),
    Case("f16", "bf16", "bf16", "f32", 128, 64, "64", (True, True), blocks=2),
    Case("tf32", "tf32", "tf32", "f32", 256, 16, blocks=2, scale=3),
    Case("i8", "s8", "s8", "s32", 256, 64, tensor_a=True, blocks=2),
    Case("f16", "bf16", "bf16", "f32", 128, 160, tensor_a=True, blocks=2),
    dataclasses.replace(NVFP4, m=256, blocks=2),
    # The second half of N has its scales in the upper lanes.
    dataclasses.replace(NVFP4, blocks=2),
    Case("mxf8f6f4", "e4m3", "e2m3", "f32", 128, 48, block=32, blocks=2, steps=3),
]
CASES = KINDS + LAYOUTS + TENSOR_A + OPTIONS + SCALED + PAIRS


def list_kernels(blocks, is_scaled):
    """The kernels of all cases with these numbers of blocks, with scales or without."""
    kernels = {case.kernel: None for case in CASES if case.blocks == blocks and bool(case.block) == is_scaled}
    return list(kernels)


@functools.cache
def compile(blocks, is_scaled, sanitize):
    source = write_program(list_kernels(blocks, is_scaled))
    return kvcache.jit(source, target="emulator:sm_100a", opt_level=0, sanitize=sanitize, meter=not sanitize)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_products(case):
    run(case)


def test_disabled_lanes():
    run(KINDS[0], mask=(0x80000001, 0, 0xFFFF, 0))


@pytest.mark.parametrize("case", [LAYOUTS[0], NVFP4, PAIRS[0], PAIRS[-1]], ids=str)
def test_without_the_sanitizer(case):
    run(case, sanitize=False)
    (launch,) = compile(case.blocks, bool(case.block), False).launches
    products = launch.products["tcgen05"]
    assert products.count == case.steps
    assert products.operations == 2 * case.m * case.n * case.k * case.steps
    assert ("tensor_memory_copy" in launch.copies) == bool(case.block)
