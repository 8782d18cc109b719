"""Which of the targets for code and compile time are met."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import linear
from contenders import BASELINES, CUDA, IN_PROCESS, NVRTC, OURS, PROCESS
from facts import Facts
from kvcache.compilation import sass
from linear import Point
from measure import Result, compare_rounds
from works import WORKS

MOST_PROCESS_TIME = 0.25
"""The most part of nvcc's time, for the whole process."""
MOST_IN_PROCESS_TIME = 0.5
"""The most part of NVRTC's time, in a warm process."""


@dataclass(frozen=True)
class Figure:
    """The result of a work on a chip; ``met`` is None if there is nothing to compare."""

    work: str
    chip: str
    met: bool | None
    text: str


@dataclass(frozen=True)
class Verdict:
    """A target and its figures."""

    target: str
    figures: tuple[Figure, ...]

    @property
    def met(self) -> bool | None:
        """Whether all figures that can be compared meet it; None where none can."""
        known = [figure.met for figure in self.figures if figure.met is not None]
        return all(known) if known else None

    def render(self, markdown: bool) -> str:
        """The target and whether it is met, and a line for each work."""
        mark = {True: "met", False: "not met", None: "nothing to compare"}[self.met]
        works: dict[str, list[str]] = {}
        for figure in self.figures:
            text = f"{figure.chip} {figure.text}".strip()
            works.setdefault(figure.work, []).append(f"{text} (not met)" if figure.met is False else text)
        if markdown:
            return "\n".join([f"- **{mark}**: {self.target}", *(f"  - {w}: {'; '.join(t)}" for w, t in works.items())])
        width = max(map(len, works), default=0)
        return "\n".join([f"{mark}: {self.target}", *(f"    {w:{width}}  {'; '.join(t)}" for w, t in works.items())])


def judge(results: Sequence[Result], points: Sequence[Point]) -> list[Verdict]:
    """Holds results against the targets; without ``points`` there is no verdict on the growth."""
    places = list_places(results)
    verdicts = [Verdict("every work compiles", tuple(_judge_existence(results, *place) for place in places))]
    for target, compare in _CODE_TARGETS:
        verdicts.append(Verdict(target, tuple(_judge_code(results, *place, compare) for place in places)))
    for kind, peer, most in (PROCESS, "nvcc", MOST_PROCESS_TIME), (IN_PROCESS, "NVRTC", MOST_IN_PROCESS_TIME):
        figures = tuple(_judge_time(results, *place, kind, most) for place in places)
        verdicts.append(Verdict(f"time to PTX, {kind}: at most {most:.2f} of {peer}'s", figures))
    if points:
        verdicts.append(_judge_growth(points))
    return [verdict for verdict in verdicts if verdict.figures]


def list_places(results: Sequence[Result]) -> list[tuple[str, str]]:
    """The works and their chips."""
    return list(dict.fromkeys((result.work, result.case) for result in results))


def pick(results: Sequence[Result], work: str, chip: str, families: Sequence[str]) -> Facts | None:
    """The facts of the first of the families that has code.

    Code of this process is preferred: it is known how much dynamic shared memory a launch gives.
    """
    able = [result.figures for result in results if (result.work, result.case) == (work, chip)]
    able = sorted((each for each in able if "facts" in each), key=lambda each: each["kind"] != IN_PROCESS)
    return next((each["facts"] for family in families for each in able if each["family"] == family), None)


def _judge_existence(results: Sequence[Result], work: str, chip: str) -> Figure:
    here = [result for result in results if (result.work, result.case) == (work, chip)]
    ours = [result for result in here if result.figures["family"] == OURS]
    reasons = dict.fromkeys(result.note for result in ours if result.note)
    has_peer = pick(results, work, chip, [CUDA, NVRTC]) is not None
    return Figure(work, chip, not reasons and bool(ours), "; ".join(reasons) or ("yes" if has_peer else "for us alone"))


_Compare = Callable[[str, Facts, Facts | None], tuple[bool | None, str]]


def _judge_code(results: Sequence[Result], work: str, chip: str, compare: _Compare) -> Figure:
    ours = pick(results, work, chip, [OURS])
    if not ours:
        return Figure(work, chip, None, "no code")
    return Figure(work, chip, *compare(work, ours, pick(results, work, chip, [CUDA, NVRTC])))


def _compare_length(work: str, ours: Facts, theirs: Facts | None) -> tuple[bool | None, str]:
    count = ours.code.instructions
    if not theirs:
        return None, f"{count}, no peer"
    part = count / theirs.code.instructions
    return part <= WORKS[work].sass_ratio, f"{count}/{theirs.code.instructions} = {part:.2f}"


def _compare_loops(name: str, work: str, our_facts: Facts, their_facts: Facts | None) -> tuple[bool | None, str]:
    ours, theirs = (getattr(facts.code, name) if facts else None for facts in (our_facts, their_facts))
    if not ours:
        return None, "no loop"
    if not theirs:
        return None, f"{ours.instructions}, the peer has none"
    read, other_read = (loop.global_bytes + loop.shared_bytes for loop in (ours, theirs))
    text = f"{ours.instructions}/{theirs.instructions} = {ours.instructions / theirs.instructions:.2f}"
    if read != other_read:
        text += f" for {read}/{other_read} B"
    shorter_by_byte = ours.instructions * other_read < theirs.instructions * read
    return ours.instructions <= theirs.instructions or shorter_by_byte, text


def _compare_spills(work: str, ours: Facts, theirs: Facts | None) -> tuple[bool | None, str]:
    return ours.spill_bytes == 0, f"{ours.spill_bytes} B"


def _compare_widths(work: str, ours: Facts, theirs: Facts | None) -> tuple[bool | None, str]:
    if not theirs:
        return None, "no peer"
    met, texts = True, []
    for title, kinds in (("reads", ("global load", "global to shared")), ("writes", ("global store",))):
        mine, other = (_list_widths(facts.code, kinds) for facts in (ours, theirs))
        texts.append(f"{title} {_range(mine)} ({_range(other)})")
        if mine and other:
            met &= min(mine) >= min(other) and (max(mine) >= max(other) or bool(ours.code.bulk_copies))
    return met, ", ".join(texts)


def _list_widths(code: sass.MachineCode, kinds: Sequence[str]) -> set[int]:
    return {width for kind in kinds for width in code.accesses.get(kind, {})}


def _range(widths: set[int]) -> str:
    return f"{min(widths)} to {max(widths)} B" if len(widths) > 1 else f"{min(widths)} B" if widths else "none"


def _compare_flight(work: str, ours: Facts, theirs: Facts | None) -> tuple[bool | None, str]:
    if ours.code.bulk_copies or "global to shared" in ours.code.accesses:
        return None, "asynchronous copies"
    if not theirs:
        return None, f"{ours.code.bytes_in_flight}, no peer"
    mine, other = ours.code.bytes_in_flight, theirs.code.bytes_in_flight
    return mine >= other, f"{mine}/{other} B"


_LOOP_TARGET = "at most nvcc's, in all or for each byte that it reads"
_CODE_TARGETS: tuple[tuple[str, _Compare], ...] = (
    ("SASS instructions of the whole kernel: at most 0.75 of nvcc's for gathers, 0.85 with fp8, 1.00 for the others", _compare_length),
    (f"SASS instructions of the main loop: {_LOOP_TARGET}", partial(_compare_loops, "main_loop")),
    (f"SASS instructions of the inner loop: {_LOOP_TARGET}", partial(_compare_loops, "inner_loop")),
    ("no spills", _compare_spills),
    ("global memory in no narrower accesses than the peer's (in brackets)", _compare_widths),
    ("no fewer bytes of global loads in flight than the peer's", _compare_flight),
)


def _judge_time(results: Sequence[Result], work: str, chip: str, kind: str, most: float) -> Figure:
    here = [result for result in results if (result.work, result.case, result.figures["kind"]) == (work, chip, kind)]
    able = {result.figures["family"]: result for result in here if result.milliseconds}
    ours, theirs = able.get(OURS), able.get(BASELINES[kind])
    if not ours:
        return Figure(work, chip, None, "no code")
    if not theirs:
        return Figure(work, chip, None, f"{ours.median:.0f} ms, no peer")
    part = compare_rounds(ours.milliseconds, theirs.milliseconds)
    return Figure(work, chip, part <= most, f"{part:.2f} ({ours.median:.0f} ms)")


def _judge_growth(points: Sequence[Point]) -> Verdict:
    figures = []
    for shape in dict.fromkeys(point.shape for point in points):
        here = [point for point in points if point.shape == shape]
        exponent = linear.growth(here)
        if exponent is None:
            continue
        *_, before, last = (point for point in here if point.milliseconds)
        text = f"{exponent:.2f} to {last.ops:,} ops ({linear.growth(here, before.ops):.2f} from {before.ops:,} on)"
        if not here[-1].milliseconds:
            text += f"; {here[-1].ops:,} take over {linear.MOST_SECONDS} s"
        elif last.ops < linear.SIZES[-1]:
            text += f", which take {last.median / 1e3:.0f} s: more were not tried"
        met = exponent <= linear.MOST_GROWTH and last.ops == linear.SIZES[-1]
        figures.append(Figure(shape, "", None if shape == linear.PEER else met, text))
    target = (
        f"compile time linear to {linear.SIZES[-1]:,} kvcache ops: from {linear.FIRST_GROWTH} on it grows by a power "
        f"of at most {linear.MOST_GROWTH}"
    )
    return Verdict(target, tuple(figures))
