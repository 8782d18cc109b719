# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``python -m kvcache``: what an installation can do, and a demo."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import kvcache
from kvcache import _native
from kvcache.compilation import toolchain
from kvcache.tuning import options as tuning_options

_FRAMEWORKS = (
    "apache-tvm-ffi",
    "torch",
    "transformers",
    "vllm",
    "sglang",
    "jax",
    "jax-tvm-ffi",
    "cupy",
    "cuda-bindings",
    "nixl-cu12",
)
_DEVICES = Path("/proc/driver/nvidia/gpus")
_DRIVER = Path("/proc/driver/nvidia/version")


def _describe() -> Iterator[tuple[str, str]]:
    yield "kvcache", f"{kvcache.__version__}, {Path(kvcache.__file__).parent}"
    yield "python", f"{platform.python_version()} on {platform.machine()}"
    yield "chips", ", ".join(kvcache.chips())
    yield "targets of jit", "cpu, emulator:<chip>, cuda, cuda:<chip>"
    for tool in ("ptxas", "fatbinary", "nvdisasm"):
        yield tool, _find_tool(tool)
    yield "kvcache-opt", _find_opt()
    for name in _FRAMEWORKS:
        yield name, _find_package(name)
    yield "devices", ", ".join(_find_devices()) or "none of NVIDIA's driver"


def _find_tool(name: str) -> str:
    try:
        return str(toolchain.find_tool(name))
    except kvcache.ToolchainError:
        return "not found: pip install kvcache[cuda]"


def _find_opt() -> str:
    package = Path(_native.extension().__file__ or "").parent
    adjacent = Path(sys.executable).with_name("kvcache-opt")
    built = package.parents[1] / "bin" / "kvcache-opt"
    found = [str(path) for path in (adjacent, built) if path.exists()]
    return (found or [shutil.which("kvcache-opt") or "not found"])[0]


def _find_package(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _find_devices() -> list[str]:
    """The models of GPUs in the list of NVIDIA's driver."""
    models = []
    for file in sorted(_DEVICES.glob("*/information")):
        for line in file.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name == "Model":
                models.append(value.strip())
    return models


def _report() -> Iterator[tuple[str, str]]:
    """Lists versions and chips for a report of a bug, without paths."""
    llvm, processor, _ = _native.extension().host()
    yield "kvcache", f"{kvcache.__version__}, {_find_kind()}"
    yield "LLVM", llvm
    yield "python", f"{platform.python_implementation()} {platform.python_version()}"
    yield "system", f"{_find_system()}, {' '.join(platform.libc_ver())}"
    yield "processor", f"{processor} ({platform.machine()}), {os.cpu_count()} threads"
    yield "driver", _find_driver()
    yield "devices", ", ".join(_find_devices()) or "none of NVIDIA's driver"
    for tool in ("ptxas", "fatbinary", "nvdisasm"):
        yield tool, "found" if _has_tool(tool) else "not found"
    for name in ("numpy", "ml_dtypes", *_FRAMEWORKS):
        yield name, _find_package(name)
    for name in sorted(os.environ):
        if name.startswith("KVCACHE_"):
            value = os.environ[name]
            yield name, "set to a path" if os.sep in value else value


def _find_kind() -> str:
    """Says where the libraries of LLVM and MLIR come from."""
    package = Path(kvcache.__file__).parent
    if package.with_name("kvcache.libs").exists():
        return "a wheel with LLVM and MLIR"
    return "a wheel without LLVM" if _is_installed() else "a build"


def _is_installed() -> bool:
    return _find_package("kvcache") != "not installed"


def _find_system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _find_driver() -> str:
    """The version of NVIDIA's kernel module."""
    try:
        line = _DRIVER.read_text(errors="replace").splitlines()[0]
    except (OSError, IndexError):
        return "none of NVIDIA"
    return next((word for word in line.split() if word[0].isdigit()), line)


def _has_tool(name: str) -> bool:
    try:
        return bool(toolchain.find_tool(name))
    except kvcache.ToolchainError:
        return False


def _print(rows: Iterator[tuple[str, str]]) -> None:
    found = list(rows)
    width = max(len(name) for name, _ in found)
    for name, value in found:
        print(f"{name:{width}}  {value}")


def _run_demo(folder: Path) -> int:
    if not folder.is_dir():
        print(f"error: expects '--output' to be a folder, got '{folder}'", file=sys.stderr)
        return 2
    from kvcache.demo import run

    return run(folder)


def _run_tuner(options: argparse.Namespace) -> int:
    from kvcache.tuning.command import run

    return run(options)


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(
        "python -m kvcache", description="Lists what the installation found."
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser(
        "report", help="print versions and chips for a report of a bug, without paths"
    )
    demo = commands.add_parser(
        "demo", help="attend on the CPU and an emulated chip, and compare with NumPy"
    )
    demo.add_argument(
        "--output",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="the folder for pages.svg (default: the current one)",
    )
    tune = commands.add_parser(
        "tune", help="measure configs of attention on a GPU, and keep the fastest"
    )
    tuning_options.add_arguments(tune)
    options = parser.parse_args(arguments)
    if options.command == "tune":
        return _run_tuner(options)
    if options.command == "demo":
        return _run_demo(options.output)
    _print(_report() if options.command == "report" else _describe())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
