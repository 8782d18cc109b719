"""Tests of rows of fp8 that ops write: merged outputs, and queries of append.

They are divided by a scale, rounded to nearest even, and saturate: NumPy and ml_dtypes do the same.
"""

import ml_dtypes
import numpy as np
import pytest

import kvcache
from kvcache import KVCacheParams, StepInputs

TARGETS = ["cpu", "emulator:sm_80", "emulator:sm_90a", "emulator:sm_100a", "emulator:sm_120a"]
FP8 = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}
each_target = pytest.mark.parametrize("target", TARGETS)
each_format = pytest.mark.parametrize("name", FP8)


def encode(values, name):
    """Rounds to nearest even, and saturates; NaN stays NaN."""
    largest = float(ml_dtypes.finfo(FP8[name]).max)
    return np.clip(np.asarray(values, np.float64), -largest, largest).astype(FP8[name])


def assert_equal_bits(found, wanted):
    number = ~np.isnan(wanted.astype(np.float64))
    assert np.isnan(found.astype(np.float64)[~number]).all()
    np.testing.assert_array_equal(found.view(np.uint8)[number], wanted.view(np.uint8)[number])


def list_edges(name):
    """Numbers of the format, ties between two of them, and numbers around the largest one: f32."""
    bits = np.arange(256, dtype=np.uint8).view(FP8[name]).astype(np.float64)
    numbers = np.sort(bits[np.isfinite(bits)])
    ties = (numbers[1:] + numbers[:-1]) / 2
    largest, step = numbers[-1], numbers[-1] - numbers[-2]
    over = [largest + step / 2, largest + step, 1e30, np.inf, np.nan, 0.0, -0.0]
    edges = np.concatenate([numbers, ties, np.nextafter(ties.astype(np.float32), np.float32(1e9)), over, -np.array(over)])
    return np.resize(edges.astype(np.float32), -(-edges.size // 64) * 64)


# --- merge_states --------------------------------------------------------------------------


@each_target
@each_format
def test_merged_rows_are_rounded_and_saturate(name, target):
    """One split has all keys, so the merged output is its output over the scale."""
    edges = list_edges(name).reshape(-1, 2, 32)
    merge = kvcache.ops.merge_states(2, 32, target, "f32", out_dtype=name)
    outs = np.stack([np.full_like(edges, np.nan), edges * np.array([1, 4], np.float32)[:, None]])
    lses = np.zeros(outs.shape[:3], np.float32)
    lses[0] = -np.inf
    out, lse = np.zeros(edges.shape, FP8[name]), np.zeros(edges.shape[:2], np.float32)
    merge(outs, lses, out, lse, out_scale=np.array([1, 4], np.float32))
    wanted = encode(edges, name)
    wanted[edges == 0] = 0  # a sum that begins at 0 is never -0
    assert_equal_bits(out, wanted)
    assert not lse.any()


@each_target
@pytest.mark.parametrize("name, dtype", [("f8E4M3FN", "bf16"), ("f8E5M2", "f16"), ("f8E4M3FN", "f32")])
def test_merged_rows_are_those_of_the_model(name, dtype, target):
    rng = np.random.default_rng(1)
    kind = kvcache.dtypes.dtype(dtype)
    outs = rng.standard_normal((3, 5, 4, 48)).astype(kind)
    lses = rng.normal(0, 3, (3, 5, 4)).astype(np.float32)
    lses[:, 3, 1], lses[0, 2] = -np.inf, np.inf
    merge = kvcache.ops.merge_states(4, 48, target, dtype, out_dtype=name)
    out, lse = np.zeros((5, 4, 48), FP8[name]), np.zeros((5, 4), np.float32)
    merge(outs, lses, out, lse, 0.02)
    weights = np.exp(np.where(np.isinf(lses), -np.inf, lses).astype(np.float64))
    total = weights.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        wanted = (weights[..., None] * outs.astype(np.float64)).sum(0) / total[..., None] / np.float32(0.02)
        np.testing.assert_allclose(lse, np.log(total), rtol=1e-6, atol=1e-6)
    wanted[3, 1] = 0
    # Where f32 rounds across a tie, the neighbours are both right.
    near = [encode(wanted * factor, name).astype(np.float64) for factor in (1 - 2e-6, 1 + 2e-6)]
    found = out.astype(np.float64)
    assert ((found == near[0]) | (found == near[1])).all()
    assert not out[3, 1].view(np.uint8).any()


def test_rows_without_keys_are_zeros_for_any_scale():
    merge = kvcache.ops.merge_states(1, 4, out_dtype="f8E4M3FN", dtype="f32")
    out, lse = np.ones((1, 1, 4), FP8["f8E4M3FN"]), np.zeros((1, 1), np.float32)
    merge(np.ones((2, 1, 1, 4), np.float32), np.full((2, 1, 1), -np.inf, np.float32), out, lse, out_scale=np.zeros(1, np.float32))
    assert not out.view(np.uint8).any() and lse[0, 0] == -np.inf


def test_wrong_scales_of_merged_rows_are_errors():
    arrays = [np.zeros(shape, np.float32) for shape in ((1, 1, 2, 4), (1, 1, 2), (1, 2, 4), (1, 2))]
    with pytest.raises(ValueError, match="expects 'out_scale' only for fp8"):
        kvcache.ops.merge_states(2, 4, dtype="f32")(*arrays, out_scale=1.0)
    with pytest.raises(ValueError, match="expects 'out_dtype' to be one of .*, got i8"):
        kvcache.ops.merge_states(2, 4, out_dtype="i8")
    merge = kvcache.ops.merge_states(2, 4, dtype="f32", out_dtype="f8E5M2")
    with pytest.raises((TypeError, ValueError), match="out"):
        merge(*arrays)
    arrays[2] = arrays[2].astype(FP8["f8E5M2"])
    for scale, message in (
        (np.ones(3, np.float32), "out_scale"), (-0.0, "'out_scale' to be a divisor other than 0, got -0.0"),
        (np.nan, "'out_scale' to be a finite number, got nan"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            merge(*arrays, out_scale=scale)


# --- Queries of append ---------------------------------------------------------------------

PARAMS = KVCacheParams("bf16", 2, 32, page_size=4, total_num_layers=1)


def append(target, queries, name, scale, given=(), **options):
    """Appends a token per row of queries; returns queries of fp8, and the memory of the cache."""
    total, heads, size = queries.shape
    blocks = np.zeros((total // 4 + 2, 2, 1, 4, 2, 32), ml_dtypes.bfloat16)
    inputs = StepInputs.of(
        blocks=blocks, lut=np.arange(total // 4 + 2, dtype=np.int32)[None], lengths=np.array([3], np.int32),
        row_offsets=np.array([0, total], np.int32),
    )
    operation = kvcache.ops.append(PARAMS, target, "f32", query_heads=heads, query_dtype=name, **options)
    rows = np.random.default_rng(0).standard_normal((2, total, 2, 32)).astype(np.float32)
    before, out = queries.copy(), np.zeros((total + 1, heads, size), FP8[name])
    padded = np.concatenate([queries, np.zeros_like(queries[:1])])
    operation(inputs, 0, *rows, padded, query_out=out, query_scale=scale, **dict(given))
    np.testing.assert_array_equal(padded[:-1], before)  # queries stay
    assert not out[-1].view(np.uint8).any()  # and so do rows of padding
    stored = blocks[:, 0, 0].reshape(-1, 2, 32)[3 : 3 + total]
    return out[:-1], stored, rows[0].astype(ml_dtypes.bfloat16)


@each_target
@each_format
def test_queries_are_rounded_and_saturate(name, target):
    edges = list_edges(name).reshape(-1, 2, 32)
    scale = np.array([1, 0.5], np.float32)
    with np.errstate(over="ignore"):
        queries = edges * scale[:, None]
    out, stored, keys = append(target, queries, name, scale)
    assert_equal_bits(out, encode(edges, name))
    np.testing.assert_array_equal(stored, keys)


@each_target
@pytest.mark.parametrize("scale", [None, 0.01, [0.5, 2, 0.1, 0.02]])
def test_queries_are_normed_and_roped_before(scale, target):
    rng = np.random.default_rng(2)
    queries, weights = rng.standard_normal((9, 4, 32)).astype(np.float32), rng.standard_normal(32).astype(np.float32)
    angles = rng.standard_normal((20, 8))
    table = np.concatenate([np.cos(angles), np.sin(angles)], -1).astype(np.float32)
    given = {"query_norm": weights, "rope": table}
    scale = np.array(scale, np.float32) if isinstance(scale, list) else scale
    out, *_ = append(target, queries, "f8E4M3FN", scale, given.items(), query_norm=32, rope=16, rope_begin=8)
    wide = queries.astype(np.float64)
    wide *= weights / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6)
    turned = (wide[..., 8:16] + 1j * wide[..., 16:24]) * np.exp(1j * angles[3:12, None])
    wide[..., 8:16], wide[..., 16:24] = turned.real, turned.imag
    wanted = wide / np.broadcast_to(1 if scale is None else scale, 4)[:, None]
    info = ml_dtypes.finfo(FP8["f8E4M3FN"])
    bound = float(info.eps) / 2 * np.abs(wanted) + float(info.smallest_subnormal) / 2 + 1e-5 * np.abs(wanted).max()
    assert (np.abs(out.astype(np.float64) - np.clip(wanted, -448, 448)) <= bound).all()


def test_attention_takes_queries_of_append():
    """The scale of attention's queries is that of append's."""
    rng = np.random.default_rng(4)
    queries = rng.standard_normal((5, 4, 32)).astype(np.float32)
    scale = np.array([0.5, 0.01, 0.02, 1], np.float32)
    out, _, keys = append("cpu", queries, "f8E4M3FN", scale)
    blocks = np.zeros((3, 2, 1, 4, 2, 32), ml_dtypes.bfloat16)
    blocks[:, 0, 0] = np.resize(keys, (3, 4, 2, 32))
    blocks[:, 1] = blocks[:, 0]
    inputs = StepInputs.of(
        blocks=blocks, lut=np.arange(3, dtype=np.int32)[None], lengths=np.array([2], np.int32), row_offsets=np.array([0, 5], np.int32)
    )
    narrow, wide = np.zeros((2, 5, 4, 32), np.float32)
    attention = {"query_heads": 4, "out_dtype": "f32"}
    kvcache.ops.attention(PARAMS, dtype="f8E4M3FN", **attention)(inputs, 0, out, out=narrow, scale=0.2, query_scale=scale)
    decoded = out.astype(np.float32) * scale[:, None]
    kvcache.ops.attention(PARAMS, dtype="f32", **attention)(inputs, 0, decoded, out=wide, scale=0.2)
    # Dot products of a CPU round probabilities to bf16.
    np.testing.assert_allclose(narrow, wide, rtol=0, atol=2**-8 * np.abs(blocks[:, 1].astype(np.float32)).max())


@pytest.mark.parametrize("options, message", [
    ({"query_dtype": "f8E4M3FN"}, "expects 'query_heads' with 'query_dtype'"),
    ({"query_dtype": "bf16", "query_heads": 4}, "expects 'query_dtype' to be one of f8E4M3FN, f8E5M2, got bf16"),
])  # fmt: skip
def test_wrong_options_of_queries_are_errors(options, message):
    with pytest.raises(ValueError, match=message):
        kvcache.ops.append(PARAMS, **options)


@pytest.mark.parametrize("change, message", [
    ({"query_out": None}, "expects 'query_out', as the operation was made with it"),
    ({"query_out": np.zeros((1, 4, 32), FP8["f8E4M3FN"])}, "'query_out' to have a row for each of 2 new tokens, got 1"),
    ({"query_out": np.zeros((2, 4, 32), FP8["f8E5M2"])}, "query_out"),
    ({"query_scale": np.ones(3, np.float32)}, "query_scale"),
    ({"query_scale": np.inf}, "'query_scale' to be a finite number, got inf"),
    ({"query_scale": 0}, "'query_scale' to be a divisor other than 0, got 0"),
])  # fmt: skip
def test_wrong_arrays_of_queries_are_errors(change, message):
    inputs = StepInputs.of(
        blocks=np.zeros((3, 2, 1, 4, 2, 32), ml_dtypes.bfloat16), lut=np.zeros((1, 2), np.int32),
        lengths=np.array([3], np.int32), row_offsets=np.array([0, 2], np.int32),
    )
    operation = kvcache.ops.append(PARAMS, dtype="f32", query_heads=4, query_dtype="f8E4M3FN")
    rows = np.zeros((2, 2, 2, 32), np.float32)
    given = {"query_out": np.zeros((2, 4, 32), FP8["f8E4M3FN"]), "query_scale": 1.0} | change
    with pytest.raises((TypeError, ValueError), match=message):
        operation(inputs, 0, *rows, np.zeros((2, 4, 32), np.float32), **given)


def test_queries_of_fp8_share_no_memory():
    memory = np.zeros(2 * 4 * 32 * 4, np.uint8)
    queries = memory.view(np.float32).reshape(2, 4, 32)
    out = memory[:256].view(FP8["f8E4M3FN"]).reshape(2, 4, 32)
    inputs = StepInputs.of(
        blocks=np.zeros((3, 2, 1, 4, 2, 32), ml_dtypes.bfloat16), lut=np.zeros((1, 2), np.int32),
        lengths=np.array([3], np.int32), row_offsets=np.array([0, 2], np.int32),
    )
    operation = kvcache.ops.append(PARAMS, dtype="f32", query_heads=4, query_dtype="f8E4M3FN")
    rows = np.zeros((2, 2, 2, 32), np.float32)
    with pytest.raises(ValueError, match="'queries'|'query_out'"):
        operation(inputs, 0, *rows, queries, query_out=out)
