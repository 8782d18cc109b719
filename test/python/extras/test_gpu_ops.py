"""Tests of the benchmark of operations on a GPU, with few tokens on the CPU."""

import json

import pytest

pytest.importorskip("torch")

import gpu_ops  # noqa: E402
import gpu_ops_attention  # noqa: E402
import gpu_ops_run  # noqa: E402
from gpu_ops_works import WORKS  # noqa: E402

ONE_OF_EACH = {(work.kind, work.cache, work.chosen): work for work in WORKS}


def test_works_have_unique_names():
    assert len({work.name for work in WORKS}) == len(WORKS)


@pytest.mark.parametrize("work", ONE_OF_EACH.values(), ids=lambda work: work.name)
def test_results_are_right(work):
    for result in gpu_ops_run.run(work.shrink(), "cpu"):
        assert result.status == "right", result


def test_wrong_results_are_found(monkeypatch):
    (work,) = (work.shrink() for work in WORKS if work.is_plain)
    monkeypatch.setattr(gpu_ops_attention.Attention, "reset", lambda given: None)
    scale = gpu_ops_attention.Attention.wanted
    monkeypatch.setattr(
        gpu_ops_attention.Attention,
        "wanted",
        lambda given: {at: (out * 1.02, lse) for at, (out, lse) in scale(given).items()},
    )
    assert {result.status for result in gpu_ops_run.run(work, "cpu")} == {"wrong"}


def test_a_run_writes_its_results(tmp_path, capsys):
    path = tmp_path / "results.json"
    options = ["--target", "cpu", "--small", "--jobs", "1", "--json", str(path)]
    assert gpu_ops.main([*options, "--only", "copy_pages"]) == 0
    found = json.loads(path.read_text())
    assert [result["status"] for result in found["results"]] == ["right", "right"]
    capsys.readouterr()
    gpu_ops.main(["--show", str(path), "--markdown"])
    assert capsys.readouterr().out.count("copy_pages") == 2


def test_process_that_takes_too_long_is_a_failure(capsys):
    options = ["--target", "cpu", "--small", "--jobs", "1", "--only", "copy_pages", "--work-seconds", "0.001"]
    assert gpu_ops.main(options) == 1
    output = capsys.readouterr().out
    # The second failure is that of another process.
    assert output.count("failed: copy_pages, 4,096 pages, : the process ended, or was ended, after 0 s") == 2
