"""Caches of index keys, and scores of them by NumPy."""

import functools

import ml_dtypes
import numpy as np
from devices import TARGETS as CHIPS

import kvcache
from kvcache import KVCacheParams, KVCacheQuantizationConfig, StepInputs

CPU = "cpu"
TARGETS = [CPU, *CHIPS]
PAGE = 16
# The dtype of keys, and the dtype and the granularity of their scales.
CACHES = {
    "f32": ("f32", None, None),
    "bf16": ("bf16", None, None),
    "f16": ("f16", None, None),
    "fp8": ("f8E4M3FN", None, None),
    "fp8-token": ("f8E4M3FN", "f32", 128),
    "fp8-group": ("f8E4M3FN", "f8E8M0FNU", 32),
    "fp8-odd-group": ("f8E4M3FN", "f32", 3),
    "mxfp4": ("f4E2M1FN", "f8E8M0FNU", 32),
}
MXFP4 = "f4E2M1FN"
QUERIES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f8E4M3FN": ml_dtypes.float8_e4m3fn}


@functools.cache
def make_params(cache, size=128):
    dtype, scale, granularity = CACHES[cache]
    config = None
    if scale:
        config = KVCacheQuantizationConfig(scale, min(granularity, size))
    return KVCacheParams(
        dtype, 1, size, page_size=PAGE, total_num_layers=1, is_mla=True, kvcache_quant_config=config
    )


def make_step(params, lengths, new, keys=None, seed=0):
    """A step whose sequences have random integers from -3 to 3, or ``keys``, in all tokens.

    Also returns the keys of each sequence as the cache has them.
    """
    rng = np.random.default_rng(seed)
    totals = np.add(lengths, new)
    pages = -(-totals // PAGE)
    manager = kvcache.PagedKVCacheManager(
        params, max_batch_size=1, max_seq_len=PAGE, num_pages=int(pages.sum()) + 1
    )
    order = iter(rng.permutation(int(pages.sum())) + 1)
    lut = np.zeros((len(totals), int(pages.max())), np.uint32)
    for b, count in enumerate(pages):
        lut[b, :count] = [next(order) for _ in range(count)]

    def make(lengths, new):
        offsets = np.concatenate([[0], np.cumsum(new)]).astype(np.int32)
        return StepInputs.of(
            blocks=manager.blocks,
            scales=manager.scales,
            lengths=np.array(lengths, np.int32),
            lut=lut,
            row_offsets=offsets,
        )

    rows = rng.integers(-3, 4, (int(totals.sum()), 1, params.head_dim)) if keys is None else np.concatenate(keys)
    full = make(np.zeros_like(totals), totals)
    append = kvcache.ops.append(params, dtype="f32", power_of_two=params.kvcache_quant_config is not None)
    append(full, 0, rows.astype(np.float32))
    stored = np.zeros((len(totals), int(totals.max()), 1, params.head_dim), np.float32)
    kvcache.ops.gather(params, dtype="f32")(full, 0, stored)
    return make(lengths, new), [stored[b, :total, 0] for b, total in enumerate(totals)]


def draw_queries(rng, dtype, shape, exponents=(-1, 2)):
    """Queries, their scales or None, and their values: integers from -3 to 3, or for MXFP4 all of its numbers."""
    if dtype != MXFP4:
        q = rng.integers(-3, 4, shape).astype(QUERIES[dtype])
        return q, None, q
    codes = rng.integers(0, 16, shape)
    powers = rng.integers(*exponents, (*shape[:-1], shape[-1] // 32))
    magnitudes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])[codes % 8] * np.where(codes < 8, 1, -1)
    values = magnitudes * 2.0 ** powers.repeat(32, -1)
    scales = (powers + 127).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)
    return (codes[..., ::2] + 16 * codes[..., 1::2]).astype(np.uint8), scales, values


def score(step, keys, q, *, relu=False, sum_heads=False, width=1, block=1, weights=None, lengths=None, columns):
    """The scores in f64, with NaN in columns that stay as they are, and the sums of magnitudes."""
    total, heads = q.shape[:2]
    lengths = step.lengths if lengths is None else lengths
    scores = np.full((total, heads, columns), np.nan)
    q = q.astype(np.float64)
    factors = np.ones((total, heads)) if weights is None else weights.astype(np.float64)
    for b in range(len(lengths)):
        for row in range(step.row_offsets[b], step.row_offsets[b + 1]):
            entries = (int(lengths[b]) + row - int(step.row_offsets[b]) + 1) // width
            products = q[row] @ keys[b][:entries].astype(np.float64).T
            products = factors[row][:, None] * (np.maximum(products, 0) if relu else products)
            if sum_heads:
                products = products.sum(axis=0, keepdims=True)
            for column in range(-(-entries // block)):
                own = products[:, column * block : (column + 1) * block]
                scores[row, : len(own), column] = own.max(axis=1)
    return scores[:, 0] if sum_heads else scores


def run(operation, step, q, weights, columns, heads, lengths=None, q_scales=None):
    shape = (len(q), columns) if heads is None else (len(q), heads, columns)
    out = np.full(shape, np.nan, np.float32)
    given = {"weights": weights, "q_scales": q_scales, "lengths": lengths}
    operation(step, 0, q, out=out, **{name: array for name, array in given.items() if array is not None})
    return out


def check(target, cache, heads, size=128, dtype="bf16", lengths=(0, 37, 60), new=(3, 1, 2), weights=False, **options):
    params = make_params(cache, size)
    step, keys = make_step(params, lengths, new)
    rng = np.random.default_rng(5)
    total = int(sum(new))
    q, q_scales, values = draw_queries(rng, dtype, (total, heads, size))
    factors = rng.integers(-3, 4, (total, heads)).astype(np.float32) if weights else None
    operation = kvcache.ops.index_scores(params, heads, weights=weights, dtype=dtype, target=target, **options)
    columns = int(max(np.add(lengths, new)))
    tokens = step.lengths if options.get("width", 1) > 1 else None
    out = run(operation, step, q, factors, columns, None if options.get("sum_heads") else heads, tokens, q_scales)
    expected = score(step, keys, values, weights=factors, columns=columns, **{**options, "block": options.get("block") or 1})
    np.testing.assert_array_equal(out, expected.astype(np.float32))


INDEXER = {"relu": True, "sum_heads": True, "weights": True}
