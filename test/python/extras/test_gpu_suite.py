"""Tests of scripts/on-gpu: the suite runs whole on the emulator, from a pack as from the repository."""

import json
import os
import re
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from gpu_suite import engine_files, pack, served_tokens, stages
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
    assert {statuses[name] for name in ("kernels", "frameworks", "tokens", "tuner", "operations")} == {"passed"}, done.stdout
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
    path = tmp_path / "suite.tar.gz"
    path.write_text("an earlier pack")
    with pytest.raises(pack.PackError, match=r"at most 0.1 MB, got \d+\.\d; before compression: .*site \d"):
        pack.write(path, wheel, [], 0.1, with_packages=False)
    assert path.read_text() == "an earlier pack" and list(tmp_path.iterdir()) == [path]
    with pytest.raises(pack.PackError, match="ends in .tar.xz or .tar.gz, got suite.zip"):
        pack.write(tmp_path / "suite.zip", wheel, [], 64)
    with pytest.raises(pack.PackError, match="a wheel of kvcache, got torch-2-cp312-x.whl"):
        pack.read_python(Path("torch-2-cp312-x.whl"))
    other = tmp_path / "kvcache-0.1.0-cp399-cp399-linux_x86_64.whl"
    other.write_bytes(wheel.read_bytes())
    with pytest.raises(pack.PackError, match="an extension for the Python of kvcache-0.1.0-cp399"):
        pack.write(tmp_path / "suite.tar.gz", other, [], 64, with_packages=False)


@pytest.mark.parametrize("name, wanted, found", [
    ("cp312-cp312-linux_x86_64", None, "3.12"),
    ("cp311-cp311-manylinux_2_36_x86_64", "3.11", "3.11"),
    ("cp312-abi3-manylinux_2_36_x86_64", None, "3.12"),
    ("cp312-abi3-manylinux_2_36_x86_64", "3.14", "3.14"),
    ("cp311-cp311-linux_x86_64", "3.12", "expects Python 3.11 for .*, got 3.12"),
    ("cp312-abi3-linux_x86_64", "3.11", "expects Python 3.12 or newer for .*, got 3.11"),
    ("cp312-abi3-linux_x86_64", "312", "expects a version of Python such as 3.12, got '312'"),
])  # fmt: skip
def test_python_of_a_pack_is_one_of_its_wheel(name, wanted, found):
    wheel = Path(f"kvcache-0.1.0-{name}.whl")
    if found.startswith("expects"):
        with pytest.raises(pack.PackError, match=found):
            pack.read_python(wheel, wanted)
    else:
        assert pack.read_python(wheel, wanted) == found


def test_xz_packs_have_filters_for_machine_code(tmp_path, wheel, monkeypatch):
    """Other programs read them, too."""
    monkeypatch.setattr(pack, "add_package", lambda folder, wheel: (folder / "site").mkdir(parents=True))
    path = tmp_path / "suite.tar.xz"
    pack.write(path, wheel, [], 64, with_packages=False)
    listed = subprocess.run(["xz", "--list", "--verbose", "--verbose", path], capture_output=True, text=True, check=True)
    assert "--x86 --lzma2=dict=128MiB" in listed.stdout
    names = subprocess.run(["tar", "-tf", path], capture_output=True, text=True, check=True).stdout
    assert "kvcache-on-gpu/manifest.json\n" in names


def test_failed_write_keeps_an_earlier_pack(tmp_path, wheel, monkeypatch):
    monkeypatch.setattr(pack, "add_package", lambda folder, wheel: (folder / "site").mkdir(parents=True))

    def fail(self, folder, name):
        self.addfile(tarfile.TarInfo("some"))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "add", fail)
    for name in ("suite.tar.xz", "suite.tar.gz"):
        path = tmp_path / name
        path.write_text("an earlier pack")
        with pytest.raises(OSError, match="No space left"):
            pack.write(path, wheel, [], 64, with_packages=False)
        assert path.read_text() == "an earlier pack" and not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("wanted, option", [
    (None, "--small"), ("3.11", "--small"), ("3.12", "--stable-abi"), ("3.14", "--stable-abi"),
    ("3.10", "expects '--python' to be 3.11, or 3.12 or newer, got '3.10'"),
    ("312", "expects '--python' to be 3.11, or 3.12 or newer, got '312'"),
])
def test_wheel_of_a_pack_is_for_its_python(monkeypatch, wanted, option):
    def run(command, **_):
        assert command == [str(ROOT / "scripts/wheel"), option]
        return SimpleNamespace(stdout="a.whl\n")

    monkeypatch.setattr(pack.sys, "version_info", (3, 11))
    monkeypatch.setattr(pack.subprocess, "run", run)
    if option.startswith("--"):
        assert pack.make_wheel(wanted) == Path("a.whl")
    else:
        with pytest.raises(pack.PackError) as error:
            pack.make_wheel(wanted)
        assert str(error.value) == option


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
     (["--minutes", "0"], "expects '--minutes' to be positive and finite, got 0.0"),
     (["--minutes", "inf"], "expects '--minutes' to be positive and finite, got inf"),
     (["--results", "/dev/null/results"], "expects '--results' to be a folder, got '/dev/null/results': Not a directory")],
)
def test_suite_names_wrong_arguments(arguments, message, tmp_path):
    done, record = run(ROOT / "benchmarks/gpu_suite/run.py", tmp_path, *arguments)
    assert (done.returncode, record) == (2, None) and message in done.stderr


# --- Files of vLLM --------------------------------------------------------------------------------------------------


def test_absent_packages_import_and_raise_when_used(tmp_path):
    (tmp_path / "vllm/vllm").mkdir(parents=True)
    engine_files.add_stubs(tmp_path)
    program = """
import aiohttp, fastapi.responses, openai_harmony
from partial_json_parser.core.options import Allow
class Response(fastapi.responses.JSONResponse): pass
names = {openai_harmony.ReasoningEffort.HIGH: "high"}
assert issubclass(Response, fastapi.responses.JSONResponse) and isinstance(Allow, type)
assert not hasattr(aiohttp, "__version__")
for call in (Response, openai_harmony.load_harmony_encoding, Allow.ALL):
    try:
        call()
    except RuntimeError as error:
        print(error)
"""
    folders = [ROOT / "benchmarks", *(each for each in tmp_path.iterdir() if each.name != "vllm")]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))})  # fmt: skip
    assert done.stdout.splitlines() == [
        "__main__.Response is not in the pack: install __main__",
        "openai_harmony.load_harmony_encoding is not in the pack: install openai_harmony",
        "partial_json_parser.core.options.Allow.ALL is not in the pack: install partial_json_parser",
    ]


def test_pack_has_vllms_python_files_only():
    names = ["vllm/a.py", "vllm/_C.abi3.so", "vllm/x.json", "vllm-0.33.0.dist-info/METADATA",
             "vllm-0.33.0.dist-info/RECORD", "vllm-0.33.0.dist-info/entry_points.txt"]  # fmt: skip
    assert [name for name in names if engine_files.is_needed("vllm", name)] == [names[0], names[3], names[5]]
    assert all(engine_files.is_needed("pydantic_core", name) for name in names)


def test_operators_in_place_of_compiled_ones():
    torch = pytest.importorskip("torch")
    from gpu_suite import operators  # noqa: F401

    ops = torch.ops._C
    rows = torch.randn(3, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    out = torch.empty(3, 4, dtype=torch.float64)
    ops.silu_and_mul(out, rows)
    gate, up = rows[:, :4].numpy(), rows[:, 4:].numpy()
    np.testing.assert_allclose(out.numpy(), gate / (1 + np.exp(-gate)) * up)
    weight, rest = torch.arange(1.0, 9), torch.ones(3, 8)
    values = rows.float()
    for given in (weight, None):
        residual, result = rest.clone(), values.clone()
        ops.fused_add_rms_norm(result, residual, given, 1e-5)
        total = values.double().numpy() + 1
        normal = total / np.sqrt((total**2).mean(-1, keepdims=True) + 1e-5)
        wanted = normal if given is None else normal * given.numpy()
        np.testing.assert_allclose(residual.numpy(), total, rtol=1e-6)
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-5)
        out = torch.empty(3, 8)
        ops.rms_norm(out, residual, given, 1e-5)
        np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-5)


@pytest.mark.parametrize("origin, wanted", [
    (None, {}), ("/x/_C_stable_libtorch.abi3.so", {}),
    ("/x/_C_stable_libtorch.py", {"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY", "custom_ops": ["none"]}),
])  # fmt: skip
def test_compilation_depends_on_compiled_operators(monkeypatch, origin, wanted):
    spec = origin and SimpleNamespace(origin=origin)
    monkeypatch.setattr(served_tokens, "find_spec", {"vllm._C_stable_libtorch": spec}.get)
    assert served_tokens.choose_compilation() == wanted


def test_served_tokens_fail_without_those_of_a_backend(monkeypatch, tmp_path, capsys):
    turns = {"CUSTOM": None, "TORCH_SDPA": [{"batch": 1, "seconds": 1.0, "tokens": [[1, 2, 3]]}] * 2}
    monkeypatch.setattr(served_tokens, "run_turn", lambda options, backend, *_: turns[backend])
    monkeypatch.setattr(served_tokens, "make_config", lambda *_, **__: SimpleNamespace(save_pretrained=str))
    with pytest.raises(SystemExit, match="expects tokens of each backend, got none of CUSTOM"):
        served_tokens.main(["--target", "emulator:sm_90a", "--small", "--seconds", "9"])
    assert "TORCH_SDPA" in capsys.readouterr().out


@pytest.fixture
def clock(monkeypatch):
    """A clock that only tests advance."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock


def test_turns_share_the_time_that_is_left(monkeypatch, clock):
    """A turn that needs all its time leaves the others theirs; one that needs less leaves them more."""
    given, taken = [], iter([20.0, 5.0, 27.5, 100.0])

    def run_turn(options, backend, folder, seconds):
        given.append((backend, seconds))
        clock.now += next(taken)
        return [{"batch": batch, "seconds": 1.0, "tokens": [[1] * 64]} for batch in served_tokens.WORK.batches]

    monkeypatch.setattr(served_tokens, "run_turn", run_turn)
    monkeypatch.setattr(served_tokens, "make_config", lambda *_, **__: SimpleNamespace(save_pretrained=str))
    served_tokens.main(["--target", "emulator:sm_90a", "--seconds", "80"])
    assert given == [("CUSTOM", 20.0), ("TORCH_SDPA", 20.0), ("CUSTOM", 27.5), ("TORCH_SDPA", 27.5)]


@pytest.mark.parametrize("seconds, rounds", [
    (100, {1: 2, 2: 2}), (9, {1: 2, 2: 1}), (7, {1: 2}), (4, {1: 2}), (0, {1: 1}),
])
def test_record_of_tokens_has_the_batches_of_its_time(monkeypatch, clock, tmp_path, seconds, rounds):
    """A round of both takes two seconds; the record is there when the next batch begins."""
    torch = pytest.importorskip("torch")
    import kvcache.transformers
    from gpu_suite import tokens

    path, saved = tmp_path / "tokens.json", []

    class Contender:
        def __init__(self, *_):
            saved.append(json.loads(path.read_text())["rounds"][-1]["batch"] if path.exists() else 0)
            self.seconds = []

        def run(self, prompts, new):
            clock.now += 1
            self.seconds.append(1.0)
            self.tokens = torch.cat([prompts, torch.ones(len(prompts), new, dtype=torch.int64)], 1)

    monkeypatch.setattr(tokens, "Contender", Contender)
    monkeypatch.setattr(tokens, "make_model", lambda *_: None)
    monkeypatch.setattr(kvcache.transformers, "PagedCache", lambda *_, **__: None)
    monkeypatch.setattr(kvcache.transformers, "install", lambda: None)
    tokens.main(["--target", "emulator:sm_90a", "--small", "--seconds", str(seconds), "--json", str(path)])
    found = json.loads(path.read_text())["rounds"]
    assert {each["batch"]: len(each["seconds"]) for each in found} == rounds
    assert saved == [0, 0, 1, 1]


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


def test_group_ends_while_its_leader_is_a_zombie(monkeypatch, tmp_path):
    """Its number is that of the group then, and of no other one."""
    states, kill = [], os.killpg

    def kill_group(group, signal):
        states.append(Path(f"/proc/{group}/status").read_text().partition("State:\t")[2][0])
        kill(group, signal)

    monkeypatch.setattr(os, "killpg", kill_group)
    programs = {
        "right": ((), SLEEP + "print(child.pid, '1 passed')"),
        "wrong": ((), SLEEP + "print(child.pid); raise SystemExit(1)"),
    }
    right, wrong = run_stages(monkeypatch, tmp_path, programs, 1)
    assert states == ["Z", "Z"] and (right.status, wrong.status) == ("passed", "failed")
    assert has_ended(int(wrong.output)) and has_ended(int((tmp_path / "on-gpu-right.log").read_text().split()[0]))


def test_names_of_stages_are_one_word():
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", stage.name) for stage in stages.STAGES)


@pytest.mark.parametrize(("words", "status", "text"), [
    (["--help"], 0, "usage: scripts/on-gpu pack"), (["go"], 1, "unknown command 'go'"),
    (["run", "none.tar.xz"], 1, "run needs the file of a pack"),
])
def test_commands_of_the_script(words, status, text):
    result = subprocess.run([ROOT / "scripts/on-gpu", *words], capture_output=True, text=True)
    assert result.returncode == status and text in result.stdout + result.stderr
