"""Tables of results, as text, as Markdown and as parts of records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

_NUMBER = re.compile(r"(?:over )?[\d.,]+")


class Table:
    """The rows of a table: numbers, texts, and lists of the numbers of a cell. Columns have formats of numbers."""

    def __init__(
        self, *columns: str | tuple[str, str], rows: Iterable[Sequence[Any]] = (), heading: str = ""
    ) -> None:
        self.heading = heading
        self.columns = [(column, "") if isinstance(column, str) else column for column in columns]
        self.rows = [list(row) for row in rows]

    @property
    def titles(self) -> list[str]:
        return [title for title, _ in self.columns]

    def add(self, *row: Any) -> None:
        self.rows.append(list(row))

    def render(self, markdown: bool) -> str:
        """Aligns the columns, in Markdown or as text."""
        cells = [self.titles, *(self.show(row) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        is_right = [self._is_numeric(number) for number in range(len(widths))]
        lines = [
            [cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(line, widths, is_right)]
            for line in cells
        ]
        if not markdown:
            return "\n".join("  ".join(line).rstrip() for line in lines)
        rule = ["--:" if right else "---" for right in is_right]
        return "\n".join(f"| {' | '.join(line)} |" for line in [lines[0], rule, *lines[1:]])

    def show(self, row: Sequence[Any]) -> list[str]:
        """Returns the texts of a row's cells."""
        return [self._show(value, form) for value, (_, form) in zip(row, self.columns, strict=True)]

    def _show(self, value: Any, form: str) -> str:
        if value is None:
            return ""
        numbers = value if isinstance(value, list | tuple) else [value]
        return value if isinstance(value, str) else (form or "{}").format(*numbers)

    def _is_numeric(self, number: int) -> bool:
        texts = (row[number] for row in self.rows if isinstance(row[number], str))
        return number > 0 and all(_NUMBER.fullmatch(text) for text in texts)

    def to_json(self) -> dict[str, Any]:
        columns = [{"title": title} | ({"format": form} if form else {}) for title, form in self.columns]
        return {"columns": columns, "rows": self.rows}


def render_heading(heading: str, markdown: bool) -> str:
    return f"### {heading}" if markdown else f"{heading}\n{'-' * len(heading)}"
