"""Tests of the errors of kvcache.ops.attention."""

import numpy as np
import pytest
from attention_checks import LAYER, fill, make_params

import kvcache


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (
            {"query_heads": 3},
            ValueError,
            r"to be a multiple of the cache's heads \(2\), got 3",
        ),
        ({"query_heads": 0}, ValueError, "'query_heads' to be positive, got 0"),
        ({"window": 0}, ValueError, "'window' to be positive, got 0"),
        ({"soft_cap": -1.0}, ValueError, "'soft_cap' to be positive and finite, got -1.0"),
        ({"causal": 1}, TypeError, "'causal' to be True or False, got 1"),
        ({"value_dim": 65}, ValueError, r"at most 'head_dim' \(64\), got 65"),
        (
            {"rows": True, "window": 3},
            ValueError,
            "no 'window', 'chunk', 'mask' or 'ranges' with 'rows'",
        ),
        (
            {"rows": True, "chunk": 3},
            ValueError,
            "no 'window', 'chunk', 'mask' or 'ranges' with 'rows'",
        ),
        (
            {"rows": True, "kv_lengths": True},
            ValueError,
            "no 'kv_lengths' with 'rows', which are the tokens seen",
        ),
        ({"kv_lengths": 1}, TypeError, "'kv_lengths' to be True or False, got 1"),
        ({"chunk": 0}, ValueError, "'chunk' to be positive, got 0"),
        (
            {"tile_rows": 48},
            ValueError,
            r"'tile_rows' to be one of \(0, 16, 32, 64, 128, 256\), got 48",
        ),
        (
            {"tile_rows": 64, "swap_operands": True},
            ValueError,
            "'tile_rows' to be 16 or 32 with 'swap_operands', got 64",
        ),
        ({"swap_operands": 1}, TypeError, "'swap_operands' to be True or False, got 1"),
        (
            {"l2_hint": "first"},
            ValueError,
            r"'l2_hint' to be one of \('evict_first', .*, got 'first'",
        ),
        (
            {"scheduled_blocks": 8},
            ValueError,
            "'scheduled_blocks' only with 'split_tokens'",
        ),
        (
            {"scheduled_blocks": -1, "split_tokens": 4},
            ValueError,
            "'scheduled_blocks' to be from 0 to 1048576, got -1",
        ),
        ({"mask": 1}, TypeError, "'mask' to be a function, True or False, got 1"),
        ({"split_tokens": 0}, ValueError, "'split_tokens' to be positive, got 0"),
        (
            {"split_tokens": 4, "split_rows": -1},
            ValueError,
            "'split_rows' to be positive, got -1",
        ),
        ({"max_splits": 1.5}, TypeError, "'max_splits'"),
        (
            {"dtype": "f64"},
            ValueError,
            "'dtype' to be one of f32, f16, bf16, f8E4M3FN, f8E5M2, got f64",
        ),
    ],
)
def test_wrong_options(arguments, error, message):
    with pytest.raises(error, match=message):
        kvcache.ops.attention(make_params(), **{"query_heads": 4, **arguments})


def test_wrong_calls():
    params = make_params()
    _, inputs = fill(params, "f32", (5,), (1,))
    q = np.zeros((1, 4, 64), np.float32)
    attend = kvcache.ops.attention(params, 4)
    with pytest.raises(ValueError, match="made with sinks=False"):
        attend(inputs, 0, q, out=q.copy(), scale=1, sinks=np.zeros(4, np.float32))
    with pytest.raises(ValueError, match="made with sinks=True"):
        kvcache.ops.attention(params, 4, sinks=True)(inputs, 0, q, out=q.copy(), scale=1)
    for name in ("mask", "rows"):
        with pytest.raises(
            ValueError, match=f"made with {name}=False: expects no '{name}'"
        ):
            attend(
                inputs, 0, q, out=q.copy(), scale=1, **{name: np.zeros((1, 1), np.int32)}
            )
    workspace = np.zeros(99, np.int8)
    with pytest.raises(ValueError, match="expects no 'workspace', as the operation was made without it"):
        attend(inputs, 0, q, out=q.copy(), scale=1, workspace=workspace)
    split = kvcache.ops.attention(params, 4, split_tokens=64)
    assert split.workspace_size(3) == 3 * 4 * 32 * (64 + 2) * 4 + 16
    message = f"at least {split.workspace_size(1)} bytes for 1 sequences, got 99"
    with pytest.raises(ValueError, match=message):
        split(inputs, 0, q, out=q.copy(), scale=1, workspace=workspace)
    with pytest.raises(ValueError, match="'out'"):
        attend(inputs, 0, q, out=q[..., :32].copy(), scale=1)
    with pytest.raises(ValueError, match="expects no 'key_scale', as the operation was made without it"):
        attend(inputs, 0, q, out=q.copy(), scale=1, key_scale=2)
    with pytest.raises(ValueError, match="or of fp8 or i8, for 'static_scales', got f32"):
        kvcache.ops.attention(params, 4, static_scales=True)
    for name in ("query_scale", "out_scale"):
        with pytest.raises(ValueError, match=f"expects '{name}' only for fp8"):
            attend(inputs, 0, q, out=q.copy(), scale=1, **{name: 2})
    with pytest.raises(ValueError, match="'out_dtype' to be one of .*, got i8"):
        kvcache.ops.attention(params, 4, out_dtype="i8")
    with pytest.raises(ValueError, match="a latent cache needs 'value_dim'"):
        kvcache.ops.attention(make_params(heads=1, mla=True), 4)


@pytest.mark.parametrize(
    "causal, lengths, message",
    [
        (
            True,
            [5, 385],
            "between 0 and 384, the tokens of the table's pages, got 385 for sequence 1",
        ),
        (
            False,
            [0, 385],
            "between 0 and 384, the tokens of the table's pages, got 385 for",
        ),
        (False, [-1, 3], "between 0 and 384, the tokens of the table's pages, got -1 for"),
        (False, [3], r"a number for each of 2 sequences, got an array of shape \(1,\)"),
        (False, None, "made with kv_lengths=True: expects 'kv_lengths'"),
    ],
)
def test_wrong_lengths(causal, lengths, message):
    params = make_params()
    _, inputs = fill(params, "f32", (0, 3), (1, 5))
    attend = kvcache.ops.attention(params, 4, causal=causal, kv_lengths=True)
    q = np.ones((6, 4, 64), np.float32)
    given = lengths if lengths is None else np.array(lengths, np.int32)
    with pytest.raises(ValueError, match=message):
        attend(inputs, LAYER, q, out=np.zeros_like(q), scale=0.1, kv_lengths=given)
