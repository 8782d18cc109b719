"""Tests of the splits that the bounds of steps choose."""

import itertools

import pytest

import kvcache
from kvcache.ops.splits import StepBounds, choose_splits, count_multiprocessors

CHIP = "emulator:sm_90a"
HEADS = kvcache.KVCacheParams(dtype="bf16", n_kv_heads=8, head_dim=128, total_num_layers=1, page_size=64)
LATENT = kvcache.KVCacheParams(dtype="bf16", n_kv_heads=1, head_dim=576, total_num_layers=1, page_size=64, is_mla=True)
BOUNDS = {"max_batch_size": 64, "max_seq_len": 8192}


@pytest.mark.parametrize(
    "params, heads, sequences, tokens, expected",
    [
        (HEADS, 32, 1, 256, (256, 1)),  # tiles of few rows
        (HEADS, 32, 1, 257, (256, 2)),
        (HEADS, 32, 1, 8192, (256, 32)),  # 8 heads in 32 splits: two thread blocks each
        (HEADS, 32, 1, 131072, (512, 256)),
        (HEADS, 32, 64, 8192, (512, 16)),
        (HEADS, 32, 256, 131072, (512, 31)),  # in a workspace of 128 MiB
        (LATENT, 128, 1, 8192, (256, 32)),
        (LATENT, 128, 8, 8192, (1024, 8)),
        (LATENT, 128, 64, 8192, None),  # two thread blocks for each sequence fill the chip
        (LATENT, 128, 64, 8193, (8192, 2)),
        (LATENT, 16, 64, 8192, (4096, 2)),
        (LATENT, 16, 4096, 131072, (8192, 2)),  # two, although that takes more than 128 MiB
    ],
)
def test_splits_give_work_to_the_chip(params, heads, sequences, tokens, expected):
    found = choose_splits(params, heads, CHIP, StepBounds(sequences, tokens))
    assert (found and (found.tokens, found.most)) == expected


@pytest.mark.parametrize("params, heads", [(HEADS, 32), (LATENT, 128)], ids=["heads", "latent"])
def test_larger_steps_never_have_shorter_splits(params, heads):
    sizes = [2**i for i in range(15)]
    for tokens, rows in itertools.product((300, 5000, 2**20), (1, 4)):
        found = [choose_splits(params, heads, CHIP, StepBounds(size, tokens), rows) for size in sizes]
        lengths = [tokens if each is None else each.tokens for each in found]
        assert lengths == sorted(lengths)
        for size, each in zip(sizes, found):
            if each and each.most > 2:
                assert each.rows == rows and each.most <= -(-tokens // each.tokens)
                assert size * rows * each.most * heads * (params.head_dim + 2) * 4 <= 128 << 20


def test_operation_has_the_splits_of_its_bounds():
    chosen = kvcache.ops.attention(HEADS, 32, target=CHIP, **BOUNDS)
    assert (chosen.splits.tokens, chosen.splits.most) == (512, 16)
    given = kvcache.ops.attention(HEADS, 32, target=CHIP, split_tokens=512, max_splits=16)
    assert chosen.source == given.source and chosen.workspace_size(3) == given.workspace_size(3)


@pytest.mark.parametrize("reach", ["window", "chunk"])
def test_rows_that_see_few_tokens_have_few_splits(reach):
    attend = kvcache.ops.attention(HEADS, 32, target=CHIP, **{reach: 1024}, **BOUNDS)
    assert (attend.splits.tokens, attend.splits.most) == (256, 4)
    attend = kvcache.ops.attention(HEADS, 32, target=CHIP, **{reach: 256}, **BOUNDS)
    assert (attend.splits.tokens, attend.splits.most) == (256, 1)


def test_no_splits_on_the_cpu():
    assert kvcache.ops.attention(HEADS, 32, **BOUNDS).splits is None


def test_every_chip_has_multiprocessors():
    counts = {chip: count_multiprocessors(chip) for chip in kvcache.chips()}
    assert counts["sm_90a"] == counts["sm_90"] == 132 and min(counts.values()) >= 16


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"max_batch_size": 4}, ValueError, "'max_batch_size' and 'max_seq_len' together"),
        ({"max_seq_len": 4}, ValueError, "'max_batch_size' and 'max_seq_len' together"),
        ({**BOUNDS, "max_batch_size": 0}, ValueError, "'max_batch_size' to be positive, got 0"),
        ({**BOUNDS, "max_seq_len": 1.5}, TypeError, "'max_seq_len' to be an integer"),
        ({**BOUNDS, "split_tokens": 64}, ValueError, "'split_tokens' and 'max_splits', or"),
        ({**BOUNDS, "max_splits": 64}, ValueError, "'split_tokens' and 'max_splits', or"),
        ({**BOUNDS, "split_rows": 0}, ValueError, "'split_rows' to be positive, got 0"),
    ],
)
def test_wrong_bounds_are_errors(options, error, message):
    with pytest.raises(error, match=message):
        kvcache.ops.attention(HEADS, 32, target=CHIP, **options)
