"""The benchmark of page managers: its works, small, and its report."""

import json
import subprocess
import sys

import manager
import manager_works
import pytest
from places import ROOT

PEER = ROOT / "benchmarks/peers/vllm_manager.py"
WORKS = [
    "decode step of 3 sequences",
    "decode step of 5 sequences",
    "claim among 10,000 prompts of a page",
    "the same, behind a prompt of the system",
    "claim of 32,768 tokens",
    "the same, found in the cache",
]


class NotedCache(manager.OurCache):
    """Notes what claims find, and the tokens of each decode step."""

    found = []
    steps = []

    def claim(self, name, tokens):
        before = self.manager.stats.tokens_found
        super().claim(name, tokens)
        self.found.append((name, self.manager.stats.tokens_found - before, len(tokens)))

    def decode(self, names, tokens):
        super().decode(names, tokens)
        self.steps.append([len(self.manager.tokens(name)) for name in names])


@pytest.fixture
def small(monkeypatch):
    for name, size in (("CONTEXT", 40), ("CACHED", 20), ("LONG", 64)):
        monkeypatch.setattr(manager_works, name, size)


def test_our_manager_does_each_work(small):
    NotedCache.found, NotedCache.steps = [], []
    times = manager_works.measure(NotedCache, [3, 5], 8)
    assert list(times) == WORKS
    assert [len(each) for each in times.values()] == [8, 8, 8, 8, 3, 3]
    assert NotedCache.steps[0] == [41, 42, 43]
    assert NotedCache.steps[-1] == [40 + i + 11 for i in range(5)]
    behind = [found for name, found, count in NotedCache.found if count == 512 + 17]
    assert behind[:1] == [0] and all(found >= 512 for found in behind[1:])
    long = [each for each in NotedCache.found if each[0] in ("cold", "again")]
    assert long == [("cold", 0, 64), ("again", 63, 64)] * 3


def test_the_report_has_every_round():
    work = manager_works.name_decode(1000)
    results = [
        {"name": "one", "times": {work: [3.0, 1.0]}},
        {"name": "other", "times": {work: [5.0]}},
        {"name": "one", "times": {work: [7.0]}},
    ]
    lines = manager.render(results, [1000]).splitlines()
    assert lines[0] == "| CPU ms, median (medians of rounds) | one | other |"
    assert lines[2] == f"| {work} | 3.000 (2.000 to 7.000) | 5.000 (5.000 to 5.000) |"
    # Milliseconds of a thousand sequences are microseconds of one.
    assert lines[3] == lines[2].replace(work, "the step of 1,000, us per sequence")
    assert "NumPy" in lines[-1]


def test_a_contender_that_fails_is_named():
    with pytest.raises(SystemExit, match="error: .*: no such thing"):
        manager.run([sys.executable, "-c", "raise SystemExit('no such thing')"])
    printed = [sys.executable, "-c", "print('noise'); print('{\"name\": \"x\"}')"]
    assert manager.run(printed) == {"name": "x"}


@pytest.mark.parametrize("sizes", ["0", "256,x", "-1"])
def test_sizes_that_make_no_batch(sizes, capsys):
    with pytest.raises(SystemExit):
        manager.main([f"--batches={sizes}"])
    assert "expects a positive number" in capsys.readouterr().err


def test_the_peer_says_what_it_needs():
    done = subprocess.run(
        [sys.executable, PEER, "3", "8"], capture_output=True, text=True
    )
    assert done.returncode and "ModuleNotFoundError" in done.stderr


def test_without_its_environment_the_peer_is_not_measured(monkeypatch, tmp_path):
    monkeypatch.setattr(manager, "VLLM_PYTHON", tmp_path / "python")
    with pytest.raises(SystemExit, match="error: there is no .*/python: scripts/bench"):
        manager.main(["--vllm"])


@pytest.mark.parametrize("name", manager.OURS)
def test_the_worker_prints_its_result(small, capsys, name):
    assert manager.main(["--worker", name, "--batches", "3", "--runs", "8"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["name"] == name and WORKS[0] in result["times"]
