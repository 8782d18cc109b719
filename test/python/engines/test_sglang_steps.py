"""Tests of the backend's classes on random steps, against attention in PyTorch."""

import pytest
from pairs import pairwise
from sglang_engine import run_forked
from sglang_steps import Layer, run_steps

TARGETS = ["cpu", "emulator:sm_90a", "emulator:sm_100a"]
FORMATS = ["float32", "bfloat16", "bfloat16 float8_e4m3fn", "float16 float8_e5m2"]
TOLERANCES = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}
OPTIONS = {
    "plain": {},
    "two": {"window": 2},
    "window, sinks": {"window": 17, "sinks": "bfloat16"},
    "cap": {"soft_cap": 2.0},
    "sinks": {"sinks": "float32"},
    "pool of windows": {"window": 17, "hybrid": True},
    "pool of windows, cap": {"window": 9, "hybrid": True, "soft_cap": 30.0},
    "long window": {"window": 90, "hybrid": True},
}
SPLITS = {"default": {}, "none": {"split_tokens": 0}, "two": {"split_tokens": 16, "max_splits": 2}}


def check(tmp_path, layer):
    assert run_forked(run_steps, layer, log=tmp_path / "log") < TOLERANCES[layer.dtype]


@pytest.mark.parametrize(
    "target, format, page_size, options, kv_heads, width, splits",
    pairwise(TARGETS, FORMATS, [1, 16, 5], OPTIONS, [1, 2, 4], [32, 64, 128], SPLITS),
)
def test_pool_of_keys_and_values(tmp_path, target, format, page_size, options, kv_heads, width, splits):
    dtype, _, cache_dtype = format.partition(" ")
    layer = Layer(
        target, dtype, cache_dtype, page_size, kv_heads=kv_heads, width=width, value_width=width,
        kvcache=SPLITS[splits], **OPTIONS[options],
    )  # fmt: skip
    check(tmp_path, layer)


@pytest.mark.parametrize("target, page_size", pairwise(TARGETS, [1, 16]))
def test_pool_with_smaller_values(tmp_path, target, page_size):
    check(tmp_path, Layer(target, "bfloat16", page_size=page_size, width=64, value_width=32))


@pytest.mark.parametrize(
    "target, format, page_size, width", pairwise(TARGETS, FORMATS, [1, 64], ["576 512", "96 64"])
)
def test_pool_of_latent_rows(tmp_path, target, format, page_size, width):
    dtype, _, cache_dtype = format.partition(" ")
    width, latent = map(int, width.split())
    check(tmp_path, Layer(target, dtype, cache_dtype, page_size, heads=8, width=width, latent=latent))
