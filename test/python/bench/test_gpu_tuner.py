"""The stage of the suite for a GPU that tunes attention."""

import json

import pytest
from gpu_suite import tuner

import kvcache


def read_rows(path):
    return json.loads(path.read_text())["tables"]["tuner"]["rows"]


def test_works_are_those_of_the_tables():
    for subject in tuner.SUBJECTS:
        works = tuner.find_works(subject, is_small=False)
        assert [work.name for work in works] == list(subject.works)
        # A shape stands for sequences of one length.
        assert all(len({*work.contexts}) == len({*work.new}) == 1 for work in works)
        assert len({(work.cache, work.query_heads) for work in works}) == 1


@pytest.mark.long
def test_without_a_gpu_configs_are_counted(tmp_path):
    file = tmp_path / "record.json"
    assert tuner.main(["--target", "emulator:sm_90a", "--json", str(file)]) == 0
    rows = read_rows(file)
    assert [row[0] for row in rows] == [name for subject in tuner.SUBJECTS for name in subject.works]
    # The schedules of latent rows add in other orders, so no other config has the bits of the plan.
    assert all((row[1] > 1) == (" MLA" not in row[0]) for row in rows), rows
    assert all(row[2] is row[3] is None and row[4] == "not measured" for row in rows)


@pytest.mark.long
def test_on_a_gpu_times_are_recorded(driver, tmp_path, monkeypatch):
    monkeypatch.setenv("KVCACHE_CACHE", str(tmp_path / "cache"))
    file, tuned = tmp_path / "record.json", tmp_path / "tuned.json"
    arguments = ["--target", "cuda:sm_90a", "--small", "--seconds", "2", "--json", str(file), "--file", str(tuned)]
    with driver.idle():
        assert tuner.main(arguments) == 0
    ((name, measured, planned, fastest, changes),) = read_rows(file)
    assert name == "prompt 32/8, 1 x 8K" and measured >= 1 and 0 < fastest and 0 < planned and changes
    assert json.loads(file.read_text())["device"] == "stand-in"
    assert kvcache.compilation.tuning_files.read(tuned).shapes
    kvcache.ops.making.forget()


@pytest.mark.parametrize(("fields", "text"), [({}, "none"), ({"stages": 3, "rows": 64}, "rows = 64, stages = 3")])
def test_changes_name_fields(fields, text):
    planned = kvcache.AttentionConfig(rows=128, stages=2)
    assert tuner.describe_changes(kvcache.AttentionConfig(**{"rows": 128, "stages": 2} | fields), planned) == text
