"""Makes the pack of the suite: the package, its tests and benchmarks, and packages that the machine may lack."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from command import Command
from gpu.pack import add_wheels
from measure import say
from provenance import FOLDER, find_commit

NAME = "kvcache-on-gpu"
ROOT = FOLDER.parent
_MEGABYTE = 10**6
# The wheels by the names of their modules. Versions are those of requirements.txt.
PACKAGES = {
    "pytest": "pytest", "pluggy": "pluggy", "iniconfig": "iniconfig", "xdist": "pytest-xdist", "execnet": "execnet",
    "pygments": "pygments", "packaging": "packaging", "ml_dtypes": "ml_dtypes", "tvm_ffi": "apache-tvm-ffi",
    "typing_extensions": "typing_extensions", "hypothesis": "hypothesis", "sortedcontainers": "sortedcontainers",
}  # fmt: skip
_TREES = (
    "benchmarks", "examples", "test/python/data", "test/python/extras", "test/python/engines", "test/python/support",
)  # fmt: skip
_FILES = ("conftest.py", "pyproject.toml")
# LLVM needs them for its static analyzer, and for the encodings of Windows's manifests: 55 MB.
_UNUSED = ("libz3", "libicudata")


class PackError(ValueError):
    """The error of a pack that can't be made; the message has the rule."""


def read_python(wheel: Path) -> str:
    """The version of Python of a wheel, such as 3.12.

    Raises ``PackError`` for a wheel of another package.
    """
    name, _, python, *_ = wheel.name.split("-")
    if name != "kvcache" or not python.startswith("cp3"):
        raise PackError(f"expects a wheel of kvcache, got {wheel.name}")
    return f"3.{python.removeprefix('cp3')}"


def add_package(folder: Path, wheel: Path) -> None:
    """Unpacks the package, without the tools, which the suite does not run."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.startswith("kvcache.scripts/") and ".data/" not in name]
        archive.extractall(folder / "site", names)
    python = read_python(wheel).replace(".", "")
    if not list(folder.glob(f"site/kvcache/_kvcache.cpython-{python}-*")):
        raise PackError(f"expects an extension for the Python of {wheel.name}: make the wheel in a clone of its own")
    replace_unused(folder / "site/kvcache.libs")


def replace_unused(folder: Path) -> None:
    """Replaces libraries that nothing calls by ones with the same symbols, which end the process.

    Raises ``PackError`` without a C compiler or nm.
    """
    libraries = sorted(folder.glob("*.so*"))
    for path in libraries:
        if path.name.partition("-")[0] in _UNUSED:
            wanted = {name for other in libraries if other != path for name in _list_symbols(other, "--undefined-only")}
            used = sorted(wanted.intersection(_list_symbols(path, "--defined-only")))
            source = "".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in used)
            options = "-shared", "-fPIC", "-nostdlib", f"-Wl,-soname,{path.name}", "-x", "c", "-", "-o", str(path)
            _run_tool("cc", *options, input=source)


def _list_symbols(library: Path, kind: str) -> list[str]:
    """The names of dynamic symbols, without versions."""
    lines = _run_tool("nm", "-D", kind, "--format=posix", str(library)).splitlines()
    return [line.split()[0].partition("@")[0] for line in lines if line]


def _run_tool(*command: str, input: str = "") -> str:
    try:
        return subprocess.run(command, input=input, capture_output=True, text=True, check=True).stdout
    except OSError:
        raise PackError(f"a pack needs {command[0]}: install gcc and binutils") from None
    except subprocess.CalledProcessError as error:
        raise PackError(f"{command[0]} fails: {error.stderr.strip()}") from None


def add_repository(folder: Path) -> None:
    """Copies the tests, benchmarks and examples."""
    ignored = shutil.ignore_patterns("__pycache__", "results", "baselines")
    for tree in _TREES:
        if (ROOT / tree).exists():
            shutil.copytree(ROOT / tree, folder / "repo" / tree, ignore=ignored)
    for file in _FILES:
        shutil.copy(ROOT / file, folder / "repo" / file)


def add_packages(folder: Path, python: str) -> None:
    """Downloads packages, and unpacks each into a folder of its module's name."""
    pinned = (line.split(";")[0].strip() for line in (ROOT / "requirements.txt").read_text().splitlines())
    versions = {line.partition("==")[0].lower().replace("_", "-"): line for line in pinned if "==" in line}
    wanted = [versions.get(name.lower().replace("_", "-"), name) for name in PACKAGES.values()]
    with tempfile.TemporaryDirectory() as temporary:
        add_wheels(Path(temporary), python, wanted, "--no-deps")
        wheels = {path.name.split("-")[0].lower(): path for path in Path(temporary, "wheels").glob("*.whl")}
        for module, package in PACKAGES.items():
            with zipfile.ZipFile(wheels[package.lower().replace("-", "_")]) as archive:
                archive.extractall(folder / "packages" / module)


def write(path: Path, wheel: Path, more: Sequence[Path], limit: float, with_packages: bool = True) -> dict[str, float]:
    """Writes the archive, and returns the megabytes of its parts before compression.

    Args:
        path: The archive, with a name that ends in ``.tar.xz`` or ``.tar.gz``.
        wheel: The wheel of ``scripts/wheel``.
        more: Folders with a folder for each module, such as vLLM's Python files with its requirements.
        limit: The most megabytes of the archive.
        with_packages: Whether to download ``PACKAGES``.

    Raises:
        PackError: The archive is larger, or an argument is wrong; there is no archive then.
    """
    kind = {".xz": "w:xz", ".gz": "w:gz"}.get(path.suffix)
    if kind is None:
        raise PackError(f"expects a name that ends in .tar.xz or .tar.gz, got {path.name}")
    python = read_python(wheel)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, NAME)
        add_package(folder, wheel)
        add_repository(folder)
        if with_packages:
            add_packages(folder, python)
        for each in more:
            shutil.copytree(each, folder / "packages", dirs_exist_ok=True)
        shutil.copy(FOLDER / "gpu_suite/run.py", folder)
        parts = {each.name: _count_bytes(each) / _MEGABYTE for each in folder.iterdir()}
        facts = {"commit": find_commit(), "python": python, "megabytes": parts}
        (folder / "manifest.json").write_text(json.dumps(facts, indent=1) + "\n")
        say(f"compresses {sum(parts.values()):.0f} MB")
        with tarfile.open(path, kind) as archive:
            archive.add(folder, NAME)
    size = path.stat().st_size / _MEGABYTE
    if size > limit:
        path.unlink()
        found = ", ".join(f"{name} {part:.1f}" for name, part in sorted(parts.items()))
        raise PackError(f"expects a pack of at most {limit:g} MB, got {size:.1f}; before compression: {found}")
    return parts


def _count_bytes(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())


def main(arguments: Sequence[str] | None = None) -> int:
    command = Command("scripts/on-gpu", __doc__)
    command.add("file", type=Path, metavar="FILE.tar.xz", help="the pack")
    command.add("--wheel", type=Path, required=True, help="the wheel of scripts/wheel")
    command.add("--packages", type=Path, action="append", default=[], metavar="FOLDER",
                help="a folder with more packages, each in a folder of its module's name, as vLLM's Python files")
    command.add("--limit", type=float, default=64, metavar="MB", help="the largest pack (default: %(default)s)")
    options = command.parser.parse_args(arguments)
    if not options.file.absolute().parent.is_dir():
        command.parser.error(f"expects a file in a folder that is there, got '{options.file}'")
    for folder in options.packages:
        if not folder.is_dir():
            command.parser.error(f"expects '--packages' to be a folder, got '{folder}'")
    try:
        parts = write(options.file, options.wheel, options.packages, options.limit)
    except (PackError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    size = options.file.stat().st_size / _MEGABYTE
    print(f"{options.file}: {size:.1f} MB, from " + ", ".join(f"{name} {part:.1f}" for name, part in parts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
