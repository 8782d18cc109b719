"""The pages of a work of gpu_ops_works.py, and what it becomes.

A work becomes a `Bench`: contenders with calls for each of several sets of pages, so that the L2 cache does not hold
them, and a check of what the first call wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import kvcache
import numpy as np
import torch
from gpu_ops_timing import Call
from gpu_ops_works import Variant, Work
from measure import Contender

L2_TIMES = 4  # the sets of a work have so many times the bytes of the L2 cache
MOST_SETS = 64
NARROW = {"f8E4M3FN": torch.float8_e4m3fn, "i8": torch.int8, "bf16": torch.bfloat16}


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
        x = as_bits(self.blocks)[pages].view(self.blocks.dtype)[:, :, 0].float().to(dtype)
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


def as_bits(tensor: Any) -> Any:
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


def random_rows(*sizes: int, device: str) -> Any:
    return torch.randn(sizes, device=device, dtype=torch.bfloat16)


def largest_error(errors: Any) -> float:
    """NaN if there is one."""
    return float(errors.max()) if not bool(errors.isnan().any()) else float("nan")
