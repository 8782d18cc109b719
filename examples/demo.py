#!/usr/bin/env python3
"""Compiles gather, append and attention for several chips, and runs them on the CPU.

The cache has Llama-3-8B's shape: 32 layers, 8 KV heads of 128, pages of 64 tokens,
bf16, a ragged batch whose pages lie shuffled in the pool. Every result is compared
with NumPy's. Exits with 1 where anything disagrees, with 2 where it cannot run.
"""

import argparse
import itertools
import sys
import time
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent


def fail(message):
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


try:
    import kvcache
    import ml_dtypes
    import numpy as np
except ImportError as error:
    fail(
        f"{error}\n  scripts/demo builds what is needed and runs this; or, in a built"
        " tree:\n  PYTHONPATH=build/python build/venv/bin/python examples/demo.py"
    )

import reference

CHIPS = ["sm_80", "sm_90a", "sm_100a"]
LAYERS, HEADS, HEAD_SIZE, PAGE_SIZE, QUERY_HEADS = 32, 8, 128, 64, 32
PROMPTS = [4095, 1537, 0, 64, 513, 63]  # tokens in the cache; the third is empty
STEP = [1, 1, 0, 1, 1, 2]  # tokens that one step appends
SCALE = HEAD_SIZE**-0.5


def source(name):
    return EXAMPLES / f"{name}.mlir"


def progress(what, items):
    """Passes the items on and says how far it is, on stderr."""
    terminal = sys.stderr.isatty()
    shown = time.monotonic()
    for i, item in enumerate(items, start=1):
        yield item
        if terminal:
            sys.stderr.write(f"\r{what}: {i}/{len(items)}\033[K")
            sys.stderr.flush()
        elif time.monotonic() - shown > 2:
            print(f"{what}: {i}/{len(items)}", file=sys.stderr)
            shown = time.monotonic()
    if terminal:
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()


# --- For GPUs: compile ------------------------------------------------------------


def compile_examples(chips):
    """Prints a line for each kernel and chip."""
    columns = "kernel", "chip", "parameters", "registers", "spills", "SASS", "ms"
    rows = []
    jobs = list(itertools.product(("gather", "append", "attention"), chips))
    for name, chip in progress("compiling", jobs):
        start = time.perf_counter()
        program = kvcache.compile(source(name), target=chip, format="cubin")
        milliseconds = 1000 * (time.perf_counter() - start)
        for kernel in program.kernels.values():
            rows.append(
                (
                    kernel.name,
                    kernel.chip,
                    len(kernel.parameters),
                    kernel.registers,
                    kernel.spill_bytes,
                    kernel.sass_instructions,
                    round(milliseconds),
                )
            )
    print_table(columns, rows)


def print_table(columns, rows):
    """Text to the left, numbers to the right."""
    rows = [tuple("-" if cell is None else cell for cell in row) for row in rows]
    widths = [max(len(str(cell)) for cell in cells) for cells in zip(columns, *rows)]
    for row in [columns, *rows]:
        cells = [
            str(cell).ljust(width) if i < 2 else str(cell).rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        ]
        print("  ".join(cells))


# --- On the CPU: run and compare --------------------------------------------------


def random_bits(rng, shape):
    """bf16 of any kind, NaNs too: a move must keep every bit."""
    words = rng.bit_generator.random_raw(int(np.prod(shape)) // 4)
    return words.view(ml_dtypes.bfloat16).reshape(shape)


def random_numbers(rng, shape):
    return rng.standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16)


def offsets(counts):
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)


def page_table(rng, lengths):
    """Shuffled pages for the lengths, and how many there are with the null page.

    Unused entries name the null page, the last one. Rows are rounded up to 8 columns,
    plus 16, so that a wide read of the table stays inside.
    """
    counts = -(-lengths.astype(np.int64) // PAGE_SIZE)
    null_page = int(counts.sum())
    columns = -(-int(counts.max()) // 8) * 8 + 16
    lut = np.full((len(lengths), columns), null_page, np.uint32)
    pages = rng.permutation(null_page)
    for row, start, count in zip(lut, offsets(counts), counts):
        row[:count] = pages[start : start + count]
    return lut, null_page + 1


class Results:
    """Prints what agreed, and remembers whether everything did."""

    def __init__(self):
        self.agree = True

    def add(self, what, agrees, detail, seconds):
        self.agree &= bool(agrees)
        verdict = "agrees" if agrees else "DISAGREES"
        print(f"{what:<34}{verdict}: {detail} ({seconds:.2f} s)")


def count_differences(a, b):
    """How many elements differ in any bit; a slice at a time, to save memory."""
    pairs = zip(a.view(np.uint16), b.view(np.uint16))
    return sum(np.count_nonzero(x != y) for x, y in pairs)


class Cache:
    """A paged cache, and a model of it that only NumPy writes."""

    def __init__(self, rng, layers):
        self.before = np.array(PROMPTS, np.uint32)
        self.after = self.before + np.array(STEP, np.uint32)
        self.lut, pages = page_table(rng, self.after)
        shape = pages, 2, layers, PAGE_SIZE, HEADS, HEAD_SIZE
        self.blocks = random_bits(rng, shape)
        self.model = self.blocks.copy()
        print(
            f"{layers} layers, {pages} pages of {self.blocks[0].nbytes / 2**20:g} MiB,"
            f" tokens per sequence {self.after.tolist()}"
        )

    def arguments(self, lengths, max_seq):
        """The arguments that every example begins with."""
        return self.blocks, lengths, self.lut, int(max_seq), int(lengths.max())


def run_append(rng, cache, layers, attention_layers, results):
    """Prompts for some layers, then one step's tokens for all.

    The whole pool is compared: nothing else may change.
    """
    program = kvcache.jit(source("append"), target="cpu")
    seconds = 0.0

    def append(what, counts, lengths, layers, make):
        nonlocal seconds
        rows = offsets(counts)
        for layer in progress(what, layers):
            shape = int(rows[-1]), HEADS, HEAD_SIZE
            new = make(rng, shape), make(rng, shape)
            start = time.perf_counter()
            arguments = cache.arguments(lengths, max(counts))
            program.call("append", *arguments, layer, *new, rows)
            seconds += time.perf_counter() - start
            reference.append(cache.model, lengths, cache.lut, layer, *new, rows)

    nothing = np.zeros_like(cache.before)
    append("prompts", PROMPTS, nothing, attention_layers, random_numbers)
    others = [layer for layer in layers if layer not in attention_layers]
    append("next tokens", STEP, cache.before, others, random_bits)
    append("next tokens", STEP, cache.before, attention_layers, random_numbers)

    differ = count_differences(cache.blocks, cache.model)
    tokens = sum(PROMPTS) * len(attention_layers) + sum(STEP) * len(layers)
    elements = cache.blocks.size
    detail = f"{tokens} tokens; {differ} of {elements} elements of the pool differ"
    results.add(f"append, {len(layers)} layers", differ == 0, detail, seconds)


def run_gather(cache, layers, results):
    """A contiguous copy of the keys, some zero columns after the longest sequence."""
    program = kvcache.jit(source("gather"), target="cpu")
    tokens = int(cache.after.max()) + 3
    shape = len(cache.after), tokens, HEADS, HEAD_SIZE
    seconds, differ = 0.0, 0
    for layer in progress("gather", layers):
        out = np.full(shape, np.nan, ml_dtypes.bfloat16)
        start = time.perf_counter()
        program.call("gather_keys", *cache.arguments(cache.after, 1), layer, out)
        seconds += time.perf_counter() - start
        model = cache.model, cache.after, cache.lut, layer
        expected = reference.gather(*model, reference.KEYS, tokens)
        differ += count_differences(out, expected)
    elements = len(layers) * out.size
    detail = f"{differ} of {elements} elements differ"
    results.add(f"gather, {len(layers)} layers", differ == 0, detail, seconds)


def run_attention(rng, cache, layers, results):
    """A query token per sequence; what bf16 loses of the float64 result is allowed."""
    program = kvcache.jit(source("attention"), target="cpu")
    shape = len(cache.after), QUERY_HEADS, HEAD_SIZE
    seconds, largest_error, largest, agrees = 0.0, 0.0, 0.0, True
    for layer in progress("attention", layers):
        q = random_numbers(rng, shape)
        out = np.full(shape, np.nan, ml_dtypes.bfloat16)
        start = time.perf_counter()
        arguments = cache.arguments(cache.after, 1)
        program.call("attention_cpu", *arguments, layer, SCALE, q, out)
        seconds += time.perf_counter() - start
        model = cache.model, cache.after, cache.lut, layer
        expected = reference.attention(*model, SCALE, q)
        error = np.abs(out.astype(np.float64) - expected)
        agrees &= bool((error <= 2.0**-8 * np.abs(expected) + 1e-5).all())
        largest_error = max(largest_error, error.max())
        largest = max(largest, np.abs(expected).max())
    detail = f"largest error {largest_error:.1e}, values up to {largest:.2f}"
    results.add(f"attention, {len(layers)} layers", agrees, detail, seconds)


def run_examples(quick):
    """Whether every example agrees with NumPy."""
    layers = range(4 if quick else LAYERS)
    attention_layers = [layers[0], layers[-1]] if quick else [0, 15, 31]
    rng = np.random.Generator(np.random.SFC64(2024))
    results = Results()
    cache = Cache(rng, len(layers))
    run_append(rng, cache, layers, attention_layers, results)
    run_gather(cache, layers if quick else layers[::4], results)
    run_attention(rng, cache, attention_layers, results)
    return results.agree


def main():
    parser = argparse.ArgumentParser(
        description="Compiles gather, append and attention for several chips, then runs"
        " them on the CPU on a cache of Llama-3-8B's shape and compares with NumPy.",
        epilog="example: demo.py --quick --chips sm_90a,sm_120a",
    )
    parser.add_argument(
        "--chips",
        type=lambda text: text.split(","),
        default=CHIPS,
        help=f"chips to compile for, default {','.join(CHIPS)}",
    )
    parser.add_argument("--quick", action="store_true", help="4 layers instead of 32")
    options = parser.parse_args()
    start = time.perf_counter()
    try:
        compile_examples(options.chips)
        print()
        agree = run_examples(options.quick)
    except (kvcache.Error, ImportError, ValueError) as error:
        fail(error)
    seconds = time.perf_counter() - start
    print(f"\n{'all agree' if agree else 'NOT ALL AGREE'}, {seconds:.1f} s")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
