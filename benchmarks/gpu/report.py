"""What the measured times say: bandwidths, a table, and whether the goals are met."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .device import Facts
from .inputs import L2_TIMES
from .kernels import OURS
from .measure import COPY, Result
from .works import WORKS

PEAKS = {"H100": 3.35e12, "H200": 4.8e12, "B200": 7.67e12}
"""Bytes per second, by a word of the device's name."""

COPY_GOAL = 0.9
"""The part of a copy's bandwidth that works which are little more than a copy should reach."""
SAME = 1.01
"""Medians within a percent are taken for equal."""


def peak_bandwidth(facts: Facts) -> tuple[float, str]:
    """The most bytes per second that the memory can do, or 0, and where the number is from."""
    for word, peak in PEAKS.items():
        if word in facts.name and not (word == "H100" and "PCIe" in facts.name):
            return peak, f"data sheet of {word}"
    return facts.clock_bandwidth, "memory clock and bus width" if facts.clock_bandwidth else "unknown"


@dataclass(frozen=True)
class Row:
    """A contender's figures in a case; fractions of the copy's and of the chip's bandwidth."""

    work: str
    kind: str
    contender: str
    status: str
    note: str
    microseconds: float | None = None
    fastest: float | None = None
    slowest: float | None = None
    bandwidth: float | None = None
    of_copy: float | None = None
    of_peak: float | None = None


def _make_row(result: Result, copies: dict[tuple[str, str], float], peak: float) -> Row:
    row = Row(result.work, result.kind, result.contender, result.status, result.note)
    if not result.milliseconds:
        return row
    bandwidth = result.moved_bytes / (result.median / 1e3)
    return Row(
        **asdict(row) | {
            "microseconds": result.median * 1e3, "fastest": min(result.milliseconds) * 1e3,
            "slowest": max(result.milliseconds) * 1e3, "bandwidth": bandwidth,
            "of_copy": copies[result.work, result.kind] / result.median, "of_peak": bandwidth / peak if peak else None,
        }
    )


def make_rows(results: list[Result], peak: float) -> list[Row]:
    copies = {(result.work, result.kind): result.median for result in results
              if result.contender == COPY and result.milliseconds}
    return [_make_row(result, copies, peak) for result in results]


def format_table(rows: list[Row]) -> str:
    """The rows with figures, and after them what has none, with the reason."""
    titles = ("work", "lengths", "contender", "us", "fastest", "slowest", "TB/s", "of copy", "of peak")
    cells = [titles]
    for row in rows:
        if row.microseconds is not None:
            times = (f"{value:.1f}" for value in (row.microseconds, row.fastest, row.slowest))
            parts = ("-" if value is None else f"{value:.0%}" for value in (row.of_copy, row.of_peak))
            cells.append((row.work, row.kind, row.contender, *times, f"{row.bandwidth / 1e12:.2f}", *parts))
    widths = [max(len(line[i]) for line in cells) for i in range(len(titles))]
    lines = ["  ".join(cell.ljust(width) if i < 3 else cell.rjust(width)
                       for i, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in cells]
    notes = [f"{row.work}, {row.kind}, {row.contender}: {row.status}" + (f": {row.note}" if row.note else "")
             for row in rows if row.status != "right"]
    checked = sum(row.status == "right" and row.contender != COPY for row in rows)
    return "\n".join([*lines, "", f"{checked} results are right", *notes])


def _verdict_of_case(work: str, kind: str, rows: dict[str, Row]) -> str:
    ours, case = rows.get(OURS), f"{work}, {kind}"
    if ours is None or ours.microseconds is None:
        reason = "not run" if ours is None else f"{ours.status}{': ' + ours.note if ours.note else ''}"
        return f"not met: {case}: {OURS} has no time: {reason}"
    peers = [row for name, row in rows.items() if name not in (OURS, COPY) and row.microseconds is not None]
    met, parts = True, []
    if WORKS[work].is_copy:
        met = ours.of_copy >= COPY_GOAL
        parts.append(f"{ours.of_copy:.1%} of the copy's bandwidth (goal: {COPY_GOAL:.0%})")
    if peers:
        best = min(peers, key=lambda row: row.microseconds)
        met = met and ours.microseconds <= best.microseconds * SAME
        parts.append(f"{ours.microseconds / best.microseconds:.2f} of the time of the fastest peer, {best.contender}")
    else:
        parts.append("no peer was timed")
    return f"{'met' if met else 'not met'}: {case}: {'; '.join(parts)}"


def judge(rows: list[Row]) -> list[str]:
    """A line for each case: is ours as fast as a copy, where it is one, and as every peer?"""
    cases: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        if row.kind != "edges":
            cases.setdefault((row.work, row.kind), {})[row.contender] = row
    return [_verdict_of_case(*case, contenders) for case, contenders in cases.items()]


def warn_of_cache(results: list[Result], l2_bytes: int) -> list[str]:
    """A line for each case whose bytes fit too well into the L2 cache."""
    return [
        f"{result.work}, {result.kind}: moves {result.moved_bytes / l2_bytes:.1f} times the L2 cache; "
        f"times are for the memory alone only from {L2_TIMES} on"
        for result in results
        if result.contender == COPY and result.milliseconds and result.moved_bytes < L2_TIMES * l2_bytes
    ]


def to_json(provenance: dict[str, Any], results: list[Result], rows: list[Row], verdict: list[str]) -> dict[str, Any]:
    measured = [{**asdict(result), "figures": {key: value for key, value in asdict(row).items() if value is not None}}
                for result, row in zip(results, rows)]
    return {"provenance": provenance, "results": measured, "verdict": verdict}
