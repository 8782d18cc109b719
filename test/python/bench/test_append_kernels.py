"""The tables of kernels of append in docs/whole-cache-ops.md."""

import itertools

import append_kernels
import pytest
from places import ROOT
from test_benchmarks import needs_ptxas

CHIPS = "sm_80", "sm_90a", "sm_100a"
WORKS = [*append_kernels.WORKS, *append_kernels.OTHERS]


def read_tables():
    text = (ROOT / "docs/whole-cache-ops.md").read_text()
    lines = text.split("## Kernels of append")[1].split("\n## ")[0].splitlines()
    for is_table, rows in itertools.groupby(lines, lambda line: line.startswith("|")):
        if is_table:
            yield [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


BY_MAKER, BY_CHIP = read_tables()
OURS = {row[0]: row for row in BY_MAKER if row[1] == "ours"}
TITLES = [row[0] for row in BY_CHIP[2:]]
ON_CHIPS = {
    (next(title for title in TITLES[number::-1] if title), row[1]): row[2:]
    for number, row in enumerate(BY_CHIP[2:])
}


def test_docs_show_all_works():
    assert tuple(BY_MAKER[0]) == append_kernels.TITLES
    assert list(OURS) == [work.title for work in WORKS]
    assert list(ON_CHIPS) == [
        (work.title, chip) for work in append_kernels.WORKS for chip in CHIPS
    ]
    makers = {work.title: [] for work in WORKS}
    for title, by, count, part, *_ in BY_MAKER[2:]:
        makers[title].append(by)
        if part:
            assert float(part) == pytest.approx(int(OURS[title][2]) / int(count), abs=0.006)
    for work in WORKS:
        given = {"FlashInfer": work.peer, "CUDA C++": work.cuda, "Triton": work.triton}
        assert makers[work.title] == ["ours", *(by for by, name in given.items() if name)]
    for ours, theirs, part, *_ in ON_CHIPS.values():
        assert not theirs or float(part) == pytest.approx(int(ours) / int(theirs), abs=0.006)


def test_appends_are_at_most_half_of_flashinfers():
    parts = [float(row[2]) for row in ON_CHIPS.values() if row[1]]
    assert len(parts) == 9 and max(parts) <= 0.5


@needs_ptxas
@pytest.mark.parametrize(
    ("work", "chip"),
    [
        *((work, chip) for work in append_kernels.WORKS for chip in CHIPS),
        *((work, append_kernels.CHIP) for work in append_kernels.OTHERS),
    ],
    ids=lambda value: getattr(value, "title", value),
)
def test_docs_show_what_kernels_take(work, chip, monkeypatch):
    monkeypatch.setattr(append_kernels, "RUNS", 1)
    found = append_kernels.measure(
        work.title, append_kernels.get_ours(work.source), chip
    )
    if chip == append_kernels.CHIP:
        row = OURS[work.title]
        assert int(found[2]) == pytest.approx(int(row[2]), rel=0.1)
        assert found[5] == row[5]
    if (work.title, chip) in ON_CHIPS:
        row = ON_CHIPS[work.title, chip]
        assert int(found[2]) == pytest.approx(int(row[0]), rel=0.1)
        assert found[5] == row[6]
    # What a multiprocessor of a B200 needs for its bandwidth.
    assert int(found[7]) >= 40
