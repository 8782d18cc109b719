# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``python -m kvcache``, which prints the abilities of an installation."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import kvcache
from kvcache import _native
from kvcache.compilation import toolchain

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


def main() -> int:
    rows = list(_describe())
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:{width}}  {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
