"""A picture of the results: lengths of code, times, and their growth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from contenders import CUDA, IN_PROCESS, NVRTC, OURS, PROCESS, TRITON
from kvcache.pictures.svg import EDGE, INK, MARGIN, RIGHT, Canvas, Picture
from linear import PEER, Point
from measure import Result
from verdict import list_places, pick
from works import WORKS

_COLORS = {OURS: "#2f7fd6", CUDA: "#52606d", NVRTC: "#52606d", TRITON: "#e0892f"}
_LEFT = 240  # after the names
_END = RIGHT - 100  # before the figures
_ROW, _GAP, _SPACE = 15, 8, 34  # of a line, between works, and between parts
_MOST_PART = 1.5  # of nvcc's code, where the axis ends


def draw(results: Sequence[Result], points: Sequence[Point]) -> Picture:
    """Draws what there is of code, times and growth."""
    canvas = Canvas("Benchmarks", "Machine code and compile times of kvcache, CUDA C++ and Triton")
    _draw_legend(canvas)
    if results:
        _draw_code(canvas, results)
    times = [time for result in results for time in result.milliseconds]
    if times:
        _draw_times(canvas, results, PROCESS, times)
        _draw_times(canvas, results, IN_PROCESS, times)
    if points:
        _draw_growth(canvas, points)
    return canvas.finish()


def _draw_legend(canvas: Canvas) -> None:
    x = float(MARGIN)
    for family, title in ((OURS, "kvcache"), (CUDA, "CUDA C++ (nvcc, NVRTC)"), (TRITON, "Triton")):
        canvas.circle(x + 5, canvas.y, 5, fill=_COLORS[family])
        canvas.text(x + 16, canvas.y + 4, title, "note")
        x += 60 + 7 * len(title)
    canvas.y += 40


def _draw_code(canvas: Canvas, results: Sequence[Result]) -> None:
    note = "a line across a bar's place is what ours shall be at most; bars end at 1.5"
    canvas.heading("SASS instructions, as a part of nvcc's", note)
    height = _measure_rows(results)
    for part in (0.5, 1.0, 1.5):
        _draw_grid_line(canvas, _at_part(part), height, f"{part:.1f}")
    for work, chip in _walk(canvas, results):
        ours, theirs, triton = (
            pick(results, work, chip, families) for families in ([OURS], [CUDA, NVRTC], [TRITON])
        )
        if not theirs:
            canvas.text(_LEFT, canvas.y, "not by CUDA C++", "small soft")
            continue
        most = theirs.code.instructions
        if ours:
            count, limit = ours.code.instructions, _at_part(WORKS[work].sass_ratio)
            canvas.rect(_LEFT, canvas.y - 9, _at_part(count / most) - _LEFT, 10, fill=_COLORS[OURS])
            canvas.rect(limit - 1, canvas.y - 11, 2, 14, fill=INK)
            canvas.text(RIGHT, canvas.y, f"{count} of {most}", "small", "end")
        else:
            canvas.text(_LEFT, canvas.y, "not by us", "small soft")
        if triton:
            canvas.circle(_at_part(triton.code.instructions / most), canvas.y - 4, 4, fill=_COLORS[TRITON])
    canvas.y += _SPACE


def _at_part(part: float) -> float:
    return _LEFT + min(part, _MOST_PART) / _MOST_PART * (_END - _LEFT)


def _draw_times(canvas: Canvas, results: Sequence[Result], kind: str, times: Sequence[float]) -> None:
    title = "the whole process" if kind == PROCESS else "in a warm process"
    canvas.heading(
        f"Milliseconds to PTX, {title}", "a dot is a median, its line from the fastest to the slowest; logarithmic"
    )
    at, powers = _make_logarithmic(min(times), max(times))
    height = _measure_rows(results)
    for power in powers:
        _draw_grid_line(canvas, at(power), height, f"{power:,}")
    for work, chip in _walk(canvas, results):
        for result in results:
            figures = result.figures
            if (result.work, result.case, figures["kind"]) == (work, chip, kind) and result.milliseconds:
                start, end = at(min(result.milliseconds)), at(max(result.milliseconds))
                canvas.rect(start, canvas.y - 5, max(end - start, 1.0), 2, fill=_COLORS[figures["family"]])
                canvas.circle(at(result.median), canvas.y - 4, 4, fill=_COLORS[figures["family"]])
    canvas.y += _SPACE


def _make_logarithmic(least: float, most: float) -> tuple[Callable[[float], float], list[int]]:
    """Where a time is, and the powers of ten around all."""
    first, last = math.floor(math.log10(max(least, 1))), math.ceil(math.log10(max(most, 10)))

    def at(value: float) -> float:
        return _LEFT + (math.log10(max(value, 1)) - first) / (last - first) * (_END - _LEFT)

    return at, [10**power for power in range(first, last + 1)]


def _draw_grid_line(canvas: Canvas, x: float, height: float, title: str) -> None:
    canvas.line(x, canvas.y - 12, x, canvas.y + height - 8, EDGE)
    canvas.text(x, canvas.y + height + 4, title, "small soft", "middle")


def _draw_growth(canvas: Canvas, points: Sequence[Point]) -> None:
    note = "of a module with so many, compiled in a warm process; bars of nvcc, a process, end at our longest"
    canvas.heading("Milliseconds for each kvcache op", note)
    most = max(point.median / point.ops for point in points if point.shape != PEER)
    before = None
    for point in points:
        each = point.median / point.ops
        if point.shape != before:
            canvas.y += _GAP if before else 0
            canvas.text(MARGIN, canvas.y, point.shape)
        before = point.shape
        canvas.text(_LEFT - 12, canvas.y, f"{point.ops:,} ops", "small soft", "end")
        color = _COLORS[CUDA if point.shape == PEER else OURS]
        canvas.rect(_LEFT, canvas.y - 9, min(each / most, 1) * (_END - _LEFT), 10, fill=color)
        over = "" if point.milliseconds else "over "
        canvas.text(RIGHT, canvas.y, f"{over}{each:.2f} ms", "small", "end")
        canvas.y += _ROW
    canvas.y += _GAP


def _measure_rows(results: Sequence[Result]) -> float:
    """The height of what ``_walk`` walks over."""
    places = list_places(results)
    return len(places) * _ROW + len({work for work, _ in places}) * _GAP


def _walk(canvas: Canvas, results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """Works and chips from top to bottom, with their names before them."""
    before = None
    for work, chip in list_places(results):
        if work != before:
            canvas.y += _GAP if before else 0
            canvas.text(MARGIN, canvas.y, work)
        before = work
        canvas.text(_LEFT - 12, canvas.y, chip, "small soft", "end")
        yield work, chip
        canvas.y += _ROW
    canvas.y += _GAP
