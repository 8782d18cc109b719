"""The terminal output of the examples: errors, progress, tables."""

import argparse
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

Item = TypeVar("Item")


def fail(message: object) -> NoReturn:
    """Ends the program with an error and exit status 2: it cannot run."""
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


def fail_to_import(error: ImportError, venv: str = "venv", option: str = "") -> NoReturn:
    """Ends the program if a package is missing, with the command to run it."""
    name = Path(sys.argv[0]).stem
    option = f" {option}" if option else ""
    fail(
        f"{error}\n  scripts/example {name}{option} builds what is needed and runs this; or,"
        f" in a built tree:\n  PYTHONPATH=build/python build/{venv}/bin/python"
        f" examples/{name}.py{option}"
    )


@dataclass(frozen=True)
class IntBetween:
    """The type of a command-line argument: an integer with bounds."""

    least: int
    most: int

    def __call__(self, text: str) -> int:
        if text.isdecimal() and self.least <= int(text) <= self.most:
            return int(text)
        raise argparse.ArgumentTypeError(f"expects {self.least} to {self.most}, got {text!r}")


def progress(
    what: str, items: Collection[Item] | Iterator[Item], total: int | None = None
) -> Iterator[Item]:
    """Yields the items, and reports progress on stderr.

    For an iterator ``total`` is the number of items.
    """
    total = len(items) if total is None else total
    terminal = sys.stderr.isatty()
    shown = time.monotonic()
    for i, item in enumerate(items, start=1):
        yield item
        if terminal:
            sys.stderr.write(f"\r{what}: {i}/{total}\033[K")
            sys.stderr.flush()
        elif time.monotonic() - shown > 2:
            print(f"{what}: {i}/{total}", file=sys.stderr)
            shown = time.monotonic()
    if terminal:
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], markdown: bool = False
) -> None:
    """Prints a table with text to the left, numbers to the right, and a dash for None."""
    rows = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    is_text = [not all(map(_is_number, cells)) for cells in zip(*rows)]
    widths = [max(map(len, cells)) for cells in zip(columns, *rows)]
    lines = [
        [
            cell.ljust(width) if text else cell.rjust(width)
            for cell, width, text in zip(row, widths, is_text)
        ]
        for row in [columns, *rows]
    ]
    if not markdown:
        print("\n".join("  ".join(cells).rstrip() for cells in lines))
        return
    rule = [
        "-" * width if text else "-" * (width - 1) + ":"
        for width, text in zip(widths, is_text)
    ]
    lines.insert(1, rule)
    print("\n".join(f"| {' | '.join(cells)} |" for cells in lines))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell == "-"
    return True
