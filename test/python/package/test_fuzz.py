"""Tests of the fuzzers: a short run from fixed seeds, and earlier findings."""

import json
import re
import subprocess
import sys

import pytest
from places import BUILD, ROOT

FUZZ = ROOT / "test" / "fuzz"
sys.path.append(str(FUZZ))

from check_programs import check_module  # noqa: E402


@pytest.mark.parametrize("seed", range(4))
def test_programs_agree_on_all_targets(seed):
    found = [(str(variant), program, error) for variant, program, error in check_module(seed, 3)]
    assert found == []


def test_mutants_end_in_diagnostics(tmp_path):
    files = sorted((ROOT / "test" / "Transforms").rglob("*.mlir"))
    command = [BUILD / "test" / "fuzz" / "kvcache-mutate", "--seed=1", "--count=1500"]
    command += [f"--known={FUZZ / 'known.txt'}", f"--output={tmp_path}"]
    result = subprocess.run([*command, *files], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    said = json.loads(result.stdout)
    assert said["mutants"] == 1500 and said["parsed"] > 300 and said["passed"] > 200


def findings(pattern):
    return [pytest.param(p, id=p.name) for p in sorted((FUZZ / "findings").glob(pattern))]


@pytest.mark.parametrize("path", findings("*.mlir"))
def test_mutants_that_were_found_end_in_diagnostics(path):
    """The first lines of findings name the passes and the status."""
    passes = re.search(r"^// passes: (.*)$", path.read_text(), re.MULTILINE)[1]
    command = [BUILD / "bin" / "kvcache-opt", path, f"--pass-pipeline=builtin.module({passes})"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode in (0, 1), result.stderr
    assert result.returncode == 0 or "error:" in result.stderr
