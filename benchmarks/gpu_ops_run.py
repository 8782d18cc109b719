"""Runs one work of gpu_ops_works.py: its arrays in PyTorch, what is right in float64, and times."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from gpu_ops_attention import attend
from gpu_ops_bench import Bench, Pages, as_bits, largest_error, make_contender, random_rows
from gpu_ops_timing import Call, DeviceTimer, HostTimer
from gpu_ops_works import Work
from measure import Result, brief, verify

EPSILON = 1e-6


# --- Operations -----------------------------------------------------------------------


def append(work: Work, pages: Pages, target: str) -> Bench:
    device, cache, total = pages.device, work.cache, int(pages.offsets[-1])
    keys, values = (random_rows(total, cache.heads, cache.size, device=device) for _ in range(2))
    is_fused = work.kind == "fused"
    token_bytes = cache.params.bytes_per_block / cache.page
    moved = total * (token_bytes + 4 * cache.heads * cache.size)
    more: dict[str, Any] = {}
    queries = None
    if is_fused:
        queries = random_rows(total, work.query_heads, cache.size, device=device)
        moved += 4 * queries.numel()
        half = cache.size // 2
        angles = torch.arange(max(work.contexts), device=device)[:, None] * 1e4 ** (
            -torch.arange(half, device=device) / half
        )
        more = {
            "norm": torch.rand(cache.size, device=device).bfloat16() + 0.5,
            "query_norm": torch.rand(cache.size, device=device).bfloat16() + 0.5,
            "rope": torch.cat([angles.cos(), angles.sin()], 1).float(),
        }
    bench = Bench(pages.sets, moved, 0)
    originals = None if queries is None else queries.clone()
    slots = pages.slots(0)

    def turn(x: Any, weights: Any) -> Any:
        """Norm and rope of heads, in float64."""
        x = x.double()
        x = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPSILON) * weights.double()
        positions = torch.from_numpy(
            np.arange(total) + np.repeat(pages.starts - pages.offsets[:-1], np.diff(pages.offsets))
        )
        table = more["rope"].double()[positions.to(device)][:, None]
        cos, sin = table.chunk(2, -1)
        first, second = x.chunk(2, -1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)

    def reset() -> None:
        as_bits(pages.blocks)[slots[0], :, 0, slots[1]] = 0
        if queries is not None:
            queries.copy_(originals)

    def check() -> tuple[float, float]:
        """The largest error, relative to the largest element of its head."""
        written = as_bits(pages.blocks)[slots[0], :, 0, slots[1]].view(pages.blocks.dtype).float().double()
        if cache.scale:
            written *= pages.scales[slots[0], :, 0, slots[1]].double().repeat_interleave(cache.scale[1], -1)
        pairs = [(written[:, 0], turn(keys, more["norm"]) if is_fused else keys.double()),
                 (written[:, 1], values.double())]  # fmt: skip
        if queries is not None:
            pairs.append((queries.double(), turn(originals, more["query_norm"])))
        return max(largest_error((a - b).abs() / b.abs().amax(-1, keepdim=True)) for a, b in pairs), 0.0

    bound = 0.04 if cache.scale else 1.01 * 2.0**-8 if is_fused else 0.0
    make_call = lambda op, _: lambda i: op(pages.inputs[i], 0, keys, values, queries, **more)  # noqa: E731
    bench.add_variants(work, target, make_call, check, bound, reset)
    if "torch" in work.peers:
        set_slots = [pages.slots(i) for i in range(pages.sets)]

        def put(i: int) -> None:
            at, offsets = set_slots[i]
            pages.blocks[at, 0, 0, offsets] = keys
            pages.blocks[at, 1, 0, offsets] = values

        bench.contenders.append(make_contender("PyTorch index_put", put, check, bound, reset, note="two launches"))
    return bench


def gather(work: Work, pages: Pages, target: str) -> Bench:
    batch, tokens, cache = len(work.contexts), max(work.contexts), work.cache
    outs = torch.empty((2, batch, tokens, cache.heads, cache.size), dtype=torch.bfloat16, device=pages.device)
    token_bytes = cache.params.bytes_per_block / cache.page
    bench = Bench(pages.sets, sum(work.contexts) * token_bytes + 2 * outs.numel(), 0)

    def compare(x: Any) -> tuple[float, float]:
        errors = []
        for b, context in enumerate(work.contexts):
            wanted = pages.read(pages.luts[0][b], context, torch.float32)
            errors.append(largest_error(((x[:, b, :context] - wanted) / wanted.abs().clamp(min=1e-6)).abs()))
            errors.append(largest_error(x[:, b, context:].abs().float()) if context < tokens else 0.0)
        return max(errors), 0.0

    make_call = lambda op, _: lambda i: op(pages.inputs[i], 0, *outs)  # noqa: E731
    bound = 2.0**-8 if cache.scale else 0.0
    bench.add_variants(work, target, make_call, lambda: compare(outs), bound, lambda: outs.fill_(float("nan")))
    if "torch" in work.peers:
        indices = [lut.flatten().long() for lut in pages.luts]
        taken: dict[int, Any] = {}

        def take(i: int) -> None:
            taken[0] = pages.blocks.index_select(0, indices[i])

        def check() -> tuple[float, float]:
            return float(not torch.equal(taken[0], pages.blocks[indices[0]])), 0.0

        bench.contenders.append(make_contender("PyTorch index_select", take, check, 0.0, note="pages as they are"))
    return bench


def copy_pages(work: Work, pages: Pages, target: str) -> Bench:
    pairs = []
    for lut in pages.luts:
        set_pages = lut.flatten()[: lut.numel() // 2 * 2]
        pairs.append(set_pages.view(2, -1).t().contiguous())
    bench = Bench(pages.sets, 2.0 * len(pairs[0]) * work.cache.params.bytes_per_block, 0)

    def check() -> tuple[float, float]:
        froms, tos = pairs[0].long().unbind(1)
        return float(not torch.equal(pages.blocks[froms], pages.blocks[tos])), 0.0

    def reset() -> None:
        pages.blocks[pairs[0][:, 1].long()] = 0

    bench.add_variants(work, target, lambda op, _: lambda i: op(pages.inputs[i], pairs[i]), check, 0.0, reset)
    if "torch" in work.peers:
        wide = [each.long().unbind(1) for each in pairs]

        def copy(i: int) -> None:
            pages.blocks.index_copy_(0, wide[i][1], pages.blocks.index_select(0, wide[i][0]))

        bench.contenders.append(make_contender("PyTorch index_copy", copy, check, 0.0, reset, note="by a copy between"))
    return bench


def merge_states(work: Work, pages: Pages, target: str) -> Bench:
    """Merges as many parts as the work has tokens of context, of as many rows as it has new ones."""
    parts, rows, heads, size = work.contexts[0], work.new[0], work.query_heads, work.cache.size
    outs = random_rows(parts, rows, heads, size, device=pages.device)
    lses = torch.randn((parts, rows, heads), device=pages.device) * 2
    out, lse = torch.empty_like(outs[0]), torch.empty_like(lses[0])
    bench = Bench(1, 2.0 * (outs.numel() + out.numel()) + 4.0 * (lses.numel() + lse.numel()), 0)

    def check() -> tuple[float, float]:
        total = lses.double().logsumexp(0)
        wanted = (outs.double() * (lses - total).exp()[..., None]).sum(0)
        errors = (out.double() - wanted).norm(dim=-1) / wanted.norm(dim=-1)
        return largest_error(errors), largest_error((lse - total).abs())

    make_call = lambda op, _: lambda i: op(outs, lses, out, lse)  # noqa: E731
    bench.add_variants(work, target, make_call, check, 2.0**-8, lambda: out.fill_(float("nan")))
    return bench


def make(work: Work, target: str) -> Bench:
    device = "cuda" if target.startswith("cuda") else "cpu"
    torch.manual_seed(5)
    makers = {"attention": attend, "gather": gather, "copy_pages": copy_pages, "merge_states": merge_states}
    return makers.get(work.kind, append)(work, Pages(_paged(work), device), target)


def _paged(work: Work) -> Work:
    """The work whose pages are made: merging needs next to none."""
    return dataclasses.replace(work, contexts=(1,), new=(1,)) if work.kind == "merge_states" else work


# --- Results --------------------------------------------------------------------------


def run(
    work: Work,
    target: str,
    left_out: Sequence[str] = (),
    no_graph: Sequence[str] = (),
    report: Callable[[str], None] = lambda name: None,
) -> list[Result]:
    """Runs a work's contenders, except those that are left out.

    Those of ``no_graph`` get no CUDA graphs. ``report`` is called with the contender that runs.
    """
    bench = make(work, target)
    is_cuda = target.startswith("cuda")
    results, timers = [], []
    for contender in bench.contenders:
        if contender.name in left_out:
            continue
        report(contender.name)
        result = Result(work.name, "", contender.name)
        results.append(result)
        try:
            found = verify(contender, work.name, clock=torch.cuda if is_cuda else None)
            result.status, result.note = found.status, found.note
            result.figures = {"bytes": bench.bytes, "flops": bench.flops, "sets": bench.sets, **found.figures}
            has_graph = contender.name not in no_graph
            timers.append((result, (DeviceTimer if is_cuda else HostTimer)(contender.call, bench.sets, has_graph)))
        except Exception as error:
            result.status, result.note = "failed", brief(error)
            if is_cuda:
                torch.cuda.synchronize()  # an error of the device is one of the work, and of the process
    for step in (1, -1):
        for result, timer in timers[::step]:
            report(result.contender)
            timer.take()
    for result, timer in timers:
        add_times(result, timer)
    return results + [Result(work.name, "", name, "absent", why) for name, why in bench.left_out.items()]


def add_times(result: Result, timer: Any) -> None:
    """Adds the times of single calls, and of those of graphs."""
    result.milliseconds = timer.single
    result.figures |= {
        "ms": statistics.median(timer.single) if timer.single else None,
        "graph_ms": statistics.median(timer.replayed) if timer.replayed else None,
        "host_us": timer.host_us,
        "fastest_ms": min(timer.single + timer.replayed),
    }
    result.note = "; ".join(filter(None, (result.note, timer.note)))


def run_ceilings() -> list[Result]:
    """Measures a copy and a product of matrices, which are no work of ours."""
    size = 1 << 30
    a, b = (torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2))
    x, y = (random_rows(8192, 8192, device="cuda") for _ in range(2))
    z = torch.empty_like(x)
    contenders: list[tuple[str, Call, float, float]] = [
        ("copy of 1 GiB", lambda i: b.copy_(a), 2.0 * size, 0.0),
        ("fill of 1 GiB", lambda i: b.zero_(), 1.0 * size, 0.0),
        ("matmul of 8192, bf16", lambda i: torch.mm(x, y, out=z), 6.0 * x.numel(), 2.0 * 8192**3),
    ]
    results = []
    for name, call, moved, flops in contenders:
        timer = DeviceTimer(call, 1)
        timer.take()
        results.append(Result("ceiling", "", name, figures={"bytes": moved, "flops": flops}))
        add_times(results[-1], timer)
    return results
