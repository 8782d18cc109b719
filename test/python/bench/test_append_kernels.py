"""The records of kernels of append are what the compiler makes."""

import append_kernels
import pytest
import results
from test_benchmarks import needs_ptxas

CHIPS = "sm_80", "sm_90a", "sm_100a"
WORKS = [*append_kernels.WORKS, *append_kernels.OTHERS]
TABLES = results.read_record("append-kernels")["tables"]
BY_MAKER = TABLES["by-maker"]["rows"]
OURS = {row[0]: row for row in BY_MAKER if row[1] == "ours"}
ON_CHIPS = {(title, chip): numbers for title, chip, *numbers in TABLES["by-chip"]["rows"]}


def test_record_has_all_works():
    assert tuple(column["title"] for column in TABLES["by-maker"]["columns"]) == append_kernels.TITLES
    assert list(OURS) == [work.title for work in WORKS]
    assert list(ON_CHIPS) == [
        (work.title, chip) for work in append_kernels.WORKS for chip in CHIPS
    ]
    makers = {work.title: [] for work in WORKS}
    for title, by, count, part, *_ in BY_MAKER:
        makers[title].append(by)
        if part:
            assert part == pytest.approx(OURS[title][2] / count, abs=0.006)
    for work in WORKS:
        given = {"FlashInfer": work.peer, "CUDA C++": work.cuda, "Triton": work.triton}
        assert makers[work.title] == ["ours", *(by for by, name in given.items() if name)]
    for ours, theirs, part, *_ in ON_CHIPS.values():
        assert not theirs or part == pytest.approx(ours / theirs, abs=0.006)


def test_appends_are_at_most_half_of_flashinfers():
    parts = [row[2] for row in ON_CHIPS.values() if row[1]]
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
def test_record_has_needs_of_kernels(work, chip, monkeypatch):
    monkeypatch.setattr(append_kernels, "RUNS", 1)
    found = append_kernels.measure(
        work.title, append_kernels.get_ours(work.source), chip
    )
    if chip == append_kernels.CHIP:
        row = OURS[work.title]
        assert int(found[2]) == pytest.approx(row[2], rel=0.1)
        assert int(found[5]) == row[5]
    if (work.title, chip) in ON_CHIPS:
        row = ON_CHIPS[work.title, chip]
        assert int(found[2]) == pytest.approx(row[0], rel=0.1)
        assert int(found[5]) == row[6]
    # What a multiprocessor of a B200 needs for its bandwidth.
    assert int(found[7]) >= 40
