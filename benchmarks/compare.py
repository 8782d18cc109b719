"""A whole comparison: what is installed, what it took, and the files of the report."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import linear
import plot
import provenance
import record
import report
import verdict
from contenders import CONTENDERS, Contender, MissingError, Nvcc
from kvcache.compilation import toolchain
from measure import Result, measure
from works import Work

MOST_LINEAR_RUNS = 3
"""The largest module takes ten seconds, and nvcc may take a minute."""


@dataclass(frozen=True)
class Comparison:
    """Results, and where they come from."""

    provenance: dict[str, str]
    results: list[Result]
    points: list[linear.Point]

    @property
    def verdicts(self) -> list[verdict.Verdict]:
        return verdict.judge(self.results, self.points)

    def render(self, markdown: bool) -> str:
        return report.render(self.provenance, self.results, self.points, self.verdicts, markdown)

    def write(self, folder: Path) -> None:
        """Writes ``results.json``, ``report.md`` and ``plot.svg``."""
        folder.mkdir(parents=True, exist_ok=True)
        figures = {
            "provenance": self.provenance,
            "results": [asdict(result) for result in self.results],
            "linear": [asdict(point) for point in self.points],
            "verdicts": [{"met": judged.met} | asdict(judged) for judged in self.verdicts],
        }
        (folder / "results.json").write_text(json.dumps(figures, indent=1) + "\n")
        (folder / "report.md").write_text(self.render(markdown=True))
        plot.draw(self.results, self.points).save(folder / "plot.svg")

    def write_record(self, path: Path, picture: Path) -> None:
        """Writes the record of benchmarks/results, and the picture of docs/results/compile-time.md."""
        record.write(path, record.make(self.provenance, self.results, self.points))
        plot.draw(self.results, self.points).save(picture)


def run(works: Sequence[Work], chips: Sequence[str], runs: int, with_linear: bool) -> Comparison:
    """Measures the works, each on those of the chips that it is for, and the growth on the first of them.

    Raises ``ToolchainError`` where ptxas or nvdisasm is missing.
    """
    for tool in ("ptxas", "nvdisasm"):
        toolchain.find_tool(tool)
    contenders = find_contenders()
    source = provenance.collect(contenders, runs)
    results: list[Result] = []
    for work in works:
        for chip in [chip for chip in chips if chip in work.chips]:
            say(f"{work.name}, {chip}: {work.title}")
            results += measure(work, chip, contenders, runs)
    points = []
    if with_linear:
        say(f"linear, {chips[0]}: modules of up to {linear.SIZES[-1]:,} kvcache ops")
        nvcc = next((contender for contender in contenders if isinstance(contender, Nvcc)), None)
        points = linear.measure(chips[0], min(runs, MOST_LINEAR_RUNS), nvcc)
    return Comparison(source, results, points)


def find_contenders() -> list[Contender]:
    """Those that are installed; of the others it says what to do."""
    found = []
    for contender in CONTENDERS:
        try:
            found.append(contender())
        except MissingError as error:
            say(f"{contender.name} is left out: {error}")
    return found


def say(text: str) -> None:
    """Tells those who wait, apart from the results."""
    print(f"bench: {text}", file=sys.stderr, flush=True)
