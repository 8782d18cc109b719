"""Tests that workflows, hooks and pages for contributors name scripts and options that exist."""

import functools
import itertools
import os
import re
import subprocess
import textwrap

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


@pytest.mark.parametrize(
    "tag, files, refused",
    [
        ("v0.1.0", ["kvcache-0.1.0-cp312-abi3-manylinux_2_36_x86_64.whl", "kvcache-0.1.0.tar.gz"], None),
        ("v0.2.0", ["kvcache-0.1.0.tar.gz"], "kvcache-0.1.0.tar.gz"),
        ("v0.1", ["kvcache-0.1.0-cp311-cp311-manylinux_2_36_x86_64.whl"], "kvcache-0.1.0-cp311"),
        ("v0.1.0", ["kvcache-0.1.0.tar.gz", "other-0.1.0.tar.gz"], "other-0.1.0.tar.gz"),
    ],
)
def test_release_refuses_files_of_another_version(tmp_path, tag, files, refused):
    text = (ROOT / ".github/workflows/release.yml").read_text()
    command = textwrap.dedent(re.search(r"- run: \|\n(.*?)\n      - uses", text, re.DOTALL)[1])
    (tmp_path / "dist").mkdir()
    for name in files:
        (tmp_path / "dist" / name).touch()
    environment = {**os.environ, "GITHUB_REF_NAME": tag}
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", command], cwd=tmp_path, env=environment,
                          capture_output=True, text=True)
    assert bool(done.returncode) == bool(refused)
    if refused:
        assert f"error: expects files of {tag[1:]}, got dist/{refused}" in done.stdout


def test_jobs_can_write_only_what_they_publish():
    for path in FILES:
        if path.parent.name == "workflows":
            text = path.read_text()
            assert "\npermissions:\n  contents: read\n" in text
            writes = set(re.findall(r"(\S+): write", text))
            assert writes <= ({"pages", "id-token"} if path.stem in ("docs", "release") else set())


def read_workflows():
    return {path.name: path.read_text() for path in FILES if path.parent.name == "workflows"}


def test_caches_have_keys_of_their_own_and_a_common_prefix():
    """Jobs that write one key leave the cache of only one of them."""
    keys = []
    for text in read_workflows().values():
        matrix = {name: values.split(", ") for name, values in re.findall(r"(\w+): \[(.*)\]", text)}
        for key, prefix in re.findall(r" key: (.*)\n +restore-keys: (.*)\n", text):
            assert key.startswith(prefix) and re.fullmatch(r"ccache-(12|\$\{\{ matrix\.debian \}\})-", prefix)
            form = re.sub(r"\$\{\{ matrix\.\w+ \}\}", "{}", key.replace("{{ github.sha }}", ""))
            values = itertools.product(*(matrix[name] for name in re.findall(r"matrix\.(\w+)", key)))
            keys += [form.format(*each) for each in values]
    assert len(keys) >= 7 and len(set(keys)) == len(keys)


def test_release_needs_tests_and_a_fixed_publisher():
    workflows = read_workflows()
    for name in re.findall(r"uses: \./\.github/workflows/(\S+)", workflows["release.yml"]):
        assert "\n  workflow_call:\n" in workflows[name]
    assert "\n  check:\n    uses: ./.github/workflows/check.yml\n" in workflows["release.yml"]
    assert "\n  publish:\n    needs: [check, wheels]\n" in workflows["release.yml"]
    for name, text in workflows.items():
        for action, reference in re.findall(r"uses: ([\w/-]+)@(\S+)", text):
            assert action.startswith("actions/") or re.fullmatch(r"[0-9a-f]{40}", reference), f"{name}: {action}"
