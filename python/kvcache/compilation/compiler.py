# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler of kernels for NVIDIA's chips."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from .. import _native
from . import artifact, store, toolchain, tuning_files
from .descriptors import describe
from .kernels import Binary, Kernel, Parameter
from .libraries import Body, LibrarySource
from .modules import CompiledModule

_FORMATS = ("ptx", "cubin", "fatbin")


def chips() -> list[str]:
    """Returns the names of the chips that kernels can be compiled for."""
    return list(_native.extension().chips())


def compile(
    source: _native.Source,
    target: str | Iterable[str] = "sm_90a",
    format: str = "ptx",
    filename: _native.Path | None = None,
    *,
    opt_level: int = 3,
    bounds_checks: bool = False,
    cached: bool = False,
    toolkit: _native.Path | None = None,
    tuning: _native.Path | None = None,
) -> CompiledModule:
    """Compiles the GPU modules of a source to PTX, cubins or fat binaries.

    Args:
        source: MLIR text, MLIR text or bytecode as bytes, or the path of a file.
        target: A chip (``"sm_90a"``), several separated by commas, or a sequence of
            them. A ``gpu.module`` that names its targets itself is compiled for those.
        format: The format that is made at once: ``"ptx"``, ``"cubin"`` or ``"fatbin"``.
            The latter two run ptxas. Each kernel makes the others on request.
        filename: The source's name in diagnostics.
        opt_level: The optimization level of LLVM and ptxas, 0 to 3.
        bounds_checks: Whether kernels trap with a message on a bad page id, token, head
            or misaligned index.
        cached: Whether the kernels are stored on disk, and read from there for the same
            source, options, compiler, libdevice and ptxas.
        toolkit: The folder of a CUDA toolkit, whose libdevice has the functions that
            chips lack, such as ``math.sinh``. None to search as for ptxas: next to
            ``PTXAS``, in NVIDIA's packages, in ``CUDA_HOME``, and on ``PATH``.
        tuning: A file of ``kvcache.tune``, whose configs kernels of attention have.
            None for those that the compiler chooses. Only for one chip.

    Raises:
        CompileError: The source has errors; the exception carries the diagnostics.
        ToolchainError: ptxas is needed, and is missing or fails.
        ValueError: An argument has an invalid value, ``toolkit`` has no libdevice, or the
            source is a string that names a file.
        TypeError: The source, its name or ``toolkit`` is of another type.

    Examples:
        >>> source = '''
        ... gpu.module @kernels {
        ...   gpu.func @fill(%x: memref<?xf32>) kernel {
        ...     %i = gpu.thread_id x
        ...     %one = arith.constant 1.0 : f32
        ...     memref.store %one, %x[%i] : memref<?xf32>
        ...     gpu.return
        ...   }
        ... }
        ... '''
        >>> kernel = compile(source, "sm_90a").kernel("fill")
        >>> [parameter.type for parameter in kernel.parameters]
        ['!llvm.ptr', 'index']
        >>> "st.global" in kernel.ptx
        True
    """
    targets = _parse_targets(target)
    if not isinstance(format, str) or format not in _FORMATS:
        raise ValueError(
            f"expects 'format' to be one of {', '.join(_FORMATS)}, got {format!r}"
        )
    opt_level = _native.check_opt_level(opt_level)
    bounds_checks = _native.check_switch("bounds_checks", bounds_checks)
    cached = _native.check_switch("cached", cached)
    folder = toolchain.find_toolkit(toolkit)
    file = tuning_files.take(tuning)
    contents, name = _native.read_source(source, filename)
    request = _CompileRequest(
        contents=contents,
        name=name,
        targets=targets,
        opt_level=opt_level,
        bounds_checks=bounds_checks,
        toolkit=folder,
        tuning=os.fsdecode(file) if file else "",
    )
    binaries = _make_binaries(request, format, cached)
    options = (
        f"chip={','.join(targets)} opt-level={opt_level} host=1 tvm-ffi=1"
        f"{toolchain.describe_toolkit(folder)}"
    )
    passes = f"symbol-dce,kvcache-to-ptx{{{options}}}"
    passes = _native.add_checks_on_chips(passes, bounds_checks, targets)
    passes = tuning_files.add_tuning(passes, ",".join(targets), file)
    library = LibrarySource(
        contents,
        name,
        (Body("", passes),),
        opt_level,
        ("kvcache_runtime", "kvcache_cuda"),
    )
    return CompiledModule(binaries, format, library)


class _CompileRequest(NamedTuple):
    """The arguments of the extension's ``compile``, of which the store makes a key.

    ``toolkit`` and ``tuning`` are paths; empty for none.
    """

    contents: bytes
    name: str
    targets: list[str]
    opt_level: int
    bounds_checks: bool
    toolkit: str
    tuning: str


def _make_binaries(request: _CompileRequest, format: str, cached: bool) -> list[Binary]:
    """Compiles a source, or reads the stored result."""
    tuning = Path(request.tuning) if request.tuning else None
    entry = store.Entry(None)
    digest = tuning_files.describe(tuning)
    if cached:
        assembler = "" if format == "ptx" else toolchain.describe_tool("ptxas")
        libdevice = toolchain.describe_libdevice(request.toolkit)
        entry = store.Entry.of("compile", format, assembler, libdevice, digest, request)
    if (kept := entry.read(stacklevel=3)) is not None:
        return artifact.from_bytes(kept)[0]
    objects, diagnostics = _native.extension().compile(*request)
    _native.report(diagnostics, objects is not None, stacklevel=3)
    binaries = []
    for module, chip, ptx, properties in objects:
        binary = Binary(module, chip, ptx.decode(), request.opt_level)
        binary.kernels += _list_kernels(binary, json.loads(properties))
        getattr(binary, format)
        binaries.append(binary)
    # Another process may have replaced the file before the compiler read it.
    if not diagnostics and tuning_files.describe(tuning) == digest:
        entry.write(artifact.to_bytes(binaries, format), stacklevel=3)
    return binaries


def _parse_targets(target: str | Iterable[str]) -> list[str]:
    wrong = ValueError(f"expects 'target' to be a chip, or several, got {target!r}")
    try:
        names = target.split(",") if isinstance(target, str) else list(target)
    except TypeError:
        raise wrong from None
    if not all(isinstance(name, str) for name in names):
        raise wrong
    targets = list(dict.fromkeys(name.strip() for name in names))
    known = chips()
    for name in targets:
        if name not in known:
            raise ValueError(f"unknown chip {name!r}; known are {', '.join(known)}")
    if not targets:
        raise ValueError("expects at least one chip as 'target'")
    return targets


def _list_kernels(binary: Binary, properties: dict[str, Any]) -> list[Kernel]:
    return [
        Kernel(
            facts["name"],
            tuple(
                Parameter(said["name"], said["type"], said["size"], said["offset"])
                for said in facts["parameters"]
            ),
            tuple(facts["block_size"]) if "block_size" in facts else None,
            facts.get("dynamic_shared_memory", 0),
            tuple(
                describe(said["name"], said["descriptor"])
                for said in facts["parameters"]
                if "descriptor" in said
            ),
            binary,
        )
        for facts in properties.get("kvcache.kernels", [])
    ]
