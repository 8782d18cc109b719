#!/usr/bin/env python3
"""Compares kvcache.ops.attention on the CPU with the plain PyTorch references of peers' tests, on their own grids.

The references and the grids are read from the peers' test files; what else is in these files is not run. Points of the
grids are drawn at random, of those that a CPU computes in seconds. It needs torch: `pip install torch` beside kvcache.

examples:
  PYTHONPATH=build/python python benchmarks/peers/attention_references.py --flashinfer FLASHINFER/tests --points 40
  PYTHONPATH=build/python python benchmarks/peers/attention_references.py --vllm VLLM/tests --points 40
"""

from __future__ import annotations

import argparse
import ast
import itertools
import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

import kvcache
import numpy as np
import torch

MOST_OPERATIONS = 2e10
DTYPES = {
    torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32",
    torch.float8_e4m3fn: "f8E4M3FN", torch.float8_e5m2: "f8E5M2",
}  # fmt: skip
# Outputs of peers and ours are rounded to the same type, from sums in another order; vLLM's weights are bf16.
BOUNDS = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float8_e4m3fn: 7e-2}


@dataclass
class Problem:
    """A step of a batch over a paged cache [pages, 1 or 2, page_size, heads, size]; ``queries`` and ``tokens`` are
    those of each sequence."""

    queries: list[int]
    tokens: list[int]
    q: torch.Tensor
    cache: torch.Tensor
    table: torch.Tensor
    scale: float
    out_dtype: torch.dtype
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def operations(self) -> float:
        pairs = sum(q * k for q, k in zip(self.queries, self.tokens))
        return 4.0 * pairs * self.q.shape[1] * self.q.shape[2]


class Tests:
    """A file of a peer's tests."""

    def __init__(self, path: Path) -> None:
        self._tree = ast.parse(path.read_text())
        self._names: dict[str, Any] = {"torch": torch, "math": math, "Union": Union, "F": torch.nn.functional}
        for module in ("typing",):
            self._names |= vars(__import__(module))
        for node in self._tree.body:
            if isinstance(node, ast.Assign) and all(isinstance(name, ast.Name) for name in node.targets):
                try:
                    self._run([node])
                except (NameError, AttributeError):  # something of the peer's own package
                    continue

    def _run(self, body: list[ast.stmt]) -> None:
        exec(compile(ast.Module(body, []), "peer", "exec"), self._names)

    def function(self, name: str) -> Callable[..., Any]:
        self._run([node for node in self._tree.body if isinstance(node, ast.FunctionDef) and node.name == name])
        found: Callable[..., Any] = self._names[name]
        return found

    def grid(self, test: str) -> list[dict[str, Any]]:
        """The points of a test's parameters."""
        (node,) = (n for n in self._tree.body if isinstance(n, ast.FunctionDef) and n.name == test)
        axes = []
        for decorator in node.decorator_list:
            if not (isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("parametrize")):
                continue
            names, values = (eval(ast.unparse(argument), self._names) for argument in decorator.args[:2])
            if isinstance(names, str):
                names = [name.strip() for name in names.split(",")]
            rows = [value if len(names) > 1 else (value,) for value in values]
            axes.append([dict(zip(names, row)) for row in rows])
        return [{key: value for part in point for key, value in part.items()} for point in itertools.product(*axes)]


def attend(problem: Problem, value_dim: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """The output and the natural logarithms of sums, by kvcache."""
    _, kinds, page, heads, size = problem.cache.shape
    params = kvcache.KVCacheParams(
        DTYPES[problem.cache.dtype], heads, size, page_size=page, total_num_layers=1, is_mla=kinds == 1
    )
    query_heads = problem.q.shape[1]
    operation = kvcache.ops.attention(
        params, query_heads, dtype=DTYPES[problem.q.dtype], out_dtype=DTYPES[problem.out_dtype],
        value_dim=value_dim, **problem.options,
    )  # fmt: skip
    out = torch.empty(*problem.q.shape[:2], value_dim or size, dtype=problem.out_dtype)
    lse = torch.empty(problem.q.shape[:2])
    offsets = torch.tensor([0, *itertools.accumulate(problem.queries)], dtype=torch.int32)
    cached = torch.tensor([k - q for q, k in zip(problem.queries, problem.tokens)], dtype=torch.int32)
    sinks = [problem.options["sinks"]] if "sinks" in problem.options else []
    narrow = [dtype for dtype in (problem.q.dtype, problem.out_dtype) if dtype.itemsize == 1]
    ones = [np.ones(query_heads, np.float32) for _ in narrow]
    operation.program.call(
        "attention", problem.cache[:, :, None], cached, problem.table, max(problem.queries), int(cached.max()), 0,
        problem.q, offsets, out, lse, problem.scale, *sinks, *ones,
    )  # fmt: skip
    return out, lse


def draw_cache(generator: torch.Generator, tokens: list[int], shape: tuple[int, ...], dtype: torch.dtype) -> Any:
    """Pages [pages, kinds, page, heads, size] and a table with rows in random places."""
    kinds, page, heads, size = shape
    columns = max(-(-count // page) for count in tokens)
    pages = columns * len(tokens)
    cache = torch.randn(pages, kinds, page, heads, size, generator=generator).to(dtype)
    table = torch.randperm(pages, generator=generator).to(torch.int32).reshape(len(tokens), columns)
    return cache, table


# --- FlashInfer -----------------------------------------------------------------------


def flashinfer_prompts(tests: Path, rng: random.Random) -> Iterator[tuple[str, Problem, Callable[[Problem], Any]]]:
    peer = Tests(tests / "attention" / "test_fmha_v2_prefill.py")
    reference, chunked = peer.function("attention_ref_torch"), peer.function("chunked_attention_ref_torch")
    plain = [p for p in peer.grid("test_trtllm_fmha_v2_prefill") if p["input_layout"] == "Q_PAGED_KV_NHD"]
    for name, points in (
        ("attention_ref_torch", plain),
        ("chunked_attention_ref_torch", peer.grid("test_trtllm_fmha_v2_chunked_prefill_chunked_attention")),
    ):
        for point in rng.sample(points, len(points)):
            generator = torch.Generator().manual_seed(rng.randrange(2**31))
            longest = point.get("max_seq_len") or point["max_kv_len"]
            tokens = [rng.randint(longest // 2, longest) for _ in range(point["batch_size"])]
            queries = [min(point.get("max_new_tokens", count), count) for count in tokens]
            dtype, heads, size = point["dtype"], point["num_kv_heads"], point["head_dim"]
            cache, table = draw_cache(generator, tokens, (2, point["page_size"], heads, size), dtype)
            q = torch.randn(sum(queries), point["num_qo_heads"], size, generator=generator).to(dtype)
            problem = Problem(queries, tokens, q, cache, table, size**-0.5, point.get("o_dtype", dtype))
            offsets = torch.tensor([0, *itertools.accumulate(queries)])
            arguments = (q, cache), torch.tensor(tokens), offsets, problem.scale
            if "chunked_attention_size" in point:
                problem.options["chunk"] = point["chunked_attention_size"]
                wanted = lambda _, a=arguments, c=point["chunked_attention_size"], t=table: (  # noqa: E731
                    chunked(*a, c, block_tables=t), None
                )
            else:
                window, cap = point["window_left"], point["logits_soft_cap"]
                problem.options |= {"window": window + 1} if window >= 0 else {}
                problem.options |= {"soft_cap": cap} if cap else {}
                wanted = lambda _, a=arguments, w=window, c=cap, t=table: reference(  # noqa: E731
                    *a, window_left=w, logits_soft_cap=c, block_tables=t, return_lse=True
                )
            yield name, problem, wanted


def flashinfer_latent(tests: Path, rng: random.Random) -> Iterator[tuple[str, Problem, Callable[[Problem], Any]]]:
    peer = Tests(tests / "attention" / "test_cute_dsl_mla_decode.py")
    reference = peer.function("torch_reference_mla")
    points = peer.grid("test_cute_dsl_mla_decode_fp16")
    for point in rng.sample(points, len(points)):
        generator = torch.Generator().manual_seed(rng.randrange(2**31))
        batch, count, page = point["batch_size"], point["seq_len_k"], point["page_size"]
        tokens, queries = [count] * batch, [point.get("q_len", 1)] * batch
        dtype = point.get("dtype", torch.float16)
        cache, table = draw_cache(generator, tokens, (1, page, 1, 576), dtype)
        q = torch.randn(sum(queries), 128, 576, generator=generator).to(dtype)
        problem = Problem(queries, tokens, q, cache, table, 512**-0.5, dtype, {"causal": False})
        rows = cache.reshape(-1, 576)
        four = q.reshape(batch, -1, 128, 576)
        yield "torch_reference_mla", problem, lambda p, f=four, r=rows, t=table, c=tokens: [
            x.flatten(0, 1)
            for x in reference(
                f[..., :512], f[..., 512:], r[:, :512], r[:, 512:], t, torch.tensor(c), p.scale, 1.0,
                p.cache.shape[2], return_lse=True,
            )
        ]  # fmt: skip


# --- vLLM -----------------------------------------------------------------------------


def vllm_prompts(tests: Path, rng: random.Random) -> Iterator[tuple[str, Problem, Callable[[Problem], Any]]]:
    peer = Tests(tests / "kernels" / "attention" / "test_flash_attn.py")
    reference = peer.function("ref_paged_attn")
    points = [p for p in peer.grid("test_varlen_with_paged_kv") if p["use_out"] and p["fa_version"] == 3]
    points = [p for p in points if p["num_blocks"] == min(each["num_blocks"] for each in points)]
    for point in rng.sample(points, len(points)):
        generator = torch.Generator().manual_seed(rng.randrange(2**31))
        queries, tokens = (list(column) for column in zip(*point["seq_lens"]))
        (query_heads, heads), size, page = point["num_heads"], point["head_size"], point["block_size"]
        dtype = point["dtype"]
        cache = torch.randn(point["num_blocks"], 2, page, heads, size, generator=generator).to(dtype)
        table = torch.randint(0, point["num_blocks"], (len(tokens), -(-max(tokens) // page)), generator=generator)
        q = torch.randn(sum(queries), query_heads, size, generator=generator).to(dtype)
        if point["q_dtype"] is not None:
            q, cache = (x.to(point["q_dtype"]) for x in (q, cache))
        problem = Problem(queries, tokens, q, cache, table.to(torch.int32), size**-0.5, dtype)
        window, cap = point["sliding_window"], point["soft_cap"]
        problem.options |= {"window": window} if window else {}
        problem.options |= {"soft_cap": cap} if cap else {}
        yield "ref_paged_attn", problem, lambda p, w=window, c=cap, d=dtype: (
            reference(
                p.q.to(d, copy=True), p.cache[:, 0].to(d), p.cache[:, 1].to(d), p.queries, p.tokens, p.table, p.scale,
                w, c,
            ),
            None,
        )  # fmt: skip


# --- All ------------------------------------------------------------------------------


def compare(problem: Problem, wanted: Any, value_dim: int | None) -> float:
    """The largest difference of outputs, as a part of the bound; logarithms have one of their own."""
    out, lse = attend(problem, value_dim)
    wanted_out, wanted_lse = wanted
    wanted_out = wanted_out.float()
    bound = BOUNDS[problem.out_dtype] * (1 + wanted_out.abs())
    part = float(((out.float() - wanted_out).abs() / bound).max())
    if wanted_lse is not None:
        part = max(part, float((lse - wanted_lse).abs().max()) / 2e-3)
    return part if math.isfinite(part) else math.inf


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flashinfer", type=Path, metavar="FOLDER", help="FlashInfer's tests")
    parser.add_argument("--vllm", type=Path, metavar="FOLDER", help="vLLM's tests")
    parser.add_argument("--points", type=int, default=20, help="of each grid, default 20")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sources = []
    if options.flashinfer:
        sources += [(flashinfer_prompts, options.flashinfer), (flashinfer_latent, options.flashinfer)]
    if options.vllm:
        sources.append((vllm_prompts, options.vllm))
    if not sources:
        parser.error("needs --flashinfer or --vllm")
    worst: dict[str, list[float]] = {}
    for source, folder in sources:
        for name, problem, reference in source(folder, random.Random(options.seed)):
            parts = worst.setdefault(name, [])
            if len(parts) == options.points or problem.operations > MOST_OPERATIONS:
                continue
            value_dim = 512 if problem.cache.shape[1] == 1 else None
            parts.append(compare(problem, reference(problem), value_dim))
            print(f"\r{name}: {len(parts)} of {options.points}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    for name, parts in worst.items():
        beyond = sum(part > 1 for part in parts)
        print(f"{name:28} {len(parts):3} points, {beyond} beyond the bound, worst {max(parts):.2f} of it")
    return int(any(part > 1 for parts in worst.values() for part in parts))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (kvcache.Error, OSError, KeyError, ValueError) as error:
        sys.exit(f"error: {error}")
