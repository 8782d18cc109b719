"""The table of kernels of attention in docs/whole-cache-ops.md."""

import itertools

import attention_kernels
import pytest
from places import ROOT
from test_benchmarks import needs_ptxas

LINES = (ROOT / "docs/whole-cache-ops.md").read_text().splitlines()
TABLES = [
    [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    for is_table, lines in itertools.groupby(LINES, lambda line: line.startswith("|"))
    if is_table
]
# The rows behind the titles and the alignment, by titles.
ROWS = {tuple(table[0]): table[2:] for table in TABLES}


@pytest.mark.parametrize(
    "titles, variants",
    [
        (attention_kernels.TITLES, attention_kernels.VARIANTS),
        (attention_kernels.TILED_TITLES, attention_kernels.TILED),
    ],
)
def test_docs_show_all_variants(titles, variants):
    assert [row[0] for row in ROWS[titles]] == [variant.title for variant in variants]


@needs_ptxas
@pytest.mark.parametrize("number", [6, 13])
def test_docs_show_what_kernels_take(number):
    """Another version of LLVM or ptxas may choose other instructions, but not many."""
    row = ROWS[attention_kernels.TITLES][number]
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
@pytest.mark.parametrize("number", [3, 6, 12])
def test_docs_show_what_tiles_take(number):
    row = ROWS[attention_kernels.TILED_TITLES][number]
    found = attention_kernels.measure_tiles(
        attention_kernels.TILED[number], attention_kernels.CHIP
    )
    assert found[0] == row[0] and found[-1] == row[-1]
    numbers, wanted = (
        [float(cell.removesuffix(" %")) for cell in cells[1:-1]] for cells in (found, row)
    )
    assert numbers == pytest.approx(wanted, rel=0.1, abs=1)
