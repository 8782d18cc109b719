"""Makes a pack: what a machine with a GPU, and without a compiler, needs to run the benchmarks."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import kvcache
from contenders import Nvcc, summarize
from facts import find_tools
from measure import Absent, say
from provenance import FOLDER, find_commit, find_version
from record import partial_file

from .kernels import OURS, PEER, KernelImage, Pack
from .works import WORKS

NAME = "kvcache-bench-gpu"
_PACKAGES = ("cuda-bindings", "numpy")
_GLIBC_MINORS = (17, 24, 27, 28)
_HARNESS = ("command", "measure", "provenance", "record", "report")
_FILES_OF_THE_COMPILER = ("pack.py", "emulate.py", "tools.py")


def _write_cubin(pack: Pack, contender: str, source: str, chip: str, cubin: bytes) -> str:
    name = f"cubins/{contender.replace(' ', '-').lower()}.{source}.{chip}.cubin"
    path = pack.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(cubin)
    return name


def _add_missing(pack: Pack, contender: str, source: str, chip: str, reason: str) -> None:
    pack.missing.append({"contender": contender, "source": source, "chip": chip, "reason": reason})
    say(f"{contender}, {source}, {chip}: {reason}")


# --- Our kernels -----------------------------------------------------------------------------------------------------


def compile_ours(source: Path, chip: str) -> kvcache.Kernel:
    """The only kernel of a source, in machine code."""
    kernels = list(kvcache.compile(source, target=chip, format="cubin").kernels.values())
    if len(kernels) != 1:
        raise ValueError(f"expects one kernel in {source.name}, got {', '.join(k.name for k in kernels) or 'none'}")
    return kernels[0]


def describe_ours(kernel: kvcache.Kernel, source: str, cubin: str) -> KernelImage:
    """Describes a kernel for a pack; ``cubin`` is the file of its machine code."""
    return KernelImage(
        OURS, source, kernel.chip, kernel.name, cubin, tuple(map(asdict, kernel.parameters)),
        tuple(map(asdict, kernel.descriptors)), kernel.block_size, kernel.dynamic_shared_memory,
    )


def _add_ours(pack: Pack, source: Path, chip: str) -> None:
    try:
        kernel = compile_ours(source, chip)
    except OSError as error:
        return _add_missing(pack, OURS, source.stem, chip, f"{source.name}: {error.strerror}")
    except (kvcache.Error, ValueError) as error:
        return _add_missing(pack, OURS, source.stem, chip, summarize(str(error)))
    cubin = _write_cubin(pack, OURS, source.stem, chip, kernel.cubin)
    pack.images.append(describe_ours(kernel, source.stem, cubin))


# --- CUDA C++ --------------------------------------------------------------------------------------------------------


def find_nvcc() -> str | None:
    try:
        return Nvcc().tool
    except Absent:
        return None


def _add_peer(pack: Pack, source: Path, chip: str, nvcc: str | None) -> None:
    if not nvcc:
        reason = "nvcc was not found: install the CUDA toolkit or set CUDA_HOME"
        return _add_missing(pack, PEER, source.stem, chip, reason)
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder, "kernel.cubin")
        command = [nvcc, "-cubin", "-O3", f"-arch={chip}", str(source), "-o", str(cubin)]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            return _add_missing(pack, PEER, source.stem, chip, summarize(result.stdout + result.stderr))
        name = _write_cubin(pack, PEER, source.stem, chip, cubin.read_bytes())
    pack.images.append(KernelImage(PEER, source.stem, chip, source.stem, name))


# --- The pack --------------------------------------------------------------------------------------------------------


def _describe_build(nvcc: str | None) -> dict[str, str]:
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "commit": find_commit(),
        "kvcache": kvcache.__version__,
        **find_tools(),
        "nvcc": find_version(nvcc) if nvcc else "not found",
        "host": f"{platform.system()} {platform.machine()}",
    }


def _copy_driver(folder: Path) -> None:
    package = folder / "gpu"
    package.mkdir()
    for path in sorted((FOLDER / "gpu").glob("*.py")):
        if path.name not in (*_FILES_OF_THE_COMPILER, "run.py"):
            shutil.copy(path, package)
    for path in (*(FOLDER / f"{name}.py" for name in _HARNESS), FOLDER / "gpu/run.py", FOLDER / "gpu/README.md"):
        shutil.copy(path, folder)
    shutil.copytree(FOLDER / "peers", folder / "peers", ignore=shutil.ignore_patterns("__pycache__"))


def add_wheels(folder: Path, python: str, packages: Sequence[str] = _PACKAGES, *options: str) -> None:
    """Downloads packages for a version of Python on Linux into ``folder / "wheels"``."""
    platforms = [f"--platform=manylinux_2_{version}_{platform.machine()}" for version in _GLIBC_MINORS]
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--only-binary=:all:",
               f"--python-version={python}", *platforms, "-d", str(folder / "wheels"), *options, *packages]
    subprocess.run(command, check=True, stdout=sys.stderr)


def fill(folder: Path, works: Sequence[str], chips: Sequence[str]) -> Pack:
    """Puts everything but wheels into an empty folder."""
    nvcc = find_nvcc()
    pack = Pack(_describe_build(nvcc), folder=folder)
    for name in works:
        for chip in chips:
            _add_ours(pack, FOLDER / f"kernels/{name}.mlir", chip)
            for peer in WORKS[name].peers:
                _add_peer(pack, FOLDER / f"peers/{peer.source}.cu", chip, nvcc)
    _copy_driver(folder)
    pack.save()
    return pack


def write(path: Path, works: Sequence[str], chips: Sequence[str], wheels_for: str | None) -> Pack:
    """Writes an archive whose only folder is the pack, with packages for a version of Python if there is one."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, NAME)
        folder.mkdir()
        pack = fill(folder, works, chips)
        if wheels_for:
            add_wheels(folder, wheels_for)
        with partial_file(path) as partial, tarfile.open(partial, "w:gz") as archive:
            archive.add(folder, NAME)
    return pack
