"""Results as text or Markdown: tables, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contenders import BASELINES, CUDA, IN_PROCESS, NVRTC, OURS, PROCESS, TRITON
from facts import Facts
from linear import Point
from measure import Result, ratio
from verdict import Verdict, pick

_MARKS = {True: "met", False: "not met", None: "nothing to compare"}


@dataclass(frozen=True)
class Table:
    """Cells; the first columns, which hold names, are aligned to the left."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 2

    def render(self, markdown: bool) -> str:
        lines = [self.titles, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        cells = [[self._align(i, cell, width) for i, (cell, width) in enumerate(zip(line, widths))] for line in lines]
        if not markdown:
            return "\n".join("  ".join(line).rstrip() for line in cells)
        rule = ["---" if i < self.names else "--:" for i in range(len(widths))]
        return "\n".join(f"| {' | '.join(line)} |" for line in [cells[0], rule, *cells[1:]])

    def _align(self, index: int, cell: str, width: int) -> str:
        return cell.ljust(width) if index < self.names else cell.rjust(width)


def render(
    provenance: Mapping[str, str],
    results: Sequence[Result],
    points: Sequence[Point],
    verdicts: Sequence[Verdict],
    markdown: bool = False,
) -> str:
    """The whole report."""
    parts = [Table(("", ""), list(provenance.items())).render(markdown) if markdown else _render_pairs(provenance)]
    if results:
        parts += [_head("Milliseconds to PTX: median (fastest to slowest)", markdown)]
        parts += [tabulate_times(results).render(markdown)]
        parts += [_head("Machine code, by one ptxas", markdown), tabulate_code(results).render(markdown)]
        parts += _list_failures(results, markdown)
    if points:
        parts += [_head("Growth of the compile time", markdown), tabulate_points(points).render(markdown)]
    parts += [_head("Verdict", markdown), *(_render_verdict(verdict, markdown) for verdict in verdicts)]
    return "\n\n".join(parts) + "\n"


def _render_pairs(pairs: Mapping[str, str]) -> str:
    width = max(map(len, pairs))
    return "\n".join(f"{name:{width}}  {value}" for name, value in pairs.items())


def _head(title: str, markdown: bool) -> str:
    return f"### {title}" if markdown else f"{title}\n{'-' * len(title)}"


def tabulate_times(results: Sequence[Result]) -> Table:
    columns = [(kind, name) for kind in (PROCESS, IN_PROCESS) for name in _list_contenders(results, kind)]
    titles = ["work", "chip"]
    for kind in (PROCESS, IN_PROCESS):
        titles += [name for column_kind, name in columns if column_kind == kind]
        titles.append(f"ours / {'nvcc' if kind == PROCESS else 'NVRTC'}")
    rows = []
    for work, chip in _list_places(results):
        here = [result for result in results if (result.work, result.chip) == (work, chip)]
        row = [work, chip]
        for kind in (PROCESS, IN_PROCESS):
            names = _list_contenders(results, kind)
            row += [_show_time(next((r for r in here if r.contender == name), None)) for name in names]
            row.append(_show_ratio(here, kind))
        rows.append(row)
    return Table(titles, rows)


def _list_places(results: Sequence[Result]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((result.work, result.chip) for result in results))


def _list_contenders(results: Sequence[Result], kind: str) -> list[str]:
    return list(dict.fromkeys(result.contender for result in results if result.kind == kind))


def _show_time(result: Result | None) -> str:
    if not result or not result.milliseconds:
        return "-"
    return f"{result.median:.0f} ({min(result.milliseconds):.0f} to {max(result.milliseconds):.0f})"


def _show_ratio(results: Sequence[Result], kind: str) -> str:
    able = {result.family: result for result in results if result.kind == kind and result.milliseconds}
    if OURS not in able or BASELINES[kind] not in able:
        return "-"
    return f"{ratio(able[OURS], able[BASELINES[kind]]):.2f}"


def tabulate_code(results: Sequence[Result]) -> Table:
    titles = ["work", "chip", "compiler", "PTX", "SASS", "of nvcc's", "main loop", "inner loop"]
    titles += ["registers", "spills", "stack", "shared", "global reads", "global writes", "bulk"]
    titles += ["shared reads", "shared writes", "in flight"]
    rows = []
    for work, chip in _list_places(results):
        baseline = pick(results, work, chip, [CUDA, NVRTC])
        for family in (OURS, CUDA, TRITON):
            families = [CUDA, NVRTC] if family == CUDA else [family]
            if (result := pick(results, work, chip, families)) and result.facts:
                rows.append([work, chip, family, *_show_facts(result.facts, baseline)])
    return Table(titles, rows, names=3)


def _show_facts(facts: Facts, baseline: Result | None) -> list[str]:
    code, peer = facts.code, baseline.facts if baseline else None
    reads: dict[int, int] = {}
    for kind in ("global load", "global to shared"):
        for width, count in code.accesses.get(kind, {}).items():
            reads[width] = reads.get(width, 0) + count
    return [
        str(facts.ptx),
        str(code.instructions),
        f"{code.instructions / peer.code.instructions:.2f}" if peer else "-",
        *(str(loop.instructions) if loop else "-" for loop in (code.main_loop, code.inner_loop)),
        str(facts.registers),
        str(facts.spill_bytes),
        str(facts.stack_bytes),
        str(facts.static_shared + facts.dynamic_shared),
        _show_widths(reads),
        _show_widths(code.accesses.get("global store", {})),
        str(sum(code.bulk_copies.values()) or "-"),
        _show_widths(code.accesses.get("shared load", {})),
        _show_widths(code.accesses.get("shared store", {})),
        str(code.bytes_in_flight),
    ]


def _show_widths(widths: Mapping[int, int]) -> str:
    """How many of each width: ``"5x4 4x16"``."""
    return " ".join(f"{count}x{width}" for width, count in sorted(widths.items())) or "-"


def _list_failures(results: Sequence[Result], markdown: bool) -> list[str]:
    failures: dict[tuple[str, str, str], list[str]] = {}
    for result in results:
        if result.cannot:
            failures.setdefault((result.work, result.contender, result.cannot), []).append(result.chip)
    if not failures:
        return []
    lines = [f"{work}, {', '.join(chips)}: {name}: {why}" for (work, name, why), chips in failures.items()]
    return [_head("Without code", markdown), "\n".join(f"- {line}" if markdown else f"  {line}" for line in lines)]


def tabulate_points(points: Sequence[Point]) -> Table:
    rows = []
    for point in points:
        times = point.milliseconds
        over = "" if times else "over "
        rows.append(
            [
                point.shape,
                f"{point.ops:,}",
                f"{over}{point.median:,.0f}",
                f"{min(times):,.0f}" if times else "-",
                f"{max(times):,.0f}" if times else "-",
                f"{over}{point.median / point.ops:.2f}",
            ]
        )
    return Table(["module", "kvcache ops", "ms", "fastest", "slowest", "ms an op"], rows, names=1)


def _render_verdict(verdict: Verdict, markdown: bool) -> str:
    works: dict[str, list[str]] = {}
    for figure in verdict.figures:
        text = f"{figure.chip} {figure.text}".strip()
        works.setdefault(figure.work, []).append(f"{text} (not met)" if figure.met is False else text)
    width = max(map(len, works), default=0)
    if markdown:
        lines = [f"  - {work}: {'; '.join(texts)}" for work, texts in works.items()]
        return "\n".join([f"- **{_MARKS[verdict.met]}**: {verdict.target}", *lines])
    lines = [f"    {work:{width}}  {'; '.join(texts)}" for work, texts in works.items()]
    return "\n".join([f"{_MARKS[verdict.met]}: {verdict.target}", *lines])
