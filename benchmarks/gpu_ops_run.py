"""Runs one work of gpu_ops_works.py: its arrays in PyTorch, what is right in float64, and times.

A work becomes a `Bench`: contenders with calls for each of several sets of pages, so that the L2 cache does not hold
them, and a check of what the first call wrote.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import kvcache
import numpy as np
import torch
from gpu_ops_timing import Call, DeviceTimer, HostTimer
from gpu_ops_works import Variant, Work
from measure import Contender, Result, brief, verify

L2_TIMES = 4  # the sets of a work have so many times the bytes of the L2 cache
MOST_SETS = 64
NARROW = {"f8E4M3FN": torch.float8_e4m3fn, "i8": torch.int8, "bf16": torch.bfloat16}
EPSILON = 1e-6


def make_contender(
    name: str,
    call: Call,
    find_errors: Callable[[], tuple[float, float]],
    bound: float,
    reset: Callable[[], Any] = lambda: None,
    note: str = "",
    log_bound: float = 0.02,
) -> Contender:
    """Makes a contender of calls by the number of a set of pages.

    Args:
        find_errors: Returns the largest error of the results of set 0, and that of logarithms.
    """
    figures: dict[str, Any] = {"bound": bound}

    def check() -> str | None:
        error, log_error = find_errors()
        figures.update(error=error, log_error=log_error)
        is_right = error <= bound and log_error <= log_bound
        return None if is_right else f"an error of {error:.1e}, and of logarithms {log_error:.1e}"

    return Contender(name, call, check, reset, note, figures)


@dataclass
class Bench:
    sets: int
    bytes: float
    flops: float
    contenders: list[Contender] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    def add_variants(
        self, work: Work, target: str, make: Callable[[Any, Variant], Call], *check: Any, log_bound: float = 0.02
    ) -> None:
        """Adds our contenders.

        Args:
            make: Makes the call of an operation.
            check: The errors of a contender, their bound, and what resets its results.
        """
        for variant in work.variants:
            call = make(work.make(variant, target), variant)
            self.contenders.append(make_contender(variant.name, call, *check, log_bound=log_bound))


class Pages:
    """A paged cache of random elements, with tables for several sets of sequences of the same lengths."""

    def __init__(self, work: Work, device: str) -> None:
        self.cache, self.device = work.cache, device
        params, page = work.cache.params, work.cache.page
        counts = [-(-context // page) for context in work.contexts]
        self.bytes_of_set = sum(counts) * params.bytes_per_block
        self.sets = 1
        if device == "cuda":
            wanted = L2_TIMES * find_l2()
            self.sets = min(max(1, -(-wanted // self.bytes_of_set)), MOST_SETS)
        pages = sum(counts) * self.sets + 1
        parts = 1 if params.is_mla else 2
        self.blocks = torch.empty(
            (pages, parts, 1, page, work.cache.heads, work.cache.size), dtype=NARROW[work.cache.dtype], device=device
        )
        _fill(self.blocks)
        self.scales: Any = ()
        if work.cache.scale:
            groups = work.cache.size // work.cache.scale[1]
            self.scales = torch.rand((*self.blocks.shape[:-1], groups), device=device) + 0.5
            if work.cache.dtype == "i8":
                self.scales /= 64
        order = (torch.randperm(pages - 1, device=device) + 1).to(torch.int32)
        self.luts = []
        for i in range(self.sets):
            lut = torch.zeros((len(counts), max(counts)), dtype=torch.int32, device=device)
            own = order[i * sum(counts) : (i + 1) * sum(counts)]
            for row, part in zip(lut, own.split(counts)):
                row[: len(part)] = part
            self.luts.append(lut)
        new, contexts = np.array(work.new), np.array(work.contexts)
        self.offsets = np.concatenate([[0], new.cumsum()])
        self.starts = contexts - new

        def place(numbers: Any) -> Any:
            return torch.tensor(numbers.tolist(), dtype=torch.int32, device=device)

        self.inputs = [
            kvcache.StepInputs.of(
                blocks=self.blocks, scales=self.scales, lengths=place(self.starts), lut=lut,
                row_offsets=place(self.offsets), max_seq_length=int(new.max()), max_cache_length=int(self.starts.max()),
            )
            for lut in self.luts
        ]  # fmt: skip

    def read(self, pages: Any, tokens: int, dtype: Any = torch.float64) -> Any:
        """The first tokens of pages, dequantized: [parts, tokens, heads, elements]."""
        pages = pages[: -(-tokens // self.cache.page)].long()
        x = _bits(self.blocks)[pages].view(self.blocks.dtype)[:, :, 0].float().to(dtype)
        if self.cache.scale:
            x *= self.scales[pages][:, :, 0].to(dtype).repeat_interleave(self.cache.scale[1], -1)
        return x.transpose(0, 1).flatten(1, 2)[:, :tokens]

    def read_set(self, number: int, tokens: int) -> Any:
        """Reads the tokens of all sequences of a set, bf16: [parts, batch, tokens, heads, elements]."""
        lut = self.luts[number]
        x = self.blocks[lut.flatten().long()][:, :, 0].unflatten(0, lut.shape)
        return x.permute(2, 0, 1, 3, 4, 5).flatten(2, 3)[:, :, :tokens]

    def slots(self, number: int) -> tuple[Any, Any]:
        """The page and the offset of each new token."""
        lut, starts, new = self.luts[number].cpu(), self.starts, np.diff(self.offsets)
        sequences = np.repeat(np.arange(len(new)), new)
        positions = np.arange(self.offsets[-1]) + np.repeat(starts - self.offsets[:-1], new)
        pages = lut.numpy()[sequences, positions // self.cache.page].astype(np.int64)
        offsets = positions % self.cache.page
        return torch.from_numpy(pages).to(self.device), torch.from_numpy(offsets).to(self.device)


def describe_device(is_cuda: bool) -> dict[str, Any]:
    """The facts of a run."""
    facts: dict[str, Any] = {"torch": torch.__version__, "device": "the host"}
    if is_cuda:
        properties = torch.cuda.get_device_properties(0)
        facts |= {"device": properties.name, "multiprocessors": properties.multi_processor_count, "l2": find_l2()}
        facts |= {"memory": properties.total_memory, "cuda": torch.version.cuda}
        torch.zeros(1, device="cuda")
    return facts


def find_l2() -> int:
    """Bytes of the L2 cache."""
    return int(getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 60 << 20))


def _bits(tensor: Any) -> Any:
    """The bytes of elements that PyTorch does not index everywhere."""
    return tensor.view(torch.uint8) if tensor.element_size() == 1 else tensor


def _fill(blocks: Any) -> None:
    if blocks.dtype == torch.bfloat16:
        blocks.normal_()
        return
    for part in blocks.split(4096):
        if blocks.dtype == torch.int8:
            part.random_(-127, 128)
        else:
            part.copy_(torch.randn(part.shape, device=blocks.device, dtype=torch.bfloat16))


def _random(*sizes: int, device: str) -> Any:
    return torch.randn(sizes, device=device, dtype=torch.bfloat16)


def _largest(errors: Any) -> float:
    """NaN if there is one."""
    return float(errors.max()) if not bool(errors.isnan().any()) else float("nan")


# --- Attention ------------------------------------------------------------------------


class Attention:
    """The arrays of attention, and its reference."""

    def __init__(self, work: Work, pages: Pages) -> None:
        self.work, self.pages = work, pages
        device, heads = pages.device, work.query_heads
        self.total = int(pages.offsets[-1])
        self.value_dim = work.options.get("value_dim", work.cache.size)
        # Scores of a deviation of 4 leave few tokens with weights, so that errors do not vanish in means.
        self.q = _random(self.total, heads, work.cache.size, device=device) * 4
        self.out = torch.empty((self.total, heads, self.value_dim), dtype=torch.bfloat16, device=device)
        self.lse = torch.empty((self.total, heads), device=device)
        self.scale = work.cache.size**-0.5
        self.extra: dict[str, Any] = {}
        self.rows: list[dict[str, Any]] = [{} for _ in range(pages.sets)]
        if work.options.get("sinks"):
            self.extra["sinks"] = torch.randn(heads, device=device)
        if work.options.get("rows"):
            self.chosen = torch.stack([torch.randperm(n)[: work.chosen] for n in work.contexts]).to(device)
            for rows, lut in zip(self.rows, pages.luts):
                ids = lut.long().gather(1, self.chosen // work.cache.page) * work.cache.page
                rows["rows"] = (ids + self.chosen % work.cache.page).to(torch.int32)
        self._wanted: dict[int, Any] = {}

    def reset(self) -> None:
        self.out.fill_(float("nan"))
        self.lse.fill_(float("nan"))

    def count_seen(self) -> int:
        """Pairs of a row and a token that it sees."""
        if self.work.chosen:
            return self.total * self.work.chosen
        seen = 0
        for context, new in zip(self.work.contexts, self.work.new):
            places = np.minimum(np.arange(context - new, context) + 1, self.work.options.get("window", 1 << 40))
            seen += int(places.sum())
        return seen

    def count_bytes(self) -> float:
        """Counts the bytes of tokens that are seen, each once, and of queries and outputs."""
        window = self.work.options.get("window", 1 << 40)
        tokens = [min(context, window + new - 1) for context, new in zip(self.work.contexts, self.work.new)]
        if self.work.chosen:
            tokens = [self.work.chosen] * len(tokens)
        token_bytes = self.work.cache.params.bytes_per_block / self.work.cache.page
        return sum(tokens) * token_bytes + 2 * (self.q.numel() + self.out.numel())

    def count_flops(self) -> float:
        return 2.0 * self.count_seen() * self.work.query_heads * (self.work.cache.size + self.value_dim)

    def sample(self) -> list[tuple[int, int]]:
        """Sequences and rows of them: of the first, the last, the shortest and the longest sequence."""
        contexts = self.work.contexts
        batch = {0, len(contexts) - 1, int(np.argmin(contexts)), int(np.argmax(contexts))}
        return [(b, row) for b in sorted(batch) for row in sorted({0, self.work.new[b] // 2, self.work.new[b] - 1})]

    def wanted(self) -> dict[int, Any]:
        """Outputs and logarithms of the sampled rows, with the first set of pages."""
        if self._wanted:
            return self._wanted
        read, cached = None, -1
        for b, row in self.sample():
            context = self.work.contexts[b]
            if b != cached:
                read, cached = self.pages.read(self.pages.luts[0][b], context), b
            k, v = read[0], read[-1][..., : self.value_dim]
            position = context - self.work.new[b] + row
            first = max(0, position + 1 - self.work.options.get("window", 1 << 40))
            if self.work.chosen:
                k, v = k[self.chosen[b]], v[self.chosen[b]]
            else:
                k, v = k[first : position + 1], v[first : position + 1]
            at = int(self.pages.offsets[b]) + row
            q = self.q[at].double().unflatten(0, (self.work.cache.heads, -1))
            scores = torch.einsum("hgd,nhd->hgn", q, k) * self.scale
            if cap := self.work.options.get("soft_cap"):
                scores = cap * torch.tanh(scores / cap)
            logits = scores
            if (sinks := self.extra.get("sinks")) is not None:
                column = sinks.double().view(*scores.shape[:2], 1)
                logits = torch.cat([scores, column], -1)
            lse = logits.logsumexp(-1, keepdim=True)
            out = torch.einsum("hgn,nhd->hgd", (scores - lse).exp(), v)
            self._wanted[at] = out.flatten(0, 1), lse.flatten()
        return self._wanted

    def check(self, out: Any | None = None) -> tuple[float, float]:
        """The largest error of a head's output, relative to its length, and of a logarithm."""
        own = self.out if out is None else out
        if not bool(own.isfinite().all()):
            return float("nan"), float("nan")
        errors, logarithms = [], []
        for at, (wanted, lse) in self.wanted().items():
            lengths = wanted.norm(dim=-1)
            errors.append(_largest((own[at].double() - wanted).norm(dim=-1) / lengths))
            logarithms.append(_largest((self.lse[at] - lse).abs()))
        return max(errors), 0.0 if out is not None or self.work.is_plain else max(logarithms)


def attend(work: Work, pages: Pages, target: str) -> Bench:
    given = Attention(work, pages)
    bench = Bench(pages.sets, given.count_bytes(), given.count_flops())

    def make_call(op: Any, variant: Variant) -> Call:
        extra = dict(given.extra)
        if not work.is_plain:
            extra["lse"] = given.lse
        if "split_tokens" in variant.options and not work.is_plain:
            size = op.workspace_size(len(work.contexts))
            extra["workspace"] = torch.zeros(size, dtype=torch.int8, device=pages.device)
        return lambda i: op(pages.inputs[i], 0, given.q, out=given.out, scale=given.scale, **extra, **given.rows[i])

    # Tensor cores take elements rounded to bf16 where a head has several scales.
    bound = 0.04 if work.cache.scale and work.cache.scale[1] < work.cache.size else 0.01
    bench.add_variants(work, target, make_call, given.check, bound, given.reset, log_bound=max(bound, 0.02))
    add_peers(bench, work, pages, given)
    return bench


def add_peers(bench: Bench, work: Work, pages: Pages, given: Attention) -> None:
    """Adds those contenders that this machine has."""
    from gpu_ops_peers import MAKERS, ON_HOST

    for peer in work.peers if pages.device == "cuda" else set(work.peers) & ON_HOST:
        try:
            bench.contenders.append(MAKERS[peer](work, pages, given))
        except Exception as error:  # the others go on
            bench.left_out[peer] = brief(error)


# --- Other operations -----------------------------------------------------------------


def append(work: Work, pages: Pages, target: str) -> Bench:
    device, cache, total = pages.device, work.cache, int(pages.offsets[-1])
    keys, values = (_random(total, cache.heads, cache.size, device=device) for _ in range(2))
    is_fused = work.kind == "fused"
    token_bytes = cache.params.bytes_per_block / cache.page
    moved = total * (token_bytes + 4 * cache.heads * cache.size)
    more: dict[str, Any] = {}
    queries = None
    if is_fused:
        queries = _random(total, work.query_heads, cache.size, device=device)
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
        _bits(pages.blocks)[slots[0], :, 0, slots[1]] = 0
        if queries is not None:
            queries.copy_(originals)

    def check() -> tuple[float, float]:
        """The largest error, relative to the largest element of its head."""
        written = _bits(pages.blocks)[slots[0], :, 0, slots[1]].view(pages.blocks.dtype).float().double()
        if cache.scale:
            written *= pages.scales[slots[0], :, 0, slots[1]].double().repeat_interleave(cache.scale[1], -1)
        pairs = [(written[:, 0], turn(keys, more["norm"]) if is_fused else keys.double()),
                 (written[:, 1], values.double())]  # fmt: skip
        if queries is not None:
            pairs.append((queries.double(), turn(originals, more["query_norm"])))
        return max(_largest((a - b).abs() / b.abs().amax(-1, keepdim=True)) for a, b in pairs), 0.0

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
            errors.append(_largest(((x[:, b, :context] - wanted) / wanted.abs().clamp(min=1e-6)).abs()))
            errors.append(_largest(x[:, b, context:].abs().float()) if context < tokens else 0.0)
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
    outs = _random(parts, rows, heads, size, device=pages.device)
    lses = torch.randn((parts, rows, heads), device=pages.device) * 2
    out, lse = torch.empty_like(outs[0]), torch.empty_like(lses[0])
    bench = Bench(1, 2.0 * (outs.numel() + out.numel()) + 4.0 * (lses.numel() + lse.numel()), 0)

    def check() -> tuple[float, float]:
        total = lses.double().logsumexp(0)
        wanted = (outs.double() * (lses - total).exp()[..., None]).sum(0)
        errors = (out.double() - wanted).norm(dim=-1) / wanted.norm(dim=-1)
        return _largest(errors), _largest((lse - total).abs())

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
    x, y = (_random(8192, 8192, device="cuda") for _ in range(2))
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
