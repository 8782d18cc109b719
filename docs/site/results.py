"""Writes the tables of results into pages: `results.py [--check] [PAGE...]`.

A page asks for a table of a record in benchmarks/results by a pair of comments:

    <!-- results: h200-attention decode -->
    <!-- end of results -->

Everything between the two comments is generated. A list of columns after the name of the table chooses some, and may
give them other titles; a list of rows follows it:
`<!-- results: h200-attention decode (decode; tensor cores -> kvcache) [32/8, 64 x 8K; 32/8, 1 x 1K] -->`. Without the
name of a table, a page gets the provenance of the record. With `--check`, prints the pages that are not up to date, and
exits with status 1.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "benchmarks" / "results"
_REGION = re.compile(
    r"(<!-- results: (?P<record>[\w-]+)(?: (?P<table>[\w-]+))?"
    r"(?: \((?P<columns>[^)]*)\))?(?: \[(?P<rows>[^\]]*)\])? -->\n)"
    r"(?P<text>.*?)(<!-- end of results -->)",
    re.DOTALL,
)
_NUMBER = re.compile(r"(?:over )?[\d.,]+")
_NOT_RECORDED = "not recorded"


def pages() -> list[Path]:
    """The pages that may have results."""
    folders = ROOT / "docs", ROOT / "benchmarks", ROOT / "emulator", ROOT / "examples"
    return sorted([*ROOT.glob("*.md"), *(path for folder in folders for path in folder.rglob("*.md"))])


def read_record(name: str) -> dict[str, Any]:
    """Reads a record: the origin of its figures, and its tables."""
    return json.loads((RECORDS / f"{name}.json").read_text())


def without_results(text: str) -> str:
    """Removes the generated regions of a page."""
    return _REGION.sub("", text)


def fill(text: str) -> str:
    """Fills the regions of a page with the tables of the records."""
    return _REGION.sub(lambda match: f"{match[1]}\n{_render(match)}\n{match[7]}", text)


def _render(match: re.Match[str]) -> str:
    record = read_record(match["record"])
    if not match["table"]:
        return render_provenance(record)
    columns = match["columns"].split("; ") if match["columns"] else []
    rows = match["rows"].split("; ") if match["rows"] else []
    return render_table(record["tables"][match["table"]], columns, rows)


def render_provenance(record: dict[str, Any]) -> str:
    """Renders when, where and how the figures of a record were measured."""
    software = ", ".join(f"{name} {version}" for name, version in record["software"].items())
    facts = {
        "date": record["date"],
        "commit": record["commit"],
        "device": record["device"],
        "driver": record.get("driver"),
        "software": software,
        "runs": record.get("runs"),
        "command": record["command"] and f"`{record['command']}`",
        "published": _show_published(**record["published"]) if "published" in record else None,
    }
    needed = {"date", "commit", "device"}
    rows = [(name, fact or _NOT_RECORDED) for name, fact in facts.items() if fact or name in needed]
    return "\n".join(["| | |", "| --- | --- |", *(f"| {name} | {fact} |" for name, fact in rows), ""])


def _show_published(date: str, commit: str) -> str:
    return f"{date}, commit {commit}"


def render_table(table: dict[str, Any], chosen: list[str], rows: list[str]) -> str:
    """Renders a table in Markdown, with all columns and rows, or those that are chosen.

    Args:
        table: The columns and rows of a record.
        chosen: Titles of columns, or "title -> another title".
        rows: First cells of rows.
    """
    titles = [column["title"] for column in table["columns"]]
    names = [name.partition(" -> ") for name in chosen or titles]
    numbers = [titles.index(title) for title, _, _ in names]
    columns = [
        {**table["columns"][number], "title": other or title}
        for number, (title, _, other) in zip(numbers, names, strict=True)
    ]
    by_name = {row[0]: row for row in table["rows"]}
    kept = [by_name[name] for name in rows] if rows else table["rows"]
    cells = [[row[number] for number in numbers] for row in kept]
    lines = [
        [column["title"] for column in columns],
        ["--:" if i and _is_numeric(row[i] for row in cells) else "---" for i in range(len(columns))],
        *([_show(value, column) for value, column in zip(row, columns, strict=True)] for row in cells),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _is_numeric(values: Iterable[Any]) -> bool:
    return not any(isinstance(value, str) and not _NUMBER.fullmatch(value) for value in values)


def _show(value: Any, column: dict[str, str]) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    numbers = value if isinstance(value, list) else [value]
    return column.get("format", "{}").format(*numbers)


def main() -> int:
    names = [name for name in sys.argv[1:] if name != "--check"]
    stale = []
    for path in [Path(name).resolve() for name in names] or pages():
        text = path.read_text()
        if fill(text) != text:
            stale.append(str(path.relative_to(ROOT)))
            if "--check" not in sys.argv[1:]:
                path.write_text(fill(text))
    if "--check" not in sys.argv[1:]:
        return 0
    sys.stderr.write("".join(f"{name}: its results are not those of the records\n" for name in stale))
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
