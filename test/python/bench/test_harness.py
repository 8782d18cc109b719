"""The harness of the benchmarks: turns, tables, records and command lines."""

import argparse
import json
import subprocess
import sys

import command
import measure
import pytest
from places import ROOT
from record import Record, partial_file
from report import Table


class StepClock:
    """A clock that a test moves on."""

    def __init__(self):
        self.now = 0.0

    def mark(self):
        return self.now

    def synchronize(self):
        self.now += 1000.0

    def milliseconds(self, start, end):
        return end - start


def run_turns(rounds, pause=0.0):
    """The names in their order, and the times of calls that take 1 and 2 ms."""
    clock, order = StepClock(), []

    def make(name, cost):
        def call(turn):
            order.append(name)
            clock.now += cost

        return call

    prepare = {"a": lambda: setattr(clock, "now", clock.now + pause)}
    calls = {"a": make("a", 1.0), "b": make("b", 2.0)}
    return order, measure.take_turns(calls, rounds, warm_up=2, clock=clock, prepare=prepare)


def test_turns_after_warm_up_are_timed(capsys):
    order, times = run_turns(rounds=4)
    assert times == {"a": [1.0] * 4, "b": [2.0] * 4}
    rounds = ["".join(order[i : i + 2]) for i in range(0, 12, 2)]
    assert set(rounds) == {"ab", "ba"}
    assert capsys.readouterr().err == ""


def test_idle_device_is_reported(capsys):
    assert run_turns(rounds=4, pause=3.0)[1]["a"] == [1.0] * 4
    assert "the device was idle for 50% of the time" in capsys.readouterr().err


def test_contender_with_wrong_results_is_wrong():
    printed = []
    contender = measure.Contender("peer", printed.append, lambda: "out[1] is 7", lambda: printed.append("reset"))
    found = measure.verify(contender, "gather", "full")
    assert printed == ["reset", 0]
    assert (found.status, found.note) == ("wrong", "out[1] is 7")


TABLE = Table("work", "chip", ("ms", "{:.1f} ({:.1f})"), ("part", "{:.2f}"))
TABLE.add("gather", "sm_80", [9.04, 8.0], None)
TABLE.add("decode", "sm_100a", [100.0, 99.96], 0.5)


def test_tables_are_aligned():
    assert TABLE.render(markdown=False) == (
        "work    chip                ms  part\ngather  sm_80        9.0 (8.0)\ndecode  sm_100a  100.0 (100.0)  0.50"
    )
    assert TABLE.render(markdown=True).splitlines() == [
        "| work   | chip    |            ms | part |",
        "| --- | --- | --: | --: |",
        "| gather | sm_80   |     9.0 (8.0) |      |",
        "| decode | sm_100a | 100.0 (100.0) | 0.50 |",
    ]


def test_record_has_numbers_and_their_origin(tmp_path):
    software = {"nvcc": "13.0"}
    record = Record("scripts/bench cpu", {"times": TABLE}, "a chip", "580.1", software, arguments=["--runs", "2"])
    record.save(tmp_path / "record.json")
    text = (tmp_path / "record.json").read_text()
    found = json.loads(text)
    assert list(found) == ["date", "commit", "device", "driver", "software", "command", "tables"]
    assert (found["device"], found["command"]) == ("a chip", "scripts/bench cpu --runs 2")
    assert found["software"].keys() == {"Python", "nvcc"}
    assert found["tables"]["times"]["columns"][1:3] == [{"title": "chip"}, {"title": "ms", "format": "{:.1f} ({:.1f})"}]
    assert '["gather", "sm_80", [9.04, 8.0], null]' in text
    assert "nvcc" in record.render(markdown=False) and "nvcc" not in record.render(markdown=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--works=scatter"], "unknown name 'scatter'; known are gather, gather_dynamic"),
        (["--chips=sm_70"], "unknown name 'sm_70'; known are sm_80"),
        (["--runs=0"], "expects a positive number, got '0'"),
        (["--sizes=4,x"], "expects a positive number, got 'x'"),
    ],
)
def test_wrong_arguments_are_errors(arguments, message, capsys):
    line = command.Command("bench", "Runs.")
    line.add("--works", type=command.parse_names(["gather", "gather_dynamic"]))
    line.add("--sizes", type=command.parse_sizes)
    line.add_chips("sm_80")
    line.add_count("--runs", 1, "rounds")
    with pytest.raises(SystemExit) as ended:
        line.parse(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_command_prints_and_writes_its_record(tmp_path, capsys):
    path = tmp_path / "found.json"
    line = command.Command("bench", "Runs.")
    assert line.run(lambda options: Record("bench", {"times": TABLE}), ["--markdown", f"--json={path}"]) == 0
    assert capsys.readouterr().out == TABLE.render(markdown=True) + "\n"
    assert json.loads(path.read_text())["tables"]["times"] == TABLE.to_json()

    def fail(options: argparse.Namespace):
        raise measure.Absent("there is no compiler")

    with pytest.raises(SystemExit, match="error: there is no compiler"):
        command.Command("bench", "Runs.").run(fail, [])


@pytest.mark.parametrize(
    "script",
    [
        "bench",
        "manager",
        "stores",
        "transfer",
        "cpu",
        "emulator",
        "quantized_loads",
        "append_kernels",
        "attention_peers",
        "index_peers",
        "model_accuracy",
    ],
)
def test_help_is_printed(script):
    path = ROOT / f"benchmarks/{script}.py"
    done = subprocess.run([sys.executable, path, "--help"], capture_output=True, text=True, check=True)
    assert "examples:" in done.stdout and "--markdown" in done.stdout


def test_partial_file_replaces_a_file_only_if_whole(tmp_path):
    path = tmp_path / "pack.tar.gz"
    path.write_text("earlier")
    with pytest.raises(KeyboardInterrupt), partial_file(path) as partial:
        partial.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "earlier" and list(tmp_path.iterdir()) == [path]
    with partial_file(path) as partial:
        partial.write_text("whole")
        assert path.read_text() == "earlier"
    assert path.read_text() == "whole" and list(tmp_path.iterdir()) == [path]
