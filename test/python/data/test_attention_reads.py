"""Tests of the tokens that kernels of kvcache.ops.attention on tensor cores read."""

import ml_dtypes
import numpy as np
import pytest

import kvcache


@pytest.mark.parametrize(
    "chip, tile_rows, window, keys",
    [
        ("sm_80", 64, 48, 64),
        ("sm_80", 128, None, 64),
        ("sm_90a", 64, 48, 64),
        ("sm_90a", 64, None, 64),
        ("sm_90a", 128, None, 128),
        ("sm_90a", 128, 48, 128),
        ("sm_100a", 128, 48, 64),
    ],
)
def test_blocks_read_only_tokens_that_rows_see(chip, tile_rows, window, keys):
    """Each token is read once for all rows of a thread block, and unseen tokens only in partial pages.

    With 192 tokens, the last thread block has no rows.
    """
    params = kvcache.KVCacheParams("bf16", 1, 64, page_size=16, total_num_layers=1)
    attend = kvcache.ops.attention(params, 4, tile_rows=tile_rows, window=window)
    program = kvcache.jit(attend.source, target=f"emulator:{chip}", meter=True, opt_level=0)
    tokens, pages = 192 if keys == 128 else 200, 13
    rng = np.random.default_rng(5)
    blocks = rng.standard_normal((pages, 2, 1, 16, 1, 64)).astype(ml_dtypes.bfloat16)
    q = rng.standard_normal((tokens, 4, 64)).astype(ml_dtypes.bfloat16)
    out, lse = np.zeros_like(q), np.zeros((tokens, 4), np.float32)
    table = rng.permutation(pages)[None].astype(np.uint32)
    offsets = np.array([0, tokens], np.int32)
    arguments = (
        np.zeros(1, np.uint32),
        table,
        tokens,
        tokens,
        0,
        q,
        offsets,
        out,
        lse,
        0.125,
    )
    program.call("attention", blocks, *arguments)
    (launch,) = program.launches
    seen = tiles = 0
    for first in range(0, tokens, tile_rows // 4):
        begin = 0 if window is None else max(first + 1 - window, 0)
        block_tokens = min(first + tile_rows // 4, tokens) - begin // 16 * 16
        seen += block_tokens
        tiles += -(-block_tokens // keys)
    copied = sum(copies.global_bytes for copies in launch.copies.values())
    assert copied == seen * 2 * 64 * 2
    assert launch.bank_conflicts == 0
    # Scores and accumulators, by instructions that the meter counts.
    operations = [meter.operations for meter in launch.products.values()]
    assert operations == ([] if chip == "sm_80" else [tiles * tile_rows * keys * 2 * (64 + 64)])


@pytest.mark.long
@pytest.mark.parametrize(
    "chip, group, tile_rows, splits",
    [
        ("sm_80", 128, None, False),
        ("sm_90a", 128, None, True),
        ("sm_100a", 128, None, False),
        ("sm_100a", 24, 16, True),
    ],
)
def test_sparse_rows_are_read_once_for_the_heads_of_a_block(chip, group, tile_rows, splits):
    """Negative ids, and columns after the last, cost no bytes."""
    params = kvcache.KVCacheParams(
        "bf16", 1, 576, page_size=16, total_num_layers=1, is_mla=True
    )
    attend = kvcache.ops.attention(
        params,
        group,
        rows=True,
        value_dim=512,
        tile_rows=tile_rows,
        split_tokens=32 if splits else None,
    )
    program = kvcache.jit(attend.source, target=f"emulator:{chip}", meter=True, opt_level=0)
    pages, columns = 9, 100
    rng = np.random.default_rng(5)
    blocks = rng.standard_normal((pages, 1, 1, 16, 1, 576)).astype(ml_dtypes.bfloat16)
    q = rng.standard_normal((2, group, 576)).astype(ml_dtypes.bfloat16)
    out = np.zeros((2, group, 512), ml_dtypes.bfloat16)
    lse = np.zeros((2, group), np.float32)
    ids = np.array([rng.permutation(pages * 16)[:columns] for _ in q], np.int32)
    ids[1, ::3] = -1
    workspace = [np.zeros(attend.workspace_size(1), np.int8)] if splits else []
    program.call(
        "attention",
        blocks,
        np.zeros(1, np.uint32),
        np.zeros((1, 1), np.uint32),
        1,
        1,
        0,
        q,
        np.array([0, 2], np.int32),
        out,
        lse,
        0.125,
        *workspace,
        ids,
    )
    launch = program.launches[0]
    # 24 heads in two thread blocks of 16 rows, and 64 heads with MMAs of whole tiles.
    blocks_of_row = group // (tile_rows and 12 or (32 if chip == "sm_80" else 64))
    copied = sum(copies.global_bytes for copies in launch.copies.values())
    assert copied == blocks_of_row * (ids >= 0).sum() * 576 * 2
    assert launch.bank_conflicts == 0
