#!/usr/bin/env python3
"""Measures the error of attention with quantized KV caches on a real model's data.

Queries, keys and values are those of a sentence encoder (encoder.py) on a few
paragraphs (text.txt). Keys and values go through a paged cache of each format, by
kernels that quantize and dequantize: `kvcache.store_quantized` and `kvcache.load`, on
the CPU. Attention over the loaded values is compared with attention over the originals.
With --outliers, the keys get channels far from zero, common to all keys, as those of
decoders have. Exits with 2 if it cannot run.
"""

import argparse
import functools
import itertools
import os
import sys
from dataclasses import dataclass

from console import fail, fail_to_import, print_table, progress

# On a busy machine, threads of such small products mostly wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

try:
    import kvcache
    import numpy as np
    from kvcache import dtypes
except ImportError as error:
    fail_to_import(error)

import cache_source
from encoder import Attention, Encoder, attend_within_texts, join_texts, paragraphs

EXAMPLE = "example: accuracy.py --markdown > accuracy.md"
PAGE_SIZE = 32
KIVI_TOKENS = 32  # that share the scales of a channel
OUTLIER = 10.0  # standard deviations of the keys of a layer
FLOATS = ("bf16", "f16", "f8E4M3FN", "f8E5M2")  # without scales
SCALES = {
    "f8E4M3FN": ("f32", "bf16", "f8E8M0FNU"),
    "f8E5M2": ("f32", "bf16", "f8E8M0FNU"),
    "i8": ("f32", "f16"),
}
COLUMNS = (
    *("values", "scales", "granularity", "bytes"),
    *("mean error %", "99th centile %", "largest %"),
)

# --- Formats ----------------------------------------------------------------------


@dataclass(frozen=True)
class Format:
    """The format of a cache of one layer.

    With ``tensor_scale``, the scales are relative to one f32 for a whole array. Keys
    may have other parameters.
    """

    params: kvcache.KVCacheParams
    known_as: str = ""
    tensor_scale: bool = False
    keys: kvcache.KVCacheParams | None = None

    def labels(self):
        """The cells of the table: values, scales, granularity."""
        values = self.params.dtype_shorthand
        if self.known_as:
            values += f" ({self.known_as})"
        config = self.params.kvcache_quant_config
        if config is None:
            return values, "-", "-"
        scales = dtypes.mlir_name(config.scale_dtype)
        if self.tensor_scale:
            scales += " and one f32"
        if config.zero_point_dtype is not None:
            scales += ", zero points"
        if self.keys is None:
            return values, scales, config.quantization_granularity
        tokens = self.keys.kvcache_quant_config.token_granularity
        return values, scales, f"{tokens} tokens"

    def bytes_per_token(self):
        """The bytes of a token's key and value in one layer, with their scales."""
        both = self.params, self.keys or self.params
        return sum(params.bytes_per_block for params in both) // (2 * PAGE_SIZE)

    def get_key_format(self):
        """The format of the keys alone."""
        return Format(self.keys) if self.keys else self


def all_formats(heads, head_size):
    """The formats of the table, in its order."""
    cache = functools.partial(
        kvcache.KVCacheParams,
        n_kv_heads=heads,
        head_dim=head_size,
        page_size=PAGE_SIZE,
        total_num_layers=1,
    )

    def scaled(dtype, scale, granularity, *groups):
        config = kvcache.KVCacheQuantizationConfig(scale, granularity, *groups)
        return cache(dtype, kvcache_quant_config=config)

    formats = [Format(cache(dtype)) for dtype in FLOATS]
    granularities = head_size, head_size // 2, head_size // 4
    for dtype, scales in SCALES.items():
        for scale, granularity in itertools.product(scales, granularities):
            is_mx = scale == "f8E8M0FNU" and granularity == 32
            known_as = "MXFP8" if is_mx else ""
            formats.append(Format(scaled(dtype, scale, granularity), known_as))
    nvfp4 = scaled("f4E2M1FN", "f8E4M3FN", 16)
    mxfp4 = scaled("f4E2M1FN", "f8E8M0FNU", 32)
    formats += [Format(nvfp4, "NVFP4"), Format(nvfp4, "NVFP4", tensor_scale=True)]
    formats.append(Format(mxfp4, "MXFP4"))
    for scale, granularity in itertools.product(("f32", "f16"), granularities):
        formats.append(Format(scaled("i4", scale, granularity, scale)))
    keys = scaled("i4", "f16", 1, "f16", KIVI_TOKENS)
    values = scaled("i4", "f16", head_size, "f16")
    return [*formats, Format(values, "KIVI", keys=keys)]


# --- Through the cache ------------------------------------------------------------


def source(fmt):
    """The MLIR of `append`, which writes an array into a cache, and of `read_back`.

    If tokens share scales, `append` writes whole groups.
    """
    element = "%keys[%c0, %h, %t, %c0]"
    scale = " tensor_scale %tensor_scale" if fmt.tensor_scale else ""
    tokens = cache_source.tokens_per_scale(fmt.params)
    append = f"""
      {cache_source.load_tokens(fmt.params, "%v")}
      {cache_source.store(fmt.params, "%v", element, scale)}"""
    read_back = f"""
      %v = kvcache.load {element}{scale} : !cache -> !head
      vector.store %v, %array[%t, %h, %c0] : !array, !head"""
    return cache_source.module(
        fmt.params,
        for_each_head(fmt.params, "append", append, tokens),
        for_each_head(fmt.params, "read_back", read_back),
    )


def for_each_head(params, name, body, step=1):
    """A function that runs a body for every token, or group, and head of an array.

    The token is `%t` and the head is `%h`. The array is the source or the target of the
    keys of sequence `%c0`.
    """
    loops = f"""
  %tokens = memref.dim %array, %c0 : !array
  %step = arith.constant {step} : index
  scf.for %t = %c0 to %tokens step %step {{
    scf.for %h = %c0 to %heads step %c1 {{{body}
    }}
  }}"""
    parameters = "%array: !array, %tensor_scale: f32"
    return cache_source.function(params, name, parameters, loops)


@functools.cache
def compiled(fmt):
    return kvcache.jit(source(fmt), target="cpu")


def scale_of_array(fmt, array):
    """The scale that maps the largest magnitude to the largest value and scale."""
    if not fmt.tensor_scale:
        return 1.0
    largest_value, largest_scale = 6, 448  # of f4E2M1FN and f8E4M3FN
    return float(np.abs(array).max()) / (largest_value * largest_scale)


def through_cache(array, fmt):
    """Writes an array into a cache of a format, and returns the loaded array.

    Both are f32 [tokens, heads, head_size]. Tokens that do not fill a group are not in
    the cache, and are returned unchanged.
    """
    whole = len(array) - len(array) % cache_source.tokens_per_scale(fmt.params)
    array, rest = array[:whole], array[whole:]
    tokens = len(array)
    manager = kvcache.PagedKVCacheManager(
        fmt.params,
        max_batch_size=1,
        max_seq_len=tokens,
        num_pages=-(-tokens // PAGE_SIZE),
    )
    manager.claim("array", np.zeros(tokens, np.int64))
    layer = *manager.inputs(["array"]).collection(), 0
    scale = scale_of_array(fmt, array)
    result = np.empty_like(array)
    compiled(fmt).call("append", *layer, array, scale)
    compiled(fmt).call("read_back", *layer, result, scale)
    return np.concatenate([result, rest])


# --- Errors -----------------------------------------------------------------------


def layer_results(layer, row_offsets):
    """Computes attention within each text, f64 [tokens, heads, head_size]."""
    in_f64 = Attention(*(x.astype(np.float64) for x in layer))
    return attend_within_texts(in_f64, row_offsets)


def relative_errors(fmt, layers, row_offsets, exact):
    """|result - exact| / |exact| for every layer, token and head.

    Args:
        layers: An ``Attention`` for each layer, with the tokens of all texts.
        row_offsets: The first token of each text, and the end of the last one.
        exact: The results without a cache, [layers, tokens, heads, head_size].
    """
    results = []
    for queries, keys, values in layers:
        keys, values = through_cache(keys, fmt.get_key_format()), through_cache(values, fmt)
        results.append(layer_results(Attention(queries, keys, values), row_offsets))
    difference = np.linalg.norm(np.stack(results) - exact, axis=-1)
    return difference / np.linalg.norm(exact, axis=-1)


def add_outliers(layer):
    """Moves a channel of each head of the keys of a layer away from zero.

    The softmax of a query's scores does not change if the same vector is added to all
    of its keys, so the results are those of the layer without outliers.
    """
    keys = layer.keys.copy()
    for head in range(keys.shape[1]):
        keys[:, head, head % keys.shape[2]] += OUTLIER * keys.std()
    return layer._replace(keys=keys)


def measure(encoder, texts, outliers=False):
    """Measures the texts' lengths in tokens, and the rows of the table by ``COLUMNS``."""
    tokens, row_offsets = join_texts(map(encoder.tokenize, texts))
    layers = []

    def attend(_, layer):
        layers.append(layer)
        return attend_within_texts(layer, row_offsets)

    encoder.encode(tokens, row_offsets, attend)
    exact = np.stack([layer_results(layer, row_offsets) for layer in layers])
    formats = all_formats(encoder.heads, encoder.head_size)
    if outliers:
        layers = [add_outliers(layer) for layer in layers]
        formats = [fmt for fmt in formats if is_per_token(fmt)]
    rows = []
    for fmt in progress("formats", formats):
        errors = 100 * relative_errors(fmt, layers, row_offsets, exact)
        numbers = errors.mean(), np.percentile(errors, 99), errors.max()
        numbers = (f"{number:.2f}" for number in numbers)
        rows.append((*fmt.labels(), fmt.bytes_per_token(), *numbers))
    return np.diff(row_offsets), rows


def is_per_token(fmt):
    """Whether values have f16 scales, or none, for a whole head of a token."""
    config = fmt.params.kvcache_quant_config
    if config is None:
        return fmt.params.dtype_shorthand == "bf16"
    is_head = config.quantization_granularity == fmt.params.head_dim
    return is_head and dtypes.mlir_name(config.scale_dtype) in ("f16", "bf16")


def main():
    parser = argparse.ArgumentParser(
        description="Prints the error of attention for each format and granularity of"
        " a quantized KV cache, on keys and values of a real model. The error is"
        " relative: the length of the difference by that of the exact result, for every"
        " token and head. Bytes are those of a token in one layer, keys and values with"
        " scales.",
        epilog=EXAMPLE,
    )
    parser.add_argument("--markdown", action="store_true", help="a Markdown table")
    parser.add_argument(
        "--outliers",
        action="store_true",
        help="the formats with scales of 16 bits, and keys with a channel far from zero",
    )
    options = parser.parse_args()
    try:
        encoder = Encoder.load()
        lengths, rows = measure(encoder, paragraphs(), options.outliers)
    except (kvcache.Error, ImportError, OSError) as error:
        fail(error)
    if not options.markdown:
        print(
            f"{encoder.layers} layers, {encoder.heads} heads of {encoder.head_size},"
            f" texts of {', '.join(map(str, lengths))} tokens\n"
        )
    print_table(COLUMNS, rows, options.markdown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
