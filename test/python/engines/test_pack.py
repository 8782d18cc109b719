"""Test that the pack for a GPU machine has all of vLLM that a generation without a network needs."""

import json
import os
import subprocess
import sys
import tarfile
import venv
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from gpu_suite import pack
from packaging.requirements import Requirement
from places import ROOT

MACHINE = ("torch", "triton", "transformers", "numpy")
"""The packages of the machine; others come from the pack."""


def list_files(name, seen):
    """The first parts of the files of a package and of its requirements."""
    if name in seen:
        return set()
    seen.add(name)
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return set()
    files = {path.parts[0] for path in found.files or () if path.parts[0] not in ("..", "__pycache__")}
    for text in found.requires or ():
        requirement = Requirement(text)
        extras = requirement.extras or {""}
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            files |= list_files(requirement.name.lower(), seen)
            files |= {file for extra in extras if extra for file in list_extra(requirement.name, extra, seen)}
    return files


def list_extra(name, extra, seen):
    requirements = map(Requirement, distribution(name).requires or ())
    wanted = [each for each in requirements if each.marker and each.marker.evaluate({"extra": extra})]
    return set().union(*(list_files(each.name.lower(), seen) for each in wanted))


def make_machine(folder):
    """Makes an environment with packages of this one, and nothing else."""
    site = Path(distribution("torch").locate_file("."))
    links = folder / "links"
    links.mkdir()
    seen = set()
    for file in set().union(*(list_files(name, seen) for name in MACHINE)):
        if (site / file).exists():
            (links / file).symlink_to(site / file)
    venv.create(folder / "venv")
    python = folder / "venv/bin/python"
    (packages,) = (folder / "venv/lib").glob("python*/site-packages")
    (packages / "links.pth").write_text(str(links))
    return python


@pytest.mark.slow
def test_pack_generates_tokens_without_an_installed_vllm(tmp_path):
    python = make_machine(tmp_path)
    missing = subprocess.run([python, "-I", "-c", "import torch, transformers, vllm"], capture_output=True, text=True)
    assert "No module named 'vllm'" in missing.stderr
    command = [ROOT / "scripts/wheel", "--linked", "--no-build", "--output", tmp_path]
    wheel = Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    path = tmp_path / "suite.tar.gz"
    pack.write(path, wheel, [], 400)
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path)
    assert not list((tmp_path / pack.NAME / "packages/vllm").rglob("*.so"))
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    options = ["--target", "emulator:sm_90a", "--small", "--jobs", "1", "--minutes", "8", "--only", "served-tokens"]
    done = subprocess.run(
        [python, tmp_path / pack.NAME / "run.py", *options, "--results", tmp_path / "results"],
        capture_output=True, text=True, env=environment, timeout=540,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    record = json.loads((tmp_path / "results/on-gpu-served-tokens.json").read_text())
    rows = record["tables"]["served tokens"]["rows"]
    assert [row[:2] for row in rows] == [[batch, name] for batch in (1, 2) for name in ("CUSTOM", "TORCH_SDPA")]
    assert {row[-1] for row in rows} == {"3 of 3"}
    manifest = json.loads((tmp_path / pack.NAME / "manifest.json").read_text())
    assert manifest["python"] == "{}.{}".format(*sys.version_info)
