#!/usr/bin/env python3
"""Records the accuracy of quantized caches on a real model's data, which two examples measure.

``formats`` and ``outliers`` have the error of attention, by examples/accuracy.py; ``cosines`` compares embeddings with
those without a cache, by examples/sentences.py. The model is a sentence encoder of 90 MB. Nothing depends on the machine.

examples:
  scripts/bench accuracy
  scripts/bench accuracy --record
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from command import Command
from provenance import FOLDER, list_versions
from record import Record
from report import Table

sys.path.append(str(FOLDER.parent / "examples"))

COSINES = (
    "cache", "bytes per token", "bytes, % of f32", ("mean cosine", "{:.6f}"), ("minimum cosine", "{:.6f}"),
)  # fmt: skip


def to_numbers(row: Sequence[Any], kinds: Sequence[type]) -> list[Any]:
    """Returns the cells of an example's table, of which some are texts of numbers."""
    return [kind(cell) for kind, cell in zip(kinds, row, strict=True)]


def measure_errors(outliers: bool) -> Table:
    """Makes the table of ``scripts/example accuracy``: errors of attention in per cent."""
    import accuracy

    _, rows = accuracy.measure(accuracy.Encoder.load(), accuracy.paragraphs(), outliers)
    kinds = str, str, str, int, float, float, float
    columns = *accuracy.COLUMNS[:4], *((title, "{:.2f}") for title in accuracy.COLUMNS[4:])
    return Table(*columns, rows=[to_numbers(row, kinds) for row in rows])


def measure_cosines() -> Table:
    """Makes the table of ``scripts/example sentences`` for caches narrower than f32, without times."""
    import sentences

    comparison = sentences.compare(sentences.Encoder.load(), sentences.read_groups())
    if comparison.errors:
        raise ValueError("; ".join(comparison.errors))
    narrow = {str(fmt) for fmt in sentences.FORMATS if fmt.dtype != "f32"}
    kinds = str, int, int, float, float
    rows = [to_numbers(row[:5], kinds) for row in comparison.rows if str(row[0]) in narrow]
    return Table(*COSINES, rows=rows)


def measure() -> Record:
    tables = {"formats": measure_errors(False), "outliers": measure_errors(True), "cosines": measure_cosines()}
    return Record("scripts/bench accuracy", tables, software=list_versions("numpy", "ml_dtypes"))


if __name__ == "__main__":
    sys.exit(Command("scripts/bench accuracy", __doc__, "accuracy").run(lambda options: measure()))
