"""Tests of index_scores on data: integers, whose sums are exact, and the bound of real numbers."""

import ml_dtypes
import numpy as np
import pytest
from devices import TARGETS as CHIPS
from devices import spread
from index_model import (
    CACHES,
    CPU,
    INDEXER,
    MXFP4,
    PAGE,
    QUERIES,
    TARGETS,
    check,
    draw_queries,
    make_params,
    make_step,
    run,
    score,
)

import kvcache
from kvcache import KVCacheParams, StepInputs


@pytest.mark.parametrize(("cache", "target"), spread(CACHES, with_cpu=True))
def test_index_scores_of_formats(cache, target):
    check(target, cache, 4, 96 if cache == "fp8-odd-group" else 128, **INDEXER)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("cache", ["mxfp4", "bf16", "fp8-token", "fp8-odd-group"])
def test_index_scores_of_mxfp4_queries(cache, target):
    check(target, cache, 4, 96, dtype=MXFP4, **INDEXER)


@pytest.mark.parametrize(("dtype", "target"), spread(QUERIES, with_cpu=True))
def test_index_scores_of_query_dtypes(dtype, target):
    check(target, "fp8-token", 4, dtype=dtype, **INDEXER)


@pytest.mark.parametrize(("heads", "target"), spread([1, 3, 12, 64], with_cpu=True))
def test_index_scores_of_numbers_of_heads(heads, target):
    check(target, "fp8", heads, lengths=(5,), new=(1,), **INDEXER)


@pytest.mark.parametrize(("size", "target"), spread([32, 96, 256], with_cpu=True))
def test_index_scores_of_head_sizes(size, target):
    check(target, "bf16", 2, size, **INDEXER)


# Keys, queries, heads and elements that tensor cores multiply.
TILES = [
    ("fp8-token", "f8E4M3FN", 64, 128),
    ("fp8", "f16", 32, 64),
    ("bf16", "bf16", 16, 128),
    ("f16", "f8E4M3FN", 48, 96),
    ("bf16", "f8E4M3FN", 16, 32),
    ("fp8-token", MXFP4, 64, 128),
    ("bf16", MXFP4, 16, 96),
    ("fp8-token", MXFP4, 32, 64),
    ("fp8", MXFP4, 32, 32),
    ("f16", MXFP4, 48, 128),
    ("mxfp4", MXFP4, 64, 128),
    ("mxfp4", MXFP4, 16, 32),
    ("mxfp4", "f8E4M3FN", 32, 96),
    ("mxfp4", "f16", 16, 64),
    ("mxfp4", MXFP4, 32, 64),
    ("mxfp4", MXFP4, 32, 128),
]


@pytest.mark.parametrize(("case", "target"), spread(TILES))
def test_index_scores_of_tiles(case, target):
    """Some sequences have no rows, others rows of several blocks, and one more tokens than a block scores."""
    cache, dtype, heads, size = case
    check(target, cache, heads, size, dtype=dtype, lengths=(0, 37, 21, 1100), new=(3, 1, 0, 10), **INDEXER)


@pytest.mark.parametrize("dtype", ["f8E4M3FN", MXFP4])
@pytest.mark.parametrize(("name", "target"), spread(["sum", "relu", "weights", "width"]))
def test_index_scores_of_tiles_with_options(name, target, dtype):
    options = {"sum_heads": True, **OPTIONS[name]}
    check(target, "fp8-token", 16, 64, dtype=dtype, lengths=(70, 30), new=(9, 2), **options)


OPTIONS = {
    "plain": {},
    "relu": {"relu": True},
    "sum": {"sum_heads": True},
    "weights": {"weights": True},
    "block": {"block": 8},
    "block-of-sums": {"block": 16, **INDEXER},
    "width": {"width": 4, **INDEXER},
    "width-and-block": {"width": 2, "block": 4, "relu": True},
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", OPTIONS)
def test_index_scores_with_options(target, name):
    check(target, "bf16", 4, 64, **OPTIONS[name])


@pytest.mark.parametrize("target", [CPU, CHIPS[1]])
def test_lengths_count_tokens_of_entries(target):
    params = make_params("bf16", 32)
    step, keys = make_step(params, (10, 3), (1, 1))
    tokens = np.array([40, 12], np.int32)
    q = np.random.default_rng(1).integers(-3, 4, (2, 2, 32)).astype(ml_dtypes.bfloat16)
    operation = kvcache.ops.index_scores(params, 2, width=4, dtype="bf16", target=target)
    out = run(operation, step, q, None, 12, 2, lengths=tokens)
    expected = score(step, keys, q, width=4, lengths=tokens, columns=12)
    np.testing.assert_array_equal(out, expected.astype(np.float32))


@pytest.mark.parametrize(("heads", "target"), [(4, CPU), (4, CHIPS[1]), *((16, chip) for chip in CHIPS)])
@pytest.mark.parametrize("name", ["DeepGEMM-index", "DeepGEMM-index-MXFP4"])
def test_index_keys_in_pages_of_deepgemm(name, heads, target):
    """The keys of a page, then its scales; other layers lie between pages."""
    layout = kvcache.Layout.from_name(name)
    params, _ = kvcache.row_params(layout, PAGE)
    data = np.zeros((3, 2 * layout.page_bytes(PAGE)), np.uint8)
    views = layout.views(data, PAGE)
    lut = np.array([[2, 1]], np.uint32)

    def make(length, new):
        return StepInputs.of(
            keys=views["content"].array,
            key_scales=views["scales"].array,
            lengths=np.array([length], np.int32),
            lut=lut,
            row_offsets=np.array([0, new], np.int32),
        )

    rng = np.random.default_rng(4)
    keys = rng.integers(-3, 4, (20, 1, 128)).astype(np.float32)
    append = kvcache.ops.append(params, dtype="f32", power_of_two=True, separate=True, target=target)
    append(make(0, 20), 0, keys)
    stored = data[2, : PAGE * 64].reshape(PAGE, 64)[7]
    stored = np.stack([stored & 15, stored >> 4], -1).reshape(-1).astype(np.uint8).view(ml_dtypes.float4_e2m1fn)
    scales = data[2, PAGE * 64 + 7 * 4 :][:4].view(ml_dtypes.float8_e8m0fnu)
    if name == "DeepGEMM-index":
        stored = data[2, 7 * 128 : 8 * 128].view(ml_dtypes.float8_e4m3fn)
        scales = data[2, PAGE * 128 + 7 * 4 :][:4].view(np.float32)
    scales = scales.astype(np.float32).repeat(128 // len(scales))
    np.testing.assert_array_equal(stored.astype(np.float32) * scales, keys[7, 0])
    assert not data[:, layout.page_bytes(PAGE) :].any()
    q = rng.integers(-3, 4, (1, heads, 128)).astype(ml_dtypes.float8_e4m3fn)
    operation = kvcache.ops.index_scores(
        params, heads, dtype="f8E4M3FN", relu=True, sum_heads=True, separate=True, target=target
    )
    step = make(19, 1)
    out = run(operation, step, q, None, 20, None)
    expected = score(step, [keys[:, 0]], q, relu=True, sum_heads=True, columns=20)
    np.testing.assert_array_equal(out, expected.astype(np.float32))


@pytest.mark.parametrize("heads", [8, 32])
@pytest.mark.parametrize(("cache", "target"), spread(["f32", "bf16", "fp8-token", "fp8-group", "mxfp4"], with_cpu=True))
def test_index_scores_of_real_numbers_are_within_the_bound(cache, target, heads):
    """The bound of sums of f32: (E + heads + 2) 2^-23 times the sum of magnitudes."""
    params, size = make_params(cache), 128
    rng = np.random.default_rng(8)
    step, keys = make_step(params, (50,), (2,), keys=[rng.standard_normal((52, 1, size))])
    q = rng.standard_normal((2, heads, size)).astype(ml_dtypes.bfloat16)
    weights = rng.standard_normal((2, heads)).astype(np.float32)
    operation = kvcache.ops.index_scores(params, heads, dtype="bf16", target=target, **INDEXER)
    out = run(operation, step, q, weights, 52, None)
    options = {"weights": weights, "sum_heads": True, "columns": 52}
    expected = score(step, keys, q, relu=True, **options)
    magnitudes = score(step, [np.abs(k) for k in keys], np.abs(q), **{**options, "weights": np.abs(weights)})
    assert (np.isnan(out) == np.isnan(expected)).all()
    error = np.abs(out - expected) / ((size + heads + 2) * 2.0**-23 * magnitudes)
    assert np.nanmax(error) < 1


@pytest.mark.parametrize("cache", ["bf16", "fp8-token", "mxfp4"])
@pytest.mark.parametrize(("heads", "target"), [(4, CPU), *((heads, chip) for heads in (4, 16) for chip in CHIPS)])
def test_mxfp4_queries_are_within_the_bound(cache, heads, target):
    """The scales of a query differ by up to 2^60, of which its largest group need not have the largest products."""
    params, size = make_params(cache), 128
    rng = np.random.default_rng(9)
    keys = rng.standard_normal((41, 1, size)) * 2.0 ** rng.integers(-5, 6, (41, 1, 4)).repeat(32, -1)
    keys[::3, :, :96] = 0
    step, keys = make_step(params, (40,), (1,), keys=[keys])
    q, q_scales, values = draw_queries(rng, MXFP4, (1, heads, size), (-30, 31))
    weights = rng.standard_normal((1, heads)).astype(np.float32)
    operation = kvcache.ops.index_scores(params, heads, dtype=MXFP4, target=target, **INDEXER)
    out = run(operation, step, q, weights, 41, None, q_scales=q_scales)
    options = {"sum_heads": True, "columns": 41}
    expected = score(step, keys, values, relu=True, weights=weights, **options)
    magnitudes = score(step, [np.abs(k) for k in keys], np.abs(values), weights=np.abs(weights), **options)
    error = np.abs(out - expected) / ((size + heads + 2) * 2.0**-23 * magnitudes)
    assert error.max() < 1


@pytest.mark.parametrize("cache", ["fp8-token", "mxfp4"])
@pytest.mark.parametrize("target", TARGETS)
def test_index_scores_do_not_depend_on_other_rows(target, cache):
    """Real numbers, whose sums depend on their order: rows of a prompt, and each row alone."""
    params, heads = make_params(cache), 32
    rng = np.random.default_rng(6)
    keys = rng.standard_normal((56, 1, 128))
    q = rng.standard_normal((6, heads, 128)).astype(ml_dtypes.float8_e4m3fn)
    weights = rng.standard_normal((6, heads)).astype(np.float32)
    operation = kvcache.ops.index_scores(params, heads, dtype="f8E4M3FN", target=target, **INDEXER)
    step, _ = make_step(params, (50,), (6,), keys=[keys])
    together = run(operation, step, q, weights, 56, None)
    for row in range(6):
        step, _ = make_step(params, (50 + row,), (1,), keys=[keys[: 51 + row]])
        alone = run(operation, step, q[row : row + 1], weights[row : row + 1], 56, None)
        np.testing.assert_array_equal(alone[0], together[row])


@pytest.mark.parametrize(("heads", "block", "target"), [
    *((2, block, target) for block in (1, 4) for target in TARGETS),
    *((16, 1, chip) for chip in CHIPS),
])
def test_nan_is_the_score_of_a_column_of_nan_alone(heads, block, target):
    """With ``relu``, too; the last block has a token."""
    params = make_params("bf16", 32)
    step, keys = make_step(params, (8,), (1,))
    for token in (0, 1, 2, 3, 6):
        step.blocks[0][step.lut[0, 0], 0, 0, token] = keys[0][token] = np.nan
    q = np.ones((1, heads, 32), ml_dtypes.bfloat16)
    operation = kvcache.ops.index_scores(params, heads, relu=True, sum_heads=True, block=block, target=target)
    columns = -(-9 // block)
    out = run(operation, step, q, None, columns, None)
    single = score(step, keys, q, relu=True, sum_heads=True, columns=9)[0]
    expected = [single[0], np.nanmax(single[4:8]), single[8]] if block == 4 else single
    np.testing.assert_array_equal(out[0], np.array(expected, np.float32))


def test_bound_scores_are_those_of_a_call():
    params = make_params("bf16", 32)
    step, _ = make_step(params, (20,), (1,))
    operation = kvcache.ops.index_scores(params, 2, dtype="f32")
    q = np.random.default_rng(3).standard_normal((1, 2, 32)).astype(np.float32)
    out = np.empty((1, 2, 21), np.float32)
    operation.bind(step, 0)(q, out=out)
    np.testing.assert_array_equal(out, run(operation, step, q, None, 21, 2))


# --- Errors ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"index_heads": 65}, "expects 'index_heads' to be at most 64, got 65"),
        ({"index_heads": 0}, "expects 'index_heads' to be positive, got 0"),
        ({"width": 0}, "expects 'width' to be positive, got 0"),
        ({"block": 0}, "expects 'block' to be positive, got 0"),
        ({"params": KVCacheParams("bf16", 2, 128, page_size=16)}, "a cache of one head, got 2 heads"),
        ({"params": KVCacheParams("bf16", 1, 48, page_size=16)}, "'head_dim' to be a multiple of 32, got 48"),
        ({"dtype": "i8"}, "expects 'dtype' to be one of f32, f16, bf16, f8E4M3FN, f8E5M2, f4E2M1FN, got i8"),
        ({"dtype": np.uint8}, "expects 'dtype' to be one of f32, .*, f4E2M1FN, got uint8"),
    ],
)
def test_options_out_of_range(given, message):
    with pytest.raises(ValueError, match=message):
        kvcache.ops.index_scores(**{"params": make_params("bf16"), "index_heads": 4, **given})


def test_names_of_other_dtypes():
    with pytest.raises(TypeError, match="expects 'dtype' to be one of f32, .*, f4E2M1FN, got 'mxfp4'"):
        kvcache.ops.index_scores(make_params("bf16"), 4, dtype="mxfp4")


def test_arrays_of_wrong_sizes():
    params = make_params("bf16", 32)
    step, _ = make_step(params, (20,), (1,))
    operation = kvcache.ops.index_scores(params, 2, sum_heads=True, weights=True, dtype="f32")
    q, weights, out = np.zeros((1, 2, 32), np.float32), np.zeros((1, 2), np.float32), np.zeros((1, 21), np.float32)
    operation(step, 0, q, weights=weights, out=out)
    with pytest.raises(ValueError, match="'out' to have a column for each of 21 candidates of sequence 0, got 20"):
        operation(step, 0, q, weights=weights, out=out[:, :20])
    with pytest.raises(ValueError, match=r"'out' to have the shape \[total, n\], got \[1, 2, 21\]"):
        operation(step, 0, q, weights=weights, out=np.zeros((1, 2, 21), np.float32))
    with pytest.raises(ValueError, match="'q' to have a row for each of 1 new tokens, got 0"):
        operation(step, 0, q[:0], weights=weights, out=out)
    entries = kvcache.ops.index_scores(params, 2, width=2, dtype="f32")
    with pytest.raises(ValueError, match=r"expects 'lengths' with 'width' \(2\): the cache counts entries"):
        entries(step, 0, q, out=np.zeros((1, 2, 21), np.float32))
    with pytest.raises(ValueError, match="expects 'weights', as the operation was made with it"):
        operation(step, 0, q, out=out)
    for lengths, message in (
        (-5, "'lengths' not to be negative, got -5 for sequence 0"),
        (39, "sequence 0 to have at most 32 tokens, those of the 2 pages of its row of 'lut', got 40"),
    ):
        with pytest.raises(ValueError, match=message):
            given = {"out": np.zeros((1, 40), np.float32), "lengths": np.array([lengths], np.int32)}
            operation(step, 0, q, weights=weights, **given)
    with pytest.raises(ValueError, match="sequence 0 to have at most 32 entries, .* got 33"):
        entries(step, 0, q, out=np.zeros((1, 2, 40), np.float32), lengths=np.array([65], np.int32))
    with pytest.raises(TypeError, match="expects 'lengths' to be an array, got list"):
        operation(step, 0, q, weights=weights, out=out, lengths=[20])
    with pytest.raises(ValueError, match="expects the elements of 'out' to share no memory, got strides of .0, 4. bytes"):
        operation(step, 0, q, weights=weights, out=np.lib.stride_tricks.as_strided(out, (2, 21), (0, 4)))
    idle, _ = make_step(params, (30, 4), (0, 1))
    operation(idle, 0, q, weights=weights, out=out[:, :5])
    with pytest.raises(ValueError, match="'out' to share no memory with 'weights'"):
        operation(step, 0, q, weights=out[:, :2], out=out)


def test_mxfp4_queries_of_wrong_sizes():
    params = make_params("mxfp4", 64)
    step, _ = make_step(params, (20,), (1,))
    operation = kvcache.ops.index_scores(params, 2, dtype=MXFP4)
    q, q_scales = np.zeros((1, 2, 32), np.uint8), np.zeros((1, 2, 2), ml_dtypes.float8_e8m0fnu)
    out = np.zeros((1, 2, 21), np.float32)
    operation(step, 0, q.view(np.int8), q_scales=q_scales, out=out)
    with pytest.raises(ValueError, match="was made with dtype='f4E2M1FN': expects 'q_scales'"):
        operation(step, 0, q, out=out)
    with pytest.raises(ValueError, match="'q_scales' to have a row for each of 1 new tokens, got 0"):
        operation(step, 0, q, q_scales=q_scales[:0], out=out)
    with pytest.raises(ValueError, match="'q_scales'"):
        operation(step, 0, q, q_scales=np.zeros((1, 2, 4), q_scales.dtype), out=out)
    with pytest.raises(ValueError, match="'q'"):
        operation(step, 0, np.zeros((1, 2, 31), np.uint8), q_scales=q_scales, out=out)
    with pytest.raises(TypeError, match="'q'"):
        operation(step, 0, np.zeros((1, 2, 32), np.float32), q_scales=q_scales, out=out)
    with pytest.raises(TypeError, match="'q_scales'"):
        operation(step, 0, q, q_scales=np.zeros((1, 2, 2), np.uint8), out=out)
    floats = kvcache.ops.index_scores(params, 2, dtype="bf16")
    with pytest.raises(ValueError, match="expects no 'q_scales', as the operation was made without it"):
        floats(step, 0, np.zeros((1, 2, 64), ml_dtypes.bfloat16), q_scales=q_scales, out=out)


@pytest.mark.parametrize(("heads", "target"), [(2, CPU), (2, CHIPS[0]), (16, CHIPS[1])])
def test_checks_of_rows_of_mxfp4_queries(heads, target, monkeypatch):
    params = make_params("bf16", 32)
    step, _ = make_step(params, (20,), (1,))
    monkeypatch.setattr("kvcache.ops.index_scoring.check_rows", lambda *_, **__: None)
    operation = kvcache.ops.index_scores(
        params, heads, sum_heads=True, dtype=MXFP4, target=target, bounds_checks=True
    )
    q, q_scales = np.zeros((1, heads, 16), np.uint8), np.zeros((1, heads, 1), ml_dtypes.float8_e8m0fnu)
    out = np.zeros((1, 21), np.float32)
    operation(step, 0, q, q_scales=q_scales, out=out)
    with pytest.raises(kvcache.CheckError, match="row of 'q_scales' is out of range"):
        operation(step, 0, q, q_scales=q_scales[:0], out=out)


@pytest.mark.parametrize("heads", [2, 16])
@pytest.mark.parametrize("target", [CPU, CHIPS[1]])
def test_checks_of_columns(target, heads, monkeypatch):
    params = make_params("bf16", 32)
    step, keys = make_step(params, (20,), (1,))
    monkeypatch.setattr("kvcache.ops.index_scoring.check_columns", lambda *_: None)
    operation = kvcache.ops.index_scores(
        params, heads, sum_heads=True, dtype="bf16", target=target, bounds_checks=True
    )
    q = np.zeros((1, heads, 32), ml_dtypes.bfloat16)
    operation(step, 0, q, out=np.zeros((1, 21), np.float32))
    with pytest.raises(kvcache.CheckError, match="number of columns that a row of 'scores' needs is out of range"):
        operation(step, 0, q, out=np.zeros((1, 20), np.float32))
    q[:] = 1
    operation = kvcache.ops.index_scores(params, heads, sum_heads=True, dtype="bf16", target=target)
    wide = np.full((1, 64), 7, np.float32)
    operation(step, 0, q, out=wide[:, :10])
    np.testing.assert_array_equal(wide[0, :10], heads * keys[0][:10].sum(axis=1))
    assert (wide[0, 10:] == 7).all()
