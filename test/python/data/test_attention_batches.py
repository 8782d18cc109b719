"""A sequence has the same bits of attention alone and at any place in a batch."""

import ml_dtypes
import numpy as np
import pytest
from attention_checks import CHIPS, LAYER, SPLITS, fill, make_params
from devices import spread

import kvcache

BATCHED = {
    "16": {"tile_rows": 16},
    "64": {"tile_rows": 64},
    "split": {"tile_rows": 16, **SPLITS, "split_rows": 40},
    "scheduled": {"tile_rows": 16, **SPLITS, "split_rows": 40, "scheduled_blocks": 3},
    "sparse": {"tile_rows": 16, "rows": True},
    "sparse-split": {"tile_rows": 16, "rows": True, **SPLITS, "split_rows": 40},
    "dequantized": {"tile_rows": 16, **SPLITS, "split_rows": 40, "format": "fp8-scaled"},
    "dequantized-int4": {"tile_rows": 16, **SPLITS, "split_rows": 40, "format": "int4-halves"},
    "roles": {"config": kvcache.AttentionConfig(schedule="roles")},
}


@pytest.mark.parametrize(
    ("case", "target"),
    [*spread([case for case in [*BATCHED, *BATCHED] if case != "roles"]), ("roles", CHIPS[2])],
)
def test_a_sequence_alone_and_in_a_batch(case, target):
    """The tiles of a sequence begin at its first row, at any place in the batch."""
    options = dict(BATCHED[case])
    params = make_params(options.pop("format", "bf16"))
    attend = kvcache.ops.attention(params, 8, target=target, dtype="bf16", **options)
    results = []
    for lengths, new in [((33,), (37,)), ((33, 7, 1), (37, 3, 30))]:
        manager, inputs = fill(params, "bf16", lengths, new)
        for last in (False, True):
            requests = inputs.requests[::-1] if last else inputs.requests
            batch = manager.inputs(requests)
            first = int(batch.row_offsets[list(requests).index(0)])
            rows_ = np.zeros((len(batch.tokens), 8, 64), ml_dtypes.bfloat16)
            rows_[first : first + 37] = np.random.default_rng(3).standard_normal(
                (37, 8, 64)
            )
            out, lse = np.zeros_like(rows_), np.zeros(rows_.shape[:2], np.float32)
            arrays = {}
            if options.get("rows"):
                table = batch.lut[list(requests).index(0), :4].astype(np.int32)
                ids = (table[:, None] * 16 + np.arange(16, dtype=np.int32)).reshape(1, -1)
                arrays["rows"] = ids.repeat(len(rows_), 0)
            attend(batch, LAYER, rows_, out=out, lse=lse, scale=0.1, **arrays)
            results.append(
                out[first : first + 37].tobytes() + lse[first : first + 37].tobytes()
            )
    assert len(set(results)) == 1


def test_a_latent_sequence_alone_and_in_a_batch():
    """Pairs of thread blocks have the same tiles of a sequence at any place in the batch."""
    params = make_params("bf16", 1, 192, mla=True)
    pair = kvcache.AttentionConfig(schedule="pair")
    attend = kvcache.ops.attention(params, 128, target=CHIPS[2], dtype="bf16", value_dim=128, config=pair)
    results = set()
    for lengths, new in [((100,), (2,)), ((100, 7, 130), (2, 3, 1))]:
        manager, inputs = fill(params, "bf16", lengths, new)
        for requests in (inputs.requests, inputs.requests[::-1]):
            batch = manager.inputs(requests)
            first = int(batch.row_offsets[list(requests).index(0)])
            queries = np.zeros((len(batch.tokens), 128, 192), ml_dtypes.bfloat16)
            queries[first : first + 2] = np.random.default_rng(3).standard_normal((2, 128, 192))
            out, lse = np.zeros((len(queries), 128, 128), queries.dtype), np.zeros((len(queries), 128), np.float32)
            attend(batch, LAYER, queries, out=out, lse=lse, scale=0.1)
            results.add(out[first : first + 2].tobytes() + lse[first : first + 2].tobytes())
    assert len(results) == 1
