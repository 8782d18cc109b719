"""Tests of scripts/on-gpu: the suite runs whole on the emulator, from a pack as from the repository."""

import json
import os
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest
from gpu_suite import pack, stages
from gpu_suite.stages import Options, Outcome, Paths, Stage
from places import ROOT
from record import Record

import kvcache

SMALL = ["--target", "emulator:sm_90a", "--small", "--jobs", "1", "--minutes", "8"]
THIS_PYTHON = "{}{}".format(*sys.version_info)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel with the Python files of the package, and its libraries as links of the build would be."""
    package = Path(kvcache.__file__).parent
    path = tmp_path_factory.mktemp("wheel") / f"kvcache-0.1.0-cp{THIS_PYTHON}-cp{THIS_PYTHON}-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file in package.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, Path("kvcache", file.relative_to(package)))
        archive.writestr("kvcache-0.1.0.data/scripts/kvcache-opt", "a tool")
    return path


@pytest.fixture(scope="module")
def packed(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pack")
    more = folder / "more"
    (more / "some_engine").mkdir(parents=True)
    (more / "some_engine/some_engine.py").write_text("NAME = 'engine'\n")
    path = folder / "suite.tar.gz"
    parts = pack.write(path, wheel, [more], 64, with_packages=False)
    assert set(parts) == {"site", "repo", "packages", "run.py"}
    with tarfile.open(path) as archive:
        archive.extractall(folder)
    return folder / pack.NAME


def run(script, results, *arguments):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, script, "--results", results, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=540)
    record = results / "on-gpu.json"
    return done, json.loads(record.read_text()) if record.exists() else None


@pytest.mark.slow
def test_suite_of_a_pack_runs_without_the_repository(packed, tmp_path):
    done, record = run(packed / "run.py", tmp_path, *SMALL)
    statuses = {outcome["stage"]: outcome["status"] for outcome in record["outcomes"]}
    assert list(statuses) == [stage.name for stage in stages.STAGES]
    assert {statuses[name] for name in ("kernels", "frameworks", "tokens", "operations")} == {"passed"}, done.stdout
    assert done.returncode == 0 and statuses["vllm"] in ("passed", "absent")
    assert record["commit"] == json.loads((packed / "manifest.json").read_text())["commit"]
    note = record["outcomes"][0]["note"]
    assert "passed" in note and "failed" not in note
    tokens = json.loads((tmp_path / "on-gpu-tokens.json").read_text())
    assert [each["cache"] for each in tokens["rounds"]] == ["PagedCache", "DynamicCache, sdpa"] * 2
    assert all(each["equal"] == 3 for each in tokens["rounds"])
    operations = json.loads((tmp_path / "on-gpu-operations.json").read_text())
    assert {result["status"] for result in operations["results"]} == {"right"}


def test_pack_has_packages_in_folders_of_their_modules(packed):
    assert (packed / "packages/some_engine/some_engine.py").exists()
    assert (packed / "site/kvcache/__init__.py").exists() and not list(packed.rglob("kvcache-opt"))
    assert (packed / "repo/conftest.py").exists() and not (packed / "repo/benchmarks/results").exists()


def test_pack_rejects_sizes_and_names(wheel, tmp_path):
    with pytest.raises(pack.PackError, match=r"at most 0.1 MB, got \d+\.\d; before compression: .*site \d"):
        pack.write(tmp_path / "suite.tar.gz", wheel, [], 0.1, with_packages=False)
    assert not (tmp_path / "suite.tar.gz").exists()
    with pytest.raises(pack.PackError, match="ends in .tar.xz or .tar.gz, got suite.zip"):
        pack.write(tmp_path / "suite.zip", wheel, [], 64)
    with pytest.raises(pack.PackError, match="a wheel of kvcache, got torch-2-cp312-x.whl"):
        pack.read_python(Path("torch-2-cp312-x.whl"))
    other = tmp_path / "kvcache-0.1.0-cp399-cp399-linux_x86_64.whl"
    other.write_bytes(wheel.read_bytes())
    with pytest.raises(pack.PackError, match="an extension for the Python of kvcache-0.1.0-cp399"):
        pack.write(tmp_path / "suite.tar.gz", other, [], 64, with_packages=False)
    assert pack.read_python(Path("kvcache-0.1.0-cp312-cp312-linux_x86_64.whl")) == "3.12"


def test_unused_libraries_keep_their_symbols(tmp_path):
    libraries = {
        "libz3-0.so": "int Z3_used(void) { return 7; } int Z3_other(void) { return 1; }",
        "libuser-0.so": "int Z3_used(void); int f(void) { return Z3_used(); } int g(void) { return 3; }",
    }
    for name, text in libraries.items():
        command = ["cc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-x", "c", "-", "-o", tmp_path / name]
        more = [] if "z3" in name else ["-x", "none", tmp_path / "libz3-0.so", f"-Wl,-rpath,{tmp_path}"]
        subprocess.run([*command, *more], input=text, text=True, check=True)
    before = (tmp_path / "libuser-0.so").read_bytes()
    pack.replace_unused(tmp_path)
    assert (tmp_path / "libuser-0.so").read_bytes() == before
    program = "import ctypes, os, sys; f = ctypes.CDLL(sys.argv[1], os.RTLD_NOW); print(f.g(), flush=True); f.f()"
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "libuser-0.so"], capture_output=True, text=True)
    assert done.stdout == "3\n" and done.returncode < 0
    assert "Z3_used" in pack._list_symbols(tmp_path / "libz3-0.so", "--defined-only")
    assert "Z3_other" not in pack._list_symbols(tmp_path / "libz3-0.so", "--defined-only")


def test_pack_for_another_python_says_so(packed, tmp_path):
    manifest = packed / "manifest.json"
    before = manifest.read_text()
    manifest.write_text(json.dumps(json.loads(before) | {"python": "3.99"}))
    try:
        done, record = run(packed / "run.py", tmp_path, *SMALL)
    finally:
        manifest.write_text(before)
    assert (done.returncode, record) == (1, None)
    assert "the pack is for Python 3.99, got 3." in done.stderr


@pytest.mark.parametrize(
    "arguments, message",
    [(["--only", "kernels,none"], "unknown stage 'none'; known are kernels, vllm"),
     (["--minutes", "0"], "expects '--minutes' to be positive, got 0.0")],
)
def test_suite_names_wrong_arguments(arguments, message, tmp_path):
    done, record = run(ROOT / "benchmarks/gpu_suite/run.py", tmp_path, *arguments)
    assert (done.returncode, record) == (2, None) and message in done.stderr


# --- Limits ----------------------------------------------------------------------------------------------------------

SLEEP = "import subprocess, sys, time; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "


def run_stages(monkeypatch, folder, programs, minutes):
    """Runs stages that are programs of Python; returns their outcomes."""
    made = [
        Stage(name, 1.0, needs, lambda paths, options, seconds, text=text: ["-c", text])
        for name, (needs, text) in programs.items()
    ]
    monkeypatch.setattr(stages, "STAGES", made)
    paths = Paths(ROOT, (), folder)
    return stages.run_all(paths, Options(minutes, "cpu", True, 1), [], Record("suite"))


def has_ended(pid, seconds=10):
    """Waits until a process has ended; one that nothing waits for is a zombie."""
    status = Path(f"/proc/{pid}/status")
    for _ in range(10 * seconds):
        if not status.exists() or "State:\tZ" in status.read_text():
            return True
        time.sleep(0.1)
    return False


def test_stage_ends_at_its_limit_with_its_children(monkeypatch, tmp_path):
    programs = {
        "slow": ((), SLEEP + "print(child.pid, flush=True); time.sleep(60)"),
        "wrong": ((), "print('1 passed, 2 failed'); raise SystemExit(3)"),
        "absent": (("no_such_module",), ""),
        "right": ((), "print('5 passed, 1 skipped in 2 s')"),
    }
    slow, wrong, absent, right = run_stages(monkeypatch, tmp_path, programs, 8 / 60)
    assert slow.status == "out of time" and slow.seconds < 6
    assert has_ended(int(slow.output.split()[0]))
    assert (wrong.status, wrong.note) == ("failed", "1 passed, 2 failed") and "2 failed" in wrong.output
    assert absent == Outcome("absent", "absent", 0.0, "needs no_such_module")
    assert (right.status, right.note, right.output) == ("passed", "5 passed, 1 skipped", "")
    saved = json.loads((tmp_path / "on-gpu.json").read_text())
    assert [row[:2] for row in saved["tables"]["stages"]["rows"]] == [
        ["slow", "out of time"], ["wrong", "failed"], ["absent", "absent"], ["right", "passed"]
    ]


@pytest.mark.parametrize(("words", "status", "text"), [
    (["--help"], 0, "usage: scripts/on-gpu pack"), (["go"], 1, "unknown command 'go'"),
    (["run", "none.tar.xz"], 1, "run needs the file of a pack"),
])
def test_commands_of_the_script(words, status, text):
    result = subprocess.run([ROOT / "scripts/on-gpu", *words], capture_output=True, text=True)
    assert result.returncode == status and text in result.stdout + result.stderr
