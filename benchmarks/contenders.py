"""The compilers that are compared: each takes a work and a chip, and gives PTX.

Those of the kind "process" run as a command, from the source file to a PTX file, start and end of the process
included. Those of the kind "in process" are loaded already, all in the one process of the benchmark, and make PTX in
memory.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kvcache
from kvcache.compilation import toolchain
from measure import Absent
from provenance import BUILD, FOLDER, find_version
from works import Work

PROCESS, IN_PROCESS = "process", "in process"
OURS, CUDA, NVRTC, TRITON = "kvcache", "CUDA C++", "NVRTC", "Triton"
BASELINES = {PROCESS: CUDA, IN_PROCESS: NVRTC}
"""By kind, the family whose time is the measure."""

_PACKAGES = "run scripts/bench, or pip install -r benchmarks/requirements.txt"


class CannotCompileError(Exception):
    """A compiler has no code for a work on a chip; the message is one line of why."""


class CrashedError(CannotCompileError):
    """A compiler's process died."""


class TookTooLongError(CannotCompileError):
    """A compiler's process was stopped after the seconds that it had."""


@dataclass(frozen=True)
class Module:
    """PTX of one kernel, the bytes of dynamic shared memory that a launch gives it, and the threads of a block.

    The bytes are None where a host computes them.
    """

    ptx: str
    dynamic_shared: int | None = 0
    threads: int = 0


class Contender(ABC):
    """A compiler. Its constructor raises ``Absent`` where it is not installed.

    Attributes:
        family: Contenders of one family make the same code.
        kind: ``PROCESS`` or ``IN_PROCESS``.
        version: As the compiler says it.
    """

    name: str
    family: str
    kind: str
    version: str

    @abstractmethod
    def compile(self, work: Work, chip: str) -> Module:
        """Compiles a work for a chip, or raises ``CannotCompileError``."""


class KVCacheOpt(Contender):
    name, family, kind = "kvcache-opt", OURS, PROCESS

    def __init__(self) -> None:
        self._tool = _find_program("kvcache-opt", "run scripts/setup.sh --build", BUILD / "bin")
        self.version = find_version(self._tool)

    def compile(self, work: Work, chip: str) -> Module:
        return Module(_run(self._tool, _find(work.mlir), f"--kvcache-to-ptx=chip={chip}", "--emit-ptx", "-o"))


class Nvcc(Contender):
    name, family, kind = "nvcc", CUDA, PROCESS

    def __init__(self) -> None:
        folder = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin"
        self.tool = _find_program("nvcc", "install the CUDA 13 toolkit, or set CUDA_HOME", folder)
        self.version = find_version(self.tool)

    def compile(self, work: Work, chip: str) -> Module:
        return Module(self.compile_file(_find(work.cuda), chip), work.dynamic_shared)

    def compile_file(self, source: Path, chip: str, seconds: float | None = None, options: Sequence[str] = ()) -> str:
        """The PTX of a source file, or ``TookTooLongError`` where it takes longer than ``seconds``."""
        return _run(self.tool, "-ptx", "-O3", f"-arch={chip}", *options, source, "-o", seconds=seconds)


class TritonProcess(Contender):
    name, family, kind = "Triton process", TRITON, PROCESS

    def __init__(self) -> None:
        self.version = _import_triton().__version__

    def compile(self, work: Work, chip: str) -> Module:
        return Module(_run(sys.executable, FOLDER / "peers/triton_compile.py", work.name, chip))


class KVCacheCompile(Contender):
    name, family, kind = "kvcache.compile", OURS, IN_PROCESS

    def __init__(self) -> None:
        self.version = kvcache.__version__

    def compile(self, work: Work, chip: str) -> Module:
        try:
            kernels = list(kvcache.compile(_find(work.mlir).read_text(), target=chip).kernels.values())
        except kvcache.Error as error:
            raise CannotCompileError(summarize(str(error))) from error
        return Module(kernels[0].ptx, kernels[0].dynamic_shared_memory)


class Nvrtc(Contender):
    name, family, kind = "NVRTC", NVRTC, IN_PROCESS

    _HEADERS = {b"cstdint": b"typedef unsigned int uint32_t; typedef unsigned long long uint64_t;"}
    """NVRTC comes without a C++ library; this is what the sources take from it."""

    def __init__(self) -> None:
        self._nvrtc = _import("cuda.bindings.nvrtc")
        self.version = ".".join(map(str, self._call("Version")))

    def compile(self, work: Work, chip: str) -> Module:
        source = _find(work.cuda).read_bytes()
        names, texts = list(self._HEADERS), list(self._HEADERS.values())
        (program,) = self._call("CreateProgram", source, work.cuda.name.encode(), len(names), texts, names)
        try:
            options = [f"--gpu-architecture={chip}".encode()]
            (status,) = self._nvrtc.nvrtcCompileProgram(program, len(options), options)
            if status:
                raise CannotCompileError(summarize(self._read(program, "ProgramLog")))
            return Module(self._read(program, "PTX"), work.dynamic_shared)
        finally:
            self._call("DestroyProgram", program)

    def _read(self, program: Any, what: str) -> str:
        (size,) = self._call(f"Get{what}Size", program)
        text = b" " * size
        self._call(f"Get{what}", program, text)
        return str(text.rstrip(b"\0"), "utf-8")

    def _call(self, function: str, *arguments: Any) -> tuple[Any, ...]:
        status, *values = getattr(self._nvrtc, f"nvrtc{function}")(*arguments)
        if status:
            raise RuntimeError(f"nvrtc{function}: {status}")
        return tuple(values)


class TritonCompile(Contender):
    name, family, kind = "Triton", TRITON, IN_PROCESS

    def __init__(self) -> None:
        self.version = _import_triton().__version__
        sys.path.append(str(FOLDER / "peers"))
        self.compiler = _import("triton_compile")

    def compile(self, work: Work, chip: str) -> Module:
        return self.run(self.compiler.compile_to_ptx, work.name, chip)

    def run(self, compile: Any, *arguments: Any, threads: int = 0) -> Module:
        """Calls one of the functions of ``compiler``."""
        try:
            return Module(*compile(*arguments), threads)
        except Exception as error:  # Triton's passes raise errors of any type
            raise CannotCompileError(summarize(str(error))) from error


CONTENDERS: tuple[type[Contender], ...] = (KVCacheOpt, Nvcc, TritonProcess, KVCacheCompile, Nvrtc, TritonCompile)


def _find_program(name: str, hint: str, folder: Path) -> str:
    found = shutil.which(name, path=str(folder)) or shutil.which(name)
    if not found:
        raise Absent(f"{name} was not found: {hint}")
    return found


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Absent(f"{name} can't be imported ({error}): {_PACKAGES}") from error


def _import_triton() -> Any:
    """Imports Triton, which shall write PTX of the version that our ptxas reads."""
    ptxas = str(toolchain.find_tool("ptxas"))
    os.environ |= {"TRITON_PTXAS_PATH": ptxas, "TRITON_PTXAS_BLACKWELL_PATH": ptxas}
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # the default, which Triton warns of
    return _import("triton")


def _find(source: Path) -> Path:
    if not source.exists():
        raise CannotCompileError(f"there is no {source.relative_to(FOLDER.parent)}")
    return source


def _run(*command: str | Path, seconds: float | None = None) -> str:
    """Runs a command whose last argument is the file that it writes, and returns what is in it."""
    with tempfile.TemporaryDirectory(prefix="kvcache-bench-") as folder:
        output = Path(folder, "kernel.ptx")
        pipe = subprocess.PIPE
        with subprocess.Popen(
            [*command, output], stdout=pipe, stderr=pipe, text=True, start_new_session=True
        ) as process:
            try:
                _, stderr = process.communicate(timeout=seconds)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)  # nvcc's own compilers too
                if isinstance(error, subprocess.TimeoutExpired):
                    raise TookTooLongError(f"takes more than {seconds:g} s") from error
                raise
        if process.returncode < 0:
            raise CrashedError(f"ended by signal {-process.returncode}")
        if process.returncode:
            raise CannotCompileError(summarize(stderr))
        return output.read_text()


def summarize(message: str) -> str:
    """Summarizes a message: the text after the first "error:", or else its last line."""
    if match := re.search(r"\b(?:error|fatal)\s*:\s*(.*)", message):
        return match[1].strip()
    lines = message.split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "failed")
