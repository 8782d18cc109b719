"""Tests of attention on a CPU by products of bf16: accuracy, unseen values, bits, and the choice."""

import dataclasses
import itertools
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from attention_checks import make_params
from host_mma import use_mma

import kvcache
from kvcache import _native
from kvcache.execution import matrix, options

KINDS = ["fma", "dot", "tiles"]
# More than a tile of 256 tokens has.
TOKENS = 272
SCALE = 0.125
# The relative error of a rounded probability, and of sums in f32.
UNIT, SUMS = 2.0**-8, 1e-5


def make_sequence(params, cached, new, like=None):
    """One sequence with random elements, or with those of another manager."""
    manager = kvcache.PagedKVCacheManager(params, max_batch_size=1, max_seq_len=512, num_pages=40)
    manager.claim(0, np.arange(cached))
    if cached:
        manager.step([0])
    manager.grow(0, np.arange(new))
    inputs = manager.inputs([0])
    (blocks,) = manager.blocks
    if like is None:
        rng = np.random.default_rng(2)
        blocks[...] = rng.standard_normal(blocks.shape).astype(blocks.dtype)
    else:
        other, table = like
        tokens = np.arange(cached + new)
        pages, offsets = divmod(tokens, other.params.page_size)
        elements = other.blocks[0][table.lut[0, pages], :, :, offsets]
        pages, offsets = divmod(tokens, params.page_size)
        blocks[inputs.lut[0, pages], :, :, offsets] = elements
    return manager, inputs


def make_operation(params, heads, mma, **options):
    return use_mma(kvcache.ops.attention(params, heads, dtype="bf16", out_dtype="f32"), mma, **options)


def attend(operation, inputs, q, value_dim=64):
    out = np.full((*q.shape[:2], value_dim), 7, np.float32)
    operation(inputs, 1, q, out=out, scale=SCALE)
    return out


def draw_queries(rows, heads):
    rng = np.random.default_rng(3)
    return (2 * rng.standard_normal((rows, heads, 64))).astype(kvcache.dtypes.dtype("bf16"))


@pytest.mark.parametrize("new, heads", [(90, 4), (2, 4), (1, 1), (1, 2), (1, 8)])
@pytest.mark.parametrize("mma", KINDS)
def test_rows_have_bounded_error(mma, new, heads):
    """The error is at most the mean of |v| by the probabilities, times the rounding of one.

    Tiles multiply many rows only.
    """
    params = make_params("bf16", 1, 64, 16)
    cached = TOKENS - new
    manager, inputs = make_sequence(params, cached, new)
    q = draw_queries(new, heads)
    out = attend(make_operation(params, heads, mma), inputs, q)
    pages = manager.blocks[0][inputs.lut[0, : TOKENS // 16]]
    keys, values = pages[:, :, 1, :, 0].swapaxes(0, 1).reshape(2, TOKENS, 64).astype(np.float64)
    scores = SCALE * np.einsum("nhd,td->hnt", q.astype(np.float64), keys)
    scores = np.where(np.arange(TOKENS) <= cached + np.arange(new)[:, None], scores, -np.inf)
    probs = np.exp(scores - scores.max(-1, keepdims=True))
    probs /= probs.sum(-1, keepdims=True)
    error = np.abs(out - np.einsum("hnt,td->nhd", probs, values))
    mean = np.einsum("hnt,td->nhd", probs, np.abs(values))
    is_rounded = mma == "dot" or (mma == "tiles" and new > 8)
    assert (error <= (UNIT * is_rounded + SUMS) * mean).all()
    assert (error > SUMS * mean).any() == is_rounded


@pytest.mark.parametrize("max_logits", [False, True], ids=["", "max_logits"])
@pytest.mark.parametrize("slope", [-0.1, 0.01, 0.1])
@pytest.mark.parametrize("mma", KINDS)
def test_scores_that_grow(mma, slope, max_logits):
    """Accumulators of several tiles have one maximum, or are rescaled; ``max_logits`` is the largest score."""
    params = make_params("bf16", 1, 64, 16)
    new, total = 40, 500
    manager, inputs = make_sequence(params, total - new, new)
    pages, offsets = divmod(np.arange(total), params.page_size)
    place = inputs.lut[0, pages], slice(None), 1, offsets, 0
    tokens = manager.blocks[0][place]
    tokens[:, 0] = 0
    tokens[:, 0, 0] = slope * np.arange(total)
    manager.blocks[0][place] = tokens
    q = np.full((new, 4, 64), 1 / SCALE, kvcache.dtypes.dtype("bf16"))
    operation = use_mma(kvcache.ops.attention(params, 4, dtype="bf16", out_dtype="f32", max_logits=max_logits), mma)
    out, largest = np.empty(q.shape, np.float32), np.empty(q.shape[:2], np.float32)
    operation(inputs, 1, q, out=out, scale=SCALE, **({"max_logits": largest} if max_logits else {}))
    scores, values = tokens[:, 0, 0].astype(np.float64), tokens[:, 1].astype(np.float64)
    for row, last in enumerate(range(total - new, total)):
        probs = np.exp(scores[: last + 1] - scores[: last + 1].max())
        probs /= probs.sum()
        error = np.abs(out[row] - probs @ values[: last + 1])
        assert (error <= (UNIT + SUMS) * (probs @ np.abs(values[: last + 1]))).all()
        if max_logits:
            assert np.allclose(largest[row], scores[: last + 1].max(), rtol=1e-6, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("role", [0, 1], ids=["key", "value"])
@pytest.mark.parametrize("mma", KINDS)
@pytest.mark.parametrize("new", [90, 2])
def test_unseen_token_changes_no_bits(new, mma, role, number):
    """Rows before an infinite or NaN element have the bits of a finite one; later rows have it."""
    params = make_params("bf16", 1, 64, 16)
    manager, inputs = make_sequence(params, TOKENS - new, new)
    operation, q = make_operation(params, 4, mma), draw_queries(new, 4)
    finite = attend(operation, inputs, q)
    first = new // 2  # the row of that token
    page, offset = divmod(TOKENS - new + first, params.page_size)
    manager.blocks[0][inputs.lut[0, page], role, 1, offset, 0, 5] = number
    out = attend(operation, inputs, q)
    assert (out[:first].view(np.int32) == finite[:first].view(np.int32)).all()
    if role:
        assert np.isclose(out[first:, :, 5], number, equal_nan=True).all()
        others = np.delete(out[first:], 5, axis=2), np.delete(finite[first:], 5, axis=2)
        assert (others[0].view(np.int32) == others[1].view(np.int32)).all()
    else:
        assert (out[first:] != finite[first:]).any(axis=(1, 2)).all()


@pytest.mark.parametrize("score", [None, lambda s, sequence, head, query, key: s], ids=["plain", "region"])
@pytest.mark.parametrize("mma", KINDS)
@pytest.mark.parametrize("new", [90, 2])
def test_scores_of_minus_infinity_count_as_no_token(new, mma, score):
    """A row whose maximum is not a number has no number as its result."""
    params = make_params("bf16", 1, 64, 16)
    operation = use_mma(kvcache.ops.attention(params, 4, dtype="bf16", out_dtype="f32", score=score), mma)
    manager, inputs = make_sequence(params, TOKENS - new, new)
    manager.blocks[0][:, 0] = -np.inf
    q = np.abs(draw_queries(new, 4))
    q[0, 1] = np.nan
    out, lse = np.ones((new, 4, 64), np.float32), np.ones((new, 4), np.float32)
    operation(inputs, 1, q, out=out, lse=lse, scale=SCALE)
    assert np.isnan(out[0, 1]).all() and np.isnan(lse[0, 1])
    out[0, 1], lse[0, 1] = 0, -np.inf
    assert (out == 0).all() and (lse == -np.inf).all()


@pytest.mark.parametrize("mma", KINDS)
def test_chunks_of_a_prompt_have_its_bits(mma):
    params = make_params("bf16", 1, 64, 16)
    whole = make_sequence(params, 0, 300)
    operation, q = make_operation(params, 4, mma), draw_queries(300, 4)
    wanted = attend(operation, whole[1], q)
    for begin, end in ((0, 7), (7, 100), (100, 103), (103, 270), (270, 300)):
        _, inputs = make_sequence(params, begin, end - begin, whole)
        out = attend(operation, inputs, q[begin:end])
        assert (out.view(np.int32) == wanted[begin:end].view(np.int32)).all()


@pytest.mark.long
@pytest.mark.parametrize(
    "limit", [{"window": 50}, {"mask": lambda sequence, head, query, key: query - key < 50}], ids=["window", "mask"]
)
@pytest.mark.parametrize("mma", ["fma", "dot"])
def test_few_rows_of_late_tokens_have_the_bits_of_each(mma, limit):
    """The windows of two rows begin in one tile, whatever the pages are. No page before them is read."""
    data, q = make_sequence(make_params("bf16", 1, 64, 16), 78, 2), draw_queries(2, 4)
    results = []
    for page_size, rows in itertools.product((16, 8, 24), (slice(0, 2), slice(0, 1), slice(1, 2))):
        params = make_params("bf16", 1, 64, page_size)
        operation = kvcache.ops.attention(params, 4, dtype="bf16", out_dtype="f32", **limit)
        _, inputs = make_sequence(params, 78 + rows.start, rows.stop - rows.start, data)
        inputs.lut[0, : (78 + rows.start - 49) // page_size] = 1 << 20
        out = attend(use_mma(operation, mma, bounds_checks=True), inputs, q[rows])
        results.append((rows, out))
    for rows, out in results:
        assert (out.view(np.int32) == results[0][1][rows].view(np.int32)).all()


@pytest.mark.long
@pytest.mark.parametrize("mma", KINDS)
def test_bounds_checks_change_no_bits(mma):
    params = make_params("bf16", 1, 64, 16)
    manager, inputs = make_sequence(params, 70, 90)
    plain, checked = make_operation(params, 4, mma), make_operation(params, 4, mma, bounds_checks=True)
    q = draw_queries(90, 4)
    assert (attend(plain, inputs, q).view(np.int32) == attend(checked, inputs, q).view(np.int32)).all()
    wrong = inputs.lut.copy()
    wrong[0, 9] = len(manager.blocks[0])
    with pytest.raises(kvcache.CheckError, match="page id"):
        attend(checked, dataclasses.replace(inputs, lut=wrong), q)


AVX512 = "+avx512f+avx512bw+avx512vl+fma"


@pytest.mark.parametrize(
    "features, has_permission, opt_level, chosen",
    [
        ("+avx2+fma", True, 2, "fma"),
        (AVX512, True, 2, "fma"),
        (AVX512 + "+avx512bf16", True, 2, "dot"),
        (AVX512 + "+avx512bf16", True, 0, "dot"),
        (AVX512 + "+avx512bf16+avx512fp16", True, 2, "fma"),
        (AVX512 + "+avx512bf16+avx512fp16+amx-tile+amx-bf16", True, 2, "amx"),
        (AVX512 + "+avx512bf16+avx512fp16+amx-tile+amx-bf16", False, 2, "fma"),
        (AVX512 + "+avx512bf16+avx512fp16+amx-tile+amx-bf16", True, 0, "fma"),
        ("+avx2+fma+amx-tile+amx-bf16", True, 2, "fma"),
    ],
)
def test_choice_follows_features_and_permission(
    monkeypatch, features, has_permission, opt_level, chosen
):
    fake = SimpleNamespace(request_tiles=lambda: has_permission)
    monkeypatch.setattr(_native, "extension", lambda: fake)
    assert matrix.choose_mma(set(features.split("+")), opt_level) == chosen


def test_choice_follows_a_limit_that_is_set_later(monkeypatch):
    """No level has products of bf16, whatever was chosen before."""
    options.choose_host_level(2)
    monkeypatch.setenv("KVCACHE_CPU", "x86-64-v4")
    assert options.choose_host_level(2).mma == "fma"


def test_permission_for_tiles_needs_tiles():
    """At any level in KVCACHE_CPU, which limits what the compiler uses."""
    extension = _native.extension()
    if "amx_tile" not in Path("/proc/cpuinfo").read_text():
        assert not extension.request_tiles()
    assert extension.request_tiles() == extension.request_tiles()
