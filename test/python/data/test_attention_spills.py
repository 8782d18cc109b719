"""Tests of the registers of kernels of kvcache.ops.attention on tensor cores, and of those that choose its tokens."""

import pytest
from attention_checks import make_params
from compiled import needs_ptxas

import kvcache

ALL = {"soft_cap": 50.0, "sinks": True, "window": 64}
QUARTERS = kvcache.KVCacheQuantizationConfig("f32", 32)
# The kernels with most registers, which contain the code of the others.
LARGE = [
    # In-register dequantization with the MMAs of warps.
    (
        kvcache.KVCacheParams("i8", 8, 128, page_size=16, total_num_layers=2, kvcache_quant_config=QUARTERS),
        4,
        {"split_tokens": 256, "mask": True, **ALL},
    ),
    (make_params("nvfp4", 8, 64), 4, {"split_tokens": 256, "mask": True, **ALL}),
    (make_params("nvfp4", 8, 128), 4, {"split_tokens": 256, "mask": True, **ALL}),
    (make_params("int4-token", 8, 128), 4, {"split_tokens": 256, "mask": True, **ALL}),
    (make_params("int4-halves", 8, 128), 4, {"split_tokens": 256, "mask": True, "window": 64}),
    (make_params("mxfp4", 8, 128), 4, {"split_tokens": 256, "mask": True, **ALL}),
    (make_params("int4", 8, 256), 8, {"split_tokens": 256, "tile_rows": 128}),
    (
        make_params("fp8-token", 1, 576, mla=True),
        128,
        {"value_dim": 512, "split_tokens": 64},
    ),
    (make_params("bf16", 1, 576, mla=True), 128, {"value_dim": 512, "split_tokens": 64}),
    (make_params("f16", 8, 256), 8, {"split_tokens": 256, "tile_rows": 64, **ALL}),
    (
        make_params("bf16", 8, 128),
        8,
        {"split_tokens": 256, "tile_rows": 16, "mask": True, **ALL},
    ),
    (make_params("fp8-scaled", 8, 128), 4, {"split_tokens": 256, **ALL}),
    (
        make_params("bf16", 1, 576, mla=True),
        128,
        {"value_dim": 512, "split_tokens": 64, "rows": True},
    ),
    (
        make_params("fp8-token", 1, 576, mla=True),
        128,
        {"value_dim": 512, "split_tokens": 64, "rows": True},
    ),
]
# The kernels with swapAB.
LARGE_SWAPPED = [
    (
        make_params("bf16", 1, 576, mla=True),
        12,
        {"value_dim": 512, "split_tokens": 64, "mask": True, **ALL},
    ),
]


@needs_ptxas
@pytest.mark.parametrize(
    "chip, count",
    [
        *(pytest.param(chip, 14, marks=pytest.mark.slow) for chip in ("sm_80", "sm_90a", "sm_100a")),
        ("sm_86", 1),
        ("sm_89", 1),
        ("sm_103a", 1),
        pytest.param("sm_120a", 10, marks=pytest.mark.slow),
        ("sm_121a", 1),
    ],
)
def test_kernels_have_no_spills(chip, count):
    """Other chips of a family compile only the largest kernels."""
    swapped = LARGE_SWAPPED if chip == "sm_90a" else []
    for params, group, options in LARGE[:count] + swapped:
        attend = kvcache.ops.attention(
            params, group * params.n_kv_heads_per_device, **options
        )
        for kernel in attend.compile(chip, "cubin").kernels.values():
            assert kernel.spill_bytes == kernel.stack_bytes == 0


def assert_no_spills(operation, chip):
    for name, kernel in operation.compile(chip, "cubin").kernels.items():
        assert (kernel.spill_bytes, kernel.stack_bytes) == (0, 0), name


# Heads with keys of 64 elements and pages for tiles of 128 keys, and the others.
ROLES = [
    *((size, 64, options) for size in (64, 128) for options in ({}, {"window": 100}, {"chunk": 128, "soft_cap": 30.0})),
    *((size, 64, {"mask": True}) for size in (64, 128)),
    *((size, 64, ALL) for size in (32, 80, 96, 112)),
    *((size, page, {"window": 100}) for size in (64, 128) for page in (16, 32, 48)),
    (128, 16, {"mask": True, "causal": False}),
    (96, 16, {"chunk": 128}),
]


@needs_ptxas
@pytest.mark.long
@pytest.mark.parametrize("size, page_size, options", ROLES, ids=str)
def test_prompts_by_roles_have_no_spills(size, page_size, options):
    config = kvcache.AttentionConfig(schedule="roles")
    params = make_params("bf16", 8, size, page_size)
    assert_no_spills(kvcache.ops.attention(params, 32, config=config, **options), "sm_100a")


@needs_ptxas
@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"soft_cap": 30.0, "sinks": True}, {"mask": True, "causal": False}], ids=str)
def test_latent_rows_by_pairs_have_no_spills(options):
    config = kvcache.AttentionConfig(schedule="pair")
    params = make_params("bf16", 1, 576, 64, mla=True)
    assert_no_spills(kvcache.ops.attention(params, 128, value_dim=512, config=config, **options), "sm_100a")


MXFP4 = kvcache.KVCacheQuantizationConfig("f8E8M0FNU", 32)
INDEXERS = {
    "bf16": (None, "bf16"),
    "fp8": (kvcache.KVCacheQuantizationConfig("f32", 128), "f8E4M3FN"),
    "fp8-mxfp4": (kvcache.KVCacheQuantizationConfig("f32", 128), "f4E2M1FN"),
    "mxfp4": (MXFP4, "f4E2M1FN"),
}
"""Scales of index keys, and the type of queries."""
INDEX_CHIPS = "sm_80", "sm_90a", "sm_100a"


@needs_ptxas
@pytest.mark.long
@pytest.mark.parametrize("chip", INDEX_CHIPS)
@pytest.mark.parametrize("format_", INDEXERS)
def test_index_scores_have_no_spills(format_, chip):
    scales, queries = INDEXERS[format_]
    dtype = {"bf16": "bf16", "mxfp4": "f4E2M1FN"}.get(format_, "f8E4M3FN")
    params = kvcache.KVCacheParams(
        dtype, 1, 128, page_size=64, total_num_layers=1, is_mla=True, kvcache_quant_config=scales
    )
    for heads in (32, 64):
        scores = kvcache.ops.index_scores(params, heads, relu=True, sum_heads=True, weights=True, dtype=queries)
        assert_no_spills(scores, chip)


@needs_ptxas
@pytest.mark.long
@pytest.mark.parametrize("chip", INDEX_CHIPS)
@pytest.mark.parametrize("splits", [1, 16])
def test_selections_have_no_spills(splits, chip):
    """The kernels of ``index_rows`` are those of scores and of a selection."""
    index = kvcache.KVCacheParams("bf16", 1, 128, page_size=64, total_num_layers=1, is_mla=True)
    params = make_params("bf16", 1, 576, mla=True)
    for k in (512, 2048):
        assert_no_spills(kvcache.ops.top_rows(params, k, splits=splits), chip)
    assert_no_spills(kvcache.ops.index_rows(index, 64, params, 2048, weights=True, splits=splits), chip)
