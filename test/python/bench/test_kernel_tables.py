"""The records of kernels of append and attention are what the compiler makes."""

from types import SimpleNamespace

import append_kernels
import attention_gate
import attention_kernels
import attention_peers
import index_peers
import kvcache
import pytest
import results
from compiled import needs_tools
from measure import Absent
from peers.triton_launches import LAUNCHES

CHIPS = "sm_80", "sm_90a", "sm_100a"
APPEND = results.read_record("append-kernels")["tables"]
OURS = {row[0]: row for row in APPEND["by-maker"]["rows"] if row[1] == "ours"}
ON_CHIPS = {(title, chip): numbers for title, chip, *numbers in APPEND["by-chip"]["rows"]}
ATTENTION = results.read_record("attention-kernels")["tables"]
PEERS = results.read_record("attention-peers")["tables"]["by-maker"]
INDEX = results.read_record("index-kernels")["tables"]


def list_titles(table):
    return [column["title"] for column in table["columns"]]


def test_records_have_titles_of_benchmarks():
    tables = {name: attention_kernels.Table(*columns).titles for name, columns in attention_kernels.COLUMNS.items()}
    assert {name: list_titles(table) for name, table in ATTENTION.items()} == tables
    assert list_titles(APPEND["by-maker"]) == append_kernels.make_table().titles
    assert list_titles(PEERS) == append_kernels.make_table(has_shared=True).titles


def test_records_have_all_works():
    works = [*append_kernels.WORKS, *append_kernels.OTHERS]
    assert list(OURS) == [work.title for work in works]
    assert list(ON_CHIPS) == [(work.title, chip) for work in append_kernels.WORKS for chip in CHIPS]
    makers = {work.title: [] for work in works}
    for title, by, count, part, *_ in APPEND["by-maker"]["rows"]:
        makers[title].append(by)
        if part:
            assert part == pytest.approx(OURS[title][2] / count, abs=0.006)
    for work in works:
        given = {"FlashInfer": work.peer, "CUDA C++": work.cuda, "Triton": work.triton}
        assert makers[work.title] == ["ours", *(by for by, name in given.items() if name)]
    for ours, theirs, part, *_ in ON_CHIPS.values():
        assert not theirs or part == pytest.approx(ours / theirs, abs=0.006)
    variants = {"cuda-cores": attention_kernels.VARIANTS, "tensor-cores": attention_kernels.TILED}
    for name, every in variants.items():
        assert [row[0] for row in ATTENTION[name]["rows"]] == [each.title for each in every if each.fits("sm_90a")]
    few = [[each.title, by] for each in attention_kernels.FEW_ROWS for by in ("mma.sync", "wgmma, swapAB")]
    narrow = [[each.title, by] for each in attention_kernels.NARROW for by in ("warps", "in-register")]
    assert [row[:2] for row in ATTENTION["few-rows"]["rows"]] == few
    assert [row[:2] for row in ATTENTION["eight-bits"]["rows"]] == narrow
    schedules = {title: schedule for title, schedule, *_ in ATTENTION["prompts"]["rows"]}  # the compiler's is last
    assert schedules == {
        each.title: "ping_pong" if each.dtype == "bf16" else "prefetch" for each in attention_kernels.PROMPTS
    }
    assert [row[:2] for row in PEERS["rows"][:-1]] == [
        [work.title, by]
        for work in attention_peers.WORKS
        for by in ("ours", "FlashInfer", *(["Triton"] if work.triton else []))
    ]
    assert PEERS["rows"][-1][:2] == ["merge of splits", "FlashInfer"]


def test_records_have_all_scores_and_selections():
    rows = [[scores.title, chip] for scores in index_peers.SCORES for chip in CHIPS]
    assert [row[:2] for row in INDEX["scores"]["rows"]] == rows
    assert [row[:2] for row in INDEX["selections"]["rows"]] == [
        *([f"k = {k}{step}", "ours"] for k in index_peers.SELECTED for step in ("", ", splits", ", of splits")),
        ["any k", "FlashInfer"], ["any k", "SGLang"],
    ]  # fmt: skip


@needs_tools
@pytest.mark.parametrize("scores", index_peers.SCORES, ids=lambda scores: scores.title)
def test_scores_do_not_spill_and_multiply_each_key_once(scores):
    """A product of 16 keys, 8 heads and 16 elements is one HMMA."""
    title, chip, _, _, products, _, spills, *_ = index_peers.count_scores(scores, "sm_90a")
    assert (title, chip, spills) == (scores.title, "sm_90a", 0)
    assert products == index_peers.KEYS // 16 * (scores.heads // 8) * (128 // 16)


def test_appends_are_at_most_half_of_flashinfers():
    parts = [row[2] for row in ON_CHIPS.values() if row[1]]
    assert len(parts) == 9 and max(parts) <= 0.5


def measure_ours(work, chip, has_shared=False):
    table = append_kernels.make_table(has_shared)
    append_kernels.measure_kernels(table, work.title, [append_kernels.get_ours(work.source)], chip, runs=1)
    return table.rows[0]


@needs_tools
@pytest.mark.parametrize(
    ("work", "chip"),
    [
        *((work, chip) for number, work in enumerate(append_kernels.WORKS)
          for chip in sorted({append_kernels.CHIP, CHIPS[number % 3]})),
        *((work, append_kernels.CHIP) for work in append_kernels.OTHERS),
    ],
    ids=lambda value: getattr(value, "title", value),
)
def test_record_has_needs_of_append(work, chip):
    found = measure_ours(work, chip)
    if chip == append_kernels.CHIP:
        row = OURS[work.title]
        assert (found[2], found[5]) == (pytest.approx(row[2], rel=0.1), row[5])
    if (work.title, chip) in ON_CHIPS:
        row = ON_CHIPS[work.title, chip]
        assert (found[2], found[5]) == (pytest.approx(row[0], rel=0.1), row[6])
    # A multiprocessor of a B200 needs that for its bandwidth.
    assert found[7] >= 40


@pytest.mark.long
@needs_tools
@pytest.mark.parametrize(
    ("name", "number", "measure"),
    [
        *(("cuda-cores", number, lambda n: attention_kernels.measure_warps(attention_kernels.VARIANTS[n], "sm_90a"))
          for number in (6,)),
        *(("tensor-cores", number, lambda n: attention_kernels.measure_tiles(attention_kernels.TILED[n], "sm_90a"))
          for number in (3, 6, 12)),
        ("prompts", 3, lambda n: attention_kernels.measure_prompt(attention_kernels.PROMPTS[1], "sm_90a")[1]),
        ("few-rows", 1, lambda n: attention_kernels.measure_few_rows(attention_kernels.FEW_ROWS[0], swap=True)),
        ("eight-bits", 7, lambda n: attention_kernels.measure_narrow(attention_kernels.NARROW[3], by_warps=False)),
    ],
)  # fmt: skip
def test_record_has_needs_of_attention(name, number, measure):
    """Another version of LLVM or ptxas may choose other instructions, but not many."""
    row = ATTENTION[name]["rows"][number]
    names = 1 + isinstance(row[1], str)
    found = measure(number)
    assert found[:names] == row[:names]
    assert found[names:] == pytest.approx(row[names:], rel=0.1, abs=1)


def test_peers_in_triton_have_launches():
    """Works in splits have one for their query heads of a head of the cache."""
    launch = LAUNCHES[attention_peers.TRITON]
    works = [work for work in attention_peers.WORKS if work.triton]
    assert works and "GQ" in launch.constants
    for work in works:
        assert work.triton == work.query_heads // launch.constants["HKV"]
        assert "split_tokens" in work.options and "page_size = 16" in work.source


@pytest.mark.long
@needs_tools
def test_record_has_needs_beside_peers():
    works = {work.title: work for work in attention_peers.WORKS if work.triton}
    row = next(row for row in PEERS["rows"] if row[:2] == ["decode, 32 heads, in splits, tensor cores", "ours"])
    found = measure_ours(works[row[0]], append_kernels.CHIP, has_shared=True)
    counted = 2, 4, 5, 6, 9
    assert [found[number] for number in counted] == pytest.approx([row[number] for number in counted], rel=0.1)


@needs_tools
def test_kernel_that_does_not_compile_is_left_out(capsys):
    def fail(chip):
        raise append_kernels.CannotCompileError("no such header")

    table, work = append_kernels.make_table(), append_kernels.WORKS[0]
    peer = append_kernels.Kernel("FlashInfer", fail)
    append_kernels.measure_kernels(table, work.title, [append_kernels.get_ours(work.source), peer], "sm_90a", runs=1)
    assert [row[1] for row in table.rows] == ["ours"]
    assert "append, bf16: none by FlashInfer for sm_90a: no such header" in capsys.readouterr().err


def test_missing_headers_are_printed(monkeypatch):
    monkeypatch.setattr(append_kernels.importlib, "util", SimpleNamespace(find_spec=lambda name: None))
    with pytest.raises(Absent, match="FlashInfer is not installed: run scripts/bench append"):
        append_kernels.FlashInfer()


@pytest.mark.long
@needs_tools
@pytest.mark.parametrize("schedule, advisories", [("prefetch", []), ("seesaw", ["advisories C7512"])])
def test_gate_refuses_mmas_that_wait(schedule, advisories):
    """A persistent kernel with seesaw has too few registers for MMAs in flight."""
    params = kvcache.KVCacheParams("bf16", 1, 576, page_size=64, total_num_layers=1, is_mla=True)
    config = kvcache.AttentionConfig(schedule=schedule)
    operation = kvcache.ops.attention(params, 64, value_dim=512, split_tokens=512, config=config)
    row = attention_gate.assemble(list(operation.compile("sm_90a").kernels.values()), "sm_90a")
    assert attention_gate.compare(row, row) == advisories
