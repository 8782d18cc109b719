"""Runs a work's contenders: first all for their results, and then those that are right for their time."""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .contenders import Entrant, Unavailable, Workspace, list_contenders
from .device import Device, DeviceError, OutOfMemoryError
from .inputs import KINDS, SMALL, Sizes
from .kernels import Pack
from .references import Arrays
from .works import Work

COPY, ALL = "copy", "all"
"""Results that are no contender's: the copy's times, and the reason why a case was not run to its end."""

MOST_WAITING = 1.1
"""The whole time over that of the launches, where it is said that the host is too slow."""


class DeviceLostError(DeviceError):
    """A kernel has failed, and with it everything that this process has on the device."""


@dataclass
class Result:
    """What came of a contender in a case. Without ``milliseconds`` it was not timed, and ``note`` says why."""

    work: str
    kind: str
    contender: str
    status: str
    """``right``, ``wrong``, ``absent`` or ``failed``."""
    note: str = ""
    milliseconds: list[float] = field(default_factory=list)
    moved_bytes: int = 0

    @property
    def median(self) -> float:
        return statistics.median(self.milliseconds)


@dataclass(frozen=True)
class Plan:
    """What is asked for. ``context`` is None where it follows from the L2 cache."""

    sizes: Sizes
    context: int | None
    repetitions: int
    warm_up: int
    without: tuple[str, ...]
    triton_source: Path

    def sizes_of(self, work: Work, l2_bytes: int) -> Sizes:
        return self.sizes if self.context else self.sizes.filling(l2_bytes, work.token_bytes)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def time_launches(device: Device, launches: dict[str, Callable[[], None]], warm_up: int, repetitions: int
                  ) -> dict[str, list[float]]:
    """The milliseconds of each repetition, between events on the stream, in an order that changes at every turn.

    Nothing waits for the device before the end: it always has work ahead, so that no time between two launches is
    counted.
    """
    marks: dict[str, list[tuple[Any, Any]]] = {name: [] for name in launches}
    order, shuffle = list(launches), random.Random(0).shuffle
    first = device.mark()
    for _ in range(warm_up + repetitions):
        shuffle(order)
        for name in order:
            start = device.mark()
            launches[name]()
            marks[name].append((start, device.mark()))
    last = device.mark()
    device.synchronize()
    times = {name: [device.milliseconds(*pair) for pair in pairs] for name, pairs in marks.items()}
    _warn_of_waiting(sum(map(sum, times.values())), device.milliseconds(first, last))
    return {name: values[warm_up:] for name, values in times.items()}


def _warn_of_waiting(busy: float, total: float) -> None:
    if total > MOST_WAITING * busy:
        _say(f"the device was idle for {1 - busy / total:.0%} of the time: the host is slow, and may be in the times")


def _copy_launch(workspace: Workspace, moved_bytes: int) -> Callable[[], None]:
    """A copy that reads and writes as many bytes together."""
    half = moved_bytes // 2
    source, to = (workspace.allocate((half,), 1).address for _ in range(2))
    workspace.device.fill(source, 0, half)
    return lambda: workspace.device.copy(to, source, half)


class Runner:
    """Runs works on one device, and collects the results."""

    def __init__(self, device: Device, pack: Pack, chip: str, plan: Plan) -> None:
        self.device, self.pack, self.chip, self.plan = device, pack, chip, plan
        self.results: list[Result] = []

    def run(self, work: Work) -> None:
        """All cases of a work, the small one first. Raises ``DeviceLostError`` where nothing more can be run."""
        sizes = self.plan.sizes_of(work, self.device.facts.l2_bytes)
        for kind in reversed(KINDS):
            is_small = kind == "edges"
            try:
                self._run_case(work, kind, SMALL if is_small else sizes, timed=not is_small)
            except (OutOfMemoryError, MemoryError) as error:
                self.results.append(Result(work.name, kind, ALL, "failed", str(error)))
            except DeviceLostError:
                raise
            except DeviceError as error:
                raise DeviceLostError(f"{work.name}, {kind}: {error}") from error
        wrong = self._list_wrong(work)
        for result in self.results:
            if result.work == work.name and result.contender in wrong:
                result.milliseconds = []

    def _run_case(self, work: Work, kind: str, sizes: Sizes, timed: bool) -> None:
        _say(f"{work.name}, {kind}: {sizes.batch} x {sizes.context} …")
        case = work.make_case(kind, sizes)
        expected = work.reference(case)
        with Workspace(self.device, case) as workspace:
            entrants = self._enter_all(work, workspace)
            for entrant in entrants:
                self._verify(work, kind, entrant, expected)
            wrong = self._list_wrong(work)
            right = [entrant for entrant in entrants if entrant.name not in wrong]
            if timed and right:
                self._time(work, kind, workspace, right)

    def _list_wrong(self, work: Work) -> set[str]:
        return {result.contender for result in self.results if (result.work, result.status) == (work.name, "wrong")}

    def _enter_all(self, work: Work, workspace: Workspace) -> list[Entrant]:
        """The contenders that are ready; of the others the results say why."""
        ready = []
        contenders = list_contenders(work, workspace, self.pack, self.chip, self.plan.triton_source)
        for name, enter in contenders.items():
            try:
                if name in self.plan.without:
                    raise Unavailable("left out by --without")
                ready.append(enter())
            except Unavailable as error:
                self.results.append(Result(work.name, workspace.case.kind, name, "absent", str(error)))
        return ready

    def _verify(self, work: Work, kind: str, entrant: Entrant, expected: Arrays) -> None:
        try:
            entrant.poison()
            entrant.launch()
            self.device.synchronize()
            got = entrant.results()
        except DeviceError as error:
            self.results.append(Result(work.name, kind, entrant.name, "failed", str(error)))
            raise DeviceLostError(f"{work.name}, {kind}, {entrant.name}: {error}") from error
        difference = entrant.compare(expected, got)
        status = "wrong" if difference else "right"
        self.results.append(Result(work.name, kind, entrant.name, status, difference or ""))

    def _time(self, work: Work, kind: str, workspace: Workspace, right: list[Entrant]) -> None:
        moved = workspace.case.moved_bytes
        launches = {COPY: _copy_launch(workspace, moved)} | {entrant.name: entrant.launch for entrant in right}
        try:
            times = time_launches(self.device, launches, self.plan.warm_up, self.plan.repetitions)
        except DeviceError as error:
            raise DeviceLostError(f"{work.name}, {kind}, while timing: {error}") from error
        self.results.append(Result(work.name, kind, COPY, "right"))
        for result in self.results:
            if (result.work, result.kind) == (work.name, kind) and result.contender in times:
                result.milliseconds, result.moved_bytes = times[result.contender], moved
