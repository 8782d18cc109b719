"""Tests that pip installs our package and its extras beside engines that pin versions."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata

import pytest
from places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OLDEST_AND_NEWEST = {
    "apache-tvm-ffi": ["0.1.11", "0.1.15.post2"],
    "torch": ["2.11.0", "2.15.0"],
    "transformers": ["5.17.0", "5.24.0"],
}
"""The versions that the suites ran with."""

VERSIONS = {name: list(versions) for name, versions in OLDEST_AND_NEWEST.items()}
VERSIONS["torch"] += ["2.14.0", "2.14.1"]
VERSIONS["transformers"] += ["5.19.0", "5.20.2"]
VERSIONS |= {"numpy": ["2.3.5"], "ml_dtypes": ["0.5.4"]}
# The lines of release 0.5.23, whose other requirements are none of ours.
SGLANG = ["apache-tvm-ffi==0.1.11", "numpy", "torch==2.14.1", "transformers==5.19.0"]


def find_name(requirement):
    return re.match(r"[\w-]+", requirement)[0]


def write_wheel(folder, name, version, requirements=(), extras=None):
    """Writes a wheel that has only metadata."""
    stem = f"{name.replace('-', '_')}-{version}"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {line}" for line in requirements]
    for extra, needed in (extras or {}).items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {line}; extra == "{extra}"' for line in needed]
    info = f"{stem}.dist-info"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{info}/METADATA", "\n".join(lines) + "\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """A folder of wheels: ours, those of engines, and the versions that they choose from."""
    folder = tmp_path_factory.mktemp("index")
    write_wheel(folder, "kvcache", "0.1.0", PROJECT["dependencies"], PROJECT["optional-dependencies"])
    for name, versions in VERSIONS.items():
        for version in versions:
            write_wheel(folder, name, version)
    # What vLLM requires of the packages that we require, too.
    vllm = [line for line in metadata.requires("vllm") if find_name(line) in VERSIONS]
    assert {find_name(line) for line in vllm} >= {"apache-tvm-ffi", "torch", "transformers"}
    write_wheel(folder, "vllm", metadata.version("vllm"), vllm)
    write_wheel(folder, "sglang", "0.5.23", SGLANG)
    return folder


def resolve(index, *requirements):
    """The versions that pip chooses; raises if there are none."""
    command = [sys.executable, "-I", "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    command += ["--no-index", "--find-links", str(index), "--report", "-", *requirements]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    chosen = [each["metadata"] for each in json.loads(done.stdout)["install"]]
    return {each["name"]: each["version"] for each in chosen}


@pytest.mark.parametrize("extras", ["torch", "transformers", "vllm", "torch,transformers,vllm"])
def test_vllm_and_extras_have_common_versions(index, extras):
    chosen = resolve(index, f"kvcache[{extras}]", "vllm==0.33.0")
    assert chosen["torch"] == "2.14.0" and chosen["apache-tvm-ffi"] == "0.1.11"


@pytest.mark.parametrize("extras", ["torch", "transformers", "sglang", "torch,transformers,sglang"])
def test_sglang_and_extras_have_common_versions(index, extras):
    chosen = resolve(index, f"kvcache[{extras}]", "sglang")
    assert chosen["torch"] == "2.14.1" and chosen["apache-tvm-ffi"] == "0.1.11"


@pytest.mark.parametrize("end", [0, 1])
def test_tested_versions_are_in_the_bounds(index, end):
    pins = [f"{name}=={versions[end]}" for name, versions in OLDEST_AND_NEWEST.items()]
    assert "kvcache" in resolve(index, "kvcache[torch,transformers]", *pins)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_extra_for_an_engine_names_no_torch(engine):
    names = {find_name(line) for line in PROJECT["optional-dependencies"][engine]}
    assert names == {engine}
