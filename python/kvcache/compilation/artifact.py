# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts: compiled modules in a file, for machines without a compiler.

An artifact is a zip file. It has ``manifest.json``, which describes the kernels, and
the PTX and the cubin of each GPU module. Reading one needs neither the extension nor a
toolkit.
"""

from __future__ import annotations

import io
import json
import os
import typing
import zipfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass, is_dataclass
from types import NoneType, UnionType
from typing import Any

from .._native import Path
from .._version import __version__
from ..checks import check_path
from ..errors import ArtifactError
from .descriptors import Descriptor
from .kernels import Binary, Kernel, Parameter
from .toolchain import Resources

_FORMAT = "kvcache-artifact"
_VERSION = 1
_DATE = (1980, 1, 1, 0, 0, 0)  # the same module gives the same file


# --- The manifest ---------------------------------------------------------------------


@dataclass(frozen=True)
class _Kernel:
    name: str
    parameters: tuple[Parameter, ...]
    block_size: tuple[int, int, int] | None
    dynamic_shared_memory: int
    descriptors: tuple[Descriptor, ...]


@dataclass(frozen=True)
class _Binary:
    """A GPU module; ``files`` is the prefix of the names of its files."""

    module: str
    chip: str
    opt_level: int
    files: str
    resources: dict[str, Resources] | None
    instructions: dict[str, int] | None
    kernels: tuple[_Kernel, ...]

    def __post_init__(self) -> None:
        for facts in (self.resources, self.instructions):
            missing = [k.name for k in self.kernels if facts and k.name not in facts]
            if missing:
                raise ValueError(f"facts of kernel {missing[0]!r} are missing")


@dataclass(frozen=True)
class _Manifest:
    format: str
    version: int
    kvcache: str
    output: str
    binaries: tuple[_Binary, ...]


def _parse(hint: Any, value: Any) -> Any:
    """Converts a value of JSON to the type of a field.

    Raises ``ValueError`` for a value of another type.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is UnionType:
        return _parse_one_of(arguments, value)
    if origin is tuple and isinstance(value, list):
        is_open = arguments[1:] == (...,)
        hints = arguments[:1] * len(value) if is_open else arguments
        if len(hints) == len(value):
            return tuple(map(_parse, hints, value))
    if origin is dict and isinstance(value, dict):
        return {name: _parse(arguments[1], value[name]) for name in value}
    if isinstance(hint, type) and is_dataclass(hint) and isinstance(value, dict):
        fields = typing.get_type_hints(hint)
        if missing := [name for name in fields if name not in value]:
            raise ValueError(f"{missing[0]!r} is missing")
        return hint(**{name: _parse(fields[name], value[name]) for name in fields})
    if type(value) is hint:
        return value
    raise ValueError(f"expects {getattr(hint, '__name__', hint)}, got {value!r:.100}")


def _parse_one_of(hints: tuple[Any, ...], value: Any) -> Any:
    if value is None and NoneType in hints:
        return None
    *others, last = [hint for hint in hints if hint is not NoneType]
    for hint in others:
        if type(value) is hint:
            return value
    return _parse(last, value)


# --- Files ----------------------------------------------------------------------------


def write(binaries: Iterable[Binary], format: str, path: Path) -> None:
    """Writes GPU modules, compiled to a format, to a file."""
    check_path(path=path)
    contents = to_bytes(binaries, format)
    with open(os.fsdecode(path), "wb") as file:
        file.write(contents)


def to_bytes(binaries: Iterable[Binary], format: str) -> bytes:
    """The contents of an artifact."""
    members: dict[str, str | bytes] = {}
    described = []
    for index, binary in enumerate(binaries):
        stem = f"{index}-{binary.chip}"
        members[f"{stem}.ptx"] = binary.ptx
        if (cubin := binary.known("cubin")) is not None:
            members[f"{stem}.cubin"] = cubin
        described.append(_describe_binary(binary, stem))
    output = _Manifest(_FORMAT, _VERSION, __version__, format, tuple(described))
    manifest = json.dumps(asdict(output), indent=1)
    contents = io.BytesIO()
    with zipfile.ZipFile(contents, "w") as file:
        for name, data in {"manifest.json": manifest, **members}.items():
            file.writestr(zipfile.ZipInfo(name, _DATE), data, zipfile.ZIP_DEFLATED)
    return contents.getvalue()


def _describe_binary(binary: Binary, stem: str) -> _Binary:
    kernels = [
        _Kernel(
            k.name, k.parameters, k.block_size, k.dynamic_shared_memory, k.descriptors
        )
        for k in binary.kernels
    ]
    return _Binary(
        binary.module,
        binary.chip,
        binary.opt_level,
        stem,
        binary.known("resources"),
        binary.known("instructions"),
        tuple(kernels),
    )


def read(path: Path) -> tuple[list[Binary], str]:
    """Reads the GPU modules of an artifact, and the format that they are compiled to.

    Raises as ``kvcache.load`` does.
    """
    check_path(path=path)
    name = os.fsdecode(path)
    with open(name, "rb") as file:
        contents = file.read()
    try:
        return from_bytes(contents)
    except ArtifactError as error:
        raise ArtifactError(f"{name}: {error}") from None
    # Damaged data can raise any error of the libraries that read it.
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise ArtifactError(f"{name}: not an artifact, or damaged: {reason}") from error


def from_bytes(contents: bytes) -> tuple[list[Binary], str]:
    """Parses the contents of an artifact. Damaged contents can raise any error."""
    with zipfile.ZipFile(io.BytesIO(contents)) as file:
        fields = json.loads(file.read("manifest.json"))
        _check_version(fields)
        manifest = _parse(_Manifest, fields)
        binaries = [_read_binary(entry, file) for entry in manifest.binaries]
        return binaries, manifest.output


def _check_version(manifest: Any) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise ArtifactError("not an artifact of kvcache")
    if manifest.get("version") != _VERSION:
        raise ArtifactError(
            f"has version {manifest.get('version')!r} of the format, written by kvcache "
            f"{manifest.get('kvcache')}; kvcache {__version__} reads version {_VERSION}"
        )


def _read_binary(entry: _Binary, file: zipfile.ZipFile) -> Binary:
    ptx = file.read(f"{entry.files}.ptx").decode()
    binary = Binary(entry.module, entry.chip, ptx, entry.opt_level)
    binary.kernels += [
        Kernel(
            kernel.name,
            kernel.parameters,
            kernel.block_size,
            kernel.dynamic_shared_memory,
            kernel.descriptors,
            binary,
        )
        for kernel in entry.kernels
    ]
    if f"{entry.files}.cubin" in file.namelist():
        binary.cubin = file.read(f"{entry.files}.cubin")
    if entry.resources is not None:
        binary.resources = entry.resources
    if entry.instructions is not None:
        binary.instructions = entry.instructions
    return binary
