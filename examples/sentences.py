#!/usr/bin/env python3
"""Embeds sentences by a real model through the paged cache in bf16, fp8 and int8.

The model is that of encoder.py, except for attention. In each layer a compiled kernel
appends keys and values to the pages of a `PagedKVCacheManager`, and another attends to
them through the page table. The embeddings of sentences.txt are compared with those
without a cache: by their angle, and whether every sentence has the same most similar
one. Exits with 1 if they don't agree, with 2 if it cannot run.
"""

import argparse
import functools
import itertools
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

from console import fail, fail_to_import, print_table, progress

# On a busy machine, threads of such small products mostly wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

try:
    import kvcache
    import numpy as np
except ImportError as error:
    fail_to_import(error)

from encoder import MAX_TOKENS, Encoder, embeddings

SENTENCES = Path(__file__).resolve().with_name("sentences.txt")
PAGE_SIZE = 8
BATCH = 8  # sentences in the cache at a time
TIE = 0.005  # similarities that differ by less count as equal


class Format(NamedTuple):
    """The dtype of a cache, and that of its scales, one per head of a token, if any.

    The cosine of every embedding and the exact one is expected to be at least
    ``least_cosine``.
    """

    dtype: str
    scale: str | None
    least_cosine: float

    def __str__(self):
        return f"{self.dtype}, {self.scale} scales" if self.scale else self.dtype


FORMATS = [
    Format("f32", None, 0.999999),
    Format("bf16", None, 0.99999),
    Format("f8E4M3FN", "f32", 0.999),
    Format("i8", "f32", 0.9999),
]


def cache_params(encoder, fmt):
    """The parameters of an encoder's cache in a format.

    Sentences with equal first tokens must not share pages. Every token attends to its
    whole sentence, so from the second layer on the keys of a prefix depend on the end
    of the sentence: prefix caching is for decoders.
    """
    quantization = None
    if fmt.scale:
        quantization = kvcache.KVCacheQuantizationConfig(fmt.scale, encoder.head_size)
    return kvcache.KVCacheParams(
        fmt.dtype,
        n_kv_heads=encoder.heads,
        head_dim=encoder.head_size,
        enable_prefix_caching=False,
        page_size=PAGE_SIZE,
        total_num_layers=encoder.layers,
        kvcache_quant_config=quantization,
    )


class PagedEncoder:
    """An encoder whose attention reads keys and values from a paged cache."""

    def __init__(self, encoder, params):
        self.encoder = encoder
        self.manager = kvcache.PagedKVCacheManager(
            params,
            max_batch_size=BATCH,
            max_seq_len=MAX_TOKENS,
            num_pages=BATCH * -(-MAX_TOKENS // PAGE_SIZE),
        )
        self._append = kvcache.ops.append(params, dtype="f32")
        # In encoders, every token attends to its whole sentence.
        self._attention = kvcache.ops.attention(
            params, params.n_kv_heads, causal=False, dtype="f32"
        )

    def embed(self, texts):
        """The texts' embeddings, f32 [texts, hidden_size], each of length 1."""
        batches = [texts[i : i + BATCH] for i in range(0, len(texts), BATCH)]
        return np.concatenate([self._embed_batch(batch) for batch in batches])

    def _embed_batch(self, texts):
        requests = range(len(texts))
        for request in requests:
            self.manager.claim(request, self.encoder.tokenize(texts[request]))
        inputs = self.manager.inputs(requests)
        attend = functools.partial(self._attend, inputs)
        hidden = self.encoder.encode(inputs.tokens, inputs.row_offsets, attend)
        for request in requests:
            self.manager.release(request)
        return embeddings(hidden, inputs.row_offsets)

    def _attend(self, inputs, layer, qkv):
        """Computes a layer's attention for ``Encoder.encode``, with a step's inputs."""
        result = np.empty_like(qkv.queries)
        self._append(inputs, layer, qkv.keys, qkv.values)
        scale = qkv.queries.shape[-1] ** -0.5
        self._attention(inputs, layer, qkv.queries, out=result, scale=scale)
        return result


# --- Comparison -------------------------------------------------------------------


def read_groups(path=SENTENCES):
    """Reads groups of paraphrases: lines, with an empty one between groups."""
    text = Path(path).read_text(encoding="utf-8").strip()
    return [group.splitlines() for group in text.split("\n\n")]


def similarities(vectors):
    """The cosine of every two embeddings, [texts, texts]; -inf on the diagonal."""
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -np.inf)
    return cosines


class Comparison:
    """The comparison of embeddings with the exact ones: rows of the table, and errors.

    Args:
        groups: The result of ``read_groups``.
        exact: The embeddings of their sentences, [texts, hidden_size].
    """

    def __init__(self, groups, exact):
        self.rows = []
        self.errors = []
        self._exact = exact
        self._group_of = np.repeat(np.arange(len(groups)), list(map(len, groups)))

    def add(self, name, least_cosine, size, vectors, seconds):
        """Adds a row.

        Args:
            name: The way to embed.
            least_cosine: The least cosine of every embedding and the exact one.
            size: The two cells of bytes in the table.
            vectors: The embeddings, [texts, hidden_size].
            seconds: The seconds of the computation.
        """
        cosines = np.einsum("ij,ij->i", self._exact, vectors)
        nearest = similarities(vectors).argmax(axis=1)
        lost = self._measure_lost_similarity(nearest)
        in_group = self._group_of[nearest] == self._group_of
        self._expect(cosines >= least_cosine, f"{name}: a cosine below {least_cosine}")
        self._expect(lost <= TIE, f"{name}: a nearest sentence that is not")
        self._expect(in_group, f"{name}: a nearest sentence that says something else")
        precise = (f"{cosine:.6f}" for cosine in (cosines.mean(), cosines.min()))
        counts = (f"{n.sum()} of {n.size}" for n in (lost == 0, in_group))
        self.rows.append((name, *size, *precise, *counts, f"{1000 * seconds:.0f}"))

    def _measure_lost_similarity(self, chosen):
        """The exact similarity of the nearest sentences minus that of the chosen ones."""
        exact = similarities(self._exact)
        return exact.max(axis=1) - exact[np.arange(len(chosen)), chosen]

    def _expect(self, holds, error):
        if not holds.all():
            self.errors.append(error)


COLUMNS = (
    *("cache", "bytes per token", "% of f32", "mean cosine", "minimum cosine"),
    *("same nearest", "nearest in group", "ms"),
)


def timed(function, *arguments):
    """Calls a function; returns its result and its seconds."""
    start = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - start


def compare(encoder, groups):
    """Makes a ``Comparison`` of embeddings, without a cache and with each cache."""
    texts = list(itertools.chain(*groups))
    exact, seconds = timed(encoder.embed, texts)
    comparison = Comparison(groups, exact)
    comparison.add("none", 0.999999, (None, None), exact, seconds)
    in_f32 = cache_params(encoder, FORMATS[0]).bytes_per_block
    for fmt in progress("formats", FORMATS):
        params = cache_params(encoder, fmt)
        size = params.bytes_per_block
        vectors, seconds = timed(PagedEncoder(encoder, params).embed, texts)
        cells = size // PAGE_SIZE, round(100 * size / in_f32)
        comparison.add(fmt, fmt.least_cosine, cells, vectors, seconds)
    return comparison


def main():
    parser = argparse.ArgumentParser(
        description="Prints how close the embeddings of a few sentences, with keys and"
        " values in a paged cache of each format, are to those without a cache: their"
        " cosine; for how many sentences the most similar one is the same, and for how"
        " many it says the same. Exits with 1 where a format is worse than it should"
        " be, with 2 where it cannot run.",
        epilog="example: sentences.py",
    )
    parser.parse_args()
    start = time.perf_counter()
    try:
        encoder = Encoder.load()
        groups = read_groups()
        comparison = compare(encoder, groups)
    except (kvcache.Error, ImportError, OSError) as error:
        fail(error)
    print_table(COLUMNS, comparison.rows)
    print()
    for error in comparison.errors:
        print(f"DISAGREES: {error}")
    verdict = "NOT ALL AGREE" if comparison.errors else "all agree"
    print(f"{verdict}, {time.perf_counter() - start:.1f} s")
    return 1 if comparison.errors else 0


if __name__ == "__main__":
    sys.exit(main())
