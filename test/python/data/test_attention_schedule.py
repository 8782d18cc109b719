"""Tests of attention's persistent kernels: the same bits as with one thread block per split."""

import numpy as np
import pytest
from attention_checks import (
    CHIPS,
    FORMATS,
    LAYER,
    SPLITS,
    check,
    check_sparse,
    fill,
    make_params,
)

import kvcache

# Sequences of no tokens, of one split and of several, two that are not split, and more than a warp has lanes.
OLD, NEW = (30, 0, 131, 63, 3), (70, 1, 2, 1, 40)
MANY, MANY_NEW = [7 * n % 40 for n in range(45)], [1 + n % 2 for n in range(45)]


def attend(params, dtype, old, new, group, target, blocks, **options):
    """The bytes of outputs and logarithms; the counter in the workspace ends as zero."""
    _, inputs = fill(params, dtype, old, new)
    heads, total = group * params.n_kv_heads_per_device, sum(new)
    size = options.get("value_dim") or params.head_dim
    operation = kvcache.ops.attention(
        params, heads, dtype=dtype, target=target, scheduled_blocks=blocks, **options
    )
    kind = kvcache.dtypes.dtype(dtype)
    q = np.random.default_rng(3).standard_normal((total, heads, params.head_dim)).astype(kind)
    out, lse = np.zeros((total, heads, size), kind), np.zeros((total, heads), np.float32)
    workspace = np.zeros(operation.workspace_size(len(new)), np.int8)
    operation(inputs, LAYER, q, out=out, lse=lse, scale=0.1, workspace=workspace)
    assert out.any() and not workspace[:16].any()
    return out.tobytes() + lse.tobytes()


@pytest.mark.long
@pytest.mark.parametrize(
    "target, format_, heads, group, head_dim, page_size, options",
    [
        (CHIPS[0], "bf16", 2, 4, 64, 16, {"tile_rows": 16}),
        (CHIPS[1], "f16", 1, 4, 128, 64, {"tile_rows": 64, "window": 40}),
        (CHIPS[2], "bf16", 2, 8, 64, 3, {"tile_rows": 16, "chunk": 50, "sinks": True}),
        (CHIPS[1], "fp8-scaled", 1, 2, 64, 16, {"tile_rows": 32, "soft_cap": 9.0}),
        (CHIPS[0], "int8-token", 1, 3, 80, 16, {"tile_rows": 16, "dtype": "f16"}),
        # Latent caches, whose `heads` is 0.
        (CHIPS[0], "bf16", 0, 16, 576, 16, {"value_dim": 512}),
        (CHIPS[1], "bf16", 0, 64, 576, 64, {"value_dim": 512}),
        (CHIPS[2], "f16", 0, 8, 64, 16, {"value_dim": 32, "causal": False}),
        (CHIPS[1], "fp8-token", 0, 64, 576, 16, {"value_dim": 512}),
        # Into tensor memory.
        (CHIPS[2], "bf16", 0, 64, 576, 64, {"value_dim": 512}),
        (CHIPS[2], "f16", 1, 4, 64, 16, {"tile_rows": 128, "window": 60}),
    ],
)
def test_persistent_kernel_matches_split_kernel(
    target, format_, heads, group, head_dim, page_size, options, monkeypatch
):
    """Three thread blocks take work items in turn."""
    monkeypatch.setenv("KVCACHE_EMULATOR_BLOCKS", "3")
    params = make_params(format_, heads or 1, head_dim, page_size, mla=not heads)
    options = dict(options)
    dtype = options.pop("dtype", FORMATS[format_][2])
    sizes = (OLD, NEW) if heads else ((30, 0, 63), (3, 1, 2))
    check(params, dtype, *sizes, group, target, **SPLITS, **options, scheduled_blocks=3)


@pytest.mark.parametrize(
    "target, heads, group, options",
    [
        (CHIPS[0], 0, 128, {"value_dim": 32}),
        (CHIPS[1], 0, 64, {"value_dim": 32, "split_rows": 40}),
        (CHIPS[2], 2, 8, {"tile_rows": 16}),
    ],
)
def test_sparse_rows_of_a_persistent_kernel(target, heads, group, options, monkeypatch):
    monkeypatch.setenv("KVCACHE_EMULATOR_BLOCKS", "2")
    params = make_params("bf16", heads or 1, 64, 16, mla=not heads)
    given = {**SPLITS, **options, "scheduled_blocks": 3}
    check_sparse(params, "bf16", group, target, (9, 0, 90), (1, 2, 3), columns=91, **given)


@pytest.mark.long
@pytest.mark.parametrize(
    "target, old, new, options",
    [
        (CHIPS[0], OLD, NEW, {"split_tokens": 64}),
        # Several tiles of rows of a sequence have separate splits.
        (CHIPS[1], OLD, NEW, {"split_tokens": 64, "split_rows": 9, "window": 70}),
        (CHIPS[2], OLD, NEW, {"split_tokens": 64, "split_rows": 9, "window": 70}),
        (CHIPS[1], MANY, MANY_NEW, {"split_tokens": 16, "max_splits": 4}),
    ],
)
def test_bits_do_not_depend_on_the_order_of_work_items(target, old, new, options, monkeypatch):
    """Compares one thread block after the other, where the first takes all work items, with turns."""
    params = make_params("bf16", 2, 16, 16)
    found = set()
    for turns, blocks in ((1, 0), (1, 1), (2, 2), (9, 50)):
        monkeypatch.setenv("KVCACHE_EMULATOR_BLOCKS", str(turns))
        monkeypatch.setenv("KVCACHE_EMULATOR_SEED", str(turns - 1))
        found.add(attend(params, "bf16", old, new, 4, target, blocks, tile_rows=16, **options))
    assert len(found) == 1


def test_more_blocks_than_work_items():
    """Thread blocks without a work item take a number each, and the last one clears the counter."""
    params = make_params("bf16", 1, 16, 16)
    options = {"tile_rows": 16, **SPLITS}
    one, many = (
        attend(params, "bf16", (3,), (1,), 4, CHIPS[1], blocks, **options)
        for blocks in (1, 300)
    )
    assert one == many


def count_requests(old, blocks):
    """Counts global requests of a decode step of a latent cache; returns them and the grid."""
    params = make_params("bf16", 1, 64, 16, mla=True)
    operation = kvcache.ops.attention(
        params, 16, value_dim=32, dtype="bf16", split_tokens=64, scheduled_blocks=blocks
    )
    program = kvcache.jit(operation.source, target=CHIPS[1], meter=True, opt_level=0)
    _, inputs = fill(params, "bf16", old, [1] * len(old))
    q = np.zeros((len(old), 16, 64), kvcache.dtypes.dtype("bf16"))
    out, lse = np.zeros((len(old), 16, 32), q.dtype), np.zeros(q.shape[:2], np.float32)
    workspace = np.zeros(operation.workspace_size(len(old)), np.int8)
    offsets = inputs.row_offsets.view(np.int32)
    program.call("attention", *inputs.collection(0), LAYER, q, offsets, out, lse, 0.1, workspace)
    launch, _ = program.launches
    return launch.global_requests, launch.grid


def test_persistent_kernel_with_empty_splits_reads_less():
    """Uses 8 sequences of 1 to 4 splits of at most 32, with a given grid of the persistent kernel."""
    old = [50, 60, 70, 80, 90, 100, 150, 250]
    (fixed, grid), (scheduled, given) = (count_requests(old, blocks) for blocks in (0, 8))
    assert np.prod(grid) == (8 + 8 // 2) * 33 and np.prod(given) == 8
    assert scheduled < 0.75 * fixed
