"""benchmarks/kernels/append_fp8.mlir on data, against NumPy."""


import devices
import numpy as np
import pytest
from places import KERNELS
from programs import DTYPES
from quantization import ELEMENTS, SCALES, check_encodings, quantize

import kvcache

SOURCE = KERNELS / "append_fp8.mlir"

PAGE, HEADS, HEAD_SIZE, GROUP = 16, 8, 128, 64
LAYERS, LAYER = 3, 1


@pytest.mark.parametrize("target", devices.TARGETS)
def test_append_fp8(target):
    rng = np.random.default_rng(3)
    pages = 6
    lut = rng.permutation(pages).reshape(2, 3).astype(np.uint32)
    # New tokens of both sequences in turn: the first and the last of a page, and others.
    sequences = np.array([0, 1, 0, 1, 0], np.uint32)
    positions = np.array([15, 0, 16, 47, 17], np.uint32)
    shape = (2, len(positions), HEADS, HEAD_SIZE)
    new = rng.normal(size=shape) * np.exp2(rng.uniform(-20, 20, shape[:3]))[..., None]
    new[0, 0, 0], new[1, 1, 2, :GROUP], new[0, 2, 3, 70], new[1, 2, 3, 5] = 0, -0.0, np.inf, np.nan
    new = new.astype(DTYPES["bf16"])

    blocks = rng.integers(0, 127, (pages, 2, LAYERS, PAGE, HEADS, HEAD_SIZE), np.uint8)
    scales = rng.normal(size=(*blocks.shape[:-1], HEAD_SIZE // GROUP)).astype(np.float32)
    values, new_scales = quantize(new.astype(np.float32), GROUP, ELEMENTS["f8E4M3FN"], SCALES["f32"])
    expected = blocks.view(DTYPES["f8E4M3FN"]).astype(np.float32)
    expected_scales = scales.copy()
    at = (lut[sequences, positions // PAGE], slice(None), LAYER, positions % PAGE)
    expected[at] = values.swapaxes(0, 1)
    expected_scales[at] = new_scales.swapaxes(0, 1)

    program = kvcache.jit(SOURCE, target=target)
    stored = blocks.view(DTYPES["f8E4M3FN"])
    lengths = np.array([18, 48], np.uint32)
    program.call(
        "append_fp8", stored, lengths, lut, 0, 48, scales, LAYER, new, sequences, positions
    )
    check_encodings(ELEMENTS["f8E4M3FN"], blocks, expected)
    np.testing.assert_array_equal(scales, expected_scales)
