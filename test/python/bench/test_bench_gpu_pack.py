"""The benchmarks on a GPU: packs, reports and the command."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict

import fake_cuda
import pytest
from gpu import kernels, pack, report, tools
from gpu.cuda_device import CudaDevice, Facts
from gpu.works import WORKS
from measure import Result
from places import ROOT

# --- Packs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("missing", "package"), [("cuda", "cuda-bindings"), ("numpy", "numpy")])
def test_a_pack_is_complete_and_runs_by_itself(packed, tmp_path, missing, package):
    """Without a GPU as far as the message that there is none, and without anything of this repository."""
    folder = shutil.copytree(packed.folder, tmp_path / "elsewhere")
    saved = json.loads((folder / kernels.MANIFEST).read_text())["images"]
    assert [json.loads(json.dumps(asdict(image))) for image in kernels.load(folder).images] == saved
    assert [image.name for image in packed.images] == [image["name"] for image in saved]
    assert {entry["contender"] for entry in packed.missing} == {kernels.PEER}
    blocked = ("ml_dtypes", "kvcache", missing)
    program = (
        f"import runpy, sys; sys.modules.update(dict.fromkeys({blocked})); sys.argv = ['run.py']; "
        "runpy.run_path('run.py', run_name='__main__')"
    )
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: the package {package} is missing")


def test_what_is_no_pack(tmp_path):
    with pytest.raises(kernels.PackError, match="not a pack: there is no manifest.json"):
        kernels.load(tmp_path)
    for text, message in (
        ("{", "not the manifest of a pack"), ("{}", "not the manifest of a pack: KeyError"),
        ('{"format": "kvcache-bench-gpu", "version": 9}', "expects version 1 of kvcache-bench-gpu, got 9"),
    ):
        (tmp_path / kernels.MANIFEST).write_text(text)
        with pytest.raises(kernels.PackError, match=message):
            kernels.load(tmp_path)


def test_what_does_not_compile_is_missing_with_the_reason(tmp_path, capsys):
    made = kernels.Pack({}, folder=tmp_path)
    source = tmp_path / "gather.mlir"
    source.write_text("func.func @gather() { unknown.op }")
    pack._add_ours(made, source, "sm_90a")
    pack._add_ours(made, tmp_path / "none.mlir", "sm_90a")
    source.write_text("func.func @gather() { return }")
    pack._add_ours(made, source, "sm_80")
    reasons = [entry["reason"] for entry in made.missing]
    assert "unknown" in reasons[0]
    assert reasons[1] == "none.mlir: No such file or directory"
    assert reasons[2] == "expects one kernel in gather.mlir, got none"
    assert made.find(kernels.OURS, "gather", "sm_80") == reasons[2]
    assert made.find(kernels.OURS, "other", "sm_80") == "the pack has no other for sm_80"
    assert "kvcache, none, sm_90a: " in capsys.readouterr().err


# --- Report ----------------------------------------------------------------------------------------------------------


def results_of(work, **milliseconds):
    results = [Result(work, "full", name, milliseconds=[value], figures={"moved_bytes": 10**9})
               for name, value in milliseconds.items()]
    report.rate(results, 4.8e12)
    return results


@pytest.mark.parametrize(("work", "times", "verdict"), [
    ("gather", {"kvcache": 1.0, "copy": 0.9, "Triton": 1.0}, "met"),
    ("gather", {"kvcache": 1.0, "copy": 0.89, "Triton": 1.0}, "not met"),
    ("gather", {"kvcache": 1.0, "copy": 0.95, "Triton": 0.98}, "not met"),
    ("decode", {"kvcache": 1.0, "copy": 0.5, "Triton": 1.2, "CUDA": 1.0}, "met"),
])
def test_verdicts(work, times, verdict):
    (line,) = report.judge(results_of(work, **times))
    assert line.startswith(f"{verdict}: {work}, full: ")
    assert ("of the copy's" in line) == WORKS[work].is_copy


def test_peaks_are_the_table_s_or_the_clock_s():
    facts = Facts("NVIDIA H200", "", (9, 0), "", 132, 0, 0, 1e12)
    assert report.find_peak(facts) == (4.8e12, "data sheet of H200")
    device = CudaDevice(driver=fake_cuda.FakeDriver(name=b"NVIDIA A100"))
    assert report.find_peak(device.facts) == (1e6 * 2 * 8, "memory clock and bus width")


def test_small_working_sets_are_named():
    results = results_of("gather", copy=1.0)
    assert report.warn_of_cache(results, 10**9 // 4) == []
    assert report.warn_of_cache(results, 10**9)[0].startswith("gather, full: moves 1.0 times the L2 cache")


def test_nothing_is_reported_that_was_not_run():
    results = [Result("gather", "full", "kvcache", "absent", "no code")]
    report.rate(results, 4.8e12)
    assert report.tabulate(results).rows == report.tabulate_full(results).rows == results[0].milliseconds == []
    assert report.list_notes(results) == ["0 results are right", "gather, full, kvcache: absent: no code"]
    assert report.judge(results) == ["not met: gather, full: kvcache has no time: absent: no code"]


def test_a_pack_goes_into_a_folder_that_is_there(tmp_path, capsys):
    with pytest.raises(SystemExit):
        tools.main(["pack", str(tmp_path / "none/pack.tar.gz")])
    assert "expects FILE.tar.gz in a folder that is there, got " in capsys.readouterr().err


@pytest.mark.parametrize(("words", "status", "text"), [
    (["--help"], 0, "usage: scripts/bench-gpu pack"), (["go"], 1, "unknown command 'go'"),
    (["run", "none.tar.gz"], 1, "run needs the file of a pack"),
])
def test_the_script_s_commands(words, status, text):
    result = subprocess.run([ROOT / "scripts/bench-gpu", *words], capture_output=True, text=True)
    assert result.returncode == status
    assert text in result.stdout + result.stderr
