# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trials of configs: the times of their kernels for each example."""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from ..devices.gpu_timer import GPUTimer, HungError, summarize
from ..errors import CheckError, CompileError, TargetError, ToolchainError, TuningError
from ..ops.attention_config import AttentionConfig
from ..ops.attention_operation import Attention

Example = Callable[[Attention], object]
"""A function that calls the operation which it is given."""

_HANG_SECONDS = 20.0
"""The time after which a kernel counts as one that does not end."""
_CALLS = 5
"""Calls that are measured at once."""
_MOST_CALLS = 50
"""Calls of an example, at most."""
_LEAST_GAIN = 0.99
"""The most time, as a part of the planned config's, of a config that replaces it."""
_HOPELESS = 1.5
"""The time, in times of the fastest config, from which on a config is left."""


@dataclass(eq=False)
class Trial:
    """A config, and the times of its kernels.

    Attributes:
        config: All fields of the config.
        operation: The operation with this config.
        times: The microseconds of all calls of each example.
    """

    config: AttentionConfig
    operation: Attention
    times: list[list[float]] = field(default_factory=list)

    @property
    def microseconds(self) -> tuple[float, ...]:
        """The time of each example: inf if the GPU's times are no positive numbers."""
        found = map(summarize, self.times)
        return tuple(math.inf if each is None else round(each, 3) for each in found)


class Trials:
    """The trials of an operation.

    Attributes:
        done: The trials with a time for each example, first that of the planned config.
        failed: The reasons why configs can't be used, by the texts of their attributes.
    """

    def __init__(self, examples: tuple[Example, ...], device: int, l2_bytes: int) -> None:
        self._examples = examples
        self._timer = GPUTimer(device, l2_bytes)
        self.done: list[Trial] = []
        self.failed: dict[str, str] = {}

    @property
    def names(self) -> list[str]:
        """The names of the examples, for readers of the file."""
        return [getattr(each, "__name__", "") or str(each) for each in self._examples]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.close()

    def measure_first(self, trial: Trial) -> Trial:
        """Measures the planned config, whose errors are those of the examples.

        Raises ``TuningError`` if it does not end, or if its times are no positive numbers.
        """
        try:
            self._measure_all(trial)
        except HungError as error:
            raise TuningError(f"the planned config can't be measured: {error}") from error
        if not all(map(math.isfinite, trial.microseconds)):
            raise TuningError(
                f"expects the times of the GPU to be positive numbers, got {trial.times}"
            )
        self.done.append(trial)
        return trial

    def measure(self, trial: Trial) -> None:
        """Measures a config, or adds the reason why it can't be used to ``failed``.

        Raises ``TuningError`` if the GPU can't run anything more.
        """
        with self._noted_failure(trial):
            self._measure_all(trial)
        if str(trial.config) in self.failed:
            return
        if not all(map(math.isfinite, trial.microseconds)):
            self.failed[str(trial.config)] = "the times of the GPU are no positive numbers"
        elif len(trial.times) == len(self._examples):
            self.done.append(trial)

    def repeat(self, trials: Iterable[Trial], end: float) -> None:
        """Measures trials again in turns, until a time or the most calls.

        A trial that fails now is none any more. Raises as ``measure`` does.
        """
        for _ in range(_MOST_CALLS // _CALLS - 1):
            for trial in [each for each in trials if each in self.done]:
                with self._noted_failure(trial):
                    for example, times in zip(self._examples, trial.times):
                        if time.monotonic() > end:
                            return
                        again = self._measure(trial, example, _CALLS)
                        times += again if summarize(again) else []

    def compare(self, trial: Trial) -> float:
        """The time of a trial in times of the planned config, for a typical example."""
        pairs = list(zip(trial.microseconds, self.done[0].microseconds, strict=True))
        return math.prod(own / first for own, first in pairs) ** (1 / len(pairs))

    def find_best(self) -> Trial:
        """The fastest trial."""
        return min(self.done, key=self.compare)

    def find_winner(self) -> Trial:
        """The fastest trial if it is surely faster than that of the planned config."""
        best = self.find_best()
        return best if self.compare(best) < _LEAST_GAIN else self.done[0]

    def find_gain(self) -> float:
        """How many times as fast as the planned config the fastest one is."""
        return 1 / self.compare(self.find_best())

    @contextlib.contextmanager
    def _noted_failure(self, trial: Trial) -> Iterator[None]:
        """Adds the reason to ``failed`` if kernels of a trial fail."""
        try:
            yield
        except (CheckError, CompileError, TargetError, ToolchainError) as error:
            name = str(trial.config)
            self.failed[name] = str(error).splitlines()[0]
            if trial in self.done[1:]:
                self.done.remove(trial)
            self._check_context(name, error)

    def _measure_all(self, trial: Trial) -> None:
        """Measures each example, unless the first ones are hopelessly slow."""
        best = self.find_best().microseconds if self.done else ()
        for number, example in enumerate(self._examples):
            self._measure(trial, example, 1)  # loads the code
            trial.times.append(self._measure(trial, example, _CALLS))
            last = trial.microseconds[-1]
            if best and math.isfinite(last) and last > _HOPELESS * best[number]:
                return

    def _measure(self, trial: Trial, example: Example, count: int) -> list[float]:
        call = functools.partial(example, trial.operation)
        return self._timer.measure(call, count, _HANG_SECONDS)

    def _check_context(self, name: str, error: Exception) -> None:
        """Raises ``TuningError`` if the GPU runs nothing more after an error."""
        if not isinstance(error, HungError):
            try:
                self._timer.measure(lambda: None, 1, _HANG_SECONDS)
                return
            except CheckError:
                pass
        raise TuningError(
            f"the GPU runs nothing more after {name}: {error}\n"
            "Start the process again: this config is left out then."
        ) from error
