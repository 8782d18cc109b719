"""Attention whose rows and tokens end at the edge of a tile, or one after it."""

import pytest
from attention_checks import CHIPS, SPLITS, check, make_params


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
