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

from command import Command
from provenance import FOLDER, list_versions
from record import Record
from report import Table

sys.path.append(str(FOLDER.parent / "examples"))

COSINES = "cache", "bytes per token", "bytes, % of f32", "mean cosine", "minimum cosine"


def measure_formats(outliers: bool) -> Table:
    """Makes the table of ``scripts/example accuracy``."""
    import accuracy

    return Table(*accuracy.COLUMNS, rows=accuracy.measure(accuracy.Encoder.load(), accuracy.paragraphs(), outliers)[1])


def measure_cosines() -> Table:
    """Makes the table of ``scripts/example sentences`` for caches narrower than f32, without times."""
    import sentences

    encoder = sentences.Encoder.load()
    comparison = sentences.compare(encoder, sentences.read_groups())
    if comparison.errors:
        raise ValueError("; ".join(comparison.errors))
    narrow = {str(fmt) for fmt in sentences.FORMATS if fmt.dtype != "f32"}
    return Table(*COSINES, rows=[row[: len(COSINES)] for row in comparison.rows if str(row[0]) in narrow])


def measure() -> Record:
    tables = {"formats": measure_formats(False), "outliers": measure_formats(True), "cosines": measure_cosines()}
    for table in tables.values():
        table.rows = [[str(cell) for cell in row] for row in table.rows]
    return Record("scripts/bench accuracy", tables, software=list_versions("numpy", "ml_dtypes"))


if __name__ == "__main__":
    sys.exit(Command("scripts/bench accuracy", __doc__, "accuracy").run(lambda options: measure()))
