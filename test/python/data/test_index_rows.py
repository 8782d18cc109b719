"""Tests of index_rows on data, beside the pair of index_scores and top_rows."""

import ml_dtypes
import numpy as np
import pytest
from devices import TARGETS as CHIPS
from devices import spread
from index_model import CPU, INDEXER, MXFP4, PAGE, draw_queries, make_params, make_step, run, score

import kvcache
from kvcache import KVCacheParams


@pytest.mark.parametrize("target", [CPU, CHIPS[2]])
def test_scored_and_selected_tokens_are_those_of_a_sort(target):
    """The three steps of DeepSeek's sparse attention, against a sort of the model's scores."""
    params, heads = make_params("fp8-token"), 8
    step, keys = make_step(params, (90,), (3,))
    q = np.random.default_rng(2).integers(-3, 4, (3, heads, 128)).astype(ml_dtypes.float8_e4m3fn)
    weights = np.random.default_rng(3).integers(-3, 4, (3, heads)).astype(np.float32)
    operation = kvcache.ops.index_scores(params, heads, dtype="f8E4M3FN", target=target, **INDEXER)
    scores = run(operation, step, q, weights, 93, None)
    out, tokens = np.empty((2, 3, 32), np.int32)
    kvcache.ops.top_rows(params, 32, target=target)(step, scores, out=out, tokens=tokens)
    expected = score(step, keys, q, relu=True, sum_heads=True, weights=weights, columns=93)
    for row in range(3):
        best = np.argsort(-expected[row, : 91 + row], kind="stable")[:32]
        np.testing.assert_array_equal(tokens[row], np.sort(best))


# Options of both operations: plain, of blocks, and of entries of four tokens.
PAIRS = {
    "tokens": ({}, {}),
    "blocks": ({"block": 8}, {"expand": True, "first": 1, "last": 1}),
    "entries": ({"width": 4}, {"whole": True, "expand": True, "tail": True}),
    "splits": ({}, {"splits": 3}),
    "threads": ({"block_threads": 64}, {"block_threads": 64}),
    "mxfp4": ({}, {}),
}


@pytest.mark.long
@pytest.mark.parametrize(("name", "target"), spread(PAIRS, with_cpu=True))
def test_index_rows_are_those_of_the_pair(name, target):
    """Workspaces and lengths are those of the two calls."""
    score_options, select_options = PAIRS[name]
    width = score_options.get("width", 1)
    params, heads, k = make_params("fp8-token"), 16, 8
    attended = KVCacheParams("f32", 1, 32, page_size=PAGE, total_num_layers=1, is_mla=True)
    lengths, new = np.array([90, 17], np.int32), (3, 1)
    index_step, _ = make_step(params, lengths // width, new)
    step, _ = make_step(attended, lengths, new, seed=1)
    rng = np.random.default_rng(2)
    dtype = MXFP4 if name == "mxfp4" else "f8E4M3FN"
    q, q_scales, _ = draw_queries(rng, dtype, (4, heads, 128))
    extra = {} if q_scales is None else {"q_scales": q_scales}
    weights = rng.integers(-3, 4, (4, heads)).astype(np.float32)
    given = {"dtype": dtype, "relu": True, "weights": True, "target": target}
    score = kvcache.ops.index_scores(params, heads, sum_heads=True, **score_options, **given)
    candidate = width * score_options.get("block", 1)
    choose = kvcache.ops.top_rows(attended, k, width=candidate, **select_options, target=target)
    both = kvcache.ops.index_rows(params, heads, attended, k, **{**score_options, **select_options}, **given)
    columns = k * (candidate if "expand" in select_options else 1) + (width - 1 if "tail" in select_options else 0)
    for tokens_before in [lengths] if width > 1 else [lengths, None]:
        scores, found_scores = np.full((2, 4, 93), np.nan, np.float32)
        (out, tokens), (found, found_tokens) = np.full((2, 2, 4, columns), 7, np.int32)
        workspace = {"workspace": np.empty((4, 3, 2 * k), np.int32)} if name == "splits" else {}
        score(index_step, 0, q, weights=weights, out=scores, lengths=tokens_before, **extra)
        choose(step, scores, out=out, tokens=tokens, lengths=tokens_before, **workspace)
        outputs = {"scores": found_scores, "out": found, "tokens": found_tokens, **workspace}
        both(index_step, 0, q, step, weights=weights, lengths=tokens_before, **outputs, **extra)
        np.testing.assert_array_equal(found_scores, scores)
        np.testing.assert_array_equal(found, out)
        np.testing.assert_array_equal(found_tokens, tokens)


def test_index_rows_of_wrong_options_and_sizes():
    params, attended = make_params("bf16", 32), make_params("f32", 32)
    with pytest.raises(ValueError, match="expects 'whole' with 'width', whose last group may be open"):
        kvcache.ops.index_rows(params, 2, attended, 4, width=2)
    operation = kvcache.ops.index_rows(params, 2, attended, 4, dtype="f32")
    index_step, _ = make_step(params, (20,), (1,))
    step, _ = make_step(attended, (20,), (1,))
    q, out = np.zeros((1, 2, 32), np.float32), np.zeros((1, 4), np.int32)
    with pytest.raises(ValueError, match="'scores' to have a column for each of 21 candidates of sequence 0, got 20"):
        operation(index_step, 0, q, step, scores=np.zeros((1, 20), np.float32), out=out)
    with pytest.raises(ValueError, match=r"'out' to have 4 columns for 'k' \(4\), got 3"):
        operation(index_step, 0, q, step, scores=np.zeros((1, 21), np.float32), out=out[:, :3])
    scaled, _ = make_step(make_params("fp8-token", 32), (20,), (1,))
    with pytest.raises(ValueError, match="expects 'index_inputs' with 0 tensors of scales, got 1"):
        operation(scaled, 0, q, step, scores=np.zeros((1, 21), np.float32), out=out)
    with pytest.raises(ValueError, match="expects no 'weights'"):
        operation(index_step, 0, q, step, weights=q[0], scores=np.zeros((1, 21), np.float32), out=out)
    q, out, scores = np.zeros((4, 2, 32), np.float32), np.zeros((4, 4), np.int32), np.zeros((4, 50), np.float32)
    for others, lengths, message in (
        (((20, 3), (1, 1)), None, "'index_inputs' to have the 1 sequences of 'inputs', got 2"),
        (((19,), (2,)), None, "'index_inputs' to have the 1 new tokens of sequence 0 of 'inputs', got 2"),
        (((3,), (1,)), None, "'index_inputs' to have the 21 tokens of sequence 0 of 'inputs', got 4"),
        (((3,), (1,)), 20, "sequence 0 to have at most 16 tokens, those of the 1 pages of its row of 'lut', got 21"),
        (((40,), (1,)), 40, "sequence 0 to have at most 32 tokens, those of the 2 pages of its row of 'lut', got 41"),
    ):
        other, _ = make_step(params, *others)
        given = None if lengths is None else np.array([lengths], np.int32)
        with pytest.raises(ValueError, match=message):
            operation(other, 0, q, step, scores=scores, out=out, lengths=given)


@pytest.mark.parametrize(("tokens", "columns"), [(6, 2), (8, 2), (9, 3)])
def test_scores_of_an_open_block_need_a_column(tokens, columns):
    """Only whole blocks are candidates, and all are scored."""
    params = make_params("f32", 32)
    step, _ = make_step(params, (tokens - 1,), (1,))
    operation = kvcache.ops.index_rows(params, 2, params, 2, block=4, whole=True, dtype="f32", bounds_checks=True)
    q, out = np.ones((1, 2, 32), np.float32), np.zeros((1, 2), np.int32)
    operation(step, 0, q, step, scores=np.zeros((1, columns), np.float32), out=out)
    with pytest.raises(ValueError, match=f"'scores' to have a column for each of {columns} candidates of sequence 0"):
        operation(step, 0, q, step, scores=np.zeros((1, columns - 1), np.float32), out=out)
