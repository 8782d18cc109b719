"""Tests of splits that a cluster of thread blocks merges: one launch, with the bits of a merge in a second one."""

import re

import numpy as np
import pytest
from attention_checks import FEW, FEW_NEW, FORMATS, LAYER, check, fill, make_params, run

import kvcache

CHIPS = ["emulator:sm_90a", "emulator:sm_100a"]
# Tiles of 16 tokens, so that short sequences have several splits.
CLUSTER, LAUNCH = (kvcache.AttentionConfig(keys=16, merge=merge) for merge in ("cluster", "launch"))
SPLITS = {"split_tokens": 16, "max_splits": 4, "split_rows": 2, "tile_rows": 16}
OPTIONS = [
    {},
    {"causal": False},
    {"window": 20, "sinks": True},
    {"chunk": 32},
    {"soft_cap": 3.0},
    {"sinks": True, "sinkless_lse": True},
    {"value_dim": 48},
]


@pytest.mark.parametrize("number, options", enumerate([*OPTIONS, {"causal": False, "mask": True}]), ids=str)
def test_cluster_has_the_results_of_the_model(number, options):
    """Tests sequences with splits, with one split, and with too many new tokens for splits."""
    given = {key: value for key, value in options.items() if key != "sinkless_lse"}
    check(make_params("bf16"), "bf16", FEW, FEW_NEW, 4, CHIPS[number % 2], config=CLUSTER, **SPLITS, **given)


def run_both(params, dtype, inputs, group, options, **arrays):
    """Returns the bytes of outputs and of lse by either merge."""
    results = []
    for config in (CLUSTER, LAUNCH):
        _, out, lse, _ = run(params, dtype, inputs, group, {**options, "config": config}, 0.125, **arrays)
        results.append((out.tobytes(), lse.tobytes()))
    return results


@pytest.mark.parametrize("number, options", enumerate(OPTIONS), ids=str)
def test_either_merge_has_the_same_bits(number, options):
    params = make_params("bf16")
    _, inputs = fill(params, "bf16", FEW, FEW_NEW)
    cluster, launch = run_both(params, "bf16", inputs, 4, {**SPLITS, **options, "target": CHIPS[number % 2]})
    assert cluster == launch


@pytest.mark.parametrize("number, format_", enumerate(["f16", "fp8", "fp8-scaled", "int8-token", "int4", "nvfp4"]))
def test_formats_have_the_same_bits(number, format_):
    params, dtype = make_params(format_), "bf16"
    _, inputs = fill(params, FORMATS[format_][2], FEW, FEW_NEW)
    dtype = "f16" if format_ == "f16" else dtype
    cluster, launch = run_both(params, dtype, inputs, 4, {**SPLITS, "target": CHIPS[number % 2]})
    assert cluster == launch


def test_static_scales_have_the_same_bits():
    """Tests a scale of values for each head of the cache."""
    params = make_params("fp8")
    _, inputs = fill(params, "f32", FEW, FEW_NEW)
    arrays = {"key_scale": 0.5, "value_scale": np.array([2, 3], np.float32)}
    options = {**SPLITS, "static_scales": True, "target": CHIPS[0]}
    cluster, launch = run_both(params, "bf16", inputs, 4, options, **arrays)
    assert cluster == launch


@pytest.mark.parametrize("target", CHIPS)
@pytest.mark.parametrize("most", [2, 3, 8])
def test_edges_of_splits(target, most):
    """Tests whole splits, one token less or more, and longer splits where there are too many."""
    tokens = 1, 15, 16, 17, 16 * most, 16 * most + 1, 40 * most
    lengths, new = [n - 1 for n in tokens], [1] * len(tokens)
    options = {**SPLITS, "max_splits": most, "split_rows": 1}
    check(make_params("bf16"), "bf16", lengths, new, 2, target, config=CLUSTER, **options)
    params = make_params("bf16")
    _, inputs = fill(params, "bf16", lengths, new)
    cluster, launch = run_both(params, "bf16", inputs, 2, {**options, "target": target})
    assert cluster == launch


@pytest.mark.parametrize("target", CHIPS)
@pytest.mark.parametrize("group, rows", [(16, 16), (40, 32)])
def test_latent_cache(target, group, rows):
    """Tests warps that share an accumulator, and thread blocks with a share of the query heads."""
    params = make_params("bf16", 1, 192, mla=True)
    options = {**SPLITS, "tile_rows": rows, "value_dim": 160, "split_rows": 1}
    check(params, "bf16", (5, 90, 33), (1, 1, 3), group, target, config=CLUSTER, **options)
    _, inputs = fill(params, "bf16", (5, 90, 33), (1, 1, 3))
    config = kvcache.AttentionConfig(mma="mma_sync", keys=16, merge="launch")
    _, *launch, _ = run(params, "bf16", inputs, group, {**options, "target": target, "config": config}, 0.125)
    _, *cluster, _ = run(params, "bf16", inputs, group, {**options, "target": target, "config": CLUSTER}, 0.125)
    assert [each.tobytes() for each in cluster] == [each.tobytes() for each in launch]


@pytest.mark.parametrize("target", CHIPS)
def test_whole_rows_fill_clusters(target):
    """Prompts have one thread block each, whose others of a cluster have other rows or none."""
    check(make_params("bf16"), "bf16", (3, 0, 60, 2), (40, 9, 1, 17), 4, target, config=CLUSTER, **SPLITS)


def test_cluster_is_one_launch_without_workspace():
    params = make_params("bf16")
    attend = kvcache.ops.attention(params, 8, config=CLUSTER, **SPLITS)
    assert attend.workspace_size(3) == 0 and "workspace" not in attend.source
    (kernel,) = attend.compile("sm_90a").kernels.values()
    assert re.search(r"\.reqnctapercluster 1, 4, 1", kernel.ptx)
    assert "mapa.shared::cluster" in kernel.ptx and "ld.shared::cluster.v4" in kernel.ptx
    assert kernel.ptx.count("barrier.cluster.wait") == 2
    _, inputs = fill(params, "bf16", (3,), (1,))
    q = np.zeros((1, 8, 64), kvcache.dtypes.dtype("bf16"))
    with pytest.raises(ValueError, match="workspace"):
        attend(inputs, LAYER, q, out=q.copy(), scale=1.0, workspace=np.zeros(64, np.int8))


@pytest.mark.parametrize(
    "options, message",
    [
        ({}, "expects 'merge' to be 'cluster' only with 'split_tokens'"),
        ({"split_tokens": 64}, "expects 'max_splits' to be from 2 to 8 with merge='cluster', got 32"),
        ({"split_tokens": 64, "max_splits": 1}, "expects 'max_splits' to be from 2 to 8 with merge='cluster', got 1"),
        ({"split_tokens": 64, "max_splits": 4, "rows": True}, "expects no 'rows' with merge='cluster'"),
    ],
    ids=str,
)
def test_options_that_a_cluster_lacks_are_errors(options, message):
    with pytest.raises(ValueError, match=message):
        kvcache.ops.attention(make_params("bf16"), 8, config=CLUSTER, **options)
