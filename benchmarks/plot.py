"""A picture of the results: lengths of code, times, and their growth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from contenders import CUDA, IN_PROCESS, NVRTC, OURS, PROCESS, TRITON
from kvcache.pictures.svg import EDGE, MARGIN, RIGHT, SOFT_INK, Canvas, Picture
from linear import Point
from measure import Result
from verdict import pick
from works import WORKS

_COLORS = {OURS: "#2f7fd6", CUDA: "#52606d", NVRTC: "#52606d", TRITON: "#e0892f"}
_LEFT = 300  # behind the names
_END = RIGHT - 100  # before the figures
_ROW = 15
_MOST_PART = 1.5  # of nvcc's code, where the axis ends


def draw(results: Sequence[Result], points: Sequence[Point]) -> Picture:
    """Draws what there is of code, times and growth."""
    canvas = Canvas("Benchmarks", "Machine code and compile times of kvcache, CUDA C++ and Triton")
    _draw_legend(canvas)
    if results:
        _draw_code(canvas, results)
        _draw_times(canvas, results)
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
    canvas.heading("SASS instructions, as a part of nvcc's", "dark: nvcc, and what ours shall be at most; a ring: Triton")
    places = [place for place in _list_places(results) if pick(results, *place, [CUDA, NVRTC])]
    start = canvas.y
    for work, chip in places:
        _name_row(canvas, work if (work, chip) == _first(places, work) else "", chip)
        ours, theirs, triton = (pick(results, work, chip, [family]) for family in (OURS, CUDA, TRITON))
        theirs = theirs or pick(results, work, chip, [NVRTC])
        if theirs and theirs.facts:
            _draw_part(canvas, ours, theirs.facts.code.instructions, WORKS[work].sass_ratio)
            if triton and triton.facts:
                x = _at_part(triton.facts.code.instructions / theirs.facts.code.instructions)
                canvas.circle(x, canvas.y - 4, 4, fill=_COLORS[TRITON])
        canvas.y += _ROW
    canvas.rect(_at_part(1), start - 12, 1.5, canvas.y - start, fill=_COLORS[CUDA])
    canvas.y += 30


def _draw_part(canvas: Canvas, ours: Result | None, theirs: int, most: float) -> None:
    if not ours or not ours.facts:
        canvas.text(_LEFT, canvas.y, "no code of ours", "small soft")
        return
    count = ours.facts.code.instructions
    canvas.rect(_LEFT, canvas.y - 9, _at_part(count / theirs) - _LEFT, 10, fill=_COLORS[OURS])
    canvas.rect(_at_part(most) - 1, canvas.y - 11, 2, 14, fill=_COLORS[CUDA])
    canvas.text(RIGHT, canvas.y, f"{count} of {theirs}", "small", "end")


def _at_part(part: float) -> float:
    return _LEFT + min(part, _MOST_PART) / _MOST_PART * (_END - _LEFT)


def _draw_times(canvas: Canvas, results: Sequence[Result]) -> None:
    canvas.heading(
        "Milliseconds to PTX, on a logarithmic scale", "a dot is a median, its line from the fastest to the slowest"
    )
    times = [time for result in results for time in result.milliseconds]
    if not times:
        return
    at = _make_logarithmic(min(times), max(times))
    start = canvas.y
    kinds = [(work, chip, kind) for work, chip in _list_places(results) for kind in (PROCESS, IN_PROCESS)]
    for work, chip, kind in kinds:
        here = [r for r in results if (r.work, r.chip, r.kind) == (work, chip, kind) and r.milliseconds]
        _name_row(canvas, work if (work, chip) == _first(_list_places(results), work) and kind == PROCESS else "",
                  f"{chip} {kind}")
        for result in here:
            color, fastest, slowest = _COLORS[result.family], min(result.milliseconds), max(result.milliseconds)
            canvas.rect(at(fastest), canvas.y - 5, max(at(slowest) - at(fastest), 1), 2, fill=color)
            canvas.circle(at(result.median), canvas.y - 4, 4, fill=color)
        canvas.y += _ROW
    _draw_powers(canvas, at, min(times), max(times), start)
    canvas.y += 30


def _make_logarithmic(least: float, most: float) -> Callable[[float], float]:
    width = math.log(most / least) or 1

    def at(value: float) -> float:
        return _LEFT + math.log(value / least) / width * (_END - _LEFT)

    return at


def _draw_powers(canvas: Canvas, at: Callable[[float], float], least: float, most: float, start: float) -> None:
    """Lines at the powers of ten."""
    for power in range(math.ceil(math.log10(least)), math.floor(math.log10(most)) + 1):
        canvas.line(at(10**power), start - 12, at(10**power), canvas.y - 8, EDGE)
        canvas.text(at(10**power), canvas.y + 6, f"{10**power:,} ms", "small soft", "middle")
    canvas.y += 10


def _draw_growth(canvas: Canvas, points: Sequence[Point]) -> None:
    canvas.heading("Milliseconds for each kvcache op", "of a module with so many, compiled in a warm process")
    most = max(point.median / point.ops for point in points)
    for point in points:
        each = point.median / point.ops
        _name_row(canvas, f"{point.ops:,} ops", "")
        canvas.rect(_LEFT, canvas.y - 9, each / most * (_END - _LEFT), 10, fill=_COLORS[OURS])
        canvas.text(RIGHT, canvas.y, f"{each:.2f} ms", "small", "end")
        canvas.y += _ROW
    canvas.y += 10


def _name_row(canvas: Canvas, work: str, chip: str) -> None:
    canvas.text(MARGIN, canvas.y, work)
    canvas.text(_LEFT - 12, canvas.y, chip, "small soft", "end")


def _list_places(results: Sequence[Result]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((result.work, result.chip) for result in results))


def _first(places: Sequence[tuple[str, str]], work: str) -> tuple[str, str]:
    return next(place for place in places if place[0] == work)
