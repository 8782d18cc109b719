"""wgmma on the emulator, against integers of NumPy, and a model of an H200's sums."""

import ml_dtypes
import string

import numpy as np
import pytest
from compiled import check_assembled, needs_ptxas
from wgmma import (
    DTYPES,
    STEP_BYTES,
    add_as_chip,
    descriptor,
    fragment,
    jit,
    kernel,
    mma,
    multiply,
    pipeline,
    place,
    store,
    structure,
)

ORDER = """nvvm.wgmma.fence.aligned
    {}
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0"""

# The types of D, A and B; n; the major dimensions and spans of A and B; and what else an instruction has.
CASES = {
    "bf16": ("f32 bf16 bf16", 64, "k k", (128, 128), {}),
    "bf16, the largest": ("f32 bf16 bf16", 256, "k mn", (64, 128), {}),
    "bf16, the smallest": ("f32 bf16 bf16", 8, "mn k", (128, 32), {}),
    "bf16, both by columns": ("f32 bf16 bf16", 40, "mn mn", (32, 64), {"signs": ("one", "neg")}),
    "bf16, no swizzle": ("f32 bf16 bf16", 24, "k mn", (16, 16), {}),
    "f16 by columns, no swizzle": ("f32 f16 f16", 16, "mn k", (16, 16), {"signs": ("neg", "one")}),
    "f16 to f16": ("f16 f16 f16", 96, "k mn", (128, 32), {}),
    "f16 to f16, not added": ("f16 f16 f16", 8, "k k", (32, 64), {"accumulates": False}),
    "tf32": ("f32 tf32 tf32", 32, "k k", (128, 64), {}),
    "e4m3": ("f32 e4m3 e4m3", 128, "k k", (128, 128), {}),
    "e4m3 and e5m2": ("f32 e4m3 e5m2", 72, "k k", (64, 16), {"accumulates": False}),
    "e5m2 and e4m3 to f16": ("f16 e5m2 e4m3", 48, "k k", (32, 128), {}),
    "s8": ("s32 s8 s8", 64, "k k", (128, 32), {}),
    "u8 and s8, saturated": ("s32 u8 s8", 16, "k k", (16, 128),
                             {"extra": ", #nvvm.mma_int_overflow<satfinite>"}),
}


def draw(random, dtype, shape):
    if dtype.kind in "iu":
        return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)
    return random.standard_normal(shape).astype(np.float32).astype(dtype)


def lay_out(random, name, mn, k, major, span):
    """A matrix, and an image with it and its descriptor."""
    matrix = draw(random, DTYPES[name], (mn, k))
    size = matrix.dtype.itemsize
    # Atoms in an order of their own, with gaps between.
    if major == "k" and span > 16:
        leading, stride = 16, 8 * span
    elif major == "k":
        leading, stride = 128 * (mn // 8) + 256, 128
    elif span == 16:
        leading, stride = 128 * -(-mn * size // 16) + 128, 128
    else:
        leading, stride = 2 * 8 * span, 8 * span
    addresses = place(matrix, major, span, leading, stride)
    image = np.zeros((int(addresses.max()) // 1024 + 1) * 1024, np.uint8)
    store(image, 0, matrix, addresses)
    return matrix, image, descriptor(0, span, leading, stride)


def as_signed(bits):
    return int(np.uint64(bits).astype(np.int64))


@pytest.mark.parametrize("case", CASES)
def test_products(case):
    types, n, majors, spans, options = CASES[case]
    types, majors = types.split(), majors.split()
    random = np.random.default_rng(7)
    k = STEP_BYTES // DTYPES[types[1]].itemsize
    a, image_a, bits_a = lay_out(random, types[1], 64, k, majors[0], spans[0])
    b, image_b, bits_b = lay_out(random, types[2], n, k, majors[1], spans[1])
    image = np.concatenate([image_a, image_b])
    bits_b += image_a.size // 16
    given = draw(random, DTYPES[types[0]], (64, n))
    body = ORDER.format(mma("%result", "%da", "%db", "%acc", n, k, types, majors, **options))
    program = jit(kernel(n, types, image.size, body))
    got = multiply(program, n, types, image, as_signed(bits_a), as_signed(bits_b), given)

    number = int if types[0] == "s32" else float
    signs = [-1 if sign == "neg" else 1 for sign in options.get("signs", ("one", "one"))]
    if types[1] == "tf32":
        a, b = ((x.view(np.uint32) & ~np.uint32(0x1FFF)).view(np.float32) for x in (a, b))
    a, b = signs[0] * a.astype(number), signs[1] * b.astype(number)
    if not options.get("accumulates", True):
        given = np.zeros_like(given)
    if number is int:
        want = a @ b.T + given.astype(number)
        limits = np.iinfo(np.int32)
        want = np.clip(want, limits.min, limits.max) if "extra" in options else want.astype(np.int32)
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_array_equal(got, add_as_chip(a, b, given, sum_bits(types[1])))


# The differences of exponents at which draws of a narrow type stay normal.
EXPONENTS = {DTYPES["f16"]: 12, DTYPES["e4m3"]: 5, DTYPES["e5m2"]: 8}


def sum_bits(name):
    return 13 if name.startswith("e") else 25


def multiply_matrices(types, a, b, given):
    """Multiplies matrices of whole instructions, without a swizzle."""
    leading, stride = 128 * 32, 128
    image = np.zeros(2 * 2 * leading, np.uint8)
    for at, matrix in (0, a), (image.size // 2, b):
        store(image, at, matrix, place(matrix, "k", 16, leading, stride))
    bits = as_signed(descriptor(0, 16, leading, stride))
    n, k = b.shape
    body = ORDER.format(mma("%result", "%da", "%db", "%acc", n, k, types))
    program = jit(kernel(n, types, image.size, body))
    return multiply(program, n, types, image, bits, bits + image.size // 32, given)


@pytest.mark.parametrize(
    "types, addend, given, want",
    [
        # 16 addends of 2^-26, which are 2^-22 together.
        ("f32 bf16 bf16", 2.0**-26, 1, 1),
        ("f32 f16 f16", 2.0**-24, 1, 1 + 2.0**-20),
        ("f32 f16 f16", -(2.0**-24), 2.0**-24, -15 * 2.0**-24),
        # The 25th bit counts, and the sum is truncated.
        ("f32 tf32 tf32", -(2.0**-25), 1, 1 - 2.0**-22),
        ("f32 tf32 tf32", -(2.0**-26), 1, 1),
        ("f32 bf16 bf16", 2.0**-25 * 7, 8, 8),
        ("f32 bf16 bf16", 2.0**-25 * 7, 4, 4 + 2.0**-19),
        ("f32 e4m3 e4m3", 2.0**-8, 64, 64),
        ("f32 e4m3 e4m3", 2.0**-8, 32, 32 + 2.0**-3),
        ("f32 e4m3 e5m2", 2.0**-8, 2.0**-17, 2.0**-3),
        ("f16 e5m2 e5m2", 2.0**-8, 64, 64),
        # f16 rounds to nearest.
        ("f16 f16 f16", 2.0**-10 * 11, 256, 256.25),
    ],
)
def test_sum_drops_bits_below_largest_addend(types, addend, given, want):
    check_equal_addends(types.split(), addend, given, want)


@pytest.mark.parametrize(
    "types, addend, given, want",
    [
        ("f32 bf16 bf16", 2.0**-140, 0, 2.0**-136),
        ("f32 bf16 bf16", 2.0**-140, 2.0**-126, 2.0**-126 + 2.0**-136),
        ("f32 bf16 bf16", 2.0**127, 1, np.inf),
        ("f32 bf16 bf16", np.inf, -1, np.inf),
        ("f32 bf16 bf16", np.inf, -np.inf, np.nan),
        ("f32 bf16 bf16", 1, -np.inf, -np.inf),
        ("f32 f16 f16", 1, np.nan, np.nan),
        ("f32 bf16 bf16", 0, 2.0**-149, 2.0**-149),
    ],
)
def test_sum_of_extreme_numbers_follows_rule(types, addend, given, want):
    """Products that f32 cannot hold, infinities and NaNs: the rule alone says this, no chip was measured."""
    check_equal_addends(types.split(), addend, given, want)


def check_equal_addends(types, addend, given, want):
    k = STEP_BYTES // DTYPES[types[1]].itemsize
    # A power of two of each factor.
    one = 2.0 ** (np.frexp(addend)[1] // 2) if np.isfinite(addend) else 1.0
    a = np.full((64, k), addend / one).astype(DTYPES[types[1]])
    b = np.full((8, k), one).astype(DTYPES[types[2]])
    got = multiply_matrices(types, a, b, np.full((64, 8), given))
    np.testing.assert_array_equal(got, np.full_like(got, want))


@pytest.mark.parametrize("types", ["f32 bf16 bf16", "f32 f16 f16", "f32 tf32 tf32", "f32 e4m3 e5m2", "f16 e5m2 e4m3"])
@pytest.mark.parametrize("spread", [1, 6, 60])
def test_sums_of_any_spread_equal_model_of_chip(types, spread):
    types = types.split()
    d, a_type, b_type = (DTYPES[name] for name in types)
    random = np.random.default_rng(spread)

    def draw_spread(dtype, shape):
        """Draws numbers whose exponents differ by ``spread``, or as much as their type allows; some are 0."""
        limit = min(spread, EXPONENTS.get(dtype, 60))
        numbers = np.ldexp(random.standard_normal(shape), random.integers(-limit, 1, shape))
        return (numbers * random.integers(0, 8, shape).astype(bool)).astype(np.float32).astype(dtype)

    k = STEP_BYTES // a_type.itemsize
    a, b, given = draw_spread(a_type, (64, k)), draw_spread(b_type, (256, k)), draw_spread(d, (64, 256))
    got = multiply_matrices(types, a, b, given)
    if types[1] == "tf32":
        a, b = ((x.view(np.uint32) & ~np.uint32(0x1FFF)).view(np.float32) for x in (a, b))
    a, b = a.astype(float), b.astype(float)
    np.testing.assert_array_equal(got, add_as_chip(a, b, given, sum_bits(types[1])))
    assert np.any(got != (a @ b.T + given.astype(float)).astype(got.dtype))


# Tiles that tensor copies have brought: keys of a page, as A and B of both majors.

TILE = """
#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!box = !kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b>
!tile = !kvcache.tile<64x128xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

func.func @main(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                %page: index, %head: index, %out: memref<128x${row}xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0 : i32
  %cache = kvcache.paged_collection %blocks, %lengths, %lut, %zero, %zero
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %keys = kvcache.paged_view key %cache[%c0] : !collection
  %box = kvcache.create_paged_tma_tile %keys {rows = 64, columns = 128, swizzle = #kvcache.swizzle<swizzle_128b>}
      : !cache -> !box
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %bytes = arith.constant 16384 : index
    %ticks = arith.constant 10000000 : index
    %false = arith.constant false
    %tile = kvcache.alloc_tile : !tile
    %barrier = nvgpu.mbarrier.create -> !barrier
    %is_first = arith.cmpi eq, %t, %c0 : index
    nvgpu.mbarrier.init %barrier[%c0], %c1, predicate = %is_first : !barrier
    nvvm.fence.mbarrier.init
    gpu.barrier
    scf.if %is_first {
      kvcache.tma_expect %barrier[%c0] bytes %bytes : !barrier
      kvcache.tma_load %box[%c0, %head, %c0, %page], %barrier[%c0] to %tile : !box, !barrier -> !tile
    }
    nvgpu.mbarrier.try_wait.parity %barrier[%c0], %false, %ticks : !barrier
    %memory = kvcache.tile_memory %tile : !tile -> memref<16384xi8, #gpu.address_space<workgroup>>
    %pointer = memref.extract_aligned_pointer_as_index %memory
        : memref<16384xi8, #gpu.address_space<workgroup>> -> index
    %address = arith.index_cast %pointer : index to i64
    %c4 = arith.constant 4 : i64
    %start = arith.shrui %address, %c4 : i64
    %d0 = llvm.mlir.zero : $struct
    $body
    gpu.terminator
  }
  return
}
"""


def chain(n, pairs, types, majors):
    """Products with descriptors that are constants but for the start of the tile, in one group."""
    lines = ["nvvm.wgmma.fence.aligned"]
    for i, pair in enumerate(pairs):
        for name, bits in zip("ab", pair):
            lines += [
                f"%{name}{i}c = arith.constant {as_signed(bits)} : i64",
                f"%{name}{i} = arith.addi %{name}{i}c, %start : i64",
            ]
        lines.append(mma(f"%d{i + 1}", f"%a{i}", f"%b{i}", f"%d{i}", n, 16, types, majors))
    lines += ["nvvm.wgmma.commit.group.sync.aligned", "nvvm.wgmma.wait.group.sync.aligned 0"]
    count, type, struct = structure(types[0], n)
    for i in range(count):
        lines += [
            f"%i{i} = arith.constant {i} : index",
            f"%x{i} = llvm.extractvalue %d{len(pairs)}[{i}] : {struct}",
            f"memref.store %x{i}, %out[%t, %i{i}] : memref<128x{count}x{type}>",
        ]
    return string.Template(TILE).substitute(body="\n    ".join(lines), row=count, struct=struct)


@pytest.mark.parametrize("product", ["keys by keys", "columns by keys"])
def test_tiles_of_tensor_copies(product):
    types, span, chunk = ("f32", "bf16", "bf16"), 128, 64 * 128
    # Along the columns of a tile: 32 bytes to a step, and four steps to a chunk.
    across = [descriptor(k // 4 * chunk + k % 4 * 32, span, 16, 8 * span) for k in range(8)]
    # Down its rows, of which 16 are a step.
    down = [descriptor(k * 16 * span, span, chunk, 8 * span) for k in range(4)]
    random = np.random.default_rng(3)
    blocks = random.integers(-3, 4, (4, 2, 1, 64, 8, 128)).astype(np.float32).astype(ml_dtypes.bfloat16)
    keys = blocks[2, 0, 0, :, 5].astype(np.float64)
    if product == "keys by keys":
        n, text = 64, chain(64, [(bits, bits) for bits in across], types, ("k", "k"))
        want = keys @ keys.T
    else:
        n, text = 128, chain(128, list(zip(across, down)), types, ("k", "mn"))
        want = keys[:, :64] @ keys
    out = np.zeros((128, n // 2), np.float32)
    jit(text).call("main", blocks, np.full(1, 64, np.uint32), np.zeros((1, 1), np.uint32), 2, 5, out)
    rows, columns = fragment(n)
    np.testing.assert_array_equal(out, want[rows, columns])


@needs_ptxas
def test_ptxas_takes_what_the_emulator_takes(tmp_path):
    check_assembled(pipeline(4), "sm_90a", tmp_path)
