#!/usr/bin/env python3
"""What quantizing a KV cache costs: the error of attention on a real model's data.

Queries, keys and values are those of a sentence encoder (encoder.py) on a few
paragraphs (text.txt). Keys and values go through a paged cache of each format, by
kernels that quantize and dequantize: `kvcache.store_quantized` and `kvcache.load`, on
the CPU. Attention over what comes back is compared with attention over what went in.
Exits with 2 where it cannot run.
"""

import argparse
import functools
import itertools
import os
import sys
from dataclasses import dataclass

EXAMPLE = "example: accuracy.py --markdown > accuracy.md"
PAGE_SIZE = 16

# On a busy machine, threads of such small products mostly wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def fail(message):
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


try:
    import kvcache
    import numpy as np
    from kvcache import dtypes
except ImportError as error:
    fail(
        f"{error}\n  scripts/setup.sh --build builds what is needed; then run\n"
        "  PYTHONPATH=build/python build/venv/bin/python examples/accuracy.py"
    )

from demo import progress
from encoder import Attention, Encoder, attention, paragraphs

# --- Formats ----------------------------------------------------------------------


@dataclass(frozen=True)
class Format:
    """How a cache holds its values; dtypes have MLIR's names.

    ``granularity`` is the number of elements of a head that share a scale of dtype
    ``scale``. With ``tensor_scale`` those are relative to one f32 for a whole array.
    """

    dtype: str
    scale: str = ""
    granularity: int = 0
    tensor_scale: bool = False
    known_as: str = ""

    @property
    def stored_dtype(self):
        """What the blocks' memory holds: bytes, where values have 4 bits."""
        return "i8" if self.dtype == "f4E2M1FN" else self.dtype

    def stored_size(self, head_size):
        """How many of them a head has: a byte holds two values of 4 bits."""
        return head_size // 2 if self.dtype == "f4E2M1FN" else head_size

    def labels(self):
        """What the table says: values, scales, granularity."""
        values = f"{self.dtype} ({self.known_as})" if self.known_as else self.dtype
        scales = f"{self.scale} and one f32" if self.tensor_scale else self.scale
        return values, scales or "-", self.granularity or "-"


def all_formats(head_size):
    """The formats of the table, in its order."""
    result = [Format(dtype) for dtype in ("bf16", "f16", "f8E4M3FN", "f8E5M2")]
    scales = {
        "f8E4M3FN": ("f32", "bf16", "f8E8M0FNU"),
        "f8E5M2": ("f32", "bf16", "f8E8M0FNU"),
        "i8": ("f32", "f16"),
    }
    granularities = head_size, head_size // 2, head_size // 4
    for dtype, scale_dtypes in scales.items():
        for scale, granularity in itertools.product(scale_dtypes, granularities):
            is_mx = scale == "f8E8M0FNU" and granularity == 32
            known_as = "MXFP8" if is_mx else ""
            result.append(Format(dtype, scale, granularity, known_as=known_as))
    nvfp4 = functools.partial(Format, "f4E2M1FN", "f8E4M3FN", 16, known_as="NVFP4")
    mxfp4 = Format("f4E2M1FN", "f8E8M0FNU", 32, known_as="MXFP4")
    return [*result, nvfp4(), nvfp4(tensor_scale=True), mxfp4]


# --- Kernels ----------------------------------------------------------------------


def source(fmt, heads, head_size):
    """MLIR of `append`, which writes an array into a cache, and of `read_back`."""
    cache = f"{fmt.dtype}, #kv, page_size = {PAGE_SIZE}"
    page = f"?x2x?x{PAGE_SIZE}x{heads}"
    scales = tensor_scale = ""
    store = f"""%narrow = arith.truncf %v : !head to vector<{head_size}x{fmt.dtype}>
      kvcache.store %narrow, %cache[%c0, %h, %t, %c0]
          : vector<{head_size}x{fmt.dtype}>, !cache"""
    if fmt.scale:
        cache += f", scale = {fmt.scale}, granularity = {fmt.granularity}"
        scales = f"!scales = memref<{page}x{head_size // fmt.granularity}x{fmt.scale}>"
        if fmt.tensor_scale:
            tensor_scale = " tensor_scale %tensor_scale"
        store = f"""kvcache.store_quantized %v, %cache[%c0, %h, %t, %c0]{tensor_scale}
          : !head, !cache"""
    append = f"""%v = vector.load %array[%t, %h, %c0] : !array, !head
      {store}"""
    read_back = f"""%v = kvcache.load %cache[%c0, %h, %t, %c0]{tensor_scale}
          : !cache -> !head
      vector.store %v, %array[%t, %h, %c0] : !array, !head"""
    return f"""
#kv = #kvcache.params<num_heads = {heads}, head_size = {head_size}>
!collection = !kvcache.paged_collection<{cache}>
!cache = !kvcache.paged<{cache}>
!blocks = memref<{page}x{fmt.stored_size(head_size)}x{fmt.stored_dtype}>
{scales}
!array = memref<?x{heads}x{head_size}xf32>
!head = vector<{head_size}xf32>
{function("append", fmt, heads, append)}
{function("read_back", fmt, heads, read_back)}"""


def function(name, fmt, heads, body):
    """A function that does something for every token and head of an array.

    The body finds the token in `%t` and the head in `%h`. The cache that it works on
    holds the keys of layer 0, of which sequence `%c0` is the array's.
    """
    parameter = ", %scales: !scales" if fmt.scale else ""
    operand = " scales %scales" if fmt.scale else ""
    operand_type = ", !scales" if fmt.scale else ""
    return f"""
func.func @{name}(%array: !array, %tensor_scale: f32, %lengths: memref<?xi32>,
                  %lut: memref<?x?xi32>, %blocks: !blocks{parameter}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %heads = arith.constant {heads} : index
  %tokens = memref.dim %array, %c0 : !array
  %max = arith.index_cast %tokens : index to i32
  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max{operand}
      : !blocks, memref<?xi32>, memref<?x?xi32>{operand_type} -> !collection
  %cache = kvcache.paged_view key %collection[%c0] : !collection
  scf.for %t = %c0 to %tokens step %c1 {{
    scf.for %h = %c0 to %heads step %c1 {{
      {body}
    }}
  }}
  return
}}"""


@functools.cache
def compiled(fmt, heads, head_size):
    return kvcache.jit(source(fmt, heads, head_size), target="cpu")


def cache_memory(fmt, pages, heads, head_size):
    """Blocks, and scales if any, of one layer: [pages, 2, 1, PAGE_SIZE, heads, …]."""
    page = pages, 2, 1, PAGE_SIZE, heads
    dtype = dtypes.dtype(fmt.stored_dtype)
    memory = [np.zeros((*page, fmt.stored_size(head_size)), dtype)]
    if fmt.scale:
        groups = head_size // fmt.granularity
        memory.append(np.zeros((*page, groups), dtypes.dtype(fmt.scale)))
    return memory


def bytes_per_token(fmt, heads, head_size):
    """Keys and values of one layer, with their scales."""
    memory = cache_memory(fmt, 1, heads, head_size)
    return sum(array.nbytes for array in memory) // PAGE_SIZE


def scale_of_array(fmt, array):
    """Its largest magnitude is then the largest value times the largest scale."""
    if not fmt.tensor_scale:
        return 1.0
    largest_value, largest_scale = 6, 448  # of f4E2M1FN and f8E4M3FN
    return float(np.abs(array).max()) / (largest_value * largest_scale)


def through_cache(array, fmt):
    """Writes an array into a cache of a format, and returns what the cache gives back.

    Both are f32 [tokens, heads, head_size].
    """
    tokens, heads, head_size = array.shape
    pages = -(-tokens // PAGE_SIZE)
    lut = np.arange(pages, dtype=np.uint32)[None, ::-1].copy()
    lengths = np.array([tokens], np.uint32)
    memory = cache_memory(fmt, pages, heads, head_size)
    scale = scale_of_array(fmt, array)
    program = compiled(fmt, heads, head_size)
    result = np.empty_like(array)
    program.call("append", array, scale, np.zeros_like(lengths), lut, *memory)
    program.call("read_back", result, scale, lengths, lut, *memory)
    return result


# --- Errors -----------------------------------------------------------------------


def split(layer, lengths):
    """One layer's queries, keys and values, taken apart into those of each text."""
    parts = (np.split(x.astype(np.float64), np.cumsum(lengths)[:-1]) for x in layer)
    return [Attention(*text) for text in zip(*parts)]


def layer_results(layer, lengths):
    """Attention within each text, f64 [tokens, heads, head_size] with all tokens."""
    return np.concatenate([attention(*text) for text in split(layer, lengths)])


def relative_errors(fmt, layers, lengths, exact):
    """|result - exact| / |exact| for every layer, token and head.

    Args:
        layers: An ``Attention`` for each layer, with the tokens of all texts.
        lengths: The number of tokens of each text.
        exact: The results without a cache, [layers, tokens, heads, head_size].
    """
    results = []
    for queries, keys, values in layers:
        keys, values = through_cache(keys, fmt), through_cache(values, fmt)
        results.append(layer_results(Attention(queries, keys, values), lengths))
    difference = np.linalg.norm(np.stack(results) - exact, axis=-1)
    return difference / np.linalg.norm(exact, axis=-1)


def measure(encoder, texts):
    """The rows of the table: labels, bytes; mean, 99th centile and largest error in %."""
    encoded = [encoder.encode(text)[1] for text in texts]
    lengths = [len(layers[0].keys) for layers in encoded]
    layers = [
        Attention(*map(np.concatenate, zip(*layer_of_each_text)))
        for layer_of_each_text in zip(*encoded)
    ]
    exact = np.stack([layer_results(layer, lengths) for layer in layers])
    rows = []
    for fmt in progress("formats", all_formats(encoder.head_size)):
        errors = 100 * relative_errors(fmt, layers, lengths, exact)
        size = bytes_per_token(fmt, encoder.heads, encoder.head_size)
        numbers = errors.mean(), np.percentile(errors, 99), errors.max()
        rows.append((*fmt.labels(), size, *(f"{number:.2f}" for number in numbers)))
    return lengths, rows


# --- The table --------------------------------------------------------------------

COLUMNS = (
    *("values", "scales", "granularity", "bytes"),
    *("mean error %", "99th centile %", "largest %"),
)
TEXT_COLUMNS = 2  # the first ones, aligned to the left


def table(rows, markdown):
    """The lines of the table, aligned."""
    rows = [tuple(map(str, row)) for row in [COLUMNS, *rows]]
    widths = [max(map(len, cells)) for cells in zip(*rows)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if i < TEXT_COLUMNS else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        ]
        lines.append(f"| {' | '.join(cells)} |" if markdown else "  ".join(cells))
    if markdown:
        rules = [
            "-" * width if i < TEXT_COLUMNS else "-" * (width - 1) + ":"
            for i, width in enumerate(widths)
        ]
        lines.insert(1, f"| {' | '.join(rules)} |")
    return lines


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
    options = parser.parse_args()
    try:
        encoder = Encoder()
        lengths, rows = measure(encoder, paragraphs())
    except (kvcache.Error, ImportError, OSError) as error:
        fail(error)
    if not options.markdown:
        print(
            f"{encoder.layers} layers, {encoder.heads} heads of {encoder.head_size},"
            f" texts of {', '.join(map(str, lengths))} tokens\n"
        )
    print("\n".join(table(rows, options.markdown)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
