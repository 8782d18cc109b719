"""Compares compilers on the works: times, machine code, and the growth of compile time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import facts
import linear
import plot
import verdict
from contenders import (
    BASELINES, CONTENDERS, CUDA, IN_PROCESS, NVRTC, OURS, PROCESS, TRITON, CannotCompileError, Contender, CrashedError,
    Nvcc, summarize,
)  # fmt: skip
from kvcache import ToolchainError
from measure import Absent, Result, compare_rounds, say, take_turns
from record import Record
from report import Table
from verdict import pick
from works import Work

MOST_LINEAR_RUNS = 3
"""The largest module takes ten seconds, and nvcc may take a minute."""
TIMES = "{:.0f} ({:.0f} to {:.0f})"


# --- Measuring -------------------------------------------------------------------------------------------------------


def measure(work: Work, chip: str, contenders: Sequence[Contender], runs: int) -> list[Result]:
    """Lets the contenders take turns; the first round warms up, and returns the contenders that fail."""
    crashed: set[str] = set()
    results = [_try(contender, work, chip, crashed) for contender in contenders]
    calls = {
        contender.name: lambda turn, contender=contender: contender.compile(work, chip)
        for contender, result in zip(contenders, results)
        if "facts" in result.figures
    }
    times = take_turns(calls, runs, warm_up=0)
    for result in results:
        result.milliseconds = times.get(result.contender, [])
    return results


def _try(contender: Contender, work: Work, chip: str, crashed: set[str]) -> Result:
    """Returns a result with facts about the code, or the reason why there is none.

    Args:
        crashed: Families of which a process has died: in this process they are not tried.
    """
    result = Result(work.name, chip, contender.name, figures={"family": contender.family, "kind": contender.kind})
    try:
        if contender.kind == IN_PROCESS and contender.family in crashed:
            raise CannotCompileError("not tried in this process, as another one died")
        module = contender.compile(work, chip)
        result.figures["facts"] = facts.gather(module.ptx, chip, module.dynamic_shared)
    except (CannotCompileError, ToolchainError, ValueError) as error:
        is_assembled = isinstance(error, ToolchainError)
        result.status, result.note = "failed", f"ptxas: {summarize(str(error))}" if is_assembled else str(error)
        if isinstance(error, CrashedError):
            crashed.add(contender.family)
    return result


def find_contenders() -> list[Contender]:
    """Returns the installed compilers; a message says how to install each of the others."""
    found = []
    for contender in CONTENDERS:
        try:
            found.append(contender())
        except Absent as error:
            say(f"bench: {contender.name} is left out: {error}")
    return found


# --- Reporting -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """The results of a comparison, and the growth of compile time."""

    results: list[Result]
    points: list[linear.Point]
    record: Record

    def __post_init__(self) -> None:
        tables = self.record.tables
        if self.results:
            tables["process"] = self._tabulate_times(PROCESS)
            tables["in-process"] = self._tabulate_times(IN_PROCESS)
            tables["machine-code"] = self._tabulate_code()
        if self.points:
            tables["growth"] = linear.tabulate(self.points)
        self.record.notes = self._write_notes
        self.record.details = {"results": self.results, "linear": self.points, "verdicts": self._list_verdicts()}

    def _list_verdicts(self) -> list[dict[str, Any]]:
        judged = verdict.judge(self.results, self.points)
        return [{"met": each.met, "target": each.target, "figures": each.figures} for each in judged]

    @property
    def picture(self) -> plot.Picture:
        return plot.draw(self.results, self.points)

    def render(self) -> str:
        """Shows the report in Markdown."""
        return f"{self.record.render_provenance(True)}\n\n{self.record.render(True)}\n"

    def write(self, folder: Path) -> None:
        """Writes ``results.json``, ``report.md`` and ``plot.svg``."""
        folder.mkdir(parents=True, exist_ok=True)
        self.record.save(folder / "results.json")
        (folder / "report.md").write_text(self.render())
        self.picture.save(folder / "plot.svg")

    def write_record(self, path: Path, picture: Path) -> None:
        """Writes the record of benchmarks/results, and the picture of docs/results/compile-time.md."""
        replace(self.record, details={}).save(path)
        self.picture.save(picture)

    def _tabulate_times(self, kind: str) -> Table:
        here = [result for result in self.results if result.figures["kind"] == kind]
        names = list(dict.fromkeys(result.contender for result in here))
        title = f"ours / {'nvcc' if kind == PROCESS else 'NVRTC'}"
        table = Table("work", "chip", *((name, TIMES) for name in names), (title, "{:.2f}"))
        table.heading = f"Milliseconds to PTX, {kind}: median (fastest to slowest)"
        for work, chip in verdict.list_places(self.results):
            row = {result.contender: result for result in here if (result.work, result.case) == (work, chip)}
            able = {result.figures["family"]: result.milliseconds for result in row.values() if result.milliseconds}
            both = able.get(OURS), able.get(BASELINES[kind])
            ratio = compare_rounds(*both) if all(both) else None
            table.add(work, chip, *(row[name].spread if name in row else None for name in names), ratio)
        return table

    def _tabulate_code(self) -> Table:
        numbers = "registers", "spills", "stack", "shared", "global reads", "global writes", "bulk", "shared reads"
        table = Table(
            "work", "chip", "compiler", "PTX", "SASS", ("of nvcc's", "{:.2f}"), "main loop", "inner loop", *numbers,
            "shared writes", "in flight", heading="Machine code, by one ptxas",
        )  # fmt: skip
        for work, chip in verdict.list_places(self.results):
            baseline = pick(self.results, work, chip, [CUDA, NVRTC])
            for family in (OURS, CUDA, TRITON):
                if found := pick(self.results, work, chip, [CUDA, NVRTC] if family == CUDA else [family]):
                    table.add(work, chip, family, *_list_facts(found, baseline))
        return table

    def _write_notes(self, markdown: bool) -> Mapping[str, str]:
        failures: dict[str, list[str]] = {}
        for result in self.results:
            if result.note:
                failures.setdefault(f"{result.contender}: {result.note}", []).append(f"{result.work} {result.case}")
        bullet = "- " if markdown else "  "
        lines = [f"{bullet}{', '.join(places)}: {why}" for why, places in failures.items()]
        verdicts = verdict.judge(self.results, self.points)
        notes = {"Without code": "\n".join(lines)} if lines else {}
        return notes | {"Verdict": "\n\n".join(each.render(markdown) for each in verdicts)}


def _list_facts(found: facts.Facts, baseline: facts.Facts | None) -> list[Any]:
    code = found.code
    reads: dict[int, int] = {}
    for kind in ("global load", "global to shared"):
        for width, count in code.accesses.get(kind, {}).items():
            reads[width] = reads.get(width, 0) + count
    return [
        found.ptx,
        code.instructions,
        code.instructions / baseline.code.instructions if baseline else None,
        *(loop.instructions if loop else None for loop in (code.main_loop, code.inner_loop)),
        found.registers,
        found.spill_bytes,
        found.stack_bytes,
        found.shared_bytes,
        _show_widths(reads),
        _show_widths(code.accesses.get("global store")),
        sum(code.bulk_copies.values()) or None,
        _show_widths(code.accesses.get("shared load")),
        _show_widths(code.accesses.get("shared store")),
        code.bytes_in_flight,
    ]


def _show_widths(widths: Mapping[int, int] | None) -> str | None:
    """Shows the count of each width: ``"5x4 4x16"``."""
    return " ".join(f"{count}x{width}" for width, count in sorted((widths or {}).items())) or None


def run(works: Sequence[Work], chips: Sequence[str], runs: int, with_linear: bool) -> Comparison:
    """Measures the works, each on those of the chips that it is for, and the growth on the first of them.

    Raises ``ToolchainError`` where ptxas or nvdisasm is missing.
    """
    tools = facts.find_tools()
    contenders = find_contenders()
    versions = {contender.name: contender.version for contender in contenders} | tools
    record = Record("scripts/bench", software=versions, runs=f"{runs} of each contender in turn, after a warm-up")
    results: list[Result] = []
    for work in works:
        for chip in [chip for chip in chips if chip in work.chips]:
            say(f"bench: {work.name}, {chip}: {work.title}")
            results += measure(work, chip, contenders, runs)
    points = []
    if with_linear:
        say(f"bench: linear, {chips[0]}: modules of up to {linear.SIZES[-1]:,} kvcache ops")
        nvcc = next((contender for contender in contenders if isinstance(contender, Nvcc)), None)
        points = linear.measure(chips[0], min(runs, MOST_LINEAR_RUNS), nvcc)
    return Comparison(results, points, record)
