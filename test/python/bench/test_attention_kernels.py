"""The table of kernels of attention in docs/whole-cache-ops.md."""

import itertools

import append_kernels
import attention_kernels
import attention_peers
import pytest
from peers.triton_launches import LAUNCHES
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


@needs_ptxas
def test_docs_show_what_few_query_rows_take():
    rows = ROWS[attention_kernels.FEW_TITLES]
    shown = [(variant.title, swap) for variant in attention_kernels.FEW_ROWS for swap in (False, True)]
    assert [(row[0], "swapped" in row[1]) for row in rows] == shown
    found = attention_kernels.measure_few_rows(attention_kernels.FEW_ROWS[0], swap=True)
    numbers, wanted = (
        [float(cell.removesuffix(" %")) for cell in cells[2:]] for cells in (found, rows[1])
    )
    assert numbers == pytest.approx(wanted, rel=0.1, abs=1)


@needs_ptxas
def test_docs_show_what_elements_of_8_bits_take():
    rows = ROWS[attention_kernels.NARROW_TITLES]
    shown = [(variant.title, by) for variant in attention_kernels.NARROW for by in ("warps", "raw tiles")]
    assert [(row[0], row[1]) for row in rows] == shown
    found = attention_kernels.measure_narrow(attention_kernels.NARROW[3], by_warps=False)
    numbers, wanted = (
        [float(cell.removesuffix(" %")) for cell in cells[2:]] for cells in (found, rows[7])
    )
    assert numbers == pytest.approx(wanted, rel=0.1, abs=1)


def test_peers_in_triton_have_launches():
    """Those of works in parts, for as many query heads of a head of the cache."""
    launch = LAUNCHES[attention_peers.TRITON]
    works = [work for work in attention_peers.WORKS if work.triton]
    assert works and "GQ" in launch.constants
    for work in works:
        assert work.triton == work.query_heads // launch.constants["HKV"]
        assert "split_tokens" in work.options and "page_size = 16" in work.source


@needs_ptxas
def test_docs_show_what_peers_take():
    """Ours in the table of decode steps in parts."""
    rows = ROWS[attention_peers.TITLES]
    works = {work.title: work for work in attention_peers.WORKS if work.triton}
    assert [row[:2] for row in rows] == [[title, by] for title in works for by in ("ours", "Triton")]
    row = rows[2]
    ours = append_kernels.get_ours(works[row[0]].source)
    found = append_kernels.measure(row[0], ours, append_kernels.CHIP, has_shared=True)
    numbers, wanted = ([int(cells[number]) for number in (2, 4, 5, 6, 9)] for cells in (found, row))
    assert numbers == pytest.approx(wanted, rel=0.1)
