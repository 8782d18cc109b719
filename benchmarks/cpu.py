#!/usr/bin/env python3
"""Times whole-cache operations on one core of the CPU, beside memcpy and PyTorch.

Each contender takes its turn in each round; the table has medians (least) of milliseconds of CPU time. The rate of
attention and copies is that of the bytes of the cache, of a copy once, and memcpy is numpy.copyto of the same bytes.
PyTorch's scaled_dot_product_attention gets a contiguous copy of keys and values, which it does not have to gather: from
bf16, its fastest of bf16 and f32 arrays. `scripts/bench cpu` installs PyTorch; without it, its column is empty.

examples:
  scripts/bench cpu
  scripts/bench cpu --rounds 21 --markdown
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

try:
    import kvcache
    import ml_dtypes
    import numpy as np
    from report import Table
except ImportError as error:
    sys.exit(f"error: {error}\n  scripts/setup.sh --build builds what is needed; then run with PYTHONPATH=build/python")
try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

ROUNDS = 11
PAGE = 16
TITLES = ("work", "kvcache, ms", "GB/s", "memcpy, ms", "part of memcpy's rate", "PyTorch, ms", "PyTorch / kvcache")


@dataclass(frozen=True)
class Shape:
    """Attention of the last ``new`` tokens of each of ``batch`` sequences of ``tokens``."""

    title: str
    batch: int
    tokens: int
    heads: int
    query_heads: int
    size: int = 128
    new: int = 1


SHAPES = [
    Shape("decode, 8 x 4,096 tokens, 32 over 8 heads", 8, 4096, 8, 32),
    Shape("decode, 1 x 32,768 tokens, 32 over 8 heads", 1, 32768, 8, 32),
    Shape("decode, 8 x 4,096 tokens, 8 over 8 heads", 8, 4096, 8, 8),
    Shape("decode, 8 x 4,096 tokens, 16 over 1 head", 8, 4096, 1, 16),
    Shape("decode, 32 x 512 tokens, 32 over 8 heads of 64", 32, 512, 8, 32, 64),
    Shape("prompt of 512, 32 over 8 heads", 1, 512, 8, 32, new=512),
    Shape("64 tokens behind 2,048, 32 over 8 heads", 1, 2048 + 64, 8, 32, new=64),
]

Contenders = dict[str, Callable[[], Any]]


def fill(shape: Shape) -> tuple[Any, Any, Any]:
    """A manager of a bf16 cache of one layer with random numbers, its inputs, and dense keys and values."""
    params = kvcache.KVCacheParams("bf16", shape.heads, shape.size, page_size=PAGE, total_num_layers=1)
    pages = shape.batch * -(-shape.tokens // PAGE)
    manager = kvcache.PagedKVCacheManager(params, max_batch_size=shape.batch, max_seq_len=shape.tokens, num_pages=pages)
    (blocks,) = manager.blocks
    blocks[...] = np.random.default_rng(1).standard_normal(blocks.shape, np.float32).astype(blocks.dtype)
    requests = range(shape.batch)
    for request in requests:
        manager.claim(request, np.arange(shape.tokens - shape.new))
    if shape.tokens > shape.new:
        manager.step(list(requests))
    for request in requests:
        manager.grow(request, np.arange(shape.new))
    inputs = manager.inputs(list(requests))
    dense = [np.empty((shape.batch, shape.tokens, shape.heads, shape.size), ml_dtypes.bfloat16) for _ in range(2)]
    kvcache.ops.gather(params)(inputs, 0, *dense)
    return params, inputs, dense


def make_attention(shape: Shape) -> tuple[Contenders, int]:
    params, inputs, (keys, values) = fill(shape)
    attend = kvcache.ops.attention(params, shape.query_heads)
    q = np.random.default_rng(2).standard_normal((shape.batch * shape.new, shape.query_heads, shape.size), np.float32)
    q = q.astype(ml_dtypes.bfloat16)
    out, scale = np.empty_like(q), shape.size**-0.5
    copies = [np.empty_like(x) for x in (keys, values)]
    contenders: Contenders = {
        "kvcache": lambda: attend(inputs, 0, q, out=out, scale=scale),
        "memcpy": lambda: [np.copyto(to, x) for to, x in zip(copies, (keys, values))],
    }
    if torch is not None:
        new, group = shape.new, shape.query_heads // shape.heads
        rows = torch.from_numpy(q.view(np.int16)).view(torch.bfloat16)
        rows = rows.reshape(shape.batch, new, shape.query_heads, shape.size).transpose(1, 2)
        seen = torch.arange(shape.tokens) <= torch.arange(shape.tokens - new, shape.tokens)[:, None]
        mask = None if new == 1 else seen
        for name, dtype in (("PyTorch bf16", torch.bfloat16), ("PyTorch f32", torch.float32)):
            tensors = [torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) for x in (keys, values)]
            k, v = (x.transpose(1, 2).to(dtype).contiguous() for x in tensors)
            contenders[name] = lambda q=rows.to(dtype).contiguous(), k=k, v=v: (
                torch.nn.functional.scaled_dot_product_attention(
                    q, k, v, attn_mask=mask, scale=scale, enable_gqa=group > 1
                )
            )
    return contenders, 2 * keys.nbytes


def make_copies() -> list[tuple[str, Contenders, int]]:
    """Gather, and copies of caches and pages, of 64 MiB each."""
    shape = Shape("", 8, 2048, 8, 8)
    params, inputs, (keys, values) = fill(shape)
    copies = [np.empty_like(x) for x in (keys, values)]
    memcpy = lambda: [np.copyto(to, x) for to, x in zip(copies, (keys, values))]  # noqa: E731
    gather = kvcache.ops.gather(params)
    pages = inputs.blocks[0].shape[0] // 2
    pairs = np.stack([np.arange(pages), pages + np.arange(pages)], axis=1).astype(np.int32)
    copy_pages = kvcache.ops.copy_pages(params)
    half = [(to.ravel()[: to.size // 2], x.ravel()[: x.size // 2]) for to, x in zip(copies, (keys, values))]
    bytes_ = 2 * keys.nbytes
    return [
        ("gather, 8 x 2,048 tokens", {"kvcache": lambda: gather(inputs, 0, *copies), "memcpy": memcpy}, bytes_),
        (
            "copy of 512 pages",
            {"kvcache": lambda: copy_pages(inputs, pairs), "memcpy": lambda: [np.copyto(*each) for each in half]},
            bytes_ // 2,
        ),
    ]


def measure(title: str, contenders: Contenders, bytes_: int, rounds: int) -> tuple[str, ...]:
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for run in contenders.values():
        run()
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.process_time()
            run()
            times[name].append(1e3 * (time.process_time() - start))
    median = {name: statistics.median(all_) for name, all_ in times.items()}

    def cell(name: str) -> str:
        return f"{median[name]:.1f} ({min(times[name]):.1f})"

    peers = [name for name in times if name.startswith("PyTorch")]
    peer = min(peers, key=lambda name: median[name]) if peers else None
    return (
        title,
        cell("kvcache"),
        f"{bytes_ / median['kvcache'] / 1e6:.2f}",
        cell("memcpy"),
        f"{median['memcpy'] / median['kvcache']:.2f}",
        f"{cell(peer)}, {peer.split()[1]}" if peer else "",
        f"{median[peer] / median['kvcache']:.2f}" if peer else "",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    parser.add_argument("--markdown", action="store_true", help="a Markdown table")
    options = parser.parse_args()
    if torch is not None:
        torch.set_num_threads(1)
    works = [(shape.title, *make_attention(shape)) for shape in SHAPES] + make_copies()
    rows = []
    for number, (title, contenders, bytes_) in enumerate(works, 1):
        print(f"\r{number} of {len(works)}", end="", file=sys.stderr, flush=True)
        rows.append(measure(title, contenders, bytes_, options.rounds))
    print(file=sys.stderr)
    print(Table(TITLES, rows, names=1).render(options.markdown))


if __name__ == "__main__":
    try:
        main()
    except (kvcache.Error, ValueError) as error:
        sys.exit(f"error: {error}")
