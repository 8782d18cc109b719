"""Tests of pool on data, against NumPy on the keys that gather reads."""

import ml_dtypes
import numpy as np
import pytest
from devices import TARGETS as CHIPS
from devices import spread

import kvcache
from kvcache import KVCacheParams, KVCacheQuantizationConfig, StepInputs

CPU = "cpu"
PAGE = 16
# The dtype of keys, the dtype and the granularity of their scales, heads, and head size.
CACHES = {
    "f32": ("f32", None, None, 2, 32),
    "bf16": ("bf16", None, None, 3, 40),
    "fp8": ("f8E4M3FN", None, None, 1, 128),
    "fp8-group": ("f8E4M3FN", "f32", 32, 2, 64),
    "mxfp4": ("f4E2M1FN", "f8E8M0FNU", 32, 2, 64),
}
LENGTHS, NEW = (0, 7, 30, 3), (9, 1, 5, 0)


def make_step(cache):
    """A step of four sequences with integers from -3 to 3, and their keys as the cache has them."""
    dtype, scale, granularity, heads, size = CACHES[cache]
    config = KVCacheQuantizationConfig(scale, granularity) if scale else None
    params = KVCacheParams(
        dtype, heads, size, page_size=PAGE, total_num_layers=1, kvcache_quant_config=config, is_mla=heads == 1
    )
    manager = kvcache.PagedKVCacheManager(params, max_batch_size=1, max_seq_len=PAGE, num_pages=9)
    lut = np.array([[3, 0, 0], [5, 0, 0], [8, 1, 6], [2, 0, 0]], np.uint32)
    totals = np.add(LENGTHS, NEW)

    def make(lengths, new):
        offsets = np.concatenate([[0], np.cumsum(new)]).astype(np.int32)
        return StepInputs.of(
            blocks=manager.blocks, scales=manager.scales, lengths=np.array(lengths, np.int32), lut=lut, row_offsets=offsets
        )

    full = make(np.zeros_like(totals), totals)
    rows = np.random.default_rng(0).integers(-3, 4, (int(totals.sum()), heads, size)).astype(np.float32)
    given = (rows,) if params.is_mla else (rows, rows)
    kvcache.ops.append(params, dtype="f32", power_of_two=scale is not None)(full, 0, *given)
    stored = np.zeros((len(totals), int(totals.max()), heads, size), np.float32)
    kvcache.ops.gather(params, dtype="f32")(full, 0, *(stored, stored.copy())[: len(given)])
    return params, make(LENGTHS, NEW), stored


def summarize(keys, width, kind):
    """The summary of the last tokens of some keys, [tokens, heads, size]."""
    group = keys[-width:]
    if kind == "mean":
        return group.mean(axis=0, dtype=np.float32)
    if kind == "min_max":
        return np.concatenate([group.max(axis=0), group.min(axis=0)], axis=-1)
    values, gates = np.split(group.astype(np.float64), 2, axis=-1)
    if kind == "overlap":
        before = keys[-2 * width : -width].astype(np.float64)
        old_values, old_gates = np.split(before, 2, axis=-1)
        size = values.shape[-1] // 2
        values = np.concatenate([old_values[..., :size], values[..., size:]])
        gates = np.concatenate([old_gates[..., :size], gates[..., size:]])
    weights = np.exp(gates - gates.max(axis=0))
    return (weights * values).sum(axis=0) / weights.sum(axis=0)


def get_options(kind):
    return {"kind": "gated", "overlap": True} if kind == "overlap" else {"kind": kind}


def give_new(params, step, stored):
    """The keys of the step as an array, of which the cache then has other ones."""
    new = np.concatenate([keys[length : length + count] for keys, length, count in zip(stored, LENGTHS, NEW)])
    other = np.full_like(new, 9)
    kvcache.ops.append(params, dtype="f32")(step, 0, *([other] if params.is_mla else [other, other]))
    return new


def check(target, cache, width, kind, dtype="f32", has_new=False, **build):
    params, step, stored = make_step(cache)
    operation = kvcache.ops.pool(params, width, **get_options(kind), dtype=dtype, target=target, **build)
    size = params.head_dim
    columns = {"mean": size, "min_max": 2 * size, "gated": size // 2, "overlap": size // 4}[kind]
    # Rows of tokens that close no group, and of padding, stay as they are.
    out = np.full((sum(NEW) + 2, params.n_kv_heads, columns), 99, kvcache.dtypes.dtype(dtype))
    expected = out.copy()
    row = 0
    for b, (length, new) in enumerate(zip(LENGTHS, NEW)):
        for position in range(length, length + new):
            if (position + 1) % width == 0:
                expected[row] = summarize(stored[b, : position + 1], width, kind)
            row += 1
    assert (expected != 99).any()
    new = give_new(params, step, stored).astype(out.dtype) if has_new else None
    operation(step, 0, out=out, new=new)
    # Exponentials of GPUs have an error of 2^-22.
    tolerance = 2e-6 if kind in ("gated", "overlap") else 0
    np.testing.assert_allclose(out.astype(np.float32), expected.astype(np.float32), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", ["mean", "min_max", "gated", "overlap"])
@pytest.mark.parametrize(("cache", "target"), spread(CACHES, with_cpu=True))
def test_pool_of_formats(cache, target, kind):
    check(target, cache, 4, kind)


@pytest.mark.parametrize(("width", "target"), spread([1, 2, 8], with_cpu=True))
@pytest.mark.parametrize("kind", ["mean", "overlap"])
def test_pool_of_new_keys_reads_no_later_ones_in_the_cache(width, target, kind):
    check(target, "f32", width, kind, has_new=True)


@pytest.mark.parametrize("target", [CPU, CHIPS[0]])
def test_new_keys_need_no_pages(target):
    """The only page has the tokens before the step."""
    params = KVCacheParams("f32", 1, 8, page_size=4, total_num_layers=1, is_mla=True)
    blocks, new = np.zeros((1, 1, 1, 4, 1, 8), np.float32), np.arange(32, dtype=np.float32).reshape(4, 1, 8)
    lut, offsets = np.zeros((1, 1), np.uint32), np.array([0, 4], np.int32)
    step = StepInputs.of(blocks=blocks, lengths=np.array([4], np.int32), lut=lut, row_offsets=offsets)
    operation = kvcache.ops.pool(params, 4, target=target, bounds_checks=True)
    out = np.zeros((4, 1, 8), np.float32)
    operation(step, 0, out=out, new=new)
    np.testing.assert_array_equal(out[3], new.mean(axis=0))
    step.lengths[:] = 5
    with pytest.raises(ValueError, match="sequence 0 to have at most 4 tokens, .* got 5"):
        operation(step, 0, out=out, new=new)


def test_pool_of_new_keys_of_16_bits():
    check(CHIPS[0], "bf16", 4, "min_max", "bf16", has_new=True)


@pytest.mark.parametrize("target", [CPU, CHIPS[0]])
def test_gates_may_be_far_apart(target):
    """Weights are relative to the largest gate: none overflows."""
    params = KVCacheParams("f32", 1, 64, page_size=PAGE, total_num_layers=1, is_mla=True)
    blocks = np.zeros((2, 1, 1, PAGE, 1, 64), np.float32)
    blocks[1, 0, 0, :4, 0, :32] = np.arange(4)[:, None]
    blocks[1, 0, 0, :4, 0, 32:] = np.array([-1e30, 500, -np.inf, 500])[:, None]
    step = StepInputs.of(
        blocks=blocks, lengths=np.array([3], np.int32), lut=np.array([[1]], np.int32), row_offsets=np.array([0, 1], np.int32)
    )
    out = np.zeros((1, 1, 32), np.float32)
    kvcache.ops.pool(params, 4, kind="gated", target=target)(step, 0, out=out)
    np.testing.assert_allclose(out, 2, rtol=1e-6)


@pytest.mark.parametrize(("width", "target"), spread([1, 8, 32], with_cpu=True))
def test_pool_of_widths(width, target):
    check(target, "f32", width, "mean")


@pytest.mark.parametrize(("dtype", "target"), spread(["bf16", "f16"], with_cpu=True))
def test_pool_rounds_once(dtype, target):
    check(target, "bf16", 4, "mean", dtype)


def test_pool_with_few_threads():
    check(CHIPS[0], "bf16", 4, "min_max", block_threads=32)


@pytest.mark.parametrize(("size", "target"), [(8192, CPU), *((size, CHIPS[0]) for size in (8192, 8200, 16384))])
def test_pool_of_more_elements_than_a_block_loads_at_once(size, target):
    params = KVCacheParams("f32", 1, size, page_size=PAGE, total_num_layers=1, is_mla=True)
    blocks = np.random.default_rng(size).integers(-9, 9, (1, 1, 1, PAGE, 1, size)).astype(np.float32)
    step = StepInputs.of(
        blocks=blocks, lengths=np.array([0], np.int32), lut=np.array([[0]], np.int32), row_offsets=np.array([0, 2], np.int32)
    )
    out = np.zeros((2, 1, size), np.float32)
    kvcache.ops.pool(params, 2, target=target)(step, 0, out=out)
    np.testing.assert_array_equal(out[1, 0], blocks[0, 0, 0, :2, 0].mean(axis=0))


def test_summaries_are_the_keys_of_quest():
    """The score of a block is the sum over elements of the larger of q times its largest and its smallest key."""
    params, step, stored = make_step("fp8")
    summaries = np.zeros((sum(NEW), 1, 256), np.float32)
    kvcache.ops.pool(params, 4, kind="min_max", dtype="f32")(step, 0, out=summaries)
    q = np.random.default_rng(1).standard_normal(128).astype(np.float32)
    split = np.concatenate([np.maximum(q, 0), np.minimum(q, 0)])
    keys = stored[0, :4, 0]
    expected = np.maximum(q * keys.max(0), q * keys.min(0)).sum()
    np.testing.assert_allclose(summaries[3, 0] @ split, expected, rtol=1e-5)


@pytest.mark.parametrize("target", [CPU, *CHIPS])
def test_pool_of_nan_leaves_it_out(target):
    params = KVCacheParams("f32", 1, 32, page_size=PAGE, total_num_layers=1, is_mla=True)
    blocks = np.zeros((2, 1, 1, PAGE, 1, 32), np.float32)
    blocks[1, 0, 0, :2, 0] = [[np.nan] * 32, [5] * 32]
    step = StepInputs.of(
        blocks=blocks, lengths=np.array([1], np.int32), lut=np.array([[1]], np.int32), row_offsets=np.array([0, 1], np.int32)
    )
    out = np.zeros((1, 1, 64), np.float32)
    kvcache.ops.pool(params, 2, kind="min_max", target=target)(step, 0, out=out)
    assert (out == 5).all()
    blocks[1] = np.nan
    kvcache.ops.pool(params, 2, kind="min_max", target=target)(step, 0, out=out)
    assert np.isneginf(out[..., :32]).all() and np.isposinf(out[..., 32:]).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"width": 0}, "expects 'width' to be positive, got 0"),
        ({"kind": "median"}, "expects 'kind' to be one of 'mean', 'min_max', 'gated', got 'median'"),
        ({"overlap": True}, "expects 'overlap' only with the kind 'gated', got 'mean'"),
        ({"dtype": ml_dtypes.float8_e4m3fn}, "expects 'dtype' to be one of f32, f16, bf16"),
    ],
)
def test_options_out_of_range(given, message):
    with pytest.raises(ValueError, match=message):
        kvcache.ops.pool(**{"params": make_step("f32")[0], "width": 4, **given})


def test_keys_that_gates_do_not_halve():
    params = KVCacheParams("f32", 1, 34, page_size=PAGE, total_num_layers=1, is_mla=True)
    with pytest.raises(ValueError, match="expects 'head_dim' to be a multiple of 4, got 34"):
        kvcache.ops.pool(params, 4, kind="gated", overlap=True)


def test_arrays_of_wrong_sizes():
    params, step, _ = make_step("f32")
    operation = kvcache.ops.pool(params, 4)
    with pytest.raises(ValueError, match="'out' to have a row for each of 15 new tokens, got 14"):
        operation(step, 0, out=np.zeros((14, 2, 32), np.float32))
    with pytest.raises(ValueError, match="'out'. expects size 32 in dimension 2"):
        operation(step, 0, out=np.zeros((15, 2, 64), np.float32))
    with pytest.raises(ValueError, match="'new' to have a row for each of 15 new tokens, got 14"):
        operation(step, 0, out=np.zeros((15, 2, 32), np.float32), new=np.zeros((14, 2, 32), np.float32))
    with pytest.raises(ValueError, match="'new'. expects size 32 in dimension 2"):
        operation(step, 0, out=np.zeros((15, 2, 32), np.float32), new=np.zeros((15, 2, 16), np.float32))
    rows = np.zeros((15, 2, 32), np.float32)
    with pytest.raises(ValueError, match="'out' to share no memory with 'new'"):
        operation(step, 0, out=rows, new=rows)
