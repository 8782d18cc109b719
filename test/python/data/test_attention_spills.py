"""Tests of the registers of kernels of kvcache.ops.attention on tensor cores."""

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
        *(pytest.param(chip, 9, marks=pytest.mark.slow) for chip in ("sm_80", "sm_90a", "sm_100a")),
        ("sm_86", 1),
        ("sm_89", 1),
        ("sm_103a", 1),
        pytest.param("sm_120a", 5, marks=pytest.mark.slow),
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
