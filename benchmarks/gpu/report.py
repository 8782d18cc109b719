"""Rates the measured times: bandwidths, tables, and whether the goals are met."""

from __future__ import annotations

from measure import Result
from report import Table

from .cuda_device import Facts
from .inputs import L2_TIMES
from .kernels import OURS
from .measure import ALL, COPY
from .works import WORKS

PEAKS = {"H100 80GB HBM3": 3.35e12, "H200": 4.8e12, "B200": 7.67e12}
"""Bytes per second, by words of the device's name."""

COPY_GOAL = 0.9
"""The part of a copy's bandwidth that works which are little more than a copy should reach."""
SAME = 1.01
"""Medians within a percent are taken for equal."""


def find_peak(facts: Facts) -> tuple[float, str]:
    """Returns the most bytes per second of the memory, or 0, and where the number is from."""
    for words, peak in PEAKS.items():
        if f" {words} " in f" {facts.name} ":
            return peak, f"data sheet of {words}"
    return facts.clock_bandwidth, "memory clock and bus width" if facts.clock_bandwidth else "unknown"


def rate(results: list[Result], peak: float) -> None:
    """Adds the bandwidth to results with times, and its parts of the bandwidths of the copy and of the chip."""
    copies = {(result.work, result.case): result.median for result in results
              if result.contender == COPY and result.milliseconds}
    for result in results:
        copy = copies.get((result.work, result.case))
        if copy and result.milliseconds:
            bandwidth = result.figures["moved_bytes"] / (result.median / 1e3)
            peak_part = bandwidth / peak if peak else None
            result.figures |= {"bandwidth": bandwidth, "copy_part": copy / result.median, "peak_part": peak_part}


def tabulate(results: list[Result]) -> Table:
    """Makes the table of rated results."""
    micros = tuple((title, "{:.1f}") for title in ("us", "fastest", "slowest"))
    table = Table(
        "work", "lengths", "contender", *micros, ("TB/s", "{:.2f}"), ("of copy", "{:.0%}"), ("of peak", "{:.0%}")
    )
    for result in results:
        if "bandwidth" in result.figures and result.milliseconds:
            times = (1e3 * time for time in result.spread)
            figures = result.figures
            parts = figures["bandwidth"] / 1e12, figures["copy_part"], figures["peak_part"]
            table.add(result.work, result.case, result.contender, *times, *parts)
    return table


def tabulate_full(results: list[Result]) -> Table:
    """Makes the table of full sequences: for each contender microseconds and percent of the copy's bandwidth."""
    timed = [result for result in results if result.case == "full" and "bandwidth" in result.figures]
    names = list(dict.fromkeys(result.contender for result in timed if result.contender != COPY))
    cells = {(r.work, r.contender): [1e3 * r.median, 100 * r.figures["copy_part"]] for r in timed}
    columns = [(name, "{:.0f} us, {:.0f} %") for name in names]
    table = Table("work, full sequences", *columns, ("copy of as many bytes", "{:.0f} us"))
    for work in dict.fromkeys(result.work for result in timed):
        table.add(work, *(cells.get((work, name)) for name in names), cells[work, COPY][0])
    return table


def list_notes(results: list[Result]) -> list[str]:
    """Lists contenders that are absent, wrong or failed, and the cases with the same reason."""
    checked = sum(result.status == "right" and result.contender != COPY for result in results)
    kinds: dict[tuple[str, str, str], list[str]] = {}
    for result in results:
        if result.status != "right":
            reason = f"{result.status}: {result.note}"
            kinds.setdefault((result.work, result.contender, reason), []).append(result.case)
    lines = [f"{work}, {' and '.join(where)}, {contender}: {text}" for (work, contender, text), where in kinds.items()]
    return [f"{checked} results are right", *lines]


def _judge_case(work: str, kind: str, results: dict[str, Result]) -> str:
    ours, case = results.get(OURS), f"{work}, {kind}"
    rated = {name: each for name, each in results.items() if each.milliseconds and "copy_part" in each.figures}
    if OURS not in rated:
        # Right, and without a time: what failed then is the case.
        reason = results.get(ALL) if ours is None or ours.status == "right" else ours
        return f"not met: {case}: {OURS} has no time: " + (f"{reason.status}: {reason.note}" if reason else "not run")
    peers = {name: each.median for name, each in rated.items() if name not in (OURS, COPY)}
    met, parts = True, []
    if WORKS[work].is_copy:
        met = ours.figures["copy_part"] >= COPY_GOAL
        parts.append(f"{ours.figures['copy_part']:.1%} of the copy's bandwidth (goal: {COPY_GOAL:.0%})")
    if peers:
        best = min(peers, key=lambda name: peers[name])
        met = met and ours.median <= peers[best] * SAME
        parts.append(f"{ours.median / peers[best]:.2f} of the time of the fastest peer, {best}")
    else:
        parts.append("no peer was timed")
    return f"{'met' if met else 'not met'}: {case}: {'; '.join(parts)}"


def judge(results: list[Result]) -> list[str]:
    """Judges each case: is ours as fast as a copy, where it is one, and as every peer?"""
    cases: dict[tuple[str, str], dict[str, Result]] = {}
    for result in results:
        if result.case != "edges":
            cases.setdefault((result.work, result.case), {})[result.contender] = result
    return [_judge_case(*case, contenders) for case, contenders in cases.items()]


def warn_of_cache(results: list[Result], l2_bytes: int) -> list[str]:
    """Lists the cases whose bytes fit too well into the L2 cache."""
    copies = (result for result in results if result.contender == COPY and result.milliseconds)
    times = ((result, result.figures["moved_bytes"] / l2_bytes) for result in copies)
    return [
        f"{result.work}, {result.case}: moves {count:.1f} times the L2 cache; "
        f"times are for the memory alone only from {L2_TIMES} on"
        for result, count in times
        if count < L2_TIMES
    ]
