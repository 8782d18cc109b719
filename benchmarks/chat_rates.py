#!/usr/bin/env python3
"""Records the tokens a second of a chat with a small model, through paged caches and through the model's own.

The chat and the Llama with random weights are those of examples/chat.py, which `scripts/example chat` runs: all users
have the same instructions, which paged caches compute and keep once. Contenders take turns, on one core. Their figures
are medians of all rounds, of the wall's time. With f32, both caches must give the same tokens.

examples:
  scripts/bench chat
  scripts/bench chat --rounds 11 --record
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from statistics import median
from typing import Any

from command import HINT, Command
from measure import say, take_turns
from provenance import FOLDER, list_versions
from record import Record
from report import Table

sys.path.append(str(FOLDER.parent / "examples"))

try:
    import chat
    import torch
    import transformers
except ImportError as error:
    sys.exit(f"error: {error}\n  {HINT}")

WORK = chat.Workload(layers=8, hidden=512, instructions=1024, question=32, answer=32)
CACHES = {"f32": (None, "f32"), "bf16": (None, "bf16", "f8E4M3FN", "i8")}
"""By the dtype of a model: its own cache, and the dtypes of paged ones."""


def name_cache(dtype: str | None) -> str:
    return f"paged, {dtype}" if dtype else "the model's own"


def measure_model(name: str, work: chat.Workload, rounds: int) -> list[list[Any]]:
    """Returns a row for each cache of a model of a dtype."""
    say(f"a model of {name}")
    model = chat.make_model(work).to({"f32": torch.float32, "bf16": torch.bfloat16}[name])
    questions = chat.Questions.make(work)
    results: dict[str | None, list[chat.Result]] = {dtype: [] for dtype in CACHES[name]}

    def run(dtype: str | None) -> None:
        results[dtype].append(chat.chat_with(model, work, questions, dtype))

    take_turns({name_cache(dtype): lambda turn, dtype=dtype: run(dtype) for dtype in results}, rounds)
    if name == "f32" and not have_same_answers([each[-1] for each in results.values()]):
        raise ValueError("caches of f32 give other tokens than the model's own")
    return [[f"{name}, {name_cache(dtype)}", *summarize(all_[1:])] for dtype, all_ in results.items()]


def have_same_answers(results: Sequence[chat.Result]) -> bool:
    first, *others = results
    return all(torch.equal(a, b) for each in others for a, b in zip(first.answers, each.answers, strict=True))


def summarize(results: Sequence[chat.Result]) -> list[Any]:
    """Returns the cells of a cache: sizes, and medians of seconds and of rates."""
    first = results[0]
    prompts, steps = (median(times) for times in zip(*((each.prompt_seconds, each.decode_seconds) for each in results)))
    return [
        round(first.nbytes / 1024),
        first.prompt_tokens,
        prompts,
        first.prompt_tokens / prompts,
        first.decoded_tokens,
        first.decoded_tokens / steps,
    ]


def tabulate(work: chat.Workload, rounds: int) -> Table:
    table = Table(
        "model, cache", "KiB", "prompt tokens computed", ("seconds", "{:.2f}"), ("tokens/s", "{:.0f}"),
        "decoded tokens", ("decoded tokens/s", "{:.0f}"),
    )  # fmt: skip
    for name in CACHES:
        for row in measure_model(name, work, rounds):
            table.add(*row)
    return table


def measure(options: argparse.Namespace) -> Record:
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    chat.install()
    software = list_versions("torch", "transformers")
    tables = {"chat": tabulate(WORK, options.rounds)}
    return Record("scripts/bench chat", tables, software=software, runs=f"{options.rounds} rounds")


def main(arguments: Sequence[str] | None = None) -> int:
    command = Command("scripts/bench chat", __doc__, "chat")
    command.add_count("--rounds", 7, "counted rounds")
    return command.run(measure, command.parse(arguments))


if __name__ == "__main__":
    sys.exit(main())
