"""kvcache.mma on the emulator, against products of NumPy in f64."""

import kvcache
import model
import numpy as np
import pytest
from compiled import check_assembled, needs_ptxas
from places import EXAMPLES
from products import DTYPES, LATENT, Product, attend, attention, jit
from mutants import check

# The types of D, A and B; n; the major dimensions, spans and shapes of A and B; k; where they begin; and options.
CASES = {
    "bf16": Product("f32 bf16 bf16", 64, "k k", (128, 128), ((64, 64), (64, 64)), 64),
    "bf16, parts": Product("f32 bf16 bf16", 32, "k k", (128, 64), ((128, 192), (64, 96)), 48, ((64, 112), (24, 16))),
    "bf16, parts in loops": Product("f32 bf16 bf16", 24, "k mn", (64, 32), ((128, 96), (64, 80)), 32, ((32, 48), (24, 48)),
                                    is_dynamic=True),
    "bf16, the largest": Product("f32 bf16 bf16", 256, "k mn", (128, 128), ((64, 64), (64, 320)), 32, ((0, 32), (16, 64))),
    "bf16, the smallest": Product("f32 bf16 bf16", 8, "mn k", (32, 32), ((16, 64), (8, 16)), 16, adds=False),
    "bf16, MN-major": Product("f32 bf16 bf16", 40, "mn mn", (128, 64), ((64, 128), (32, 96)), 32, ((32, 64), (0, 32))),
    "bf16, fragment": Product("f32 bf16 bf16", 64, "k mn", (0, 128), (None, (64, 128)), 64, ((0, 0), (0, 64)), in_registers=True),
    "bf16, fragment by keys": Product("f32 bf16 bf16", 16, "k k", (0, 64), (None, (32, 64)), 32, ((0, 0), (8, 32)),
                                      in_registers=True, adds=False),
    "f16": Product("f32 f16 f16", 48, "mn k", (64, 128), ((48, 64), (48, 64)), 48),
    "f16 to f16": Product("f16 f16 f16", 96, "k mn", (128, 32), ((64, 64), (64, 96)), 64, ((0, 0), (0, 0))),
    "f16 to f16, fragment": Product("f16 f16 f16", 8, "k mn", (0, 64), (None, (48, 32)), 48, in_registers=True),
    "e4m3": Product("f32 f8E4M3FN f8E4M3FN", 128, "k k", (128, 128), ((64, 256), (128, 256)), 192, ((0, 64), (0, 32))),
    "e4m3 and e5m2": Product("f32 f8E4M3FN f8E5M2", 72, "k k", (64, 32), ((64, 64), (80, 64)), 64, ((0, 0), (8, 0)), adds=False),
    "e5m2 and e4m3 to f16": Product("f16 f8E5M2 f8E4M3FN", 16, "k k", (32, 64), ((64, 32), (16, 64)), 32, ((0, 0), (0, 32))),
    "e5m2, fragment": Product("f32 f8E5M2 f8E4M3FN", 32, "k k", (0, 128), (None, (32, 128)), 96, ((0, 0), (0, 32)), in_registers=True),
    "i8": Product("i32 i8 i8", 64, "k k", (128, 32), ((64, 128), (64, 128)), 128),
    "i8, fragment": Product("i32 i8 i8", 24, "k k", (0, 64), (None, (24, 64)), 64, in_registers=True),
}


@pytest.mark.parametrize("case", CASES)
def test_products(case):
    product = CASES[case]
    got, want = product.run(jit(product.text()), np.random.default_rng(7))
    np.testing.assert_array_equal(got, want)


def test_parts_up_to_the_end_of_tiles():
    """And one step beyond it, which the bounds checks find."""
    product = CASES["bf16, parts in loops"]
    program = jit(product.text(), bounds_checks=True)
    (a_row, a_column), (b_row, b_column) = last = (64, 64), (32, 48)
    got, want = product.run(program, np.random.default_rng(7), last)
    np.testing.assert_array_equal(got, want)
    wrong = {
        ("a_row", 72, 65): ((a_row + 8, a_column), last[1]),
        ("a_row modulo 8, which must be 0,", 1, 1): ((a_row - 7, a_column), last[1]),
        ("a_column", 80, 65): ((a_row, a_column + 16), last[1]),
        ("a_column modulo 16, which must be 0,", 8, 1): ((a_row, a_column - 8), last[1]),
        ("b_row", 40, 33): (last[0], (b_row + 8, b_column)),
        ("b_column", 64, 57): (last[0], (b_row, b_column + 16)),
        ("b_column modulo 16, which must be 0,", 8, 1): (last[0], (b_row, b_column - 8)),
    }
    for (what, value, limit), starts in wrong.items():
        with pytest.raises(kvcache.CheckError) as raised:
            product.run(program, np.random.default_rng(7), starts)
        message = str(raised.value)
        assert f"'kvcache.mma' op {what} is out of range" in message and f"{value} is not in [0, {limit})" in message


def test_attention():
    """With the weights as fragments, and a pipe that a warpgroup fills."""
    attend(jit(attention()))


def test_attention_with_a_mistake():
    """Every fence, commit and wait of the products is necessary.

    The fence and the barrier after the queries do what those after the barriers of the pipe have done, and the first
    slot is empty.
    """
    benign = ["drop nvvm.barrier0 1", "drop nvvm.fence.mbarrier.init 1", "drop nvvm.bar.warp.sync 1"]
    check(attention(), "attend_kernel", "sm_90a", attend, 10, benign)


def attend_by_op(program, num_heads=64, size=64):
    """Latent rows of two sequences, which end in a tile, in f64. The last ones have the largest scores by far."""
    random = np.random.default_rng(3)
    bf16 = DTYPES["bf16"]
    blocks = random.standard_normal((4, 1, 1, 64, 1, size)).astype(bf16)
    blocks[0] *= bf16.type(8)
    lengths, lut = np.array([30, 130], np.uint32), np.array([[2, 0, 0], [3, 1, 0]], np.uint32)
    q = random.standard_normal((2, num_heads, size)).astype(bf16)
    out, lse = np.zeros((2, num_heads, size // 2), bf16), np.zeros((2, num_heads), np.float32)
    offsets = np.arange(3, dtype=np.int32)
    program.call("attention", blocks, lengths, lut, 1, 131, 0, q, offsets, out, lse, size**-0.5)
    for b, length in enumerate(lengths + 1):
        rows = blocks[lut[b], 0, 0].reshape(-1, 1, size)[:length].astype(np.float64)
        (want,), _ = model.attend(q[b : b + 1], rows, rows[..., : size // 2], size**-0.5)
        np.testing.assert_allclose(out[b].astype(np.float64), want, atol=0.005 * np.abs(rows).max())
    return out


FENCE_OF_TENSORS, WAIT_OF_TENSORS = "drop nvvm.tcgen05.fence", "drop nvvm.tcgen05.wait"
BENIGN = {
    # A warp that has waited for its products needs no other synchronization before a lane frees the slot.
    "sm_90a": ["drop nvvm.bar.warp.sync 1"],
    # Nor before it fills the slot again. Where accesses of tensor memory follow each other, one fence does for all.
    "sm_100a": [
        *(f"{FENCE_OF_TENSORS} <{what}" for what in ("after 1", "after 3", "after 5", "before 1", "before 2", "before 3")),
        f"{WAIT_OF_TENSORS} <store 1",
        "drop nvvm.bar.warp.sync 1",
        "skip nvvm.mbarrier.try_wait 2",
    ],
}


@pytest.mark.parametrize(("chip", "at_least"), [("sm_90a", 20), ("sm_100a", 30)])
def test_attention_of_the_op_with_a_mistake(chip, at_least):
    params = kvcache.KVCacheParams("bf16", 1, 64, page_size=64, total_num_layers=1, is_mla=True)
    source = kvcache.ops.attention(params, 64, dtype="bf16", value_dim=32).source
    check(source, "attention_kernel", chip, attend_by_op, at_least, BENIGN[chip])


@needs_ptxas
@pytest.mark.parametrize("source", ["attention", "latent", "mla_pipe", "bf16, the largest", "bf16, fragment", "f16 to f16, fragment"])
def test_ptxas_takes_what_the_emulator_takes(source, tmp_path):
    texts = {"attention": attention(), "latent": LATENT, "mla_pipe": (EXAMPLES / "mla_pipe.mlir").read_text()}
    text = texts[source] if source in texts else CASES[source].text()
    check_assembled(text, "sm_90a", tmp_path)
