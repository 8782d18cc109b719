"""Makes the pack of the suite: the package, its tests and benchmarks, and packages that the machine may lack."""

from __future__ import annotations

import json
import lzma
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from command import Command
from gpu_suite import engine_files
from measure import say
from provenance import FOLDER, find_commit
from record import partial_file

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
# A dictionary larger than the extension, and jumps as absolute addresses, which are alike.
_FILTERS = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 128 << 20}]


class PackError(ValueError):
    """The error of a pack that can't be made; the message has the rule."""


def read_python(wheel: Path, wanted: str | None = None) -> str:
    """The version of Python that a pack with the wheel is for, such as 3.12.

    Args:
        wheel: The wheel, for one version or, with the stable ABI, for a version and newer ones.
        wanted: The version; None for the wheel's.

    Raises:
        PackError: The wheel is of another package, or is not for the version.
    """
    found = re.fullmatch(r"kvcache-[^-]+-cp3(\d+)-(cp3\d+|abi3)-\S+\.whl", wheel.name)
    if not found:
        raise PackError(f"expects a wheel of kvcache, got {wheel.name}")
    minor, is_stable = int(found[1]), found[2] == "abi3"
    version = re.fullmatch(r"3\.(\d+)", wanted or f"3.{minor}")
    if not version:
        raise PackError(f"expects a version of Python such as 3.12, got {wanted!r}")
    if int(version[1]) != minor and not (is_stable and int(version[1]) > minor):
        newer = " or newer" if is_stable else ""
        raise PackError(f"expects Python 3.{minor}{newer} for {wheel.name}, got {wanted}")
    return version[0]


def check_name(path: Path) -> None:
    """Checks that an archive has a name of a kind that ``write`` can write."""
    if not re.search(r"\.tar\.(xz|gz)$", path.name):
        raise PackError(f"expects a name that ends in .tar.xz or .tar.gz, got {path.name}")


def make_wheel(wanted: str | None) -> Path:
    """Makes a wheel for a version of Python by ``scripts/wheel``.

    Args:
        wanted: The version; None for that of ``build/``, which is the one that runs this.

    Raises:
        PackError: No wheel of ``build/`` is for this version.
        subprocess.CalledProcessError: The wheel fails.
    """
    own = "{}.{}".format(*sys.version_info)
    found = re.fullmatch(r"3\.(\d+)", wanted or own)
    if not found or (found[0] != own and int(found[1]) < 12):
        raise PackError(f"expects '--python' to be {own}, or 3.12 or newer, got {wanted!r}")
    option = "--small" if found[0] == own else "--stable-abi"
    command = [str(ROOT / "scripts/wheel"), option]
    return Path(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip())


def add_package(folder: Path, wheel: Path) -> None:
    """Unpacks the package, without the tools, which the suite does not run."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.startswith("kvcache.scripts/") and ".data/" not in name]
        archive.extractall(folder / "site", names)
    tag = "abi3" if "-abi3-" in wheel.name else f"cpython-{read_python(wheel).replace('.', '')}-"
    if not list(folder.glob(f"site/kvcache/_kvcache.{tag}*")):
        raise PackError(f"expects an extension for the Python of {wheel.name}: make the wheel in a clone of its own")


def add_repository(folder: Path) -> None:
    """Copies the tests, benchmarks and examples."""
    ignored = shutil.ignore_patterns("__pycache__", "results", "baselines")
    for tree in _TREES:
        if (ROOT / tree).exists():
            shutil.copytree(ROOT / tree, folder / "repo" / tree, ignore=ignored)
    for file in _FILES:
        shutil.copy(ROOT / file, folder / "repo" / file)


def _normalize(name: str) -> str:
    return name.lower().replace("-", "_")


def add_packages(folder: Path, python: str, packages: Mapping[str, str], requirements: str) -> None:
    """Downloads packages, and unpacks each into a folder of its module's name.

    Args:
        folder: The folder of the folders.
        python: The version of Python.
        packages: The packages by the names of their modules.
        requirements: The file of the repository with their versions; a package that is not in it has its newest one.
    """
    from gpu.pack import add_wheels  # imports kvcache, which is built after arguments are checked

    pinned = (line.split(";")[0].strip() for line in (ROOT / requirements).read_text().splitlines())
    versions = {_normalize(line.partition("==")[0]): line for line in pinned if "==" in line}
    wanted = [versions.get(_normalize(name), name) for name in packages.values()]
    with tempfile.TemporaryDirectory() as temporary:
        add_wheels(Path(temporary), python, wanted, "--no-deps")
        wheels = {_normalize(path.name.split("-")[0]): path for path in Path(temporary, "wheels").glob("*.whl")}
        for module, package in packages.items():
            with zipfile.ZipFile(wheels[_normalize(package)]) as archive:
                names = [name for name in archive.namelist() if engine_files.is_needed(module, name)]
                archive.extractall(folder / module, names)


def _compress(folder: Path, path: Path, suffix: str) -> None:
    """Writes a folder as an archive, with the filters for machine code if it is a ``.tar.xz``."""
    if suffix == ".gz":
        with tarfile.open(path, "w:gz") as archive:
            archive.add(folder, NAME)
    else:
        with lzma.open(path, "wb", filters=_FILTERS) as file, tarfile.open(fileobj=file, mode="w") as archive:
            archive.add(folder, NAME)


def write(
    path: Path,
    wheel: Path,
    more: Sequence[Path],
    limit: float,
    python: str | None = None,
    with_packages: bool = True,
    with_vllm: bool = True,
) -> dict[str, float]:
    """Writes the archive, and returns the megabytes of its parts before compression.

    Args:
        path: The archive, with a name that ends in ``.tar.xz`` or ``.tar.gz``.
        wheel: The wheel of ``scripts/wheel``.
        more: Folders with a folder for each module.
        limit: The most megabytes of the archive.
        python: The version of Python; None for the wheel's.
        with_packages: Whether to download ``PACKAGES``.
        with_vllm: Whether to download vLLM with the packages that it needs, too.

    Raises:
        PackError: The archive is larger, or an argument is wrong; an earlier archive stays then.
    """
    check_name(path)
    python = read_python(wheel, python)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, NAME)
        add_package(folder, wheel)
        add_repository(folder)
        if with_packages:
            add_packages(folder / "packages", python, PACKAGES, "requirements.txt")
        if with_packages and with_vllm:
            add_packages(folder / "packages", python, engine_files.PACKAGES, engine_files.REQUIREMENTS)
            engine_files.add_stubs(folder / "packages")
        for each in more:
            shutil.copytree(each, folder / "packages", dirs_exist_ok=True)
        shutil.copy(FOLDER / "gpu_suite/run.py", folder)
        parts = {each.name: _count_bytes(each) / _MEGABYTE for each in folder.iterdir()}
        facts = {"commit": find_commit(), "python": python, "megabytes": parts}
        (folder / "manifest.json").write_text(json.dumps(facts, indent=1) + "\n")
        say(f"compresses {sum(parts.values()):.0f} MB")
        with partial_file(path) as partial:
            _compress(folder, partial, path.suffix)
            size = partial.stat().st_size / _MEGABYTE
            if size > limit:
                found = ", ".join(f"{name} {part:.1f}" for name, part in sorted(parts.items()))
                raise PackError(f"expects a pack of at most {limit:g} MB, got {size:.1f}; before compression: {found}")
    return parts


def _count_bytes(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())


def main(arguments: Sequence[str] | None = None) -> int:
    command = Command("scripts/on-gpu pack", __doc__)
    command.add("file", type=Path, metavar="FILE.tar.xz", help="the pack")
    command.add("--wheel", type=Path, help="a wheel (default: scripts/wheel makes one)")
    command.add("--packages", type=Path, action="append", default=[], metavar="FOLDER",
                help="a folder with more packages, each in a folder of its module's name")
    command.add("--no-vllm", action="store_true", help="leave out vLLM and the packages that it needs")
    command.add("--python", metavar="3.N", help="the Python of the machine (default: that of the wheel)")
    command.add("--limit", type=float, default=64, metavar="MB", help="the largest pack (default: %(default)s)")
    options = command.parser.parse_args(arguments)
    if not options.file.absolute().parent.is_dir():
        command.parser.error(f"expects a file in a folder that is there, got '{options.file}'")
    for folder in options.packages:
        if not folder.is_dir():
            command.parser.error(f"expects '--packages' to be a folder, got '{folder}'")
    try:
        check_name(options.file)
        wheel = options.wheel or make_wheel(options.python)
        parts = write(
            options.file, wheel, options.packages, options.limit, options.python, with_vllm=not options.no_vllm
        )
    except (PackError, OSError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    size = options.file.stat().st_size / _MEGABYTE
    print(f"{options.file}: {size:.1f} MB, from " + ", ".join(f"{name} {part:.1f}" for name, part in parts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
