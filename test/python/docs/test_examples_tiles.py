"""Tests of the examples with tiles: each chip's copies, and right data on the CPU."""

import re

import ml_dtypes
import numpy as np
import pytest
from compiled import needs_nvdisasm
from edits import edit
from places import EXAMPLES

import kvcache
from kvcache.compilation import sass, toolchain

AMPERE = ["sm_80"]
HOPPER = ["sm_90a"]
BLACKWELL = ["sm_100a", "sm_103a", "sm_120a"]
TENSOR = r"cp\.async\.bulk\.tensor\.{}d\.shared::cta\.global\.tile\.mbarrier"
GATHER4 = r"cp\.async\.bulk\.tensor\.2d\.shared::cta\.global\.tile::gather4"
ROW = r"cp\.async\.bulk\.shared::cluster\.global\.mbarrier"
ASYNC_COPY = r"cp\.async\.cg\.shared\.global \[\S+\], \[\S+\], 16, %r"
MMA = r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.bf16\.bf16\.f32"
LDMATRIX = r"ldmatrix\.sync\.aligned\.m8n8\.x4\.shared\.b16"
LDMATRIX_TRANS = r"ldmatrix\.sync\.aligned\.m8n8\.x4\.trans\.shared\.b16"

# The number of each instruction in a kernel; copies that are not listed must be missing.
COPIES = [TENSOR.format(2), TENSOR.format(4), GATHER4, ROW, ASYNC_COPY]
KEYS = "key_tile", "copy_keys_kernel"
WITH_ROPE = "sparse_mla", "gather_fp8_with_rope_kernel"
FP8 = "sparse_mla", "gather_fp8_kernel"
BF16 = "sparse_mla", "gather_bf16_kernel"
ATTENTION = "attention_pipe", "attention_pipe"
PRODUCTS = {MMA: 32, LDMATRIX: 8, LDMATRIX_TRANS: 8}
EXPECTED = [
    (AMPERE, *KEYS, {ASYNC_COPY: 8}),
    (HOPPER + BLACKWELL, *KEYS, {TENSOR.format(4): 2}),
    (AMPERE, *WITH_ROPE, {ASYNC_COPY: 8 + 2}),
    (HOPPER, *WITH_ROPE, {TENSOR.format(2): 64 + 64}),
    (BLACKWELL, *WITH_ROPE, {GATHER4: 16 + 16}),
    (AMPERE, *FP8, {ASYNC_COPY: 8}),
    (HOPPER, *FP8, {ROW: 1}),  # in a loop over the rows of a lane
    (BLACKWELL, *FP8, {GATHER4: 16}),
    (AMPERE, *BF16, {ASYNC_COPY: 16}),
    (HOPPER, *BF16, {TENSOR.format(2): 64}),
    (BLACKWELL, *BF16, {GATHER4: 16}),
    # Keys and values, before the loop and in it.
    (AMPERE, *ATTENTION, {ASYNC_COPY: 4 * 8} | PRODUCTS),
    (HOPPER + BLACKWELL, *ATTENTION, {TENSOR.format(4): 2 * 2 * 2} | PRODUCTS),
]


@pytest.mark.parametrize(
    ("chip", "example", "name", "expected"),
    [(chip, *rest) for chips, *rest in EXPECTED for chip in chips],
)
def test_tiles_are_copied_by_the_chip_s_instructions(chip, example, name, expected):
    program = kvcache.compile(EXAMPLES / f"{example}.mlir", target=chip)
    kernel = program.kernels[name]
    counts = {
        pattern: len(re.findall(pattern, kernel.ptx))
        for pattern in [*COPIES, *expected]
    }
    assert {pattern: n for pattern, n in counts.items() if n} == expected
    assert kernel.spill_bytes == 0 and kernel.stack_bytes == 0
    assert ".local" not in kernel.ptx
    assert ".func" not in kernel.ptx  # device functions are in their kernels

    copies_by_unit = chip not in AMPERE
    assert ("mbarrier.arrive.expect_tx" in kernel.ptx) == (
        copies_by_unit and ROW not in expected
    )
    assert ("elect.sync" in kernel.ptx) == (copies_by_unit and ROW not in expected)
    has_pipe = example == "attention_pipe"
    is_waited_for = "mbarrier.try_wait.parity" in kernel.ptx
    assert is_waited_for == copies_by_unit
    assert ("cp.async.mbarrier.arrive.noinc" in kernel.ptx) == (
        has_pipe and not copies_by_unit
    )
    assert ("mbarrier.test_wait.parity" in kernel.ptx) == (
        has_pipe and not copies_by_unit
    )


def test_pipe_fits_every_chip():
    kernels = kvcache.compile(EXAMPLES / "attention_pipe.mlir", target="sm_120a").kernels
    (kernel,) = kernels.values()
    assert kernel.dynamic_shared_memory == 3 * 2 * 64 * 128 * 2


def test_producers_give_registers_to_consumers():
    """384 threads begin with 168 registers. The accumulators of latent rows do not fit into these, but into 240."""
    (kernel,) = kvcache.compile(EXAMPLES / "mla_pipe.mlir", target="sm_90a").kernels.values()
    assert kernel.dynamic_shared_memory == (1 + 2) * 64 * 576 * 2
    assert kernel.registers == 168
    assert kernel.spill_bytes == 0 and kernel.stack_bytes == 0
    numbers = re.findall(r"setmaxnreg\.(\w+)\.sync\.aligned\.u32 \t(\d+);", kernel.ptx)
    assert numbers == [("dec", "24"), ("inc", "240")]


def test_pairs_of_thread_blocks_have_room_for_two_tiles():
    """Queries, probs, numbers of rows, and half of the tokens and half of the values of two tiles."""
    (kernel,) = kvcache.compile(EXAMPLES / "mla_pair.mlir", target="sm_100a").kernels.values()
    numbers, address = 2 * 64 * 4, 16
    assert kernel.dynamic_shared_memory == 2 * (64 * 576 + 64 * 64 + 2 * (32 * 576 + 64 * 256)) + numbers + address
    assert kernel.spill_bytes == 0 and kernel.stack_bytes == 0
    assert "tcgen05.mma.cta_group::2" in kernel.ptx and "cta_group::1" not in kernel.ptx


@pytest.mark.long
@needs_nvdisasm
def test_exponentials_overlap_products():
    """Keys that all rows see pass through the loop as in FlashAttention-3, which takes 510 instructions for 128 keys."""
    text = (EXAMPLES / "attention_pingpong.mlir").read_text()
    interior = edit(text, ("%some = arith.cmpi ugt, %next_key, %all : index", "%some = arith.constant false"))
    for source in (text, interior):
        (kernel,) = kvcache.compile(source, target="sm_90a").kernels.values()
        assert kernel.registers == 168
        assert kernel.spill_bytes == 0 and kernel.stack_bytes == 0
        (code,) = toolchain.disassemble(kernel.cubin).values()
        # Products of the next tile and of this one, and then the exponentials between two waits.
        one, none = r"WARPGROUP\.DEPBAR\.LE gsb0, 0x1 ;", r"WARPGROUP\.DEPBAR\.LE gsb0, 0x0 ;"
        (before, between) = re.search(rf"BAR\.SYNC(.*?){one}(.*?){none}", code, re.DOTALL).groups()
        assert len(re.findall("HGMMA.64x128x16", before.rpartition("BAR.SYNC")[2])) == 16
        assert between.count("MUFU.EX2") >= 64
        assert "HGMMA" not in between
        assert set(re.findall(r"HGMMA\.(\S+?)\.", code)) == {"64x128x16"}
    assert sass.read(code).product_loop.instructions <= 510


# Keys of a tile, and the most instructions of the loop for keys that all rows see, by the elements of a head.
PROMPTS = {64: (128, 440), 128: (128, 500), 256: (80, 495)}


@pytest.mark.long
@needs_nvdisasm
@pytest.mark.parametrize("size", PROMPTS)
def test_products_of_prompts_overlap_their_softmax(size):
    """The last keys have a loop of their own, with their mask."""
    keys, most = PROMPTS[size]
    params = kvcache.KVCacheParams("bf16", 8, size, page_size=64, total_num_layers=1)
    source = kvcache.ops.attention(params, 32).source
    (kernel,) = kvcache.compile(source, target="sm_90a").kernels.values()
    assert (kernel.registers, kernel.spill_bytes, kernel.stack_bytes) == (168, 0, 0)
    (code,) = toolchain.disassemble(kernel.cubin).values()
    assert set(re.findall(r"HGMMA\.(\S+?)\.", code)) == {f"64x{keys}x16", f"64x{size}x16"}
    assert sass.count_overlap(code) >= keys / 2
    assert sass.read(code).product_loop.instructions <= most


@needs_nvdisasm
@pytest.mark.slow
@pytest.mark.parametrize("size", [64, 128, 160, 192, 224, 256])
@pytest.mark.parametrize("options", [
    {"causal": False}, {"window": 512}, {"soft_cap": 50.0}, {"mask": True, "causal": False}, {"ranges": 1},
], ids=str)
def test_products_of_prompts_with_masks_overlap(size, options):
    params = kvcache.KVCacheParams("bf16", 8, size, page_size=64, total_num_layers=1)
    (kernel,) = kvcache.compile(kvcache.ops.attention(params, 32, **options).source, target="sm_90a").kernels.values()
    assert kernel.spill_bytes == 0
    if "ranges" not in options or size <= 128:
        (code,) = toolchain.disassemble(kernel.cubin).values()
        keys = int(re.search(r"HGMMA\.64x(\d+)x16", code)[1])
        assert sass.count_overlap(code) >= keys / 2


# --- Data -------------------------------------------------------------------------


def random_bits(rng, shape, dtype):
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return rng.integers(0, 256, nbytes, np.uint8).view(dtype).reshape(shape)


def assert_same_bits(a, b):
    np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))


PAIRS = """gpu.module @kernels {
  gpu.func @pairs(%x: memref<2xf32>, %y: memref<2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %a = vector.load %x[%c0] {alignment = 8} : memref<2xf32>, vector<2xf32>
    %b = vector.load %y[%c0] {alignment = 8} : memref<2xf32>, vector<2xf32>
    PRODUCT
    %sum = arith.addf %product, %b : vector<2xf32>
    vector.store %sum, %x[%c0] {alignment = 8} : memref<2xf32>, vector<2xf32>
    gpu.return
  }
}
"""
PAIRED = "%product = arith.mulf %a, %b : vector<2xf32>"
SINGLE = """%as:2 = vector.to_elements %a : vector<2xf32>
    %bs:2 = vector.to_elements %b : vector<2xf32>
    %even = arith.mulf %as#0, %bs#0 : f32
    %odd = arith.mulf %as#1, %bs#1 : f32
    %product = vector.from_elements %even, %odd : vector<2xf32>"""


@needs_nvdisasm
@pytest.mark.parametrize(
    "product, expected",
    [(PAIRED, {"FFMA2": 1}), (SINGLE, {"FMUL": 2, "FADD2": 1})],
    ids=["paired", "single"],
)
def test_ptxas_rounds_only_single_products_before_sums(product, expected):
    """So ``map`` pairs no products. Once ptxas rounds both, it may."""
    (kernel,) = kvcache.compile(PAIRS.replace("PRODUCT", product), target="sm_100a").kernels.values()
    (code,) = toolchain.disassemble(kernel.cubin).values()
    found = re.findall(r"\b(FADD2?|FMUL2?|FFMA2?)\b", code)
    assert {name: found.count(name) for name in found} == expected


@needs_nvdisasm
@pytest.mark.parametrize("chip, count", [("sm_100a", 32), ("sm_103a", 32), ("sm_120a", 0)])
def test_softmax_adds_to_two_elements_at_a_time(chip, count):
    """A thread has 32 of the scores of a tile: 16 pairs of exponents, and of sums."""
    params = kvcache.KVCacheParams(dtype="bf16", n_kv_heads=8, head_dim=128, page_size=64, total_num_layers=1)
    (kernel,) = kvcache.ops.attention(params, 32, dtype="bf16").compile(chip).kernels.values()
    (code,) = toolchain.disassemble(kernel.cubin).values()
    assert len(re.findall(r"FADD2|FFMA2", code)) == count


@needs_nvdisasm
@pytest.mark.parametrize("size", [64, 128])
def test_softmax_by_roles_has_few_instructions(size):
    """A thread has a row: 128 scores are 64 pairs, and a fifth of the powers are polynomials."""
    params = kvcache.KVCacheParams(dtype="bf16", n_kv_heads=8, head_dim=size, page_size=64, total_num_layers=1)
    operation = kvcache.ops.attention(params, 32, dtype="bf16", config=kvcache.AttentionConfig(schedule="roles"))
    (kernel,) = operation.compile("sm_100a").kernels.values()
    assert (kernel.registers, kernel.spill_bytes, kernel.stack_bytes) == (168, 0, 0)
    (code,) = toolchain.disassemble(kernel.cubin).values()
    scores = code[code.index("LDTM.x128") : code.index("STTM.x64")]
    unmasked = scores[scores.index(re.search(r"\bBRA\b.*`\((\.\w+)\)", scores)[1] + ":") :]
    names = re.findall(r"^\s+/\*\w+\*/\s+(?:@!?\w+ )?(\w+)", unmasked, re.MULTILINE)
    assert names.count("FFMA2") + names.count("FADD2") >= 3 * 64
    assert names.count("MUFU") <= 103 and len(names) <= 520  # 550 with waits, loads, stores and the loop


def test_key_tiles_are_the_keys_and_zeros():
    rng = np.random.default_rng(1)
    lengths = np.array([0, 1, 64, 130], np.uint32)
    layers, layer, pages, tokens = 2, 1, 7, 150
    shape = pages, 2, layers, 64, 8, 128
    blocks = random_bits(rng, shape, ml_dtypes.bfloat16)
    # Entries that no token needs name no page.
    lut = np.full((4, 5), 2**32 - 1, np.uint32)
    for row, count in zip(lut, -(-lengths.astype(int) // 64)):
        row[:count] = rng.permutation(pages)[:count]

    out = random_bits(rng, (4, 8, tokens, 128), blocks.dtype)
    program = kvcache.jit(EXAMPLES / "key_tile.mlir", target="cpu")
    program.call("copy_keys", blocks, lengths, lut, 1, 130, layer, out)

    expected = np.zeros_like(out)
    for b, length in enumerate(lengths):
        t = np.arange(length)
        expected[b, :, :length] = blocks[lut[b, t // 64], 0, layer, t % 64].swapaxes(0, 1)
    assert_same_bits(out, expected)


@pytest.fixture(scope="module")
def sparse_mla():
    return kvcache.jit(EXAMPLES / "sparse_mla.mlir", target="cpu")


def gather_rows(program, name, dtype, width, *outs):
    """Fills the outputs of 3 queries with 128 ids; returns the rows, as bytes."""
    rng = np.random.default_rng(width)
    pages, layers, layer = 5, 2, 1
    blocks = random_bits(rng, (pages, 1, layers, 64, 1, width), dtype)
    ids = rng.integers(0, pages * 64, (3, 128), np.int32)
    ids[0, 70:] = -1
    ids[1, ::3] = -1
    ids[2, :4] = pages * 64, 2**31 - 1, -(2**31), pages * 64 - 1
    lengths, lut = np.zeros(1, np.uint32), np.zeros((1, 1), np.uint32)
    program.call(name, blocks, lengths, lut, 1, 0, layer, ids, *outs)

    rows = blocks[:, 0, layer, :, 0].reshape(pages * 64, width).view(np.uint8)
    is_row = (0 <= ids) & (ids < pages * 64)
    return np.where(is_row[..., None], rows[np.where(is_row, ids, 0)], 0).astype(np.uint8)


def test_rows_of_fp8_and_rope(sparse_mla):
    content = np.full((3, 128, 512), 1, ml_dtypes.float8_e4m3fn)
    rope = np.full((3, 128, 64), 1, ml_dtypes.bfloat16)
    rows = gather_rows(
        sparse_mla, "gather_fp8_with_rope", content.dtype, 640, content, rope
    )
    assert_same_bits(content, rows[..., :512])
    assert_same_bits(rope, rows[..., 512:])


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16])
def test_rows_of_one_type(sparse_mla, dtype):
    name = "gather_fp8" if np.dtype(dtype).itemsize == 1 else "gather_bf16"
    out = np.full((3, 128, 576), 1, dtype)
    assert_same_bits(out, gather_rows(sparse_mla, name, dtype, 576, out))
