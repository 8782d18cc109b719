"""Tests of the backend's classes on random steps, against attention in PyTorch on an equal cache."""

import pytest
from engine_steps import Layer, compare
from engines import run_forked
from pairs import pairwise

TARGETS = ["cpu", "emulator:sm_90a", "emulator:sm_100a"]
ORDERS = ["LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC"]
FORMATS = {
    "float32": ["auto"],
    "bfloat16": ["auto", "fp8", "fp8_e5m2", "fp8_per_token_head", "int8_per_token_head"],
    "float16": ["auto", "fp8_e4m3", "int8_per_token_head"],
}
TOLERANCES = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}


def check(layer, tmp_path, same=1.0, **counts):
    outputs, equal = run_forked(compare, layer, log=tmp_path / "log", **counts)
    assert outputs < TOLERANCES[layer.dtype]
    assert equal >= same


@pytest.mark.parametrize(
    "target, order, tokens, format",
    pairwise(TARGETS, ORDERS, [16, 5, 128], [f"{d} {f}" for d, formats in FORMATS.items() for f in formats]),
)
def test_cache_of_each_layout_and_format(tmp_path, target, order, tokens, format):
    dtype, cache_dtype = format.split()
    layer = Layer(target, dtype, cache_dtype, order, tokens, width=64)
    check(layer, tmp_path)


SLOPES = [0.5, 0.25, 0.125, 0.0625]
OPTIONS = {
    "plain": {},
    "own": {"sliding_window": 1},
    "window, sinks": {"sliding_window": 17, "sinks": True},
    "cap": {"logits_soft_cap": 2.0},
    "sinks": {"sinks": True},
    "alibi": {"alibi_slopes": SLOPES},
    "alibi, window, cap": {"alibi_slopes": SLOPES, "sliding_window": 9, "logits_soft_cap": 30.0},
}
WIDTHS = [16, 80, 96, 128, 256]
SPLITS = {
    "default": {},
    "none": {"split_tokens": 0},
    "16": {"split_tokens": 16},
    "two": {"split_tokens": 16, "max_splits": 2},
}


@pytest.mark.parametrize(
    "target, options, kv_heads, width, dtype, splits, causal",
    pairwise(TARGETS, OPTIONS, [1, 2, 4], WIDTHS, TOLERANCES, SPLITS, [True, False]),
)
def test_options_of_attention(tmp_path, target, options, kv_heads, width, dtype, splits, causal):
    layer = Layer(
        target, dtype, kv_heads=kv_heads, width=width, causal=causal,
        options=OPTIONS[options], kvcache=SPLITS[splits],
    )  # fmt: skip
    check(layer, tmp_path)


@pytest.mark.parametrize(
    "target, dtype, scale, splits",
    [
        ("cpu", "float32", 0.5, "default"),
        ("cpu", "bfloat16", 0.01, "default"),
        ("emulator:sm_90a", "bfloat16", 0.5, "16"),
        ("emulator:sm_100a", "float16", 0.01, "none"),
    ],
)
def test_outputs_of_fp8(tmp_path, target, dtype, scale, splits):
    """Outputs are divided by the scale, and those of the smaller one reach 448."""
    layer = Layer(target, dtype, width=64, output_scale=scale, kvcache=SPLITS[splits])
    outputs, _ = run_forked(compare, layer, log=tmp_path / "log")
    # A step of e4m3 at the largest magnitude.
    assert outputs <= (0.5 if scale == 0.5 else 32)


LATENT_FORMATS = {"float32": ["auto"], "bfloat16": ["auto", "fp8", "fp8_e5m2"], "float16": ["auto", "fp8_e4m3"]}


@pytest.mark.parametrize(
    "target, order, tokens, format, width",
    pairwise(
        TARGETS,
        ["LBHNC", "BLHNC", "BHLNC"],
        [16, 5, 64],
        [f"{d} {f}" for d, formats in LATENT_FORMATS.items() for f in formats],
        ["576 512", "320 256", "512 512", "96 64"],
    ),
)
def test_latent_rows_of_each_layout_and_format(tmp_path, target, order, tokens, format, width):
    dtype, cache_dtype = format.split()
    width, value_dim = map(int, width.split())
    layer = Layer(
        target, dtype, cache_dtype, order, tokens, heads=16, kv_heads=1, width=width,
        options={"value_dim": value_dim},
    )  # fmt: skip
    check(layer, tmp_path)


@pytest.mark.parametrize("target, order, tokens", pairwise(TARGETS, ["LBHNC", "BLHNC"], [16, 64]))
def test_rows_of_fields(tmp_path, target, order, tokens):
    """``fp8_ds_mla``: 512 elements of fp8, 4 scales, and 64 elements of bf16."""
    layer = Layer(
        target, "bfloat16", "fp8_ds_mla", order, tokens, heads=16, kv_heads=1, width=576,
        options={"value_dim": 512},
    )  # fmt: skip
    check(layer, tmp_path)
