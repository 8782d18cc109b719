#!/usr/bin/env python3
"""Compiles the examples for several chips, and runs most of them on the CPU.

Two of them, and attention, also run on the emulator for each chip: decode, a prompt,
MLA and sparse rows.

The cache has Llama-3-8B's shape: 32 layers, 8 KV heads of 128, pages of 64 tokens,
bf16, and a ragged batch whose pages are shuffled in the pool. One layer is quantized to
fp8 as well. Every result is compared with NumPy's. The first line is a summary, and
--verbose adds the tables. Exits with 1 if a result disagrees, with 2 if it cannot run.
"""

import argparse
import itertools
import re
import sys
import time
from pathlib import Path

from console import fail, fail_to_import, print_table, progress

EXAMPLES = Path(__file__).resolve().parent

try:
    import kvcache
    import ml_dtypes
    import numpy as np
except ImportError as error:
    fail_to_import(error)

import demo_attention
import reference

CHIPS = ["sm_80", "sm_90a", "sm_100a"]
COLUMNS = (
    *("kernel", "chip", "parameters", "registers", "spills", "SASS"),
    *("copies into tiles", "ms"),
)
SPILLS = COLUMNS.index("spills")
KERNELS = [
    "gather",
    "append",
    "attention",
    "append_fp8",
    "attention_fp8",
    "key_tile",
    "sparse_mla",
    "attention_pipe",
]
COPIES = {
    "gather4": r"cp\.async\.bulk\.tensor\S*::gather4",
    "tensor copies": r"cp\.async\.bulk\.tensor\S*\.tile\.",
    "bulk copies": r"cp\.async\.bulk\.shared",
    "cp.async": r"cp\.async\.c[ag]\.",
}
LAYERS, HEADS, HEAD_SIZE, PAGE_SIZE, QUERY_HEADS = 32, 8, 128, 64, 32
PROMPTS = [4095, 1537, 0, 64, 513, 63]  # tokens in the cache; the third is empty
STEP = [1, 1, 0, 1, 1, 2]  # tokens that one step appends
SCALE = HEAD_SIZE**-0.5
FP8_LAYERS = 2  # of the fp8 caches, which are filled from one layer of the bf16 cache
FP8_FUNCTIONS = [  # scales of a token's head, and the functions that append and attend
    ("fp8 per token", 1, "append_per_token_cpu", "attention_per_token_cpu"),
    ("fp8 per group", 4, "append_per_group", "attention_per_group_cpu"),
]


def source(name):
    return EXAMPLES / f"{name}.mlir"


# --- For GPUs: compile ------------------------------------------------------------


def count_copies(ptx):
    """The instructions that copy tiles to shared memory, such as "16 gather4"."""
    counts = {what: len(re.findall(copy, ptx)) for what, copy in COPIES.items()}
    return ", ".join(f"{n} {what}" for what, n in counts.items() if n) or "-"


def compile_examples(chips):
    """Returns a row of COLUMNS for each kernel and chip."""
    rows = []
    jobs = list(itertools.product(KERNELS, chips))
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
                    count_copies(kernel.ptx),
                    round(milliseconds),
                )
            )
    return rows


# --- On the CPU: run and compare --------------------------------------------------


def random_bits(rng, shape, dtype=ml_dtypes.bfloat16):
    """Random numbers, including NaNs: a move must keep every bit."""
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return rng.bit_generator.random_raw(nbytes // 8).view(dtype).reshape(shape)


def random_numbers(rng, shape):
    return rng.standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16)


def offsets(counts):
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)


def page_table(rng, lengths):
    """Makes shuffled pages for the lengths; returns their number with the null page,
    too.

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
    """The rows of all results, and those that disagree with NumPy's."""

    columns = "result", "verdict", "detail", "s"

    def __init__(self):
        self.rows, self.disagreeing = [], []

    def add(self, what, agrees, detail, seconds):
        row = what, "agrees" if agrees else "DISAGREES", detail, f"{seconds:.2f}"
        self.rows.append(row)
        if not agrees:
            self.disagreeing.append(row)


def count_differences(a, b):
    """Counts elements that differ in any bit; a slice at a time, to save memory."""
    bits = f"u{a.itemsize}"
    pairs = zip(a.view(bits), b.view(bits))
    return sum(np.count_nonzero(x != y) for x, y in pairs)


class Cache:
    """A paged cache, and a model of it, written only by NumPy."""

    def __init__(self, rng, layers):
        self.before = np.array(PROMPTS, np.uint32)
        self.after = self.before + np.array(STEP, np.uint32)
        self.lut, pages = page_table(rng, self.after)
        shape = pages, 2, layers, PAGE_SIZE, HEADS, HEAD_SIZE
        self.blocks = random_bits(rng, shape)
        self.model = self.blocks.copy()

    def __str__(self):
        pages, layers = self.blocks.shape[0], self.blocks.shape[2]
        return (
            f"{layers} layers, {pages} pages of {self.blocks[0].nbytes / 2**20:g} MiB,"
            f" tokens per sequence {self.after.tolist()}"
        )

    def arguments(self, lengths, max_seq):
        """The first arguments of every example."""
        return self.blocks, lengths, self.lut, int(max_seq), int(lengths.max())


def run_append(rng, cache, layers, attention_layers, results):
    """Appends prompts to some layers, then one step's tokens to all.

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
    """Gathers the keys to a dense copy, with zeros after the longest sequence."""
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


def run_attention(what, program, function, jobs, results):
    """Runs the function for each job, and compares within the rounding of bf16.

    A job is the arguments up to the layer, a query token per sequence, and the result
    in float64.
    """
    outs = []
    seconds, largest_error, largest, agrees = 0.0, 0.0, 0.0, True
    for arguments, q, expected in progress(what, jobs):
        out = np.full(q.shape, np.nan, ml_dtypes.bfloat16)
        start = time.perf_counter()
        program.call(function, *arguments, SCALE, q, out)
        seconds += time.perf_counter() - start
        error = np.abs(out.astype(np.float64) - expected)
        agrees &= bool((error <= 2.0**-8 * np.abs(expected) + 1e-5).all())
        largest_error = max(largest_error, error.max())
        largest = max(largest, np.abs(expected).max())
        outs.append(out)
    detail = f"largest error {largest_error:.1e}, values up to {largest:.2f}"
    results.add(what, agrees, detail, seconds)
    return outs


def attention_jobs(rng, cache, layers):
    """Makes random queries for some layers, and the expected attention."""
    jobs = []
    for layer in layers:
        q = random_numbers(rng, (len(cache.after), QUERY_HEADS, HEAD_SIZE))
        model = cache.model, cache.after, cache.lut, layer
        expected = reference.attention(*model, SCALE, q)
        jobs.append(((*cache.arguments(cache.after, 1), layer), q, expected))
    return jobs


# --- The same in fp8 --------------------------------------------------------------


class QuantizedCache:
    """An fp8 cache for the sequences of another cache, and a model of it."""

    def __init__(self, rng, cache, groups):
        self.lut = cache.lut
        shape = cache.blocks.shape[0], 2, FP8_LAYERS, PAGE_SIZE, HEADS
        self.blocks = random_bits(rng, (*shape, HEAD_SIZE), reference.FP8)
        self.scales = random_bits(rng, (*shape, groups), np.float32)
        self.model, self.model_scales = self.blocks.copy(), self.scales.copy()

    def arguments(self, lengths, max_seq, layer):
        """The first arguments of the fp8 examples."""
        table = lengths, self.lut, int(max_seq), int(lengths.max())
        return self.blocks, *table, self.scales, layer


def appended_tokens(cache, layer):
    """The tokens of a layer of the cache in two appends: the prompts, the step.

    Each has the lengths before it, the tokens per sequence, keys, and values.
    """
    model = cache.model, cache.after, cache.lut, layer
    tokens = int(cache.after.max())
    everything = [
        reference.gather(*model, kv, tokens) for kv in (reference.KEYS, reference.VALUES)
    ]
    nothing = np.zeros_like(cache.before)
    for lengths, counts in (nothing, PROMPTS), (cache.before, STEP):
        new = [
            np.concatenate([x[t : t + n] for x, t, n in zip(xs, lengths, counts)])
            for xs in everything
        ]
        yield lengths, counts, *new


def run_append_fp8(name, program, function, quantized, steps, results):
    """Appends, and compares the whole pool: nothing else may change."""
    layer = FP8_LAYERS - 1
    seconds = 0.0
    for lengths, counts, *new in steps:
        rows = offsets(counts)
        start = time.perf_counter()
        arguments = quantized.arguments(lengths, max(counts), layer)
        program.call(function, *arguments, *new, rows)
        seconds += time.perf_counter() - start
        model = quantized.model, quantized.model_scales, lengths, quantized.lut, layer
        reference.append_quantized(*model, *new, rows)
    differ = count_differences(quantized.blocks, quantized.model)
    scales_differ = count_differences(quantized.scales, quantized.model_scales)
    detail = (
        f"{differ} of {quantized.blocks.size} elements and {scales_differ} of"
        f" {quantized.scales.size} scales differ"
    )
    results.add(f"append, {name}", differ + scales_differ == 0, detail, seconds)


def run_fp8(rng, cache, layer, q, results):
    """Quantizes a layer's keys and values; returns attention for the queries."""
    appends = kvcache.jit(source("append_fp8"), target="cpu")
    attends = kvcache.jit(source("attention_fp8"), target="cpu")
    steps = list(appended_tokens(cache, layer))
    outs = {}
    for name, groups, append, attend in FP8_FUNCTIONS:
        quantized = QuantizedCache(rng, cache, groups)
        run_append_fp8(name, appends, append, quantized, steps, results)
        model = quantized.model, cache.after, cache.lut, FP8_LAYERS - 1
        expected = reference.attention(*model, SCALE, q, quantized.model_scales)
        arguments = quantized.arguments(cache.after, 1, FP8_LAYERS - 1)
        jobs = [(arguments, q, expected)]
        what = f"attention, {name}"
        (outs[name],) = run_attention(what, attends, attend, jobs, results)
    return outs


def compare_formats(outs, exact):
    """Returns rows of errors against the exact result, one per format of the cache."""
    groups = {name: groups for name, groups, *_ in FP8_FUNCTIONS}
    rows = []
    for name, out in outs.items():
        bits = 8 + 32 * groups[name] / HEAD_SIZE if name in groups else 16.0
        error = out.astype(np.float64) - exact
        percent = 100 * np.linalg.norm(error) / np.linalg.norm(exact)
        rows.append((name, bits, round(float(percent), 2)))
    return rows


# --- On the emulator: run the chips' kernels --------------------------------------


def run_emulated(chips, cache, layer, results):
    """Gathers a layer's keys by the kernels of each chip: directly, and through tiles."""
    tokens = int(cache.after.max()) + 3
    model = cache.model, cache.after, cache.lut, layer
    expected = reference.gather(*model, reference.KEYS, tokens)
    by_head = np.ascontiguousarray(expected.swapaxes(1, 2))
    jobs = [
        ("gather", "gather_keys", expected),
        ("key_tile", "copy_keys", by_head),
    ]
    for chip, (name, function, keys) in itertools.product(chips, jobs):
        program = kvcache.jit(source(name), target=f"emulator:{chip}")
        out = np.full(keys.shape, np.nan, ml_dtypes.bfloat16)
        start = time.perf_counter()
        program.call(function, *cache.arguments(cache.after, 1), layer, out)
        seconds = time.perf_counter() - start
        differ = count_differences(out, keys)
        detail = f"{differ} of {out.size} elements differ, no error found"
        results.add(f"{name}, emulated {chip}", differ == 0, detail, seconds)


def run_examples(quick, chips):
    """Returns the cache, the results, and the errors of the cache's formats."""
    layers = range(3 if quick else LAYERS)
    attention_layers = [layers[0], layers[-1]] if quick else [0, 15, 31]
    rng = np.random.Generator(np.random.SFC64(2024))
    results = Results()
    cache = Cache(rng, len(layers))
    run_append(rng, cache, layers, attention_layers, results)
    run_gather(cache, layers if quick else layers[::4], results)
    program = kvcache.jit(source("attention"), target="cpu")
    jobs = attention_jobs(rng, cache, attention_layers)
    what = f"attention, {len(jobs)} layers"
    outs = run_attention(what, program, "attention_cpu", jobs, results)
    _, q, exact = jobs[0]
    fp8_outs = run_fp8(rng, cache, attention_layers[0], q, results)
    run_emulated(chips, cache, attention_layers[0], results)
    demo_attention.run(rng, chips, results)
    return cache, results, compare_formats({"bf16": outs[0], **fp8_outs}, exact)


def summarize(kernels, chips, results):
    """Returns the summary line."""
    spilling = sum(row[SPILLS] > 0 for row in kernels)
    spills = f"{spilling} of them spill" if spilling else "none spills"
    agree = f"all {len(results.rows)} results agree with NumPy's"
    if results.disagreeing:
        count = len(results.disagreeing)
        agree = f"{count} OF {len(results.rows)} RESULTS DISAGREE with NumPy's"
    chip_count = f"{len(chips)} chip{'s' if len(chips) > 1 else ''}"
    return f"{len(kernels)} kernels for {chip_count}, {spills}, {agree}"


def main():
    parser = argparse.ArgumentParser(
        description="Compiles the examples for several chips, then runs gather, append"
        " and attention, in bf16 and fp8, on the CPU, and two kernels of each chip on"
        " the emulator, on a cache of Llama-3-8B's shape, and attention of a batch on"
        " both, and compares with NumPy.",
        epilog="example: demo.py --quick --chips sm_90a,sm_120a",
    )
    parser.add_argument(
        "--chips",
        type=lambda text: text.split(","),
        default=CHIPS,
        help=f"chips to compile for, default {','.join(CHIPS)}",
    )
    parser.add_argument("--quick", action="store_true", help="3 layers instead of 32")
    parser.add_argument("--verbose", action="store_true", help="show the tables, too")
    options = parser.parse_args()
    start = time.perf_counter()
    try:
        kernels = compile_examples(options.chips)
        cache, results, errors = run_examples(options.quick, options.chips)
    except (kvcache.Error, ImportError, ValueError) as error:
        fail(error)
    seconds = time.perf_counter() - start
    print(f"{summarize(kernels, options.chips, results)} ({seconds:.1f} s)")
    if options.verbose:
        print()
        print_table(COLUMNS, kernels)
        print(f"\n{cache}\n")
        print_table(Results.columns, results.rows)
        print()
        print_table(("cache", "bits per element", "error of attention in %"), errors)
    elif results.disagreeing:
        print_table(Results.columns, results.disagreeing)
    return bool(results.disagreeing)


if __name__ == "__main__":
    sys.exit(main())
