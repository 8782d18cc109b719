"""Reads the origin of results, so that others can judge and repeat them."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
BUILD = FOLDER.parent / "build"


def run_quietly(*command: str) -> str:
    """Returns the output of a command, or nothing where it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def find_version(tool: str) -> str:
    """Returns the version that a tool of CUDA or LLVM says."""
    match = re.search(r"V\d\S+|LLVM version \S+", run_quietly(tool, "--version"))
    return match[0] if match else "unknown"


def find_commit() -> str:
    git = "git", "-C", str(FOLDER)
    changes = run_quietly(*git, "status", "--porcelain", "--untracked-files=no")
    return (run_quietly(*git, "rev-parse", "--short=12", "HEAD") or "unknown") + (", with changes" if changes else "")


def describe_host() -> str:
    try:
        match = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        match = None
    model = match[1] if match else platform.machine()
    return f"{len(os.sched_getaffinity(0))} cores of {model}, load {os.getloadavg()[0]:.1f}"


def list_versions(*packages: str) -> dict[str, str]:
    """Returns the versions of those packages that are installed."""
    found = {}
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def read_gpu(bus_id: str = "") -> dict[str, str]:
    """Reads the driver, clocks, temperature and power of a GPU, where nvidia-smi is installed."""
    fields = {
        "driver": "driver_version",
        "SM clock": "clocks.sm",
        "memory clock": "clocks.mem",
        "most SM clock": "clocks.max.sm",
        "temperature": "temperature.gpu",
        "power": "power.draw",
        "power limit": "power.limit",
    }
    query = f"--query-gpu={','.join(fields.values())}", "--format=csv,noheader", *([f"--id={bus_id}"] if bus_id else [])
    found = run_quietly("nvidia-smi", *query)
    return dict(zip(fields, map(str.strip, found.splitlines()[0].split(",")))) if found else {}
