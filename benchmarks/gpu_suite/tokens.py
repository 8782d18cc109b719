#!/usr/bin/env python3
"""Times the generation of a Llama of random weights: a PagedCache beside transformers' own cache with its attention.

Rounds of both take turns, so that other work on the machine slows both. The first round, which compiles, is not timed.
The record is written after each batch, and larger batches are left out if the time is over.
Tokens are greedy; rounding may make them differ from some token on, where two logits are close.

examples:
  python benchmarks/gpu_suite/tokens.py --json tokens.json
  PYTHONPATH=build/python PYTHON benchmarks/gpu_suite/tokens.py --target emulator:sm_90a --small
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from command import Command  # noqa: E402
from gpu_suite.llama import Workload, choose_device, count_equal, make_config  # noqa: E402
from provenance import list_versions, read_gpu  # noqa: E402
from record import Record  # noqa: E402
from report import Table  # noqa: E402


SMALL = Workload(layers=2, hidden=64, heads=(4, 2), batches=(1, 2), prompt=20, new=3, rounds=2)


def make_model(work: Workload, device: str) -> Any:
    import torch
    from transformers import LlamaForCausalLM

    torch.manual_seed(0)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    return LlamaForCausalLM(make_config(work)).to(device, dtype).eval()


class Contender:
    """A cache and an attention of the model."""

    def __init__(self, model: Any, attention: str, cache: Any) -> None:
        self._model, self._attention, self._cache = model, attention, cache
        self.tokens: Any = None
        self.seconds: list[float] = []

    def run(self, prompts: Any, new: int) -> None:
        import torch

        self._model.set_attn_implementation(self._attention)
        if self._cache is not None:
            self._cache.reset()
        _wait(prompts)
        start = time.perf_counter()
        with torch.no_grad():
            self.tokens = self._model.generate(
                prompts, attention_mask=torch.ones_like(prompts), past_key_values=self._cache, max_new_tokens=new,
                do_sample=False,
            )  # fmt: skip
        _wait(prompts)
        self.seconds.append(time.perf_counter() - start)


def run_rounds(
    contenders: Sequence[Contender], prompts: Any, work: Workload, deadline: float, least: int
) -> None:
    """Runs the rounds of a batch, in turns, until the deadline, but at least ``least``."""
    for number in range(work.rounds + 1):
        if number >= least and time.monotonic() > deadline:
            break
        for contender in contenders:
            contender.run(prompts, work.new)


def _wait(tensor: Any) -> None:
    import torch

    if tensor.device.type == "cuda":
        torch.cuda.synchronize()


def measure(options: argparse.Namespace) -> Record:
    import torch
    from kvcache.transformers import NAME, PagedCache, install

    install()
    work = SMALL if options.small else Workload()
    device = choose_device(options.target)
    model = make_model(work, device)
    record = Record("python benchmarks/gpu_suite/tokens.py", driver=read_gpu().get("driver"))
    if device == "cuda":
        record.device = torch.cuda.get_device_name()
    record.software = list_versions("torch", "transformers")
    table = Table("batch", "cache", ("tokens/s", "{:.1f}"), "rounds", "first tokens that are equal")
    rounds: list[dict[str, Any]] = []
    deadline = time.monotonic() + options.seconds
    for batch in work.batches:
        prompts = torch.randint(2, 1000, (batch, work.prompt), generator=torch.Generator().manual_seed(batch))
        prompts = prompts.to(device)
        length = work.prompt + work.new
        cache = PagedCache(model, max_batch_size=batch, max_seq_len=length, page_size=16, target=options.target)
        contenders = {"PagedCache": Contender(model, NAME, cache), "DynamicCache, sdpa": Contender(model, "sdpa", None)}
        # The first batch has a timed round in any case.
        run_rounds(list(contenders.values()), prompts, work, deadline, 0 if rounds else 2)
        if any(len(each.seconds) < 2 for each in contenders.values()):
            break
        equal = count_equal(*(each.tokens[:, work.prompt :].tolist() for each in contenders.values()))
        for name, contender in contenders.items():
            timed = contender.seconds[1:]
            rate = batch * work.new / statistics.median(timed)
            table.add(batch, name, rate, len(timed), f"{equal} of {work.new}")
            rounds.append({"batch": batch, "cache": name, "seconds": timed, "equal": equal})
        record.tables = {"tokens": table}
        record.details = {"rounds": rounds}
        if options.json:
            record.save(options.json)
    return record


def main(arguments: list[str] | None = None) -> int:
    command = Command("tokens.py", __doc__)
    command.add("--target", default="cuda", help="as in kvcache.jit (default: %(default)s)")
    command.add("--seconds", type=float, default=60, help="for all (default: %(default)s)")
    command.add("--small", action="store_true", help="a small model and few tokens")
    return command.run(measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
