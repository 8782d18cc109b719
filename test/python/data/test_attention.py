"""Tests of kvcache.ops.attention against f64 NumPy on the same bytes."""

import ml_dtypes
import model
import numpy as np
import pytest
from attention_checks import (
    CHIPS,
    FEW,
    FEW_NEW,
    FORMATS,
    LAYER,
    LAYERS,
    LENGTHS,
    NEW,
    OPTIONS,
    ROUNDING,
    SPLITS,
    check,
    check_sparse,
    close,
    close_lse,
    dense,
    fill,
    make_params,
    run,
    tile_type,
)
from devices import spread
from hypothesis import given, settings
from hypothesis import strategies as st

import kvcache
from kvcache import KVCacheParams, KVCacheQuantizationConfig


@pytest.mark.usefixtures("optimized_operations")
@pytest.mark.parametrize("format_", FORMATS)
def test_formats(format_):
    check(make_params(format_), FORMATS[format_][2], LENGTHS, NEW, group=4)


@pytest.mark.parametrize("target, splits, format_, heads, group, head_dim, page_size, options", [
    (CHIPS[(number + more) % 3], [{}, SPLITS][(number + more) % 2], *each) for more in range(2) for number, each in enumerate([
        ("bf16", 2, 4, 128, 16, {}),
        ("f32", 1, 3, 40, 3, {"causal": False, "mask": True}),
        ("f16", 1, 8, 192, 64, {"window": 20, "soft_cap": 3.0, "sinks": True}),
        ("fp8-scaled", 2, 2, 64, 4, {"value_dim": 32}),
        ("int8", 1, 1, 32, 16, {"chunk": 24}),
        ("nvfp4", 2, 4, 128, 16, {"window": 30}),
        ("mxfp4", 1, 2, 64, 4, {"sinks": True}),
        ("bf16", 2, 2, 64, 16, {"causal": False, "chunk": 36}),
    ])
])
def test_chips(target, splits, format_, heads, group, head_dim, page_size, options):
    """Each case on two chips, whole on one of them and split on the other."""
    params = make_params(format_, heads, head_dim, page_size)
    check(params, FORMATS[format_][2], FEW, FEW_NEW, group, target, **options, **splits)


@pytest.mark.parametrize("target, splits", [(CHIPS[0], {}), (CHIPS[1], SPLITS), (CHIPS[2], {})])
def test_latent_rows_on_chips(target, splits):
    params = make_params("bf16", 1, 576, mla=True)
    check(params, "bf16", (20,), (2,), 4, target, value_dim=512, **splits)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options(options):
    check(make_params(), "f32", LENGTHS, NEW, group=2, **options)


@pytest.mark.parametrize("dtype, zero_point, tokens", [("i4", "f16", 8), ("i8", None, 4)])
@pytest.mark.parametrize(
    "target, options", [("cpu", {}), (CHIPS[0], {}), (CHIPS[1], SPLITS), (CHIPS[2], {"window": 9, **SPLITS})]
)
def test_scales_of_channels(dtype, zero_point, tokens, target, options):
    """KIVI's keys, and 8-bit ones without zero points: whole groups of tokens."""
    config = KVCacheQuantizationConfig("f16", 1, zero_point, tokens)
    params = KVCacheParams(
        dtype, 2, 64, page_size=16, total_num_layers=LAYERS, kvcache_quant_config=config, enable_prefix_caching=False
    )
    check(params, "f32", (31, 8, 70), (1, 8, 2), 2, target, **options)


@pytest.mark.parametrize("format_", ["fp8", "fp8-scaled", "int8", "int8-static"])
@pytest.mark.parametrize(
    "mla, target, splits",
    [
        (False, "cpu", {}),
        (True, "cpu", {}),
        (False, CHIPS[2], SPLITS),
        (True, CHIPS[1], {}),
        (False, CHIPS[0], {"tile_rows": 16}),
        (False, CHIPS[1], {"tile_rows": 64}),
    ],
)
def test_static_scales(format_, mla, target, splits):
    options = {"value_dim": 48, "static_scales": True, **splits}
    params = make_params(format_, 1 if mla else 2, mla=mla)
    dtype = "bf16" if "tile_rows" in splits else FORMATS[format_][2]
    check(params, dtype, FEW, FEW_NEW, 3, target, **options)


@pytest.mark.parametrize(
    "format_, mla, dtype, out_dtype, target, splits",
    [
        ("fp8", False, "f8E4M3FN", "f8E4M3FN", "cpu", {}),
        ("fp8", False, "f8E4M3FN", "f8E4M3FN", CHIPS[0], {}),
        ("fp8", False, "f8E4M3FN", "f8E4M3FN", CHIPS[1], SPLITS),
        ("bf16", False, "f8E5M2", "bf16", CHIPS[2], {}),
        ("bf16", False, "f8E5M2", "bf16", CHIPS[0], SPLITS),
        ("bf16", False, "f8E5M2", "f8E4M3FN", CHIPS[1], {"tile_rows": 128}),
        ("f32", False, "f32", "f8E5M2", "cpu", {}),
        ("f32", False, "f32", "f8E5M2", CHIPS[2], SPLITS),
        ("bf16", True, "f8E4M3FN", "f8E4M3FN", "cpu", {}),
        ("bf16", True, "f8E4M3FN", "f8E4M3FN", CHIPS[0], {}),
        ("bf16", True, "f8E4M3FN", "f8E4M3FN", CHIPS[1], SPLITS),
    ],
)
def test_queries_and_outputs_of_fp8(format_, mla, dtype, out_dtype, target, splits):
    """A scale for each head or for all; outputs of the first head are too large."""
    params = make_params(format_, 1 if mla else 2, mla=mla)
    _, inputs = fill(params, FORMATS[format_][2], (37,), (2,))
    size = 48 if mla else 64
    options = {"value_dim": size, "out_dtype": out_dtype, "target": target, **splits}
    is_narrow, is_narrow_out = (name.startswith("f8") for name in (dtype, out_dtype))
    query_scale, out_scale = np.float32(0.3), np.array([1e-8, 0.01, 3, 0.5], np.float32)
    if dtype == "f8E5M2":
        query_scale = np.array([0.5, 2, 0.1, 0], np.float32)
    scales = {"query_scale": query_scale} if is_narrow else {}
    scales |= {"out_scale": out_scale} if is_narrow_out else {}
    group = 4 // params.n_kv_heads_per_device
    q, out, lse, _ = run(params, dtype, inputs, group, options, 0.125, **scales)
    keys, *values = dense(params, inputs, 39)
    values = (values[0] if values else keys)[0, ..., :size]
    factors = np.broadcast_to(query_scale if is_narrow else 1, 4)[:, None]
    wanted, wanted_lse = model.attend(q.astype(np.float64) * factors, keys[0], values, 0.125)
    wanted /= out_scale[:, None] if is_narrow_out else 1
    info = ml_dtypes.finfo(kvcache.dtypes.dtype(out_dtype))
    largest = float(info.max)
    assert not is_narrow_out or (np.abs(out[:, 0].astype(float)) == largest).mean() > 0.9
    wanted = np.clip(wanted, -largest, largest)
    least = float(info.smallest_subnormal)
    bound = float(info.eps) / 2 * np.abs(wanted) + least / 2 + 3e-6 * np.abs(wanted).max(-1, keepdims=True)
    if tile_type(params, dtype, target, options):  # probabilities of bf16
        bound = bound + 1.1 * 2**-9 * np.abs(values).max() / (out_scale[:, None] if is_narrow_out else 1)
    assert (np.abs(out.astype(np.float64) - wanted) <= bound * 1.01).all()
    assert close_lse(lse, wanted_lse)


@pytest.mark.parametrize(
    "heads, group, head_dim, page_size", [(1, 1, 8, 3), (3, 5, 40, 4), (1, 40, 96, 1), (2, 2, 256, 64)]
)
def test_shapes(heads, group, head_dim, page_size):
    check(make_params("f32", heads, head_dim, page_size), "f32", LENGTHS, NEW, group)


ODD_SIZES = [("int4", 34, 30), ("nvfp4", 66, 66), ("nvfp4", 288, 240), ("int4", 112, 18)]


@pytest.mark.parametrize(("case", "target"), spread(ODD_SIZES, with_cpu=True))
def test_lanes_have_whole_bytes(case, target):
    format_, head_dim, value_dim = case
    params = make_params(format_, 1, head_dim)
    check(params, FORMATS[format_][2], FEW, FEW_NEW, 2, target, value_dim=value_dim, tile_rows=0)


@pytest.mark.parametrize("format_, rank, rope", [("f32", 32, 16), ("bf16", 512, 64)])
def test_latent_rows(format_, rank, rope):
    params = make_params(format_, 1, rank + rope, mla=True)
    check(params, format_, LENGTHS, NEW, group=16, value_dim=rank)


@pytest.mark.slow
@pytest.mark.parametrize("targets", [["cpu"], CHIPS], ids=["cpu", "chips"])
@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.data())
def test_any_combination(targets, data):
    draw = data.draw
    target = draw(st.sampled_from(targets))
    splits = draw(st.sampled_from([{}, SPLITS])) if targets is CHIPS else {}
    format_ = draw(st.sampled_from(sorted(FORMATS)))
    head_dim = (FORMATS[format_][1] or 16) * draw(st.integers(1, 6 if FORMATS[format_][1] != 32 else 3))
    params = make_params(format_, draw(st.integers(1, 3)), head_dim, draw(st.integers(1, 20)))
    batch = draw(st.integers(1, 4))
    lengths = draw(st.lists(st.integers(0, 60), min_size=batch, max_size=batch))
    new = draw(st.lists(st.integers(1, 20), min_size=batch, max_size=batch))
    check(
        params, FORMATS[format_][2], lengths, new, draw(st.integers(1, 6)), target, **splits,
        causal=draw(st.booleans()),
        window=draw(st.none() | st.integers(1, 40)),
        chunk=draw(st.none() | st.integers(1, 40)),
        soft_cap=draw(st.none() | st.floats(1, 60)),
        sinks=draw(st.booleans()),
        mask=draw(st.booleans()),
        value_dim=draw(st.none() | st.just(head_dim // 2)),
    )


@pytest.mark.parametrize(
    "options",
    [{}, {"target": CHIPS[1]}, {"target": CHIPS[1], **SPLITS, "split_rows": 70}],
    ids=str,
)
def test_rows_that_see_nothing(options):
    """Checks zeros and -inf without tokens, and masks of more tokens than a word has bits."""
    params = make_params()
    _, inputs = fill(params, "f32", (0, 4), (70, 3))
    words = np.zeros((75, 3), np.int32)
    words[1, 2] = 1 << 5  # token 69 of the first sequence
    options = {"mask": True, "causal": False, **options}
    _, out, lse, _ = run(params, "f32", inputs, 2, options, 0.1, mask=words)
    assert not out[np.r_[0, 2:70]].any() and (lse[np.r_[0, 2:70]] == -np.inf).all()
    values = dense(params, inputs, 70)[1]
    np.testing.assert_array_equal(out[1], values[0, 69].astype(np.float32).repeat(2, axis=0))
    assert np.isfinite(lse[70:]).all()


@pytest.mark.parametrize("format_, options", [
    ("f32", {}), ("f32", {"soft_cap": 4.0, "sinks": True}), ("fp8-scaled", {}), ("int8", {"value_dim": 32}),
    ("int8-token", {}),
])
@pytest.mark.parametrize(
    "mla, target, splits",
    [(False, "cpu", {}), (True, "cpu", {}), (True, CHIPS[1], {}), (True, CHIPS[2], SPLITS)],
)
def test_sparse_rows(format_, options, mla, target, splits):
    heads, group = (1, 16) if mla else (2, 3)
    params = make_params(format_, heads, 64, page_size=4, mla=mla)
    options = {**({"value_dim": 48} if mla else {}), **options, **splits}
    check_sparse(params, FORMATS[format_][2], group, target, **options)


@pytest.mark.slow
@pytest.mark.parametrize("targets", [["cpu"], CHIPS], ids=["cpu", "chips"])
@settings(max_examples=5, deadline=None, derandomize=True)
@given(st.data())
def test_any_combination_of_sparse_rows(targets, data):
    draw = data.draw
    format_ = draw(st.sampled_from(sorted(FORMATS)))
    head_dim = max(FORMATS[format_][1] or 16, 16) * draw(st.integers(1, 3)) if FORMATS[format_][1] != 640 else 80
    mla = draw(st.booleans())
    params = make_params(format_, 1 if mla else draw(st.integers(1, 2)), head_dim, draw(st.integers(1, 20)), mla)
    more = draw(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 5)), min_size=1, max_size=3))
    splits = draw(st.sampled_from([{}, SPLITS])) if targets is CHIPS else {}
    check_sparse(
        params, FORMATS[format_][2], draw(st.integers(1, 20)), draw(st.sampled_from(targets)),
        (3, *(length for length, _ in more)), (1, *(new for _, new in more)),
        columns=draw(st.integers(2, 70)),
        soft_cap=draw(st.none() | st.floats(1, 60)),
        sinks=draw(st.booleans()),
        value_dim=head_dim // 2 if mla else draw(st.none() | st.just(head_dim // 2)),
        **splits,
    )


@pytest.mark.parametrize("format_, target, options", [
    ("f32", "cpu", {}),
    ("f32", CHIPS[1], {}),
    ("f32", CHIPS[1], SPLITS),
    ("f32", "cpu", {"causal": False}),
    ("bf16", CHIPS[0], {"causal": False, "sinks": "f16"}),
    ("bf16", CHIPS[2], {"causal": False, **SPLITS, "split_rows": 25}),
    ("fp8-scaled", CHIPS[1], {"causal": False, **SPLITS, "split_rows": 4, "tile_rows": 16}),
])
def test_lengths(format_, target, options):
    """The caller counts tokens: fewer or more than are pending, or an encoder's."""
    params, dtype = make_params(format_), FORMATS[format_][2]
    _, inputs = fill(params, dtype, (40, 30, 9), (1, 2, 1))
    roles = dense(params, inputs, 41)
    is_cross = options.get("causal") is False
    tokens = np.array([17, 0, 10] if is_cross else [17, 32, 10], np.int32)
    counts = (25, 2, 3) if is_cross else (1, 2, 1)
    inputs = kvcache.StepInputs.of(
        blocks=inputs.blocks, scales=inputs.scales, lut=inputs.lut,
        lengths=np.full(3, 10**6 if is_cross else 40, np.uint32),
        row_offsets=np.cumsum((0, *counts)).astype(np.uint32),
    )
    attend = kvcache.ops.attention(params, 4, dtype=dtype, target=target, kv_lengths=True, **options)
    rng = np.random.default_rng(3)
    q = rng.standard_normal((sum(counts), 4, 64)).astype(kvcache.dtypes.dtype(dtype))
    out, lse = np.full_like(q, 7), np.full(q.shape[:2], 7, np.float32)
    sinks = np.linspace(-2, 2, 4, dtype=np.float32) if options.get("sinks") else None
    if sinks is not None:
        sinks = sinks.astype(kvcache.dtypes.dtype(options["sinks"]))
    attend(inputs, LAYER, q, out=out, lse=lse, scale=0.1, sinks=sinks, kv_lengths=tokens)
    for b, row in enumerate(map(int, inputs.row_offsets[:-1])):
        rows, each = slice(row, row + counts[b]), roles[:, b, : tokens[b]]
        if not tokens[b]:
            assert not out[rows].any() and (lse[rows] == (-np.inf if sinks is None else sinks)).all()
            continue
        wanted, wanted_lse = model.attend(q[rows], *each, 0.1, not is_cross, sinks=sinks)
        assert close(out[rows], wanted, ROUNDING[dtype] * np.abs(each).max())
        assert close_lse(lse[rows], wanted_lse)


@pytest.mark.parametrize("target", ["cpu", CHIPS[1]])
@pytest.mark.parametrize(
    "fault, options, message",
    [
        ("page", {}, "page id"),
        ("table", {}, "lookup_table"),
        ("id", {"rows": True}, "page"),
        ("id", {"rows": True, "tile_rows": 16}, "page"),
        ("workspace", SPLITS, "number of bytes that attention needs of 'workspace'"),
        (None, {"rows": True, **SPLITS}, None),
    ],
)
def test_bounds_checks(target, fault, options, message):
    dtype = "bf16" if "tile_rows" in options else "f32"
    params = make_params(dtype)
    _, inputs = fill(params, dtype, (20, 30), (1, 1))
    attend = kvcache.ops.attention(params, 4, **options)
    program = kvcache.jit(attend.source, target=target, bounds_checks=True, opt_level=0)
    blocks, lengths, table, *sizes = inputs.collection(0)
    if fault == "page":
        table = table.copy()
        table[1, 0] = blocks.shape[0]
    elif fault == "table":
        table = table[:1]
    ids = np.array([[3, -1], [-2, blocks.shape[0] * 16 - (fault != "id")]], np.int32)
    size = attend.workspace_size(2) - (fault == "workspace") if options else 0
    workspace = (np.zeros(size, np.int8),) if "split_tokens" in options else ()
    q = np.ones((2, 4, 64), kvcache.dtypes.dtype(dtype))
    out, lse = np.zeros_like(q), np.zeros((2, 4), np.float32)
    more = (*workspace, ids) if options.get("rows") else workspace
    offsets = inputs.row_offsets.view(np.int32)
    arguments = blocks, lengths, table, *sizes, LAYER, q, offsets, out, lse, 0.1, *more
    if fault is None or (fault == "workspace" and target == "cpu"):
        return program.call("attention", *arguments)
    with pytest.raises(kvcache.CheckError, match=message):
        program.call("attention", *arguments)


@pytest.mark.parametrize("target", ["cpu", CHIPS[1]])
@pytest.mark.parametrize("splits", [{}, SPLITS], ids=["whole", "split"])
@pytest.mark.parametrize("new", [2, 20])
def test_unseen_values_do_not_matter(target, splits, new):
    """A NaN of a token that some rows do not see, among tokens that they see."""
    params = make_params()
    manager, inputs = fill(params, "f32", (14,), (new,))
    _, before, _, _ = run(params, "f32", inputs, 2, {"target": target, **splits}, 0.1)
    page = inputs.lut[0, 0]
    manager.blocks[0][page, 1, LAYER, 15] = np.nan
    _, after, _, _ = run(params, "f32", inputs, 2, {"target": target, **splits}, 0.1)
    np.testing.assert_array_equal(before[0], after[0])
    assert np.isnan(after[1:]).all()


@pytest.mark.parametrize("target", ["cpu", CHIPS[1]])
@pytest.mark.parametrize(
    "splits", [{}, {**SPLITS, "split_rows": 3}], ids=["whole", "split"]
)
@pytest.mark.parametrize("dtype", [True, "f16", "bf16"])
def test_sinks_alone(target, splits, dtype):
    """The logarithm of a row that sees nothing is its sink, also if that is -inf."""
    params = make_params()
    _, inputs = fill(params, "f32", (0,), (3,))
    sinks = np.array([-np.inf, -6e4 if dtype == "f16" else -1e35, 0, 7])
    sinks = sinks.astype(np.float32 if dtype is True else kvcache.dtypes.dtype(dtype))
    q = np.ones((3, 4, 64), np.float32)
    out, lse = np.ones_like(q), np.ones((3, 4), np.float32)
    attend = kvcache.ops.attention(
        params, 4, sinks=dtype, mask=True, target=target, **splits
    )
    mask = np.zeros((3, 1), np.int32)
    attend(inputs, LAYER, q, out=out, lse=lse, scale=0.1, sinks=sinks, mask=mask)
    assert not out.any()
    np.testing.assert_allclose(lse, sinks[None].repeat(3, 0).astype(np.float32), rtol=1e-6)
    other = sinks.astype(kvcache.dtypes.dtype("bf16" if dtype is True else "f32"))
    with pytest.raises(TypeError, match="'sinks'. expects an array of "):
        attend(inputs, LAYER, q, out=out, lse=lse, scale=0.1, sinks=other, mask=mask)


def test_sinks_are_of_a_dense_dtype():
    for sinks, error, message in (
        (1, TypeError, "expects 'sinks' to be True, False or a dtype, got 1"),
        (None, TypeError, "expects 'sinks' to be True, False or a dtype, got None"),
        ("f64", ValueError, "expects 'sinks' to be one of f32, f16, bf16, got f64"),
    ):
        with pytest.raises(error, match=message):
            kvcache.ops.attention(make_params(), 4, sinks=sinks)


def test_other_tokens_do_not_matter():
    """Bytes of other layers, pages and unwritten tokens may be anything."""
    params = make_params()
    manager, inputs = fill(params, "f32", (5,), (3,))
    _, before, _, _ = run(params, "f32", inputs, 2, {}, 0.1)
    page = inputs.lut[0, 0]
    blocks = manager.blocks[0]
    kept = blocks[page, :, LAYER, :8].copy()
    blocks[...] = np.nan
    blocks[page, :, LAYER, :8] = kept
    _, after, _, _ = run(params, "f32", inputs, 2, {}, 0.1)
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("soft_cap", [None, 5.0])
def test_nan_stays_nan(soft_cap):
    params = make_params()
    manager, inputs = fill(params, "f32", (5,), (3,))
    manager.blocks[0][inputs.lut[0, 0], 0, LAYER, 6] = np.nan
    _, out, _, _ = run(params, "f32", inputs, 2, {"soft_cap": soft_cap}, 0.1)
    assert np.isfinite(out[0]).all() and np.isnan(out[1:]).all()


def test_large_scores():
    params = make_params()
    _, inputs = fill(params, "f32", (30,), (1,))
    q, out, lse, _ = run(params, "f32", inputs, 2, {}, scale=1000.0)
    roles = dense(params, inputs, 31)
    wanted, _ = model.attend(q, *roles[:, 0], 1000.0)
    assert np.abs(out - wanted).max() < 0.02 and np.isfinite(lse).all()


@pytest.mark.parametrize("format_", ["f32", "bf16"])
@pytest.mark.parametrize("target", ["cpu", *CHIPS])
@pytest.mark.parametrize("splits", [{}, {**SPLITS, "split_tokens": 16}], ids=["whole", "split"])
def test_scores_below_any_maximum(format_, target, splits):
    """A softmax depends on differences of scores, also where all of them are below -1e30."""
    params = make_params(format_)
    manager, inputs = fill(params, format_, (69,), (1,))
    pages = manager.blocks[0][:, 0, LAYER]
    pages[...] = np.linspace(1, 2, pages.shape[1])[:, None, None]
    # Tensor cores take scores up to 2^24.
    size, tile_rows = (-90, {"tile_rows": 16}) if format_ == "bf16" and target != "cpu" else (-1e28, {})
    attend = kvcache.ops.attention(params, 4, dtype=format_, target=target, **splits, **tile_rows)
    q = np.full((1, 4, 64), size, kvcache.dtypes.dtype(format_))
    out, lse = np.zeros_like(q), np.zeros((1, 4), np.float32)
    attend(inputs, LAYER, q, out=out, lse=lse, scale=1000.0)
    roles = dense(params, inputs, 70)
    # The first tokens of pages have the largest score, and the others none of the weight.
    wanted = roles[1, 0, ::16].mean(0).repeat(2, axis=0)
    assert close(out[0], wanted, ROUNDING[format_] * np.abs(roles[1]).max())
    np.testing.assert_allclose(lse, 64e3 * float(q[0, 0, 0]), rtol=1e-6)


WINDOW, CHUNK = {"window": 31}, {"chunk": 40}
BOTH_WAYS = {"window": 40, "causal": False, "value_dim": 48, **SPLITS}


@pytest.mark.parametrize(
    "target, format_, options, tile_rows, page_size, mla",
    [
        (CHIPS[0], "bf16", WINDOW, 16, 64, False),
        (CHIPS[0], "f16", CHUNK, 64, 48, False),
        (CHIPS[0], "fp8-token", BOTH_WAYS, 16, 64, False),
        (CHIPS[0], "int4", CHUNK, 32, 64, True),
        (CHIPS[1], "bf16", {**BOTH_WAYS, "value_dim": 64, "swap_operands": True}, 16, 64, False),
        (CHIPS[1], "bf16", WINDOW, 64, 48, False),
        (CHIPS[1], "int8-static", CHUNK, 16, 64, False),
        (CHIPS[1], "fp8-token", WINDOW, 32, 64, True),
        (CHIPS[1], "bf16", BOTH_WAYS, 32, 48, True),
        (CHIPS[2], "f16", BOTH_WAYS, 16, 48, False),
        (CHIPS[2], "bf16", CHUNK, 64, 64, False),
        (CHIPS[2], "nvfp4", WINDOW, 128, 64, False),
        (CHIPS[2], "fp8-token", CHUNK, 32, 48, True),
    ],
    ids=str,
)
def test_values_before_the_first_seen_token(target, format_, options, tile_rows, page_size, mla):
    """Tokens that no row of a thread block sees may be anything, in a page with tokens that are seen."""
    params = make_params(format_, 1 if mla else 2, page_size=page_size, mla=mla)
    dtype = "bf16" if format_ == "int8-static" else FORMATS[format_][2]
    more = {"value_dim": 48, **options, "target": target, "tile_rows": tile_rows}
    first = 31 if more.get("causal") is False else 40
    results = []
    for fault in (None, np.nan, np.inf):
        manager, inputs = fill(params, dtype, (70,), (1,))
        for token in range(first if fault else 0):
            place = inputs.lut[0, token // page_size], slice(None), LAYER, token % page_size
            for tensor in manager.scales or manager.blocks:
                tensor[place] = fault if tensor.dtype != np.int8 else 127
        results.append(run(params, dtype, inputs, 4, more, 0.1)[1:3])
    assert np.isfinite(results[0][0].astype(np.float32)).all()
    for out, lse in results[1:]:
        np.testing.assert_array_equal(out, results[0][0])
        np.testing.assert_array_equal(lse, results[0][1])
