#!/usr/bin/env python3
"""Tunes attention for the shapes whose times are compared with peers, and writes a tuning file and a record.

Without a GPU, nothing is measured: the record has the numbers of configs and the planned ones.

examples:
  python benchmarks/gpu_suite/tuner.py --seconds 120 --json tuner.json
  PYTHONPATH=build/python PYTHON benchmarks/gpu_suite/tuner.py --target emulator:sm_90a --small
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import kvcache  # noqa: E402
from command import Command  # noqa: E402
from gpu_ops_works import WORKS, Variant, Work  # noqa: E402
from kvcache.devices.gpu_timer import find_model  # noqa: E402
from kvcache.tuning.candidates import list_kernels, plan  # noqa: E402
from kvcache.tuning.synthetic import Shape, SyntheticExample  # noqa: E402
from provenance import read_gpu  # noqa: E402
from record import Record  # noqa: E402
from report import Table  # noqa: E402


@dataclass(frozen=True)
class Subject:
    """An operation that is tuned: works of one format with the same options."""

    works: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


SPLITS = {"split_tokens": 256, "max_splits": 32}
SUBJECTS = (
    Subject(("prompt 32/8, 1 x 8K",)),
    Subject(("decode 32/8, 64 x 8K", "decode 32/8, 1 x 1K"), SPLITS),
    Subject(("decode MLA 128, 64 x 8K",)),
    Subject(("decode fp8 32/8, 64 x 8K",), SPLITS),
    Subject(("decode 32/8, 1 x 128K",), {**SPLITS, "max_splits": 512}),
    Subject(("prompt 32/8 of 64, 1 x 8K",)),
    Subject(("prompt 16/8 of 256, 1 x 8K",)),
)


def find_works(subject: Subject, is_small: bool) -> list[Work]:
    found = [next(work for work in WORKS if work.name == name) for name in subject.works]
    return [work.shrink() for work in found] if is_small else found


def get_shape(work: Work) -> Shape:
    return Shape(len(work.contexts), work.contexts[0], work.new[0])


def describe_changes(config: kvcache.AttentionConfig, planned: kvcache.AttentionConfig) -> str:
    """The fields in which a config is not the planned one."""
    changes = [f"{name} = {value}" for name, value in config.given.items() if getattr(planned, name) != value]
    return ", ".join(changes) or "none"


def measure_subject(subject: Subject, options: argparse.Namespace, seconds: float) -> list[tuple[Any, ...]]:
    """Tunes an operation; returns a row for each of its works."""
    works = find_works(subject, options.small)
    operation = works[0].make(Variant("", dict(subject.options)), options.target)
    examples = [SyntheticExample(operation, get_shape(work), 0) for work in works]
    result = kvcache.tune(operation, *examples, file=options.file, seconds=seconds)
    changes = describe_changes(result.config, plan(operation, find_model(0).chip).config)
    times = zip(works, result.planned_microseconds, result.microseconds, strict=True)
    return [(work.name, result.measured, planned, tuned, changes) for work, planned, tuned in times]


def list_subject(subject: Subject, options: argparse.Namespace) -> list[tuple[Any, ...]]:
    """Counts the configs of an operation; returns a row for each of its works."""
    works = find_works(subject, options.small)
    operation = works[0].make(Variant("", dict(subject.options)), options.target)
    chip = options.target.partition(":")[2]
    count = len(list_kernels(operation, chip, plan(operation, chip), allow_other_bits=False))
    return [(work.name, count, None, None, "not measured") for work in works]


def measure(options: argparse.Namespace) -> Record:
    record = Record("python benchmarks/gpu_suite/tuner.py", driver=read_gpu().get("driver"))
    table = Table("work", "configs", ("planned us", "{:.1f}"), ("tuned us", "{:.1f}"), "changed fields")
    record.tables = {"tuner": table}
    is_on_gpu = options.target.startswith("cuda")
    if is_on_gpu:
        record.device = find_model(0).gpu
    subjects: Sequence[Subject] = SUBJECTS[:1] if options.small else SUBJECTS
    end = time.monotonic() + options.seconds
    for number, subject in enumerate(subjects):
        seconds = max(end - time.monotonic(), 1) / (len(subjects) - number)
        rows = measure_subject(subject, options, seconds) if is_on_gpu else list_subject(subject, options)
        for row in rows:
            table.add(*row)
        if options.json:
            record.save(options.json)
    return record


def main(arguments: list[str] | None = None) -> int:
    command = Command("tuner.py", __doc__)
    command.add("--target", default="cuda", help="cuda, or an emulated chip (default: %(default)s)")
    command.add("--seconds", type=float, default=120, help="for all (default: %(default)s)")
    command.add("--small", action="store_true", help="one operation on few tokens")
    command.add("--file", type=Path, help="the tuning file (default: that of this GPU)")
    return command.run(measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
