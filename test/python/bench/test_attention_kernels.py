"""The records of kernels of attention are what the compiler makes."""

import append_kernels
import attention_kernels
import attention_peers
import pytest
import results
from peers.triton_launches import LAUNCHES
from test_benchmarks import needs_ptxas

TABLES = results.read_record("attention-kernels")["tables"]
PEERS = results.read_record("attention-peers")["tables"]["by-maker"]
VARIANTS = {"cuda-cores": attention_kernels.VARIANTS, "tensor-cores": attention_kernels.TILED}
MEASURES = {"cuda-cores": attention_kernels.measure, "tensor-cores": attention_kernels.measure_tiles}


def list_titles(table):
    return tuple(column["title"] for column in table["columns"])


def read_numbers(cells):
    """The numbers of a row by a benchmark, whose text has commas."""
    return [float(cell.replace(",", "")) for cell in cells]


def assert_close(found, row, names):
    """Another version of LLVM or ptxas may choose other instructions, but not many."""
    assert list(found[:names]) == row[:names]
    assert read_numbers(found[names:]) == pytest.approx(row[names:], rel=0.1, abs=1)


@pytest.mark.parametrize("name", VARIANTS)
def test_record_has_all_variants(name):
    assert [row[0] for row in TABLES[name]["rows"]] == [variant.title for variant in VARIANTS[name]]


def test_record_has_titles_of_benchmark():
    titles = attention_kernels.TITLES, attention_kernels.TILED_TITLES, attention_kernels.FEW_TITLES, attention_kernels.NARROW_TITLES
    assert tuple(map(list_titles, TABLES.values())) == titles
    assert list_titles(PEERS) == attention_peers.TITLES


@needs_ptxas
@pytest.mark.parametrize(
    "name, number",
    [("cuda-cores", 6), ("cuda-cores", 13), ("tensor-cores", 3), ("tensor-cores", 6), ("tensor-cores", 12)],
)
def test_record_has_needs_of_kernels(name, number):
    row = TABLES[name]["rows"][number]
    assert_close(MEASURES[name](VARIANTS[name][number], attention_kernels.CHIP), row, names=1)


@needs_ptxas
def test_record_has_needs_of_few_query_rows():
    rows = TABLES["few-rows"]["rows"]
    shown = [(variant.title, swap) for variant in attention_kernels.FEW_ROWS for swap in (False, True)]
    assert [(row[0], "swapAB" in row[1]) for row in rows] == shown
    assert_close(attention_kernels.measure_few_rows(attention_kernels.FEW_ROWS[0], swap=True), rows[1], names=2)


@needs_ptxas
def test_record_has_needs_of_elements_of_8_bits():
    rows = TABLES["eight-bits"]["rows"]
    shown = [[variant.title, by] for variant in attention_kernels.NARROW for by in ("warps", "in-register")]
    assert [row[:2] for row in rows] == shown
    assert_close(attention_kernels.measure_narrow(attention_kernels.NARROW[3], by_warps=False), rows[7], names=2)


def test_peers_in_triton_have_launches():
    """Those of works in parts, for as many query heads of a head of the cache."""
    launch = LAUNCHES[attention_peers.TRITON]
    works = [work for work in attention_peers.WORKS if work.triton]
    assert works and "GQ" in launch.constants
    for work in works:
        assert work.triton == work.query_heads // launch.constants["HKV"]
        assert "split_tokens" in work.options and "page_size = 16" in work.source


@needs_ptxas
def test_record_has_needs_beside_peers():
    works = {work.title: work for work in attention_peers.WORKS if work.triton}
    assert [row[:2] for row in PEERS["rows"]] == [[title, by] for title in works for by in ("ours", "Triton")]
    row = PEERS["rows"][2]
    ours = append_kernels.get_ours(works[row[0]].source)
    found = append_kernels.measure(row[0], ours, append_kernels.CHIP, has_shared=True)
    counted = 2, 4, 5, 6, 9
    assert [int(found[number]) for number in counted] == pytest.approx([row[number] for number in counted], rel=0.1)
