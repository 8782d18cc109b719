# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of support/kernels/triton_kernels.py, compared with NumPy."""

import ml_dtypes
import numpy as np

RANDOM = np.random.default_rng(7)


def random(shape, dtype):
    return RANDOM.standard_normal(shape).astype(dtype)


def launch(kernel, grid, *args, shared_bytes):
    """Launches a kernel; Triton adds two pointers to scratch memory, which it doesn't use."""
    kernel.launch(grid, None, *args, 0, 0, shared_bytes=shared_bytes)


def check_append(module, shared_bytes):
    x, n = random((6, 64), ml_dtypes.bfloat16), 5
    slots = np.array([4, -1, 7, 0, 2], np.int32)
    blocks = np.zeros((8, 64), ml_dtypes.float8_e4m3fn)
    scales = np.zeros(8, np.float32)
    kernel = module.kernel("append")
    launch(kernel, 2, x, slots, blocks, scales, n, shared_bytes=shared_bytes)
    for row, slot in zip(x.astype(np.float32), slots, strict=False):
        if slot < 0:
            continue
        scale = abs(row).max() / np.float32(448)
        np.testing.assert_allclose(scales[slot], scale, rtol=1e-6)
        # Division is approximate: the quotient may be rounded to a neighbour.
        quantized = (row / scale).astype(blocks.dtype)
        np.testing.assert_allclose(
            blocks[slot].astype(np.float32), quantized.astype(np.float32), rtol=0.13
        )
    assert not blocks[[1, 3, 5, 6]].astype(np.float32).any()


def check_decode(module, shared_bytes):
    q, blocks = random((2, 16, 32), np.float16), random((6, 16, 32), np.float16)
    table = np.array([[3, 0, 5], [1, 4, 2]], np.int32)
    length = np.array([41, 16], np.int32)
    out = np.zeros((2, 16, 32), np.float32)
    kernel = module.kernel("decode")
    launch(kernel, 2, q, blocks, table, length, out, 3, shared_bytes=shared_bytes)
    for b in range(2):
        k = blocks[table[b]].reshape(-1, 32)[: length[b]].astype(np.float32)
        scores = q[b].astype(np.float32) @ k.T
        weights = np.exp2(scores - scores.max(1, keepdims=True))
        expected = weights @ k / weights.sum(1, keepdims=True)
        np.testing.assert_allclose(out[b], expected, atol=4e-3)


def check_matmul(module, shared_bytes):
    a, b = random((64, 96), np.float16), random((96, 16), np.float16)
    c = np.zeros((64, 16), np.float32)
    kernel = module.kernel("matmul")
    launch(kernel, 1, a, b, c, 96, shared_bytes=shared_bytes)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(c, expected, rtol=1e-3, atol=1e-3)


CHECKS = {"append": check_append, "decode": check_decode, "matmul": check_matmul}
