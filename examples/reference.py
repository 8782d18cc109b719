"""The expected results of the examples, by plain NumPy indexing.

Only the shapes of arguments are common to this and the compiled functions. `blocks` is
[pages, 2, layers, page_size, heads, head_size], with the keys at 0 and the values at 1
of the second dimension. The last dimension of `scales` of a quantized cache is the
groups of a head.
"""

import ml_dtypes
import numpy as np

KEYS, VALUES = 0, 1
FP8 = ml_dtypes.float8_e4m3fn


def append(blocks, lengths, lut, layer, new_keys, new_values, row_offsets):
    """Writes sequence b's rows of the new tokens after its lengths[b] tokens."""
    page_size = blocks.shape[3]
    for b, length in enumerate(lengths):
        rows = np.arange(row_offsets[b], row_offsets[b + 1])
        t = int(length) + np.arange(len(rows))
        pages = lut[b, t // page_size]
        blocks[pages, KEYS, layer, t % page_size] = new_keys[rows]
        blocks[pages, VALUES, layer, t % page_size] = new_values[rows]


def append_quantized(
    blocks, scales, lengths, lut, layer, new_keys, new_values, row_offsets
):
    """Appends to fp8 elements and their scales."""
    groups = scales.shape[-1]
    keys, key_scales = quantize(new_keys, groups)
    values, value_scales = quantize(new_values, groups)
    append(blocks, lengths, lut, layer, keys, values, row_offsets)
    append(scales, lengths, lut, layer, key_scales, value_scales, row_offsets)


def quantize(x, groups):
    """Quantizes to fp8 elements and f32 scales of `groups` groups of the last axis."""
    largest = np.float32(ml_dtypes.finfo(FP8).max)
    smallest = np.finfo(np.float32).smallest_subnormal
    x32 = x.astype(np.float32).reshape(*x.shape[:-1], groups, -1)
    amax = np.abs(x32).max(axis=-1, keepdims=True)
    scales = np.where(amax == 0, 1, np.maximum(amax / largest, smallest))
    scales = np.where(np.isfinite(amax), scales, np.nan).astype(np.float32)
    elements = np.clip(x32 / scales, -largest, largest).astype(FP8)
    return elements.reshape(x.shape), scales[..., 0]


def dequantize(x, scales):
    """Multiplies elements by the scales of their groups, in float64."""
    size = x.shape[-1] // scales.shape[-1]
    return x.astype(np.float64) * np.repeat(scales.astype(np.float64), size, axis=-1)


def gather(blocks, lengths, lut, layer, kv, tokens):
    """Gathers the keys or values of one layer: [batch, tokens, heads, head_size]."""
    page_size, heads, head_size = blocks.shape[3:]
    out = np.zeros((len(lengths), tokens, heads, head_size), blocks.dtype)
    for b, length in enumerate(lengths):
        t = np.arange(min(int(length), tokens))
        out[b, t] = blocks[lut[b, t // page_size], kv, layer, t % page_size]
    return out


def attention(blocks, lengths, lut, layer, scale, q, scales=None):
    """Computes attention of one query token per sequence, in float64.

    With scales, the cache is quantized: keys and values are dequantized.
    """
    heads = blocks.shape[4]
    batch, q_heads, head_size = q.shape
    out = np.zeros((batch, heads, q_heads // heads, head_size))
    for b, length in enumerate(lengths):
        if length == 0:
            continue
        row = lengths[b : b + 1], lut[b : b + 1], layer
        keys = gather(blocks, *row, KEYS, int(length))[0].astype(np.float64)
        values = gather(blocks, *row, VALUES, int(length))[0].astype(np.float64)
        if scales is not None:
            keys = dequantize(keys, gather(scales, *row, KEYS, int(length))[0])
            values = dequantize(values, gather(scales, *row, VALUES, int(length))[0])
        query = q[b].reshape(heads, -1, head_size).astype(np.float64)
        scores = scale * np.einsum("hgd,thd->hgt", query, keys)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        out[b] = np.einsum("hgt,thd->hgd", weights, values)
    return out.reshape(q.shape)
