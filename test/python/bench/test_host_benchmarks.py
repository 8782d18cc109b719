"""The benchmarks of the CPU: operations, calls, and page managers, with small works."""

import json
import platform
import subprocess
import sys

import calls
import cpu
import emulator
import manager
import manager_works
import ml_dtypes
import numpy as np
import pytest
import standin
import step_calls
from places import ROOT


def test_operations_are_right_and_timed(monkeypatch):
    monkeypatch.setattr(cpu, "torch", None)
    monkeypatch.setattr(cpu, "openvino_attention", None)
    shapes = [
        cpu.Shape("decode", 2, 40, 2, 4),
        cpu.Shape("saved library", 2, 40, 2, 4, is_saved=True),
        cpu.Shape("f32", 2, 40, 2, 4, dtype="f32"),
    ]
    for shape in shapes:
        title, times, rate, copy, part, *rest = cpu.measure_row(shape.title, *cpu.make_attention(shape), rounds=2)
        assert title == shape.title and len(times) == len(copy) == 2 and rest == [None] * 3


def test_prompts_have_rates(monkeypatch):
    """Each row of a table has as many cells as columns."""
    monkeypatch.setattr(cpu, "torch", None)
    monkeypatch.setattr(cpu, "openvino_attention", None)
    monkeypatch.setattr(cpu, "PROMPTS", [cpu.Shape("prompt", 1, 20, 1, 2, 64, new=20)])
    table = cpu.measure_prompts(rounds=2)
    *loops, (title, times, rate, part, fastest_part, *_) = table.rows
    rates = {name: most for name, _, most, *_ in loops}
    known = {f"a loop of {name}" for name in ("multiply-adds", "dot products", "tile products")}
    assert {"a loop of multiply-adds"} <= rates.keys() <= known
    assert 0 < rate and part == pytest.approx(rate / rates["a loop of multiply-adds"]) and len(times) == 2
    assert title == "prompt" and fastest_part == pytest.approx(rate / max(rates.values()))
    assert {len(row) for row in table.rows} == {len(table.columns)}


def test_threads_are_timed(monkeypatch):
    monkeypatch.setattr(cpu, "torch", None)
    monkeypatch.setattr(cpu, "openvino_attention", None)
    monkeypatch.setattr(cpu, "THREADED", [cpu.Shape("prompt", 2, 20, 2, 4, 64, new=20)])
    (_, *alone), (_, *both) = cpu.measure_threads(rounds=2).rows
    assert (alone[0], both[0]) == (1, 2) and alone[2] == 1
    assert both[2] == pytest.approx(both[1][0] / alone[1][0])


def test_lower_instruction_sets_limit_the_process(monkeypatch):
    assert cpu.find_isa() is None
    for isa, limits in cpu.ISAS.items():
        for name, value in limits.items():
            monkeypatch.setenv(name, value)
        assert cpu.find_isa() == isa
        assert limits["KVCACHE_CPU"] in {level.name for level in cpu.processors.find_levels()}


def test_levels_end_with_the_fastest():
    assert cpu.list_levels()[-1] == (cpu._native.extension().cpu_level() or platform.machine())


def test_operations_are_those_of_seen_tokens():
    assert cpu.Shape("prompt", 2, 3, 1, 4, 8, new=3).operations == 4 * 2 * 4 * 8 * (1 + 2 + 3)
    assert cpu.Shape("decode", 1, 3, 1, 1, 1).operations == 4 * 3


@pytest.mark.parametrize("format_", cpu.FORMATS, ids=lambda format_: format_.title)
def test_copies_are_right_and_timed(format_):
    rows = [np.random.default_rng(role).standard_normal((2, 64, 2, 128), np.float32) for role in range(2)]
    if format_.rows == "bf16":
        rows = [array.astype(ml_dtypes.bfloat16) for array in rows]
    works = list(cpu.make_rows(format_, rows))
    names = ["append", "gather", "copy of 4 pages"]
    assert [title for title, *_ in works] == [f"{name}, {format_.title}" for name in names]
    for title, contenders, bytes_ in works:
        _, times, rate, *_ = cpu.measure_row(title, contenders, bytes_, rounds=2)
        assert bytes_ > 0 and rate > 0 and len(times) == 2


def test_wrong_operation_is_an_error(monkeypatch):
    monkeypatch.setattr(cpu, "torch", None)
    contenders, bytes_ = cpu.make_attention(cpu.Shape("decode", 2, 40, 2, 4))
    contenders[0].call = lambda turn: None
    with pytest.raises(ValueError, match="decode: kvcache is wrong: an error of nan"):
        cpu.measure_row("decode", contenders, bytes_, rounds=1)


def test_calls_are_measured():
    rows = {library: times for library, *times in calls.measure(runs=2, number=20).rows}
    assert {"numpy", "tvm_ffi", "ml_dtypes"} <= rows.keys()
    assert all(call > 0 for call, *_ in rows.values())
    assert rows["ml_dtypes"][2:] == [None, None]


def test_calls_of_operations_are_timed_beside_the_same_work():
    table = step_calls.measure_calls(rounds=2, number=2)
    titles = [title for title, *_ in table.rows]
    assert titles[0] == "append" and "operation of equal parameters" in titles
    for title, *times in table.rows:
        least, median = min((time[1], time[0]) for time in times if time)
        assert 0 < least <= median, title
    contenders = step_calls.list_contenders()
    assert ("PyTorch" in contenders["append"]) == (step_calls.torch is not None)
    for contender in contenders.values():
        for call in contender.values():
            call()


def test_processes_are_timed(monkeypatch):
    monkeypatch.setattr(step_calls, "PROCESSES", {"nothing": "", "failure": "assert False"})
    with pytest.raises(subprocess.CalledProcessError):
        step_calls.measure_processes(rounds=1)
    monkeypatch.setattr(step_calls, "PROCESSES", {"nothing": "", "work": "sum(range(3000000))"})
    (nothing, (less, _)), (work, (more, _)) = step_calls.measure_processes(rounds=3).rows
    assert (nothing, work) == ("nothing", "work") and 0 < less < more


def test_launches_are_measured():
    """The driver of the tests does nothing then."""
    driver = standin.get()
    driver.reset()
    name, call, _, function, unchecked = calls.measure_launches(driver._library, runs=2, number=20)
    assert name == "tvm_ffi, a launch" and min(call, unchecked) > 0
    assert function > unchecked  # a launch, and a function that does nothing
    table = step_calls.measure_launches(driver._library, rounds=2, number=20)
    assert [title for title, *_ in table.rows][:2] == ["append", "append, bound"]
    assert all(0 < least <= median for _, (median, least) in table.rows)
    assert not [line for line in driver.calls() if line.startswith("cuLaunchKernel")]
    driver.reset()


def test_numpy_attends_as_the_example():
    arguments = emulator.attention_arguments()
    emulator.attend(*arguments)
    assert np.isfinite(arguments[-1].astype(np.float32)).all()
    assert emulator.programs().keys() == {"quickstart", "gather", "key_tile", "attention_pipe"}


# --- Page managers ---------------------------------------------------------------------------------------------------

WORKS = [
    "decode step of 3 sequences",
    "decode step of 5 sequences",
    "claim among 10,000 prompts of a page",
    "the same, after a prompt of the system",
    "claim of 32,768 tokens",
    "the same, found in the cache",
]


class NotedCache(manager.OurCache):
    """Notes the tokens that claims find, and those of each decode step."""

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
    after = [found for name, found, count in NotedCache.found if count == 512 + 17]
    assert after[:1] == [0] and all(found >= 512 for found in after[1:])
    long = [each for each in NotedCache.found if each[0] in ("cold", "again")]
    assert long == [("cold", 0, 64), ("again", 63, 64)] * 3


def test_table_of_managers_has_every_round():
    work = manager_works.name_decode(1000)
    results = [
        {"name": "one", "times": {work: [3.0, 1.0]}},
        {"name": "other", "times": {work: [5.0]}},
        {"name": "one", "times": {work: [7.0]}},
    ]
    table = manager.tabulate(results, [1000])
    assert table.titles == ["CPU ms, median (medians of rounds)", "one", "other"]
    # Milliseconds of a thousand sequences are microseconds of one.
    cells = [[3.0, 2.0, 7.0], [5.0, 5.0, 5.0]]
    assert table.rows == [[work, *cells], ["the step of 1,000, us per sequence", *cells]]


def test_failed_process_is_named():
    with pytest.raises(ValueError, match="no such thing"):
        manager.run_process([sys.executable, "-c", "raise SystemExit('no such thing')"])
    printed = [sys.executable, "-c", "print('noise'); print('{\"name\": \"x\"}')"]
    assert manager.run_process(printed) == {"name": "x"}


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_peer_without_its_packages_fails(monkeypatch, tmp_path, engine):
    peer = ROOT / f"benchmarks/peers/{engine}_manager.py"
    done = subprocess.run([sys.executable, peer, "3", "8"], capture_output=True, text=True)
    assert done.returncode and "ModuleNotFoundError" in done.stderr
    monkeypatch.setattr(manager, "ENGINES_PYTHON", tmp_path / "python")
    with pytest.raises(SystemExit, match="error: there is no .*/python: scripts/bench"):
        manager.main([f"--{engine}"])


@pytest.mark.parametrize("name", manager.OURS)
def test_worker_prints_its_result(small, capsys, name):
    assert manager.main(["--worker", name, "--batches", "3", "--runs", "8"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["name"] == name and WORKS[0] in result["times"]
