"""The turns of contenders: a check of the results of each, and the times of those that are right.

It needs nothing but Python 3.10, like the tables and records, as a machine with a GPU may have nothing else.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


def say(text: str) -> None:
    """Prints progress, apart from the results."""
    print(text, file=sys.stderr, flush=True)


def brief(error: BaseException) -> str:
    """Shortens an error to its kind and the first lines of its message."""
    return f"{type(error).__name__}: {error}".split("\n\n")[0].replace("\n", " ")[:300]


class Absent(Exception):
    """The error of a contender that can't take part; the message says why."""


@dataclass
class Contender:
    """The work of a contender, ready to run again and again.

    Attributes:
        call: Runs it, with the number of a set of arrays.
        check: Says what is wrong with the results of the last call, or None.
        reset: Destroys the results, so that those of an earlier call are not taken for new ones.
        figures: Everything else that is known of it, by name; ``check`` may add some.
    """

    name: str
    call: Callable[[int], Any]
    check: Callable[[], str | None] = lambda: None
    reset: Callable[[], Any] = lambda: None
    note: str = ""
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass
class Result:
    """The outcome of a contender in a case. Without ``milliseconds`` it was not timed, and ``note`` says why.

    Attributes:
        status: ``right``, ``wrong``, ``absent`` or ``failed``.
        figures: Everything else that is known of it, by name.
    """

    work: str
    case: str
    contender: str
    status: str = "right"
    note: str = ""
    milliseconds: list[float] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def median(self) -> float:
        return statistics.median(self.milliseconds)

    @property
    def spread(self) -> list[float] | None:
        """The median, the least and the greatest time, if there are any."""
        return spread(self.milliseconds) if self.milliseconds else None


def verify(contender: Contender, work: str, case: str = "", clock: Any = None) -> Result:
    """Runs a contender once, and says whether its results are right."""
    contender.reset()
    contender.call(0)
    if clock:
        clock.synchronize()
    wrong = contender.check()
    status = "wrong" if wrong else "right"
    return Result(work, case, contender.name, status, wrong or contender.note, figures=contender.figures)


def spread(times: Sequence[float]) -> list[float]:
    """Returns the median, the least and the greatest time."""
    return [statistics.median(times), min(times), max(times)]


def compare_rounds(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Returns the median over the rounds of our time as a part of theirs."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


class Clock(Protocol):
    """The source of times. A GPU has them only when it has reached the last mark."""

    def mark(self) -> Any: ...

    def synchronize(self) -> None: ...

    def milliseconds(self, start: Any, end: Any) -> float: ...


class HostClock:
    """The clock of the wall or, with ``time.process_time``, of the processor."""

    def __init__(self, seconds: Callable[[], float] = time.perf_counter) -> None:
        self.mark = seconds

    def synchronize(self) -> None:
        pass

    def milliseconds(self, start: float, end: float) -> float:
        return (end - start) * 1e3


MOST_WAITING = 1.1
"""The time of a run over that of its calls from which on the host may be in the times of a device."""


def take_turns(
    calls: Mapping[str, Callable[[int], Any]],
    rounds: int,
    warm_up: int = 1,
    clock: Clock = HostClock(),
    prepare: Mapping[str, Callable[[], Any]] | None = None,
) -> dict[str, list[float]]:
    """Measures milliseconds of each round, by name. The order changes in every round, and nothing waits for a device.

    A device always has work ahead, so that no time between two calls counts. ``prepare`` has what is to be done before
    a call, and is not timed.
    """
    marks: dict[str, list[tuple[Any, Any]]] = {name: [] for name in calls}
    order, shuffle = list(calls), random.Random(0).shuffle
    first = clock.mark()
    for turn in range(warm_up + rounds):
        shuffle(order)
        for name in order:
            if prepare and name in prepare:
                prepare[name]()
            start = clock.mark()
            calls[name](turn)
            marks[name].append((start, clock.mark()))
    last = clock.mark()
    clock.synchronize()
    times = {name: [clock.milliseconds(*pair) for pair in pairs] for name, pairs in marks.items()}
    busy, total = sum(map(sum, times.values())), clock.milliseconds(first, last)
    if total > MOST_WAITING * busy and not isinstance(clock, HostClock):
        say(f"the device was idle for {1 - busy / total:.0%} of the time: the host is slow, and may be in the times")
    return {name: values[warm_up:] for name, values in times.items()}
