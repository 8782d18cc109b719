"""Where and when results come from, so that others can judge and repeat them."""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from contenders import Contender
from kvcache.compilation import toolchain
from works import FOLDER


def collect(contenders: Iterable[Contender], runs: int) -> dict[str, str]:
    """What there is to say of a run, by name."""
    return {
        **_collect_moment("scripts/bench"),
        "runs": f"{runs} of each contender in turn, after a warm-up",
        "CPU": f"{len(os.sched_getaffinity(0))} cores of {_find_cpu()}, load {os.getloadavg()[0]:.1f}",
        "Python": platform.python_version(),
        **{contender.name: contender.version for contender in contenders},
        **{name: _find_version(name) for name in ("ptxas", "nvdisasm")},
    }


def collect_tools(command: str) -> dict[str, str]:
    """What there is to say of machine code that is only counted."""
    return {**_collect_moment(command), "ptxas": _find_version("ptxas"), "nvdisasm": _find_version("nvdisasm")}


def _collect_moment(command: str) -> dict[str, str]:
    commit = _run("git", "-C", str(FOLDER), "rev-parse", "--short=12", "HEAD") or "unknown"
    changes = _run("git", "-C", str(FOLDER), "status", "--porcelain", "--untracked-files=no")
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "commit": f"{commit}, {'with local changes' if changes else 'clean'}",
        "command": shlex.join([command, *sys.argv[1:]]),
    }


def _find_cpu() -> str:
    try:
        match = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        match = None
    return match[1] if match else platform.machine()


def _find_version(tool: str) -> str:
    match = re.search(r"V\d\S+", _run(str(toolchain.find_tool(tool)), "--version"))
    return match[0] if match else "unknown"


def _run(*command: str) -> str:
    """What a command prints, or nothing where it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
