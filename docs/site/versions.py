"""Makes the page of versions: those that the workflows test, and the PTX of each chip."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import kvcache
from kvcache import _native

_ROOT = Path(__file__).parents[2]
_EMPTY = "gpu.module @m { gpu.func @k() kernel { gpu.return } }"
_PYTHONS = {"12": "3.11", "13": "3.13"}
"""Python of each release of Debian."""
_DRIVERS = {
    "7.0": ("11.0", 450),
    "7.1": ("11.1", 455),
    "7.4": ("11.4", 470),
    "7.8": ("11.8", 520),
    "8.0": ("12.0", 525),
    "8.1": ("12.1", 530),
    "8.2": ("12.2", 535),
    "8.3": ("12.3", 545),
    "8.4": ("12.4", 550),
    "8.5": ("12.5", 555),
    "8.6": ("12.7", 565),
    "8.7": ("12.8", 570),
    "8.8": ("12.9", 575),
    "9.0": ("13.0", 580),
}
"""CUDA and the driver of a version of PTX (PTX ISA, "Release Notes")."""
_NAMES = {
    "torch": "PyTorch",
    "transformers": "transformers",
    "jax": "JAX",
    "vllm": "vLLM",
    "sglang": "SGLang",
    "nixl-cu12": "NIXL",
    "pyzmq": "pyzmq",
    "prometheus_client": "prometheus_client",
}

_TEXT = """# Versions

These versions are tested at each commit. Where pip accepts others, they have been tried.

{tested}

## Chips and drivers

A driver compiles PTX up to its own version. Kernels are compiled for the PTX that their chip and its features need. So
a driver works if it is not older than this.

{chips}

## Releases

A release has a wheel for Python 3.11 and one for the stable ABI of 3.12. Both need glibc 2.36, that of Debian 12: LLVM's
archives there call `arc4random`. [Releases](../explanation/releases.md) have the reasons.
"""


def pages() -> dict[str, str]:
    text = _TEXT.format(tested=_join(list_tested()), chips=_join(list_chips()))
    return {"reference/versions.md": text}


def _join(rows: list[tuple[str, ...]]) -> str:
    rows.insert(1, ("---",) * len(rows[0]))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def list_tested() -> list[tuple[str, ...]]:
    """Lists what is tested, the versions, and those that pip accepts."""
    releases = find_releases()
    found = re.search(r"find_package\(MLIR ([\d.]+)", _read("cmake/KVCacheMLIR.cmake"))
    assert found
    project = tomllib.loads(_read("pyproject.toml"))["project"]
    pythons = [_PYTHONS[release] for release in releases]
    rows: list[tuple[str, ...]] = [
        ("package", "tested", "accepted"),
        ("LLVM and MLIR", found[1], f"{found[1]}.x"),
        ("Debian", ", ".join(releases), "Linux with glibc 2.36"),
        ("Python", ", ".join(pythons), project["requires-python"]),
    ]
    accepted = find_accepted(project)
    for package, versions in find_pinned().items():
        rows.append((_NAMES[package], ", ".join(versions), accepted[package] or "any"))
    return rows


def find_releases() -> list[str]:
    """Finds the releases of Debian that are tested."""
    (releases,) = re.findall(r"debian: \[(.*)\]", _read(".github/workflows/check.yml"))
    return re.findall(r"\d+", releases)


def find_pinned() -> dict[str, list[str]]:
    """Finds the tested versions of each package."""
    pinned: dict[str, list[str]] = {package: [] for package in _NAMES}
    for suite in ("extras", "engines"):
        text = _read(f"test/python/{suite}/requirements.txt")
        for package, version in re.findall(r"^([\w-]+)==(\S+)$", text, re.MULTILINE):
            if package in pinned:
                pinned[package].append(version)
    return pinned


def find_accepted(project: dict[str, dict[str, list[str]]]) -> dict[str, str]:
    """Finds the versions of each package that pip accepts."""
    extras = project["optional-dependencies"].values()
    lines = {line for extra in extras for line in extra}
    names = {line: re.match(r"[\w-]+", line)[0] for line in lines}  # type: ignore[index]
    return {names[line]: line.removeprefix(names[line]) for line in sorted(lines)}


def list_chips() -> list[tuple[str, ...]]:
    """Lists the PTX of each chip, and the oldest driver that compiles it."""
    chips: dict[str, list[str]] = {}
    for chip in _native.extension().chips():
        (kernel,) = kvcache.compile(_EMPTY, chip).kernels.values()
        version = re.search(r"^\.version (\S+)", kernel.ptx, re.MULTILINE)
        assert version
        chips.setdefault(version[1], []).append(chip)
    rows: list[tuple[str, ...]] = [("chips", "PTX", "CUDA", "driver")]
    for version in sorted(chips):
        cuda, driver = _DRIVERS[version]
        rows.append((", ".join(chips[version]), version, cuda, str(driver)))
    return rows


def _read(path: str) -> str:
    return (_ROOT / path).read_text()
