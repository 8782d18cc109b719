"""Tests of ``python -m kvcache``: what an installation can do, and the demo."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import kvcache
import kvcache.__main__ as program
from kvcache import demo


def test_description():
    done = subprocess.run(
        [sys.executable, "-m", "kvcache"], capture_output=True, text=True, check=True
    )
    found = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if "jit" not in line)
    assert found["kvcache"].startswith(f"{kvcache.__version__}, ")
    assert found["chips"].split(", ") == list(kvcache.chips())
    assert found["apache-tvm-ffi"] == version("apache-tvm-ffi")
    assert found["ptxas"].endswith("/ptxas") and found["kvcache-opt"].endswith("/kvcache-opt")


def test_missing_tools_are_printed(monkeypatch, capsys):
    def find_tool(name):
        raise kvcache.ToolchainError("none")

    monkeypatch.setattr(program.toolchain, "find_tool", find_tool)
    monkeypatch.setattr(program, "_FRAMEWORKS", ("no-such-framework",))
    assert program.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert "ptxas              not found: pip install kvcache[cuda]" in lines
    assert "no-such-framework  not installed" in lines


@pytest.mark.parametrize("gpus", [0, 2])
def test_devices(monkeypatch, capsys, tmp_path, gpus):
    for gpu in range(gpus):
        (tmp_path / f"0000:0{gpu}").mkdir()
        (tmp_path / f"0000:0{gpu}" / "information").write_text("Model: \t NVIDIA H200\nIRQ: 1\n")
    monkeypatch.setattr(program, "_DEVICES", tmp_path)
    program.main()
    wanted = "NVIDIA H200, NVIDIA H200" if gpus else "none of NVIDIA's driver"
    assert capsys.readouterr().out.splitlines()[-1].split(maxsplit=1) == ["devices", wanted]


def test_report_has_versions_and_no_paths(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("KVCACHE_CACHE", str(tmp_path))
    monkeypatch.setenv("KVCACHE_TUNING", "off")
    (tmp_path / "version").write_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 2025\n"
    )
    monkeypatch.setattr(program, "_DRIVER", tmp_path / "version")
    assert program.main(["report"]) == 0
    text = capsys.readouterr().out
    found = dict(line.split(maxsplit=1) for line in text.splitlines())
    assert found["LLVM"].startswith("22.1.") and found["driver"] == "580.95.05"
    assert found["kvcache"].startswith(f"{kvcache.__version__}, ")
    assert found["numpy"] == version("numpy") and found["ptxas"] == "found"
    assert found["KVCACHE_CACHE"] == "set to a path" and found["KVCACHE_TUNING"] == "off"
    assert "/" not in text.replace("GNU/Linux", "")


@pytest.mark.long
def test_demo(capsys, tmp_path):
    assert program.main(["demo", "--output", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert text.count("agrees with NumPy") == 2 and "lines of PTX" in text
    assert (tmp_path / "pages.svg").read_text().startswith("<svg")


@pytest.mark.long
def test_demo_finds_wrong_results(monkeypatch, capsys, tmp_path):
    attend = demo._attend_by_numpy
    monkeypatch.setattr(demo, "_attend_by_numpy", lambda *arrays: attend(*arrays) + 0.1)
    assert program.main(["demo", "--output", str(tmp_path)]) == 1
    assert "DIFFERS from NumPy" in capsys.readouterr().out


def test_wrong_arguments(capsys, tmp_path):
    assert program.main(["demo", "--output", str(tmp_path / "missing")]) == 2
    assert "expects '--output' to be a folder" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        program.main(["repot"])
    assert "invalid choice: 'repot'" in capsys.readouterr().err
