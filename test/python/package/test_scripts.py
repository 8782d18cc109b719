"""Tests of scripts in a folder of their own, where the programs that they call are stand-ins."""

import os
import shutil
import subprocess

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
    assert done.stdout.count("python -m kvcache demo") == done.stdout.count("import kvcache") == 2
    assert done.stdout.count(" build/dist/kvcache-0.1.0.whl\n") == 2
    assert "--build-arg DEBIAN=13 --build-arg PYTHON=cp312" in done.stdout
