"""Attention at the edges of tiles and of numbers: rows and tokens that end there, and scores of -inf."""

import numpy as np
import pytest
from attention_checks import CHIPS, SPLITS, check, fill, make_params

import kvcache


@pytest.mark.parametrize("past", [0, 1])
@pytest.mark.parametrize(
    "target, stored, options",
    [
        (CHIPS[0], "bf16", {"tile_rows": 16}),
        (CHIPS[0], "fp8", {"tile_rows": 32}),
        (CHIPS[1], "bf16", {}),
        (CHIPS[1], "bf16", {"tile_rows": 64, **SPLITS}),
        (CHIPS[1], "bf16", {"tile_rows": 32, "swap_operands": True}),
        ("emulator:sm_100a", "bf16", {"tile_rows": 128}),
    ],
)
def test_rows_and_tokens_end_at_an_edge(target, stored, options, past):
    """The last block and the last tile are full, or one row and one token more. No rows follow those of the batch."""
    params = make_params(stored, 1, 64, 16)
    check(params, "bf16", (64, 96), (64, 32 + past), 4, target, extra=0, **options)


@pytest.mark.parametrize("new", [1, 20])
@pytest.mark.parametrize(
    "target, options",
    [
        ("cpu", {}),
        (CHIPS[0], {}),
        (CHIPS[1], {}),
        (CHIPS[1], {"tile_rows": 64, **SPLITS}),
        ("emulator:sm_100a", {}),
    ],
)
def test_scores_of_minus_infinity_count_as_no_token(target, options, new):
    """Query rows whose scores are all -inf have zeros, and those of another sequence have numbers."""
    params = make_params("bf16", 2, 64, 16)
    manager, inputs = fill(params, "bf16", (40, 40), (new, new))
    manager.blocks[0][inputs.lut[0, : -(-(40 + new) // 16)], 0] = -np.inf
    q = np.abs(np.random.default_rng(1).standard_normal((2 * new, 4, 64))).astype(kvcache.dtypes.dtype("bf16"))
    out, lse = np.ones_like(q), np.ones((2 * new, 4), np.float32)
    attend = kvcache.ops.attention(params, 4, dtype="bf16", target=target, **options)
    attend(inputs, 1, q, out=out, lse=lse, scale=0.125)
    assert (out[:new] == 0).all() and (lse[:new] == -np.inf).all()
    assert np.isfinite(out[new:].astype(np.float32)).all() and np.isfinite(lse[new:]).all()
