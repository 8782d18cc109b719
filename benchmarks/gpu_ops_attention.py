"""Attention in the benchmark of operations on a GPU, beside other libraries'."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gpu_ops_bench import Bench, Pages, largest_error, random_rows
from gpu_ops_timing import Call
from gpu_ops_works import Variant, Work
from measure import brief


class Attention:
    """The arrays of attention, and its reference."""

    def __init__(self, work: Work, pages: Pages) -> None:
        self.work, self.pages = work, pages
        device, heads = pages.device, work.query_heads
        self.total = int(pages.offsets[-1])
        self.value_dim = work.options.get("value_dim", work.cache.size)
        # Scores of a deviation of 4 leave few tokens with weights, so that errors do not vanish in means.
        self.q = random_rows(self.total, heads, work.cache.size, device=device) * 4
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
            errors.append(largest_error((own[at].double() - wanted).norm(dim=-1) / lengths))
            logarithms.append(largest_error((self.lse[at] - lse).abs()))
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
