# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``python -m kvcache demo``: a prompt and a token on the CPU and a chip."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import kvcache
from kvcache.pictures import draw_pages

_CHIP = "sm_90a"
_QUERY_HEADS, _HEADS, _HEAD_DIM = 8, 2, 64
_SCALE = _HEAD_DIM**-0.5
_PROMPT = 100
_LARGEST_ERROR = 0.02
"""Probabilities and results are rounded to bf16, of 8 bits."""


def run(folder: Path) -> int:
    """Runs the demo, and writes a picture of the pages into the folder.

    Returns the exit status: 1 if a result is wrong.
    """
    params = kvcache.KVCacheParams(
        "bf16", n_kv_heads=_HEADS, head_dim=_HEAD_DIM, page_size=16, total_num_layers=1
    )
    print(f"A cache of pages of 16 tokens; a prompt of {_PROMPT} tokens, then one more.")
    is_right = [_run_on(params, target, folder) for target in ("cpu", f"emulator:{_CHIP}")]
    _show_kernel(params)
    print(f"wrote {folder / 'pages.svg'}")
    return 0 if all(is_right) else 1


def _run_on(params: kvcache.KVCacheParams, target: str, folder: Path) -> bool:
    """Attends on a target, compares with NumPy, and prints a line."""
    start = time.monotonic()
    manager = kvcache.PagedKVCacheManager(
        params, max_batch_size=2, max_seq_len=256, num_pages=16
    )
    append = kvcache.ops.append(params, target=target)
    attend = kvcache.ops.attention(params, _QUERY_HEADS, target=target)
    random = np.random.default_rng(0)
    old = np.empty((2, 0, _HEADS, _HEAD_DIM), ml_dtypes.bfloat16)
    error = 0.0
    for tokens in (_PROMPT, 1):
        q, k, v = (
            random.standard_normal((tokens, heads, _HEAD_DIM)).astype(ml_dtypes.bfloat16)
            for heads in (_QUERY_HEADS, _HEADS, _HEADS)
        )
        if tokens == _PROMPT:
            manager.claim("prompt", np.arange(tokens))
        else:
            manager.grow("prompt", np.zeros(tokens, np.int64))
        inputs = manager.inputs(["prompt"])
        out = np.empty_like(q)
        append(inputs, 0, k, v)
        attend(inputs, 0, q, out=out, scale=_SCALE)
        manager.step(["prompt"])
        old = np.concatenate([old, np.stack([k, v])], 1)
        difference = out.astype(np.float64) - _attend_by_numpy(q, old[0], old[1])
        error = max(error, float(np.abs(difference).max()))
    draw_pages(manager.snapshot()).save(folder / "pages.svg")
    is_right = error <= _LARGEST_ERROR
    agreement = "agrees with" if is_right else "DIFFERS from"
    seconds = time.monotonic() - start
    print(
        f"{target:16} {agreement} NumPy: largest difference {error:.4f}, {seconds:.1f} s"
    )
    return is_right


def _attend_by_numpy(queries: Any, keys: Any, values: Any) -> Any:
    """Causal attention in f64 of [tokens, heads, elements]; queries are the last tokens."""
    group = _QUERY_HEADS // _HEADS
    q, k, v = (array.astype(np.float64) for array in (queries, keys, values))
    k, v = k.repeat(group, axis=1), v.repeat(group, axis=1)
    scores = np.einsum("qhd,khd->hqk", q, k) * _SCALE
    first = len(k) - len(q)
    is_later = np.arange(len(k)) > np.arange(first, len(k))[:, None]
    scores[:, is_later] = -np.inf
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hqk,khd->qhd", scores / scores.sum(-1, keepdims=True), v)


def _show_kernel(params: kvcache.KVCacheParams) -> None:
    """Prints what the same attention is for a chip."""
    compiled = kvcache.ops.attention(params, _QUERY_HEADS).compile(_CHIP)
    for kernel in compiled.kernels.values():
        lines = kernel.ptx.splitlines()
        print(f"{_CHIP:16} {kernel.name}: {len(lines)} lines of PTX, such as")
        for name in ("cp.async.bulk.tensor", "wgmma.mma_async"):
            line = next(line.strip() for line in lines if name in line)
            print(f"{'':16} {line.split('{')[0].split('[')[0].strip()}")
