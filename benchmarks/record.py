"""Writes a comparison as a record, from which docs/site/results.py makes the tables of pages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import report
from linear import Point
from measure import Result

_TIMES = re.compile(r"([\d.]+) \(([\d.]+) to ([\d.]+)\)")
_NUMBER = re.compile(r"[\d,]+(\.\d+)?")
_PROVENANCE = "date", "commit", "command", "runs", "CPU"


def make(provenance: Mapping[str, str], results: Sequence[Result], points: Sequence[Point]) -> dict[str, Any]:
    """Returns where the figures are from, and the tables of the report with numbers in place of text."""
    times, code = report.tabulate_times(results), report.tabulate_code(results)
    middle = next(i for i, title in enumerate(times.titles) if title.startswith("ours / ")) + 1
    in_process = [0, 1, *range(middle, len(times.titles))]
    tables = {
        "process": _convert(times, range(middle)),
        "in-process": _convert(times, in_process),
        "machine-code": _convert(code, range(len(code.titles))),
        "growth": _convert(report.tabulate_points(points), range(6)),
    }
    return {**_describe(provenance, provenance["CPU"]), "runs": provenance["runs"], "tables": tables}


def make_from_tables(provenance: Mapping[str, str], device: str, tables: Mapping[str, report.Table]) -> dict[str, Any]:
    """Returns the record of tables, with numbers in place of text."""
    converted = {name: _convert(table, range(len(table.titles))) for name, table in tables.items()}
    return {**_describe(provenance, device), "tables": converted}


def _describe(provenance: Mapping[str, str], device: str) -> dict[str, Any]:
    return {
        "date": provenance["date"],
        "commit": provenance["commit"].removesuffix(", clean"),
        "device": device,
        "software": {name: text for name, text in provenance.items() if name not in _PROVENANCE},
        "command": provenance["command"],
    }


def _convert(table: report.Table, numbers: Sequence[int]) -> dict[str, Any]:
    columns: list[dict[str, str]] = [{"title": table.titles[number]} for number in numbers]
    rows = [[_read(row[number], column) for number, column in zip(numbers, columns)] for row in table.rows]
    return {"columns": columns, "rows": rows}


def _read(text: str, column: dict[str, str]) -> Any:
    """Returns the value of a cell, and gives its column the format of it."""
    if text == "-":
        return None
    if match := _TIMES.fullmatch(text):
        column["format"] = "{:.0f} ({:.0f} to {:.0f})"
        return [float(number) if "." in number else int(number) for number in match.groups()]
    if match := _NUMBER.fullmatch(text):
        plain = text.replace(",", "")
        if "," in text:
            column["format"] = "{:,}"
        elif match[1]:
            column["format"] = f"{{:.{len(match[1]) - 1}f}}"
        return float(plain) if match[1] else int(plain)
    return text


def write(path: Path, record: Mapping[str, Any]) -> None:
    """Writes a record with one line for each column and row, so that differences are easy to read."""
    head = [f" {_dump(key)}: {_dump(value)}," for key, value in record.items() if key != "tables"]
    tables = []
    for name, table in record["tables"].items():
        lists = [
            f'   "{part}": [\n' + ",\n".join(f"    {_dump(entry)}" for entry in table[part]) + "\n   ]"
            for part in ("columns", "rows")
        ]
        tables.append(f"  {_dump(name)}: {{\n" + ",\n".join(lists) + "\n  }")
    path.write_text("\n".join(["{", *head, ' "tables": {', ",\n".join(tables), " }", "}", ""]))


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
