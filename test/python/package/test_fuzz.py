"""Tests of the fuzzers: a short run from fixed seeds, and earlier findings."""

import json
import re
import subprocess
import sys

import pytest
from places import BUILD, ROOT

FUZZ = ROOT / "test" / "fuzz"
sys.path.append(str(FUZZ))

import fuzz  # noqa: E402
from check_programs import check_module  # noqa: E402
from draw_options import RULE  # noqa: E402


@pytest.mark.parametrize("seed", range(4))
def test_programs_agree_on_all_targets(seed):
    found = [(str(variant), program, error) for variant, program, error in check_module(seed, 3)]
    assert found == []


@pytest.mark.slow
def test_mutants_end_in_diagnostics(tmp_path):
    files = sorted((ROOT / "test" / "Transforms").rglob("*.mlir"))
    command = [BUILD / "test" / "fuzz" / "kvcache-mutate", "--seed=1", "--count=500"]
    # Four kernels of attention in one file took more than 10 seconds on a slow machine.
    command += ["--patience=30", f"--known={FUZZ / 'known.txt'}", f"--output={tmp_path}"]
    result = subprocess.run([*command, *files], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    said = json.loads(result.stdout)
    assert said["mutants"] == 500 and said["parsed"] > 100 and said["passed"] > 60


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


@pytest.mark.parametrize(
    ("error", "is_rule"),
    [
        ("'kvcache.append' op expects keys of f32", True),
        ("'kvcache.copy_pages' op attribute 'block_threads' failed", True),
        ("'gpu.func' op has 300000 bytes of shared memory", True),
        ("'kvcache.copy' op expects a view", False),
        ("'kvcache.async_load_tile' op expects a tile in shared memory", False),
        ("'memref.view' op expects shared memory", False),
    ],
)
def test_options_may_only_break_rules_of_drawn_ops(error, is_rule):
    assert bool(RULE.search(error)) == is_rule


def draw_with(monkeypatch, tmp_path, script):
    """Fuzzes options for a moment, with a shell script in place of the interpreter."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(fuzz.sys, "executable", str(program))
    monkeypatch.setattr(fuzz, "FINDINGS", tmp_path / "findings")
    monkeypatch.setattr(fuzz, "TOTALS", tmp_path / "totals.json")
    return fuzz.draw_options(5, 0.05, fuzz.Totals())


def test_options_that_never_begin_end_the_fuzzer(monkeypatch, tmp_path):
    with pytest.raises(SystemExit, match="ended by status 1 before its first seed:\nno module named kvcache"):
        draw_with(monkeypatch, tmp_path, "echo no module named kvcache >&2; exit 1")
    assert not (tmp_path / "findings").exists()


def test_finding_of_options_has_the_errors_of_its_process(monkeypatch, tmp_path):
    script = "printf '5 '; echo Stack dump >&2; sleep 0.1; kill -ABRT $$"
    assert draw_with(monkeypatch, tmp_path, script) == (1, 1)
    (finding,) = (tmp_path / "findings").iterdir()
    assert (finding.name, finding.read_text()) == ("options-5.txt", "ended by status -6\nStack dump\n")
