"""Passes on modules of others: without a target, of another vendor, nested, or with our
attributes in another form. Each ends in IR or an error, never in a crash."""

import re
import subprocess

import pytest
from places import OPT, ROOT

MODULES = ROOT / "test" / "Pipelines" / "Inputs" / "foreign-modules.mlir"


def list_passes():
    listed = subprocess.run([OPT, "--help"], capture_output=True, text=True, check=True)
    return sorted(set(re.findall(r"^ +--((?:convert-)?kvcache-[\w-]+)", listed.stdout, re.MULTILINE)))


def run(*options):
    return subprocess.run(
        [OPT, MODULES, "--split-input-file", "-o", "/dev/null", *options],
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_foreign_modules_are_valid():
    assert run().returncode == 0


def test_passes_are_listed():
    listed = list_passes()
    assert len(listed) > 40
    assert {"kvcache-serialize-kernels", "kvcache-to-ptx", "convert-kvcache-to-nvvm"} <= {*listed}


@pytest.mark.parametrize("name", list_passes())
def test_pass_on_foreign_modules_ends_without_crash(name):
    result = run(f"--{name}")
    assert result.returncode in (0, 1), result.stderr[-300:]
    assert (result.returncode == 1) == (" error: " in result.stderr), result.stderr[-300:]
    assert "UNKNOWN SSA VALUE" not in result.stderr
    assert "explicitly marked illegal" not in result.stderr


def test_serialization_without_nvidia_target_is_an_error():
    errors = run("--kvcache-serialize-kernels").stderr
    assert "expects a target, which 'kvcache-attach-targets=chip=sm_90a' sets" in errors
    assert "expects targets to be #nvvm.target, got #rocdl.target<chip" in errors
    assert "expects 'kvcache.clone_of' to name another gpu.module, got 'nowhere'" in errors
    assert "expects 'kvcache.clone_of' to name another gpu.module, got 'cycle_a'" in errors
    assert "expects 'kvcache.clone_of' to name another gpu.module, got 'chain_b'" in errors
    assert "give the name and type of each argument, got [1]" in errors
