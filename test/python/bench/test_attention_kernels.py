"""The table of kernels of attention in docs/whole-cache-ops.md."""

import itertools

import attention_kernels
import pytest
from places import ROOT
from test_benchmarks import needs_ptxas

ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs/whole-cache-ops.md").read_text().splitlines()
    if line.startswith("|")
]


@pytest.mark.parametrize(
    "first, variants",
    [
        (attention_kernels.TITLES, attention_kernels.VARIANTS),
        (attention_kernels.TILED_TITLES, attention_kernels.TILED),
    ],
)
def test_docs_show_all_variants(first, variants):
    begin = ROWS.index(list(first)) + 2
    table = itertools.takewhile(lambda row: len(row) == len(first), ROWS[begin:])
    assert [row[0] for row in table] == [variant.title for variant in variants]


@needs_ptxas
@pytest.mark.parametrize("number", [6, 13])
def test_docs_show_what_kernels_take(number):
    """Another version of LLVM or ptxas may choose other instructions, but not many."""
    row = ROWS[ROWS.index(list(attention_kernels.TITLES)) + 2 + number]
    found = attention_kernels.measure(
        attention_kernels.VARIANTS[number], attention_kernels.CHIP
    )
    assert found[0] == row[0] and found[1] == row[1]
    numbers, wanted = (
        [float(cell.removesuffix(" %")) for cell in cells[2:-1]] for cells in (found, row)
    )
    assert numbers == pytest.approx(wanted, rel=0.1, abs=1)
    assert found[-1] == row[-1]


@needs_ptxas
@pytest.mark.parametrize("number", [0, 6, 11])
def test_docs_show_what_tiles_take(number):
    row = ROWS[ROWS.index(list(attention_kernels.TILED_TITLES)) + 2 + number]
    title, *numbers = attention_kernels.measure_tiles(
        attention_kernels.TILED[number], attention_kernels.CHIP
    )
    assert title == row[0]
    assert [*map(float, numbers)] == pytest.approx([*map(float, row[1:])], rel=0.1, abs=1)
