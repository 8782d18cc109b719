"""Tests that workflows, hooks and pages for contributors name scripts and options that exist."""

import functools
import re
import subprocess

import pytest
from places import ROOT

FILES = sorted(
    path
    for pattern in (".github/**/*.yml", ".github/*.md", ".pre-commit-config.yaml", "SECURITY.md")
    for path in ROOT.glob(pattern)
)
COMMAND = re.compile(r"scripts/([\w-]+)((?: +(?:--[\w-]+|[^\s`|]+))*)")
TESTED_RELEASES = {"12", "13"}
"""The releases of Debian that have LLVM 22."""


@functools.cache
def read_help(script):
    done = subprocess.run(
        [ROOT / "scripts" / script, "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def find_commands():
    for path in FILES:
        for match in COMMAND.finditer(path.read_text()):
            yield pytest.param(*match.groups(), id=f"{path.name}-{match[0]}")


@pytest.mark.parametrize("script, arguments", find_commands())
def test_script_has_the_options_of_a_command(script, arguments):
    text = read_help(script)
    for option in re.findall(r"--[\w-]+", arguments):
        assert re.search(rf"^\s+{option}\b", text, re.MULTILINE), f"scripts/{script} has no {option}"


def test_commands_are_found():
    found = {case.values[0] for case in find_commands()}
    assert {"check", "check-sanitized", "fuzz", "docs", "wheel", "lint", "check-format"} <= found


def test_workflows_run_on_tested_releases():
    text = "".join(path.read_text() for path in FILES if path.parent.name == "workflows")
    images = set(re.findall(r"container: debian:(\d+)", text))
    for releases in re.findall(r"debian: \[(.*)\]", text):
        images |= set(re.findall(r"\d+", releases))
    assert images == TESTED_RELEASES


def test_jobs_can_write_only_what_they_publish():
    for path in FILES:
        if path.parent.name == "workflows":
            text = path.read_text()
            assert "\npermissions:\n  contents: read\n" in text
            writes = set(re.findall(r"(\S+): write", text))
            assert writes <= ({"pages", "id-token"} if path.stem in ("docs", "release") else set())
