"""The decode benchmark's kernel: what it computes, on the chips of the emulator."""


import ml_dtypes
import numpy as np
import pytest
from devices import TARGETS
from places import KERNELS

import kvcache

SOURCE = KERNELS / "decode.mlir"
BF16 = np.dtype(ml_dtypes.bfloat16)
LAYERS, LAYER, PAGES, HEADS, GROUP, SIZE = 2, 1, 24, 8, 8, 128
CHUNK, SPLITS = 64, 3
SCALE = 0.125


def make_cache(rng, lengths):
    """Blocks and a lookup table. Rows that no token has are NaNs, and entries of no page name none."""
    blocks = np.full((PAGES, 2, LAYERS, 16, HEADS, SIZE), np.nan, BF16)
    table = np.full((len(lengths), CHUNK * SPLITS // 16), 2**32 - 1, np.uint32)
    pages = iter(rng.permutation(PAGES))
    for row, length in zip(table, lengths):
        for first in range(0, length, 16):
            row[first // 16] = page = next(pages)
            used = min(16, length - first)
            blocks[page, :, LAYER, :used] = rng.standard_normal((2, used, HEADS, SIZE)).astype(BF16)
    return blocks, table


def expect(blocks, table, lengths, q):
    """The sums, maxima and sums of weights of each split, in float64."""
    out = np.zeros((len(lengths), HEADS, SPLITS, GROUP, SIZE))
    maxima = np.full(out.shape[:-1], -1e30)
    sums = np.zeros(out.shape[:-1])
    for b, h, s in np.ndindex(out.shape[:3]):
        t = np.arange(s * CHUNK, min((s + 1) * CHUNK, lengths[b]))
        if not len(t):
            continue
        keys, values = (blocks[table[b, t // 16], kv, LAYER, t % 16, h].astype(np.float64) for kv in (0, 1))
        scores = SCALE * q[b, GROUP * h : GROUP * (h + 1)].astype(np.float64) @ keys.T
        maxima[b, h, s] = scores.max(axis=1)
        weights = np.exp2(scores - maxima[b, h, s, :, None])
        sums[b, h, s] = weights.sum(axis=1)
        out[b, h, s] = weights @ values
    return out, maxima, sums


@pytest.fixture(scope="module", params=TARGETS)
def program(request):
    return kvcache.jit(SOURCE, target=request.param)


@pytest.mark.parametrize("lengths", [(0, 1, 15), (16, 17, 100), (64, 65, 192)], ids=str)
def test_splits_are_attention_over_their_tokens(program, lengths):
    rng = np.random.default_rng(sum(lengths))
    blocks, table = make_cache(rng, lengths)
    q = rng.standard_normal((len(lengths), HEADS * GROUP, SIZE)).astype(BF16)
    expected, maxima, sums = expect(blocks, table, lengths, q)

    out = np.full(expected.shape, np.nan, np.float32)
    max_and_sum = np.full((*maxima.shape, 2), np.nan, np.float32)
    program.call("decode", blocks, np.array(lengths, np.uint32), table, 1, max(lengths), LAYER, CHUNK, SCALE, q, out,
                 max_and_sum)

    np.testing.assert_allclose(max_and_sum[..., 0], maxima, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(max_and_sum[..., 1], sums, rtol=1e-4)
    # Weights are bf16 where they meet the values.
    np.testing.assert_allclose(out, expected, rtol=1e-2, atol=2e-2)
