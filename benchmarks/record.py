"""Writes tables and where their figures come from, for docs/site/results.py, which makes the tables of pages."""

from __future__ import annotations

import json
import platform
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from provenance import describe_host, find_commit
from report import Table, render_heading


@dataclass
class Record:
    """The tables of a run, and where their figures come from. The files of ``benchmarks/results`` are records.

    Attributes:
        command: The program as its users call it; the arguments follow.
        details: Times of rounds, and other figures without a place in a table.
        notes: Texts after the tables, by heading; it gets whether they are Markdown.
    """

    command: str
    tables: dict[str, Table] = field(default_factory=dict)
    device: str = field(default_factory=describe_host)
    driver: str | None = None
    software: dict[str, str] = field(default_factory=dict)
    runs: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    notes: Callable[[bool], Mapping[str, str]] = lambda markdown: {}
    arguments: Sequence[str] = field(default_factory=lambda: sys.argv[1:])
    date: str = field(default_factory=lambda: time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()))
    commit: str = field(default_factory=find_commit)

    @property
    def provenance(self) -> dict[str, Any]:
        return {
            "date": self.date,
            "commit": self.commit,
            "device": self.device,
            **({"driver": self.driver} if self.driver else {}),
            "software": {"Python": platform.python_version(), **self.software},
            "command": shlex.join([*self.command.split(), *self.arguments]),
            **({"runs": self.runs} if self.runs else {}),
        }

    def render_provenance(self, markdown: bool) -> str:
        facts = {name: fact for name, fact in self.provenance.items() if name != "software"}
        rows = (facts | self.provenance["software"]).items()
        if markdown:
            return Table("", "", rows=rows).render(markdown)
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:{width}}  {fact}" for name, fact in rows)

    def render(self, markdown: bool) -> str:
        """Shows the tables, the notes, and as text also where they come from."""
        parts = []
        for table in self.tables.values():
            if table.heading:
                parts.append(render_heading(table.heading, markdown))
            parts.append(table.render(markdown))
        for heading, text in self.notes(markdown).items():
            parts += [render_heading(heading, markdown), text]
        return "\n\n".join([*parts, *([] if markdown else [self.render_provenance(False)])])

    def save(self, path: Path) -> None:
        """Writes the file; a reader sees the file before or this one."""
        tables = {name: table.to_json() for name, table in self.tables.items()}
        with partial_file(path) as partial:
            partial.write_text(format_json({**self.provenance, "tables": tables, **self.details}) + "\n")


@contextmanager
def partial_file(path: Path) -> Iterator[Path]:
    """Makes a path beside another one, to write; it replaces that file at the end, and is removed after an error."""
    partial = path.with_name(f"{path.name}.part")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def format_json(value: Any, indent: int = 0) -> str:
    """Formats JSON in which a row of a table is a line."""
    text = json.dumps(value, default=_to_json, ensure_ascii=False)
    if is_dataclass(value):
        value = _to_json(value)
    pad = "\n" + " " * (indent + 1)
    if len(text) > 100 and isinstance(value, dict):
        lines = [f"{json.dumps(str(name))}: {format_json(each, indent + 1)}" for name, each in value.items()]
        return f"{{{pad}{f',{pad}'.join(lines)}{pad[:-1]}}}"
    if len(text) > 100 and isinstance(value, list) and (isinstance(value[0], dict | list) or is_dataclass(value[0])):
        return f"[{pad}{f',{pad}'.join(format_json(each, indent + 1) for each in value)}{pad[:-1]}]"
    return text


def _to_json(value: Any) -> Any:
    """Makes a dictionary of a dataclass, whose values come here as well, and text of anything else."""
    return {each.name: getattr(value, each.name) for each in fields(value)} if is_dataclass(value) else str(value)
