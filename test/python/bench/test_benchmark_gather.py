"""The benchmarks' gathers agree with NumPy."""


import ml_dtypes
import numpy as np
import pytest
from places import KERNELS

import kvcache

LAYERS, LAYER, PAGE_SIZE, HEADS, HEAD_SIZE, GROUP = 2, 1, 16, 8, 128, 64
LENGTHS = np.array([37, 0, 48], np.uint32)
TABLE = np.array([[5, 0, 3], [9, 9, 9], [1, 6, 2]], np.uint32)  # no page 9: nobody looks it up
TOKENS = 45  # rows in the output: not all tokens of the last sequence, and no whole block of them
TARGETS = ["cpu", "emulator:sm_80", "emulator:sm_90a", "emulator:sm_100a"]


def make_pages(rng, *row):
    """Keys and values of all layers in 7 pages."""
    return rng.standard_normal((7, 2, LAYERS, PAGE_SIZE, *row)).astype(np.float32)


def gather(pages):
    """The rows of the keys of `LAYER` by sequence and token, zeros above the lengths."""
    keys = pages[:, 0, LAYER]
    rows = np.zeros((len(LENGTHS), TOKENS, *keys.shape[2:]), keys.dtype)
    for b, length in enumerate(LENGTHS):
        for t in range(min(length, TOKENS)):
            rows[b, t] = keys[TABLE[b, t // PAGE_SIZE], t % PAGE_SIZE]
    return rows


def run(work, target, blocks, *scales):
    """What the kernel of `work` writes to an output that held something else."""
    out = np.full((len(LENGTHS), TOKENS, HEADS, HEAD_SIZE), 7, ml_dtypes.bfloat16)
    program = kvcache.jit(KERNELS / f"{work}.mlir", target=target)
    program.call(work, blocks, LENGTHS, TABLE, TOKENS, TOKENS, *scales, LAYER, out)
    return out


def assert_same_bits(actual, expected):
    np.testing.assert_array_equal(actual.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("target", TARGETS)
def test_gather(target):
    blocks = make_pages(np.random.default_rng(1), HEADS, HEAD_SIZE).astype(ml_dtypes.bfloat16)
    assert_same_bits(run("gather", target, blocks), gather(blocks))


@pytest.mark.parametrize("target", TARGETS)
def test_gather_fp8(target):
    rng = np.random.default_rng(2)
    blocks = (30 * make_pages(rng, HEADS, HEAD_SIZE)).astype(ml_dtypes.float8_e4m3fn)
    scales = make_pages(rng, HEADS, HEAD_SIZE // GROUP)
    products = blocks.astype(np.float32) * np.repeat(scales, GROUP, axis=-1)
    expected = gather(products.astype(ml_dtypes.bfloat16))
    assert_same_bits(run("gather_fp8", target, blocks, scales), expected)
