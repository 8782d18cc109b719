"""Tests of scripts in a folder of their own, where the programs that they call are stand-ins."""

import os
import re
import shutil
import subprocess
import sys
import tarfile

import pytest
from places import BUILD, ROOT

# Appends its own name and its arguments to a file, one line a call.
STAND_IN = '#!/usr/bin/env bash\nprintf "%s\\n" "$(basename "$0") $*" >>"$CALLS"\n'


@pytest.fixture
def clone(tmp_path):
    """A folder with scripts/setup.sh and the environment of the build."""
    for name in ("requirements.txt", "scripts/setup.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "build").mkdir()
    (tmp_path / "build/venv").symlink_to((BUILD / "venv").resolve())
    return tmp_path


def add_stand_in(path, more=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(STAND_IN + more)
    path.chmod(0o755)


def run(clone, script, *arguments, **environment):
    """Runs a script of the repository in the clone; returns its result and the calls of stand-ins."""
    shutil.copy(ROOT / "scripts" / script, clone / "scripts")
    calls = clone / "calls"
    calls.write_text("")
    path = f"{clone / 'bin'}:{os.environ['PATH']}"
    environment = os.environ | {"CALLS": str(calls), "PATH": path} | environment
    command = [clone / "scripts" / script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    return done, calls.read_text().splitlines()


@pytest.mark.skipif(os.geteuid() != 0, reason="scripts/check-images needs root")
def test_check_images_keeps_wheels_and_mounts(clone):
    """The wheel of a run is in a folder of its own, which is the context of the lines."""
    add_stand_in(clone / "bin/debootstrap")
    add_stand_in(clone / "scripts/wheel", 'mkdir -p "$3"\ntouch "$3/kvcache-0.1.0.whl"\n')
    (clone / "scripts/images.py").write_text(
        "import pathlib, sys\n"
        "folder = pathlib.Path(sys.argv[sys.argv.index('--context') + 1])\n"
        "print(*sys.argv[1:], *(str(path.relative_to(folder)) for path in folder.rglob('*.whl')))\n"
    )
    (clone / "README.md").write_text("```python\nimport kvcache\n```\n")
    mine = clone / "build/dist/kvcache-0.0.9.whl"
    mine.parent.mkdir()
    mine.touch()
    done, calls = run(clone, "check-images")
    assert done.returncode == 0, done.stderr
    assert mine.exists() and not list((clone / "build/images").iterdir())
    assert [call.split()[:2] for call in calls] == [["wheel", "--small"], ["wheel", "--stable-abi"]]
    assert done.stdout.count("python -m kvcache demo") == done.stdout.count("import kvcache") == 3
    assert done.stdout.count(" build/dist/kvcache-0.1.0.whl\n") == 3
    assert re.findall(r"--build-arg BASE=(\S+) --build-arg PYTHON=cp312", done.stdout) == ["debian:13-slim", "ubuntu:24.04"]


# --- scripts/on-gpu --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, message", [
    ([], "the following arguments are required: FILE.tar.xz"),
    (["suite.tar.xz", "--limit", "large"], "argument --limit: invalid float value: 'large'"),
    (["suite.tar.xz", "--pythn", "3.12"], "unrecognized arguments: --pythn 3.12"),
    (["suite.zip"], "expects a name that ends in .tar.xz or .tar.gz, got suite.zip"),
    (["suite.tar.xz", "--python", "3.9"], ", or 3.12 or newer, got '3.9'"),
    (["none/suite.tar.xz"], "expects a file in a folder that is there, got 'none/suite.tar.xz'"),
    (["--help"], "usage: scripts/on-gpu pack"),
    (["suite.tar.xz", "--help"], "usage: scripts/on-gpu pack"),
])
def test_pack_checks_its_arguments_before_it_makes_a_wheel(clone, arguments, message):
    add_stand_in(clone / "scripts/wheel")
    shutil.copytree(ROOT / "benchmarks", clone / "benchmarks", ignore=shutil.ignore_patterns("results", "baselines"))
    done, calls = run(clone, "on-gpu", "pack", *arguments)
    assert message in done.stdout + done.stderr and not calls
    assert done.returncode == 0 if "--help" in arguments else done.returncode in (1, 2)


def test_pack_makes_its_wheel(clone):
    add_stand_in(clone / "scripts/wheel", "echo other.whl\n")
    shutil.copytree(ROOT / "benchmarks", clone / "benchmarks", ignore=shutil.ignore_patterns("results", "baselines"))
    done, calls = run(clone, "on-gpu", "pack", str(clone / "suite.tar.xz"), "--python", "3.99")
    assert calls == ["wheel --stable-abi"] and "expects a wheel of kvcache, got other.whl" in done.stderr


@pytest.fixture
def suite(tmp_path):
    """A pack whose suite prints its arguments."""
    (tmp_path / "run.py").write_text("import sys\nprint(sys.argv[1:])\n")
    path = tmp_path / "suite.tar.xz"
    with tarfile.open(path, "w:xz") as archive:
        archive.add(tmp_path / "run.py", "kvcache-on-gpu/run.py")
    return path


def test_run_unpacks_a_suite_without_other_programs(clone, suite):
    for name in ("tar", "xz"):
        add_stand_in(clone / "bin" / name, "exit 1\n")
    done, calls = run(clone, "on-gpu", "run", str(suite), "--minutes", "3", PYTHON=sys.executable)
    assert done.returncode == 0 and not calls
    assert done.stdout == f"{['--results', f'{clone}/benchmarks/results', '--minutes', '3']}\n"


def test_run_names_a_python_without_lzma(clone, suite):
    add_stand_in(clone / "bin/python3.99", "exit 1\n")
    done, calls = run(clone, "on-gpu", "run", str(suite), PYTHON="python3.99")
    assert done.returncode == 1 and len(calls) == 1
    assert f"error: python3.99 has no module lzma, which unpacks {suite}" in done.stderr
    done, _ = run(clone, "on-gpu", "run", str(suite), PYTHON="python3.98")
    assert done.returncode == 1 and "error: no program 'python3.98'\n" in done.stderr


@pytest.mark.parametrize("contents, message", [
    ("cut", "cannot unpack {}: EOFError: Compressed file ended before"),
    ("text", "cannot unpack {}: '{}' is not a tar archive"),
    ("other files", "{} is not a pack of scripts/on-gpu"),
])  # fmt: skip
def test_run_names_a_file_that_is_no_pack(clone, suite, contents, message):
    if contents == "cut":
        with tarfile.open(suite, "w:xz") as archive:
            archive.add(os.path.realpath(sys.executable), "kvcache-on-gpu/python")
        suite.write_bytes(suite.read_bytes()[:-10_000])
    elif contents == "text":
        suite.write_text("no archive\n")
    else:
        with tarfile.open(suite, "w:xz") as archive:
            archive.add(__file__, "kvcache-on-gpu/test.py")
    done, _ = run(clone, "on-gpu", "run", str(suite), PYTHON=sys.executable)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert f"error: {message.format(suite, suite)}" in done.stderr


# --- scripts/lint and scripts/wheel ----------------------------------------------------------------------------------


def test_lint_checks_every_form(clone):
    """Its stand-ins are newer than its requirements."""
    tools = clone / "build/lint-venv/bin"
    for name in ("ruff", "shellcheck", "check-jsonschema", "python"):
        add_stand_in(tools / name)
    shutil.copy(ROOT / "scripts/lint-requirements.txt", clone / "scripts")
    lists = [(clone / name).read_bytes() for name in ("scripts/lint-requirements.txt", "requirements.txt")]
    sums = subprocess.run(["cksum"], input=b"".join(lists), capture_output=True, check=True).stdout.decode()
    (tools.parent / ".kvcache-stamp").write_text(f"{tools.parent}  {sums}")
    for name in ("config", "crash", "bug"):
        add_stand_in(clone / f".github/ISSUE_TEMPLATE/{name}.yml")
    for name in (".ci/run", ".github/workflows/check.yml"):
        add_stand_in(clone / name)
    done, calls = run(clone, "lint", "--fix", PYTHON="")
    assert done.returncode == 0, done.stderr
    folder = ".github/ISSUE_TEMPLATE"
    assert f"check-jsonschema --builtin-schema vendor.github-issue-forms {folder}/bug.yml {folder}/crash.yml" in calls
    assert f"check-jsonschema --builtin-schema vendor.github-issue-config {folder}/config.yml" in calls
    assert f"ruff check --no-cache --fix {clone}" in calls


@pytest.mark.parametrize("arguments", [["--fix", "typo"], ["typo"], ["--fix", "--typo"]])
def test_lint_rejects_arguments(clone, arguments):
    done, calls = run(clone, "lint", *arguments)
    assert done.returncode == 1 and not calls and f"unknown option '{arguments[-1]}'" in done.stderr


@pytest.mark.long
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python 3.12 and newer have headers of their own")
def test_wheel_unpacks_one_archive_of_headers(clone):
    """An archive of an earlier run, which failed, is not unpacked."""
    shutil.copy(ROOT / "CMakePresets.json", clone)
    add_stand_in(clone / "bin/cmake")
    add_stand_in(clone / "bin/dpkg-deb")
    add_stand_in(
        clone / "bin/apt-get", 'if [[ "$*" == *" download "* ]]; then touch libpython3.13-dev_3.13.5-2_amd64.deb; fi\n'
    )
    add_stand_in(clone / "bin/grep", 'if [[ "$*" == *URIs* ]]; then echo http://x/debian; else exec /bin/grep "$@"; fi\n')
    state = clone / "build/python-headers/apt"
    state.mkdir(parents=True)
    (state / "libpython3.13-dev_3.13.5-1_amd64.deb").touch()
    done, calls = run(clone, "wheel", "--stable-abi")
    (unpacked,) = (call.split() for call in calls if call.startswith("dpkg-deb"))
    assert unpacked[1:] == ["--extract", f"{state}/libpython3.13-dev_3.13.5-2_amd64.deb", str(state.parent)]
    assert "has no extension" in done.stderr
