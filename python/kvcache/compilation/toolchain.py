# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tools of the CUDA toolkit: ptxas, nvdisasm and fatbinary."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..checks import check_path
from ..errors import ToolchainError

if TYPE_CHECKING:
    import tempfile

_PACKAGES = {
    "ptxas": "nvidia-cuda-nvcc",
    "fatbinary": "nvidia-cuda-nvcc",
    "nvdisasm": "nvidia-cuda-nvdisasm",
}

# The place of CUDA's math library in a toolkit.
_LIBDEVICE = Path("nvvm", "libdevice", "libdevice.10.bc")

# The environment variable with the time limit of a tool in seconds.
_TIME_LIMIT = "KVCACHE_TOOL_TIMEOUT"


@dataclass(frozen=True)
class Resources:
    """The resources of a kernel: registers and bytes per thread, bytes per thread
    block.

    ``spill_bytes`` is the sum of spill stores and spill loads.
    """

    registers: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int


@dataclass(frozen=True)
class Assembly:
    """A PTX module assembled for a chip.

    Attributes:
        resources: The resources of each kernel, by its name.
        advisories: The codes of ptxas's advisories, sorted. C7510 to C7518 say that it
            serialized the ``wgmma`` instructions of a kernel.
    """

    cubin: bytes
    resources: dict[str, Resources]
    advisories: tuple[str, ...] = ()


def find_tool(name: str) -> Path:
    """Returns the path of ``"ptxas"``, ``"fatbinary"`` or ``"nvdisasm"``.

    The environment variable of the tool's name (``PTXAS``) comes first. Then come the
    folder of the Python interpreter and NVIDIA's packages from PyPI. Last are
    ``CUDA_HOME``, ``CUDA_ROOT``, ``CUDA_PATH`` and ``PATH``. The compiler does the
    same, except for the packages. Raises ``ToolchainError`` if it is not found, or not
    at the place of the variable.
    """
    variable = os.environ.get(name.upper())
    if variable:
        if not os.access(variable, os.X_OK):
            raise ToolchainError(
                f"{name.upper()} is {variable!r}, which is not a program"
            )
        return Path(variable)
    for path in _tool_paths(name):
        if os.access(path, os.X_OK):
            return path
    raise ToolchainError(
        f"{name} was not found: run 'pip install {_PACKAGES[name]}', "
        f"or set {name.upper()} to its path, or CUDA_HOME to a CUDA toolkit"
    )


def describe_tool(name: str) -> str:
    """Returns a text that differs between versions of a tool. Raises as ``find_tool``."""
    return _describe_file(find_tool(name))


def _describe_file(path: Path) -> str:
    path = path.resolve()
    facts = path.stat()
    return repr((str(path), facts.st_size, facts.st_mtime_ns))


def find_toolkit(toolkit: str | os.PathLike[str] | None) -> str:
    """Returns the folder of the CUDA toolkit whose libdevice kernels link.

    It is the given folder, or the first folder with libdevice in the search of
    ``find_tool`` for ptxas, or the empty string. Raises ``ValueError`` if the given
    folder has no libdevice.
    """
    if toolkit is not None:
        check_path(toolkit=toolkit)
        folder = Path(os.fsdecode(toolkit))
        if not (folder / _LIBDEVICE).is_file():
            raise ValueError(
                f"expects 'toolkit' to be a folder with {_LIBDEVICE}, got {str(folder)!r}"
            )
        return str(folder)
    for folder in _toolkit_folders():
        if (folder / _LIBDEVICE).is_file():
            return str(folder)
    return ""


def describe_toolkit(folder: str) -> str:
    """Returns the option of a pipeline for a toolkit; empty without one."""
    if not folder:
        return ""
    quote = next((mark for mark in "\"'" if mark not in folder), None)
    if "{" in folder or "}" in folder:  # the parser of pipelines counts them in quotes
        raise ValueError(f"expects 'toolkit' without braces in its name, got {folder!r}")
    if quote is None:
        raise ValueError(f"expects 'toolkit' without quotes in its name, got {folder!r}")
    return f" toolkit={quote}{folder}{quote}"


def describe_libdevice(folder: str) -> str:
    """Returns a text that differs between versions of libdevice; empty without one."""
    return _describe_file(Path(folder, _LIBDEVICE)) if folder else ""


def _toolkit_folders() -> Iterator[Path]:
    """Yields the folders with ``bin``; NVIDIA's packages for CUDA 12 have another one."""
    if variable := os.environ.get("PTXAS"):
        yield Path(variable).resolve().parent.parent
    for path in _tool_paths("ptxas"):
        yield path.resolve().parent.parent
    yield Path(sysconfig.get_path("purelib"), "nvidia", "cuda_nvcc")


def _tool_paths(name: str) -> Iterator[Path]:
    """Yields the paths where a tool may be, in the order of the search."""
    yield from (folder / name for folder in _tool_folders())
    if on_path := find_on_path(name):
        yield Path(on_path)


def _tool_folders() -> Iterator[Path]:
    yield Path(sys.executable).parent
    packages = Path(sysconfig.get_path("purelib")) / "nvidia"
    yield from (
        path / "bin" for path in sorted(packages.glob("cu[0-9]*"), reverse=True)
    )
    for variable in ("CUDA_HOME", "CUDA_ROOT", "CUDA_PATH"):
        if home := os.environ.get(variable):
            yield Path(home) / "bin"


# These imports take milliseconds, and most programs need no tool.


def find_on_path(name: str) -> str | None:
    """Returns the path of a program, as a shell finds it."""
    import shutil

    return shutil.which(name)


def make_folder() -> tempfile.TemporaryDirectory[str]:
    """Makes a folder for the files of a tool."""
    import tempfile

    return tempfile.TemporaryDirectory(prefix="kvcache-")


def assemble(ptx: str, chip: str, opt_level: int = 3) -> Assembly:
    """Assembles a PTX module for ``chip``.

    Raises ``ToolchainError`` with ptxas's message if it fails, or if it takes longer
    than the environment variable ``KVCACHE_TOOL_TIMEOUT`` (600 seconds by default).
    """
    with make_folder() as folder:
        source, target = Path(folder, "module.ptx"), Path(folder, "module.cubin")
        source.write_text(ptx)
        log = _run(
            "ptxas", "-v", f"-arch={chip}", f"-O{opt_level}", source, "-o", target
        )
        advisories = sorted(set(re.findall(r"\((C\d{4})\)", log)))
        return Assembly(
            _read_output("ptxas", target), _parse_resources(log), tuple(advisories)
        )


def make_fatbin(ptx: str, cubin: bytes, chip: str) -> bytes:
    """Returns a fat binary of a module: its cubin, and its PTX for newer chips."""
    with make_folder() as folder:
        texts, code = Path(folder, "module.ptx"), Path(folder, "module.cubin")
        target = Path(folder, "module.fatbin")
        texts.write_text(ptx)
        code.write_bytes(cubin)
        images = [
            f"--image3=kind={kind},sm={chip.removeprefix('sm_')},file={file}"
            for kind, file in (("elf", code), ("ptx", texts))
        ]
        _run("fatbinary", "--64", *images, f"--create={target}")
        return _read_output("fatbinary", target)


def disassemble(cubin: bytes) -> dict[str, str]:
    """Returns each kernel's SASS, as nvdisasm writes it: with labels and padding."""
    with make_folder() as folder:
        source = Path(folder, "module.cubin")
        source.write_bytes(cubin)
        sass = _run("nvdisasm", "-c", source)
    if not sass.strip():
        raise ToolchainError("nvdisasm succeeded, but wrote no output")
    sections = re.split(
        r"^\s*\.section\s+\.text\.([^,\s]+).*$", sass, flags=re.MULTILINE
    )
    return dict(zip(sections[1::2], sections[2::2], strict=True))


def count_instructions(cubin: bytes) -> dict[str, int]:
    """Counts the SASS instructions of each kernel, without its padding."""
    return {name: _count_section(sass) for name, sass in disassemble(cubin).items()}


def _count_section(sass: str) -> int:
    """Counts the instructions before the padding: a branch to itself, then NOPs."""
    instructions = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", sass)
    while instructions and instructions[-1] == "NOP":
        instructions.pop()
    if instructions and instructions[-1].startswith("BRA"):
        instructions.pop()
    return len(instructions)


def _parse_resources(log: str) -> dict[str, Resources]:
    """Parses the log of ``ptxas -v`` for each kernel; zeros may be missing."""
    _, *rest = re.split(r"Compiling entry function '([^']+)'", log)
    return {
        name: Resources(
            registers=_find_number(r"Used (\d+) registers", text),
            spill_bytes=_find_number(r"(\d+) bytes spill stores", text)
            + _find_number(r"(\d+) bytes spill loads", text),
            stack_bytes=_find_number(r"(\d+) bytes stack frame", text),
            shared_bytes=_find_number(r"(\d+) bytes smem", text),
        )
        for name, text in zip(rest[::2], rest[1::2], strict=True)
    }


def _find_number(pattern: str, text: str) -> int:
    match = re.search(pattern, text)
    return int(match[1]) if match else 0


def _run(tool: str, *arguments: str | Path) -> str:
    """Runs a tool and returns its output, or raises ``ToolchainError``."""
    command = [find_tool(tool), *arguments]
    limit = _find_time_limit()
    try:
        run = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=limit,
            check=False,
        )
    except OSError as error:
        raise ToolchainError(f"{tool} could not be run: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise ToolchainError(
            f"{tool} did not end within {limit} s, the limit of {_TIME_LIMIT}"
        ) from error
    if run.returncode:
        raise ToolchainError(
            f"{tool} failed (exit code {run.returncode}):\n"
            f"{run.stdout.strip() or 'it printed nothing'}"
        )
    return run.stdout


def _find_time_limit() -> int:
    value = os.environ.get(_TIME_LIMIT, "600")
    if not re.fullmatch(r"0*[1-9][0-9]{0,8}", value, re.ASCII):
        raise ToolchainError(
            f"expects {_TIME_LIMIT} to be a positive number of seconds, got {value!r}"
        )
    return int(value)


def _read_output(tool: str, path: Path) -> bytes:
    content = path.read_bytes() if path.exists() else b""
    if not content:
        raise ToolchainError(f"{tool} succeeded, but wrote no output")
    return content
