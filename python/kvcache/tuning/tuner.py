# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the configs of an operation, and keeps the fastest in a tuning file."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..checks import check_flag, check_integer, check_path, check_positive_real
from ..compilation import tuning_files
from ..devices.gpu_timer import Model, find_model
from ..errors import TuningError
from ..ops.attention_config import AttentionConfig
from ..ops.attention_operation import Attention
from ..ops.making import forget
from .candidates import Plan, list_kernels, list_launches, plan
from .progress import Progress
from .ranking import rank
from .trials import Example, Trial, Trials

_RANKING = 0.25
"""The part of the time in which machine code is read."""
_KERNELS = 0.6
"""The part of the time after which no other kernels are measured."""
_FINALISTS = 3
"""Configs that are measured again, in turns."""


@dataclass(frozen=True)
class TuningResult:
    """The result of ``kvcache.tune``.

    Attributes:
        operation: The operation with the fastest config.
        config: All fields of that config.
        microseconds: The time of each example.
        planned_microseconds: The time of each example with the config that the compiler
            chooses.
        measured: The number of configs that were measured.
        failed: The reasons why configs can't be used, by the texts of their attributes.
        file: The tuning file.
    """

    operation: Attention
    config: AttentionConfig
    microseconds: tuple[float, ...]
    planned_microseconds: tuple[float, ...]
    measured: int
    failed: dict[str, str]
    file: Path


def tune(
    operation: Attention,
    *examples: Example,
    file: str | os.PathLike[str] | None = None,
    seconds: float = 60.0,
    allow_other_bits: bool = False,
    device: int = 0,
    progress: bool | None = None,
) -> TuningResult:
    """Measures configs of attention on this GPU, and keeps the fastest in a file.

    There is one config for all examples, so that the bits of a row do not depend on its
    batch. It is the one with the least product of times. Operations that are made later
    have it if the file is the one of this machine: see ``KVCACHE_TUNING``.

    Args:
        operation: An operation of ``kvcache.ops.attention`` for ``"cuda"``. Fields of its
            config that are set stay as they are.
        examples: Functions that call the operation which they are given, with arrays of
            the GPU: ``lambda attend: attend(step, 0, q, out=out, scale=0.1)``.
        file: The tuning file. None for the one of this GPU in the folder of compiled
            code, or where ``KVCACHE_TUNING`` says.
        seconds: The time after which no other config is measured.
        allow_other_bits: Whether results may have other bits than those of the planned
            config, such as with another ``mma`` or ``keys``.
        device: The number of the GPU.
        progress: Whether a line on standard error says how far it is; by default if that
            is a terminal.

    Raises:
        TuningError: The operation has no choices or no GPU, there is no example, the file
            is damaged or for other GPUs, a kernel did not end or has ended the context of
            the GPU, or the GPU's times are no positive numbers.
        CompileError: The chip can't have the operation's config.
        TargetError: There is no driver, or no such GPU.
    """
    check_flag(allow_other_bits=allow_other_bits)
    check_positive_real(seconds=seconds)
    check_integer(device=device)
    _check_subject(operation, examples)
    end = time.monotonic() + seconds
    model = find_model(device)
    path = _find_file(file, model)
    tuning_files.check_writable(path, model)
    planned = plan(operation, model.chip)
    search = _Search(operation, planned, model, path, end)
    with Trials(examples, device, model.l2_bytes) as trials, Progress(progress) as bar:
        try:
            search.run(trials, bar, allow_other_bits)
        finally:  # also what was measured before an error or an interrupt
            if trials.done:
                search.save(trials)
    forget()
    first, best = trials.done[0], trials.find_winner()
    return TuningResult(
        operation.with_config(best.config),
        best.config,
        best.microseconds,
        first.microseconds,
        len(trials.done),
        dict(trials.failed),
        path,
    )


def _check_subject(operation: Any, examples: Sequence[Any]) -> None:
    if not isinstance(operation, Attention):
        raise TuningError(
            f"expects 'operation' to be of kvcache.ops.attention, which has a config, got "
            f"{type(operation).__name__}"
        )
    if not operation.target.startswith("cuda"):
        raise TuningError(
            f"expects 'operation' to have target 'cuda', got {operation.target!r}"
        )
    if not examples:
        raise TuningError("expects at least one example, which calls the operation")
    for number, example in enumerate(examples):
        if not callable(example):
            raise TypeError(
                f"expects example {number} to be a function of the operation, got "
                f"{example!r:.100}"
            )


def _find_file(file: str | os.PathLike[str] | None, model: Model) -> Path:
    """The file to which the config is added."""
    if file is not None:
        check_path(file=file)
        return Path(os.fsdecode(file)).absolute()
    path = tuning_files.find_path(model)
    if path is None:
        raise TuningError(
            "expects 'file': KVCACHE_TUNING or KVCACHE_CACHE is off, so that there is no "
            "tuning file"
        )
    return path.absolute()


class _Search:
    """A search for the fastest config of an operation."""

    def __init__(
        self, operation: Attention, planned: Plan, model: Model, path: Path, end: float
    ) -> None:
        self._operation = operation
        self._planned = planned
        self._model = model
        self._path = path
        self._begin, self._end = time.monotonic(), end

    def run(self, trials: Trials, bar: Progress, allow_other_bits: bool) -> None:
        """Measures kernels, then launches of the fastest kernel, then these in turns."""
        chip, operation = self._model.chip, self._operation
        kernels = list_kernels(operation, chip, self._planned, allow_other_bits)
        launches = list_launches(
            operation, chip, kernels[0], self._model.multiprocessors
        )
        if len(kernels) == 1 and not launches:
            raise TuningError(
                "expects an operation with choices: its config and its bits leave one kernel"
            )
        first = trials.measure_first(self._make(self._planned.config))
        kernels = [kernels[0], *self._remove_failed(kernels[1:])]
        bar.begin(len(kernels) + len(launches), self._end)
        ranked = rank(operation, kernels, self._model, self._left(_RANKING))
        self._measure(trials, bar, ranked[1:], self._left(_KERNELS))
        best = trials.find_best()
        if best is not first:
            launches = list_launches(
                operation, chip, best.config, self._model.multiprocessors
            )
        self._measure(trials, bar, self._remove_failed(launches), self._left(1))
        finalists = sorted(trials.done, key=trials.compare)[:_FINALISTS]
        trials.repeat(dict.fromkeys([first, *finalists]), self._end)

    def _make(self, config: AttentionConfig) -> Trial:
        return Trial(config, self._operation.with_config(config))

    def _left(self, part: float) -> float:
        """The seconds until a part of the time has passed."""
        return self._begin + part * (self._end - self._begin) - time.monotonic()

    def _remove_failed(self, configs: list[AttentionConfig]) -> list[AttentionConfig]:
        """The configs without those whose kernels failed in an earlier run."""
        known = tuning_files.read(self._path).shapes if self._path.exists() else {}
        failed = known.get(self._planned.shape, {}).get("failed", {})
        return [config for config in configs if str(config) not in failed]

    def _measure(
        self,
        trials: Trials,
        bar: Progress,
        configs: Sequence[AttentionConfig],
        seconds: float,
    ) -> None:
        end = time.monotonic() + seconds
        for config in configs:
            if time.monotonic() > end:
                return
            trials.measure(self._make(config))
            bar.step(trials.find_gain())

    def save(self, trials: Trials) -> None:
        """Adds the fastest config to the file, and the kernels that failed."""
        first, best = trials.done[0], trials.find_winner()
        bits = plan(best.operation, self._model.chip).bits
        entry = {
            "config": best.config.given,
            "other_bits": bits != self._planned.bits,
            "examples": trials.names,
            "microseconds": best.microseconds,
            "planned_microseconds": first.microseconds,
            "measured": len(trials.done),
            "failed": trials.failed,
            "date": datetime.date.today().isoformat(),
        }
        tuning_files.merge(self._path, self._model, self._planned.shape, entry)


