#!/usr/bin/env python3
"""Serves a small language model: prompts in, tokens out, through a paged KV cache.

The model is NumPy (transformer.py), with random weights. Its keys and values go into
pages of a `kvcache.PagedKVCacheManager`, and attention reads them there, by
`kvcache.ops.append` and `kvcache.ops.attention`. Prompts share the pages of a common
prefix; requests join and leave at every step (batching.py). Every token and its logits
are compared with those of the model without a cache. Exits with 1 if they disagree,
with 2 if it cannot run.
"""

import argparse
import dataclasses
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from console import fail, fail_to_import, print_table, progress

# On a busy machine, threads of such small products mostly wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

try:
    import kvcache
    import numpy as np
    from kvcache import dtypes
    from kvcache.ops import Operation
except ImportError as error:
    fail_to_import(error)

import reference
from batching import Batcher, Request
from transformer import (
    Attention,
    Sizes,
    Transformer,
    causal_attention,
    rope_table,
)

SEED = 2026
PAGE_SIZE = 16
BATCH_SIZE = 8  # the most sequences in a step
PROMPT_TOKENS = 64  # new ones, from which on a step takes no further prompt
SWAP_SPACE_GB = 1 / 64
TOLERANCES = {"f32": 1e-4, "bf16": 5e-3, "f8E4M3FN": 0.05}  # of logits, mostly below 4


@dataclass(frozen=True)
class Workload:
    """The requests to serve, and the number of pages.

    Each prompt has the same ``prefix`` tokens, and up to ``own`` more.
    """

    sizes: Sizes = Sizes()
    prompts: int = 12
    new_tokens: int = 32
    pages: int = 32
    prefix: int = 72
    own: int = 40

    @property
    def longest(self) -> int:
        """The most tokens of a sequence."""
        return self.prefix + self.own + self.new_tokens


QUICK = Workload(
    Sizes(2, 64, query_heads=4, kv_heads=2, head_size=32, mlp=128, vocabulary=64),
    prompts=6,
    new_tokens=8,
    pages=9,
    prefix=24,
    own=12,
)

# --- The model's cache and kernels ------------------------------------------------


def cache_params(sizes: Sizes, dtype: str) -> kvcache.KVCacheParams:
    """The parameters of the model's cache; 8-bit ones have a scale per token's head."""
    config = None
    if dtype == "f8E4M3FN":
        config = kvcache.KVCacheQuantizationConfig(np.float32, sizes.head_size)
    return kvcache.KVCacheParams(
        dtype,
        sizes.kv_heads,
        sizes.head_size,
        page_size=PAGE_SIZE,
        total_num_layers=sizes.layers,
        kvcache_quant_config=config,
        enable_prefix_caching=True,
        enable_kvcache_swapping_to_host=True,
        host_kvcache_swap_space_gb=SWAP_SPACE_GB,
    )


@dataclass(frozen=True)
class Kernels:
    """The operations on a model's cache, and the rotation of each position."""

    append: Operation
    attention: Operation
    table: np.ndarray

    @classmethod
    def of(
        cls, params: kvcache.KVCacheParams, work: Workload, target: str
    ) -> "Kernels":
        heads, size = work.sizes.query_heads, work.sizes.head_size
        return cls(
            kvcache.ops.append(params, target, "f32", rope=size, query_heads=heads),
            kvcache.ops.attention(params, heads, target=target, dtype="f32"),
            rope_table(work.longest, size),
        )


def paged_attention(kernels: Kernels, inputs: kvcache.StepInputs) -> Attention:
    """Makes attention over the pages, after it appends the new keys and values.

    ``append`` also rotates the keys, and the queries in place.
    """

    def attention(
        layer: int, queries: np.ndarray, keys: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        kernels.append(inputs, layer, keys, values, queries, rope=kernels.table)
        out = np.empty_like(queries)
        scale = queries.shape[-1] ** -0.5
        kernels.attention(inputs, layer, queries, out=out, scale=scale)
        return out

    return attention


# --- Serving ----------------------------------------------------------------------


def make_requests(rng: np.random.Generator, work: Workload) -> list[Request]:
    """Makes prompts of random tokens, and requests with different numbers of new ones."""

    def tokens(count: int) -> np.ndarray:
        return rng.integers(work.sizes.vocabulary, size=count)

    prefix = tokens(work.prefix)
    return [
        Request(
            f"request {i}",
            np.concatenate([prefix, tokens(rng.integers(1, work.own + 1))]),
            int(rng.integers((work.new_tokens + 1) // 2, work.new_tokens + 1)),
        )
        for i in range(work.prompts)
    ]


@dataclass
class Usage:
    """The peak use of pages: number of sequences, their pages, and distinct pages."""

    sequences: int = 0
    pages: int = 0
    distinct: int = 0

    def note(self, snapshot: kvcache.CacheSnapshot) -> None:
        resident = [each for each in snapshot.sequences if each.is_resident]
        pages = [page for sequence in resident for page in sequence.pages]
        if len(pages) > self.pages:
            self.sequences, self.pages = len(resident), len(pages)
            self.distinct = len(set(pages))


@dataclass
class Server:
    """Serves requests in batches; keeps the logits of each token."""

    model: Transformer
    cache: kvcache.PagedKVCacheManager
    kernels: Kernels
    batcher: Batcher
    logits: dict[str, list[np.ndarray]] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)

    def serve(self) -> Iterator[Request]:
        """Yields each request when it has all its tokens."""
        while batch := self.batcher.next_batch():
            self.usage.note(self.cache.snapshot())
            inputs = self.cache.inputs([request.name for request in batch])
            attention = paged_attention(self.kernels, inputs)
            logits = self.model.logits(inputs.tokens, attention)
            last = logits[inputs.row_offsets[1:] - 1]
            for request, row in zip(batch, last):
                self.logits.setdefault(request.name, []).append(row)
            self.batcher.finish_step(last.argmax(axis=-1))
            yield from (request for request in batch if request.is_done)


# --- Comparing --------------------------------------------------------------------


@dataclass
class Comparison:
    """The tokens equal to the model's without a cache, and logits' differences."""

    tokens: int = 0
    same: int = 0
    largest: float = 0.0

    def add(
        self,
        model: Transformer,
        request: Request,
        logits: list[np.ndarray],
        stored: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        """Recomputes all tokens of a request at once.

        Attention is causal: the logits of a token do not depend on later tokens.

        Args:
            model: The model that served it.
            request: The prompt, and the generated tokens.
            logits: The logits from which each token was chosen.
            stored: The rounding of keys and values by the cache's format.
        """
        tokens = request.tokens[:-1]
        attention = causal_attention(stored)
        rows = model.logits(tokens, attention)
        rows = rows[len(request.prompt) - 1 :]
        self.tokens += len(rows)
        self.same += int((rows.argmax(axis=-1) == request.generated).sum())
        self.largest = max(self.largest, float(np.abs(rows - logits).max()))

    def __str__(self) -> str:
        return (
            f"{self.same} of {self.tokens} tokens are the same, logits differ by"
            f" {self.largest:.1e} at most"
        )


def unchanged(x: np.ndarray) -> np.ndarray:
    return x


def stored_as(params: kvcache.KVCacheParams) -> Callable[[np.ndarray], np.ndarray]:
    """The rounding of keys and values by a cache's format."""
    if params.kvcache_quant_config:
        return lambda x: reference.dequantize(*reference.quantize(x, groups=1))
    return lambda x: x.astype(params.dtype).astype(np.float64)


def compare(server: Server, requests: list[Request], dtype: str) -> bool:
    """Prints the comparison of the tokens, and returns whether they are right.

    In f32 all must be equal. If the cache rounds, the model without one rounds keys and
    values likewise; then a sum in another order may round differently.
    """
    rounded, exact = Comparison(), Comparison()
    stored = stored_as(server.cache.params)
    for request in progress("comparing", requests):
        logits = server.logits[request.name]
        rounded.add(server.model, request, logits, stored)
        if dtype != "f32":
            exact.add(server.model, request, logits, unchanged)
    agrees = rounded.largest <= TOLERANCES[dtype]
    if dtype == "f32":
        agrees &= rounded.same == rounded.tokens
    print(f"{'agrees' if agrees else 'DISAGREES'} with no cache: {rounded}")
    if dtype != "f32":
        print(f"what {dtype} costs, against f32: {exact}")
    return agrees


# --- The tables -------------------------------------------------------------------


def print_workload(work: Workload, params: kvcache.KVCacheParams) -> None:
    sizes = work.sizes
    print(
        f"{sizes.layers} layers, {sizes.query_heads} query heads over {sizes.kv_heads}"
        f" KV heads of {sizes.head_size}, {dtypes.mlir_name(params.dtype)};"
        f" {work.pages} pages of {PAGE_SIZE} tokens, {params.bytes_per_block / 1024:g}"
        f" KiB each\n{work.prompts} prompts of {work.prefix + 1} to"
        f" {work.prefix + work.own} tokens, {work.prefix} of them shared; up to"
        f" {work.new_tokens} new tokens each\n"
    )


def print_memory(work: Workload, usage: Usage, params: kvcache.KVCacheParams) -> None:
    continuous = usage.sequences * -(-work.longest // PAGE_SIZE)
    rows = [
        ("continuous, each as long as the longest", continuous),
        ("paged, nothing shared", usage.pages),
        ("paged, with shared prefixes", usage.distinct),
    ]
    print_table(
        (f"cache of {usage.sequences} sequences, at most", "pages", "KiB", "%"),
        [
            (
                name,
                pages,
                f"{pages * params.bytes_per_block / 1024:g}",
                round(100 * pages / continuous),
            )
            for name, pages in rows
        ],
    )
    print()


def print_sharing(work: Workload, dtype: str) -> None:
    """Serves again on the CPU, with pages for all: no request waits for others."""
    pages = work.prompts * -(-work.longest // PAGE_SIZE)
    params = cache_params(work.sizes, dtype)
    server, requests = make_server(
        dataclasses.replace(work, pages=pages), params, "cpu"
    )
    for _ in progress("serving again", server.serve(), total=len(requests)):
        pass
    usage = server.usage
    saved = usage.pages - usage.distinct
    print(
        f"with {pages} pages, which hold every request: {usage.sequences} sequences at once"
        f" have {usage.pages} pages, {usage.distinct} of them distinct: sharing saves"
        f" {round(100 * saved / usage.pages)} %, {saved * params.bytes_per_block / 1024:g} KiB"
    )


def print_time_without_cache(server: Server, request: Request) -> None:
    """Recomputes all tokens before each new one, for one request."""
    count = len(request.generated)
    start = time.perf_counter()
    for i in range(len(request.prompt), len(request.prompt) + count):
        tokens = request.tokens[:i]
        server.model.logits(tokens, causal_attention(unchanged))
    seconds = time.perf_counter() - start
    print(
        f"without a cache, alone, a request has {round(count / seconds)} new tokens/s\n"
    )


def print_speed(server: Server, seconds: float) -> None:
    counts = server.batcher.counts
    new_tokens = sum(map(len, server.logits.values()))
    columns = "steps", "prompt tokens", "shared tokens", "swapped out", "restarted"
    print_table(
        (*columns, "new tokens", "steps/s", "new tokens/s"),
        [
            (
                *(counts[name] for name in columns),
                new_tokens,
                round(counts["steps"] / seconds),
                round(new_tokens / seconds),
            )
        ],
    )
    print()


# --- The program ------------------------------------------------------------------


def make_server(
    work: Workload, params: kvcache.KVCacheParams, target: str
) -> tuple[Server, list[Request]]:
    """Makes a server of a model with its cache and kernels, and its requests."""
    cache = kvcache.PagedKVCacheManager(
        params,
        max_batch_size=BATCH_SIZE,
        max_seq_len=work.longest,
        num_pages=work.pages,
    )
    kernels = Kernels.of(params, work, target)
    requests = make_requests(np.random.default_rng(SEED), work)
    batcher = Batcher(cache, requests, PROMPT_TOKENS)
    return Server(Transformer(work.sizes, SEED), cache, kernels, batcher), requests


def run(work: Workload, dtype: str, target: str) -> bool:
    """Returns whether served tokens equal those of the model without a cache."""
    params = cache_params(work.sizes, dtype)
    print_workload(work, params)
    server, requests = make_server(work, params, target)
    start = time.perf_counter()
    for _ in progress("serving", server.serve(), total=len(requests)):
        pass
    seconds = time.perf_counter() - start
    print_memory(work, server.usage, params)
    print_sharing(work, dtype)
    print()
    print_speed(server, seconds)
    print_time_without_cache(server, requests[0])
    return compare(server, requests, dtype)


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expects a positive integer, got {text!r}")
    return int(text)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Serves a small language model with random weights through a paged"
        " KV cache: prefix caching, continuous batching, swapping to host memory."
        " Compares every token with what the model gives without a cache.",
        epilog="example: decode.py --prompts 20 --pages 24 --dtype f8E4M3FN",
    )
    numbers = {
        "prompts": "how many there are",
        "new_tokens": "how many may follow a prompt",
        "pages": f"pages of {PAGE_SIZE} tokens on the device",
    }
    for name, text in numbers.items():
        default, quick = getattr(Workload, name), getattr(QUICK, name)
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=positive,
            metavar="N",
            help=f"{text}, default {default}, with --quick {quick}",
        )
    parser.add_argument(
        "--dtype", choices=TOLERANCES, default="f32", help="of the cache, default f32"
    )
    parser.add_argument(
        "--target",
        default="cpu",
        help="what runs the kernels: cpu, the default, or emulator:CHIP, such as"
        " emulator:sm_90a, best with --quick",
    )
    parser.add_argument(
        "--quick", action="store_true", help="a tiny model, fewer prompts and pages"
    )
    return parser.parse_args()


def main() -> int:
    options = parse_options()
    given = {
        name: value
        for name in ("prompts", "new_tokens", "pages")
        if (value := getattr(options, name)) is not None
    }
    work = dataclasses.replace(QUICK if options.quick else Workload(), **given)
    try:
        agrees = run(work, options.dtype, options.target)
    except (kvcache.Error, ValueError) as error:
        fail(error)
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
