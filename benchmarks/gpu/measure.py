"""Runs a work's contenders: first all for their results, and then those that are right for their time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from measure import Absent, Contender, Result, say, take_turns, verify

from .contenders import Workspace, list_contenders
from .cuda_device import CudaDevice, DeviceError, OutOfMemoryError
from .inputs import KINDS, SMALL, Sizes
from .kernels import Pack
from .works import Work

COPY, ALL = "copy", "all"
"""Results that are no contender's: the copy's times, and the reason why a case was not run to its end."""


class DeviceLostError(DeviceError):
    """The error of a kernel that has failed, and with it everything of this process on the device."""


@dataclass(frozen=True)
class Plan:
    """The options of a run. ``context`` is None where it follows from the L2 cache."""

    sizes: Sizes
    context: int | None
    repetitions: int
    warm_up: int
    without: tuple[str, ...]
    triton_source: Path


def _make_copy(workspace: Workspace, moved_bytes: int) -> Callable[[int], None]:
    """Makes a copy that reads and writes as many bytes together."""
    half = moved_bytes // 2
    source, to = (workspace.allocate((half,), 1).address for _ in range(2))
    workspace.device.fill(source, 0, half)
    return lambda turn: workspace.device.copy(to, source, half)


class Runner:
    """Runs works on one device, and collects the results."""

    def __init__(self, device: CudaDevice, pack: Pack, chip: str, plan: Plan) -> None:
        self.device, self.pack, self.chip, self.plan = device, pack, chip, plan
        self.results: list[Result] = []

    def run(self, work: Work) -> None:
        """Runs all cases of a work, the small one first. Raises ``DeviceLostError`` where nothing more can be run."""
        sizes = self.plan.sizes
        if not self.plan.context:
            sizes = sizes.filling(self.device.facts.l2_bytes, work.token_bytes)
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
        say(f"{work.name}, {kind}: {sizes.batch} x {sizes.context} …")
        case = work.make_case(kind, sizes)
        with Workspace(self.device, case) as workspace:
            workspace.expected = work.reference(case)
            contenders = self._enter_all(work, workspace)
            for contender in contenders:
                self._verify(work, kind, contender)
            wrong = self._list_wrong(work)
            right = [contender for contender in contenders if contender.name not in wrong]
            if timed and right:
                self._time(work, kind, workspace, right)

    def _list_wrong(self, work: Work) -> set[str]:
        return {result.contender for result in self.results if (result.work, result.status) == (work.name, "wrong")}

    def _enter_all(self, work: Work, workspace: Workspace) -> list[Contender]:
        """Returns the contenders that are ready; the results have the reasons of the others."""
        ready = []
        contenders = list_contenders(work, workspace, self.pack, self.chip, self.plan.triton_source)
        for name, enter in contenders.items():
            try:
                if name in self.plan.without:
                    raise Absent("left out by --without")
                ready.append(enter())
            except Absent as error:
                self.results.append(Result(work.name, workspace.case.kind, name, "absent", str(error)))
        return ready

    def _verify(self, work: Work, kind: str, contender: Contender) -> None:
        try:
            self.results.append(verify(contender, work.name, kind, self.device))
        except DeviceError as error:
            self.results.append(Result(work.name, kind, contender.name, "failed", str(error)))
            raise DeviceLostError(f"{work.name}, {kind}, {contender.name}: {error}") from error

    def _time(self, work: Work, kind: str, workspace: Workspace, right: list[Contender]) -> None:
        moved = workspace.case.moved_bytes
        calls = {COPY: _make_copy(workspace, moved)} | {contender.name: contender.call for contender in right}
        try:
            times = take_turns(calls, self.plan.repetitions, self.plan.warm_up, self.device)
        except DeviceError as error:
            raise DeviceLostError(f"{work.name}, {kind}, while timing: {error}") from error
        self.results.append(Result(work.name, kind, COPY))
        for result in self.results:
            if (result.work, result.case) == (work.name, kind) and result.contender in times:
                result.milliseconds = times[result.contender]
                result.figures = {"moved_bytes": moved}
