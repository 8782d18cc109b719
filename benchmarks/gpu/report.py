"""What the measured times say: bandwidths, a table, and whether the goals are met."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .device import Facts
from .inputs import L2_TIMES
from .kernels import OURS
from .measure import ALL, COPY, Result
from .works import WORKS

PEAKS = {"H100 80GB HBM3": 3.35e12, "H200": 4.8e12, "B200": 7.67e12}
"""Bytes per second, by words of the device's name."""

COPY_GOAL = 0.9
"""The part of a copy's bandwidth that works which are little more than a copy should reach."""
SAME = 1.01
"""Medians within a percent are taken for equal."""


def peak_bandwidth(facts: Facts) -> tuple[float, str]:
    """The most bytes per second that the memory can do, or 0, and where the number is from."""
    for words, peak in PEAKS.items():
        if f" {words} " in f" {facts.name} ":
            return peak, f"data sheet of {words}"
    return facts.clock_bandwidth, "memory clock and bus width" if facts.clock_bandwidth else "unknown"


@dataclass(frozen=True)
class Figures:
    """Microseconds, bytes per second, and fractions of the copy's and of the chip's bandwidth."""

    median: float
    fastest: float
    slowest: float
    bandwidth: float
    of_copy: float
    of_peak: float | None


@dataclass(frozen=True)
class Row:
    """What came of a contender in a case; without figures if it was not timed."""

    work: str
    kind: str
    contender: str
    status: str
    note: str
    figures: Figures | None


def _make_figures(result: Result, copy: float, peak: float) -> Figures:
    times = result.milliseconds
    bandwidth = result.moved_bytes / (result.median / 1e3)
    return Figures(
        result.median * 1e3, min(times) * 1e3, max(times) * 1e3, bandwidth, copy / result.median,
        bandwidth / peak if peak else None,
    )


def make_rows(results: list[Result], peak: float) -> list[Row]:
    copies = {(result.work, result.kind): result.median for result in results
              if result.contender == COPY and result.milliseconds}
    rows = []
    for result in results:
        copy = copies.get((result.work, result.kind))
        figures = _make_figures(result, copy, peak) if copy and result.milliseconds else None
        rows.append(Row(result.work, result.kind, result.contender, result.status, result.note, figures))
    return rows


def _format_row(row: Row, figures: Figures) -> tuple[str, ...]:
    times = (f"{value:.1f}" for value in (figures.median, figures.fastest, figures.slowest))
    parts = ("-" if value is None else f"{value:.0%}" for value in (figures.of_copy, figures.of_peak))
    return row.work, row.kind, row.contender, *times, f"{figures.bandwidth / 1e12:.2f}", *parts


def format_table(rows: list[Row]) -> str:
    """The rows with figures, and after them what has none, with the reason."""
    titles = ("work", "lengths", "contender", "us", "fastest", "slowest", "TB/s", "of copy", "of peak")
    cells = [titles, *(_format_row(row, row.figures) for row in rows if row.figures)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(titles))]
    lines = ["  ".join(cell.ljust(width) if i < 3 else cell.rjust(width)
                       for i, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in cells]
    checked = sum(row.status == "right" and row.contender != COPY for row in rows)
    return "\n".join([*lines, "", f"{checked} results are right", *_list_notes(rows)])


def _list_notes(rows: list[Row]) -> list[str]:
    """A line for each contender that is absent, wrong or failed, and the cases where it is so for the same reason."""
    kinds: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        if row.status != "right":
            kinds.setdefault((row.work, row.contender, f"{row.status}: {row.note}"), []).append(row.kind)
    return [f"{work}, {' and '.join(where)}, {contender}: {text}" for (work, contender, text), where in kinds.items()]


def _verdict_of_case(work: str, kind: str, rows: dict[str, Row]) -> str:
    ours, case = rows.get(OURS), f"{work}, {kind}"
    if ours is None or ours.figures is None:
        # Right, and without a time: what failed then is the case.
        reason = rows.get(ALL) if ours is None or ours.status == "right" else ours
        return f"not met: {case}: {OURS} has no time: " + (f"{reason.status}: {reason.note}" if reason else "not run")
    peers = {name: row.figures.median for name, row in rows.items() if name not in (OURS, COPY) and row.figures}
    met, parts = True, []
    if WORKS[work].is_copy:
        met = ours.figures.of_copy >= COPY_GOAL
        parts.append(f"{ours.figures.of_copy:.1%} of the copy's bandwidth (goal: {COPY_GOAL:.0%})")
    if peers:
        best = min(peers, key=lambda name: peers[name])
        met = met and ours.figures.median <= peers[best] * SAME
        parts.append(f"{ours.figures.median / peers[best]:.2f} of the time of the fastest peer, {best}")
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
    measured = [{**asdict(result), "figures": row.figures and asdict(row.figures)}
                for result, row in zip(results, rows)]
    return {"provenance": provenance, "results": measured, "verdict": verdict}
