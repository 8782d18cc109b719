"""Tests of ``python -m kvcache``, which prints the abilities of an installation."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import kvcache
import kvcache.__main__ as program


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
