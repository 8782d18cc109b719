"""The table of kernels of append in docs/whole-cache-ops.md."""

import append_kernels
import pytest
from places import ROOT
from test_benchmarks import needs_ptxas


def read_rows():
    """SASS and spills of our kernels, by title and chip."""
    text = (ROOT / "docs/whole-cache-ops.md").read_text()
    section = text.split("## Kernels of append")[1].split("\n## ")[0]
    rows, title = {}, ""
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[1].startswith("sm_"):
            title = cells[0] or title
            rows[title, cells[1]] = (
                int(cells[2]),
                int(cells[3]),
                float(cells[4]),
                int(cells[6]),
            )
    return rows


ROWS = read_rows()


def test_docs_show_all_works():
    works = [
        (work.title, chip)
        for work in append_kernels.WORKS
        for chip in ("sm_80", "sm_90a", "sm_100a")
    ]
    assert list(ROWS) == works
    for ours, theirs, part, _ in ROWS.values():
        assert part == pytest.approx(ours / theirs, abs=0.006)


@needs_ptxas
@pytest.mark.parametrize("chip", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("work", append_kernels.WORKS, ids=lambda work: work.title)
def test_docs_show_what_kernels_take(work, chip, monkeypatch):
    monkeypatch.setattr(append_kernels, "RUNS", 1)
    ours, theirs, _, spills = ROWS[work.title, chip]
    found = append_kernels.measure(
        work.title,
        "ours",
        chip,
        lambda: append_kernels.compile_ours(work.source, chip),
        theirs,
    )
    assert int(found[2]) == pytest.approx(ours, rel=0.1)
    assert int(found[5]) == spills
