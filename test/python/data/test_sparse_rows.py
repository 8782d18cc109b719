"""Tests of attention to rows of each head: each head is that of a call with its rows for all heads."""

import numpy as np
import pytest

import kvcache
from kvcache import KVCacheParams, KVCacheQuantizationConfig, StepInputs

PAGE, HEADS, SIZE, TOTAL, COLUMNS = 16, 2, 64, 3, 90
CACHES = {
    "f32": KVCacheParams("f32", HEADS, SIZE, page_size=PAGE, total_num_layers=1),
    "bf16": KVCacheParams("bf16", HEADS, SIZE, page_size=PAGE, total_num_layers=1),
    "fp8": KVCacheParams(
        "f8E4M3FN", HEADS, SIZE, page_size=PAGE, total_num_layers=1,
        kvcache_quant_config=KVCacheQuantizationConfig("f32", SIZE),
    ),
}  # fmt: skip
SPLITS = {"split_tokens": 32, "max_splits": 3}
# The target, the cache, the query heads of a head, and options, so that each kind of kernel has a case.
KERNELS = {
    "cpu-few": ("cpu", "f32", 4, {}),
    "cpu-many": ("cpu", "bf16", 24, {}),
    "cpu-splits": ("cpu", "bf16", 4, SPLITS),
    "warps": ("emulator:sm_80", "f32", 4, {}),
    "warps-splits": ("emulator:sm_90a", "f32", 2, SPLITS),
    "mma-sync": ("emulator:sm_80", "bf16", 8, {}),
    "mma-sync-persistent": ("emulator:sm_80", "bf16", 8, {**SPLITS, "scheduled_blocks": 3}),
    "dequantized": ("emulator:sm_90a", "fp8", 8, {}),
    "wgmma": ("emulator:sm_90a", "bf16", 64, {}),
    "tcgen05": ("emulator:sm_100a", "bf16", 64, {}),
}


def make_step(params, seed=0):
    """A step of three sequences of one new token, with random bytes in all pages."""
    rng = np.random.default_rng(seed)
    manager = kvcache.PagedKVCacheManager(params, max_batch_size=1, max_seq_len=PAGE, num_pages=8)
    for tensor in (*manager.blocks, *manager.scales):
        tensor[...] = rng.uniform(0.5, 1, tensor.shape) * rng.choice([-1, 1], tensor.shape)
    lut = np.zeros((TOTAL, 2), np.uint32)
    offsets = np.arange(TOTAL + 1, dtype=np.int32)
    lengths = np.full(TOTAL, 7, np.int32)
    return StepInputs.of(
        blocks=manager.blocks, scales=manager.scales, lengths=lengths, lut=lut, row_offsets=offsets
    )


def draw_rows(seed=1):
    """Rows of each head, of which some are none, and all of a head of one token."""
    rng = np.random.default_rng(seed)
    rows = np.array([[rng.permutation(8 * PAGE)[:COLUMNS] for _ in range(HEADS)] for _ in range(TOTAL)])
    rows[:, 1, ::5] = -1
    rows[2, 0] = -1
    return rows.astype(np.int32)


def attend(kernel, rows, given):
    target, cache, group, options = KERNELS[kernel]
    params, heads = CACHES[cache], HEADS * group
    operation = kvcache.ops.attention(params, heads, target=target, rows=given, **options)
    q = np.random.default_rng(2).standard_normal((TOTAL, heads, SIZE))
    q = q.astype(kvcache.dtypes.dtype("f32" if cache == "f32" else "bf16"))
    out, lse = np.zeros_like(q), np.zeros((TOTAL, heads), np.float32)
    operation(make_step(params), 0, q, out=out, lse=lse, scale=1 / 8, rows=rows)
    return out.reshape(TOTAL, HEADS, group, SIZE).astype(np.float32), lse.reshape(TOTAL, HEADS, group)


@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_of_heads_are_those_of_a_call_for_each_head(kernel):
    rows = draw_rows()
    out, lse = attend(kernel, rows, "heads")
    assert np.isfinite(lse[:2]).all() and np.isneginf(lse[2, 0]).all()
    for head in range(HEADS):
        expected_out, expected_lse = attend(kernel, rows[:, head].copy(), True)
        np.testing.assert_array_equal(out[:, head], expected_out[:, head])
        np.testing.assert_array_equal(lse[:, head], expected_lse[:, head])


def test_rows_of_heads_for_another_number_of_heads():
    with pytest.raises(ValueError, match="expects 'rows' to be True, False or 'heads', got 'all'"):
        kvcache.ops.attention(CACHES["f32"], 4, rows="all")
    operation = kvcache.ops.attention(CACHES["f32"], 4, rows="heads")
    q = np.zeros((TOTAL, 4, SIZE), np.float32)
    with pytest.raises(ValueError, match="'rows'. expects size 2 in dimension 1"):
        operation(make_step(CACHES["f32"]), 0, q, out=q.copy(), scale=1, rows=draw_rows()[:, :1].copy())
    step = make_step(CACHES["f32"])
    most = len(step.blocks[0]) * PAGE
    with pytest.raises(ValueError, match=f"expects 'rows' to be below {most}, the slots of the cache's .* got {most}"):
        operation(step, 0, q, out=q.copy(), scale=1, rows=np.full((TOTAL, HEADS, 1), most, np.int32))
