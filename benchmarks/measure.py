"""Times the contenders on a work, turn by turn, and looks at the code that they make."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import facts
from contenders import IN_PROCESS, CannotCompileError, Contender, CrashedError, summarize
from kvcache import ToolchainError
from works import Work


@dataclass(frozen=True)
class Result:
    """What one contender did with a work on a chip.

    Attributes:
        milliseconds: Of each round; round for round comparable between contenders.
        facts: About the code, or None where there is none.
        cannot: Why there is none, or empty.
    """

    work: str
    chip: str
    contender: str
    family: str
    kind: str
    milliseconds: tuple[float, ...] = ()
    facts: facts.Facts | None = None
    cannot: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.milliseconds)


def measure(work: Work, chip: str, contenders: Sequence[Contender], runs: int) -> list[Result]:
    """Lets the contenders take turns; the first round warms up, and tells who can't."""
    found: dict[Contender, facts.Facts | str] = {}
    crashed: set[str] = set()
    for contender in contenders:
        found[contender] = _try(contender, work, chip, crashed)
    able = [contender for contender in contenders if isinstance(found[contender], facts.Facts)]
    times: dict[Contender, list[float]] = {contender: [] for contender in contenders}
    for _ in range(runs):
        for contender in able:
            start = time.perf_counter()
            contender.compile(work, chip)
            times[contender].append((time.perf_counter() - start) * 1e3)
    results = []
    for contender, outcome in found.items():
        about, cannot = (outcome, "") if isinstance(outcome, facts.Facts) else (None, outcome)
        names = (contender.name, contender.family, contender.kind)
        results.append(Result(work.name, chip, *names, tuple(times[contender]), about, cannot))
    return results


def _try(contender: Contender, work: Work, chip: str, crashed: set[str]) -> facts.Facts | str:
    """Facts about the code, or why there is none.

    Args:
        crashed: Families of which a process has died: in this process they are not tried.
    """
    if contender.kind == IN_PROCESS and contender.family in crashed:
        return "not tried in this process, as another one died"
    try:
        module = contender.compile(work, chip)
        return facts.gather(module.ptx, chip, module.dynamic_shared)
    except CannotCompileError as error:
        if isinstance(error, CrashedError):
            crashed.add(contender.family)
        return str(error)
    except ToolchainError as error:
        return f"ptxas: {summarize(str(error))}"
    except ValueError as error:
        return str(error)


def ratio(ours: Result, theirs: Result) -> float:
    """The median over the rounds of our time as a part of theirs."""
    return statistics.median(a / b for a, b in zip(ours.milliseconds, theirs.milliseconds, strict=True))
