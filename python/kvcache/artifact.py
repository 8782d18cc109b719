# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts: compiled modules in a file, to run where there is no compiler.

An artifact is a zip file. ``manifest.json`` describes the kernels, beside it lie the
PTX and the cubin of each GPU module. Reading one needs neither the extension nor a
toolkit.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from dataclasses import asdict
from typing import Any

from ._native import Path
from ._version import __version__
from .descriptors import Descriptor
from .errors import ArtifactError
from .kernels import Binary, CompiledModule, Kernel
from .ptx import Parameter
from .toolchain import Resources

_FORMAT = "kvcache-artifact"
_VERSION = 1
_DATE = (1980, 1, 1, 0, 0, 0)  # the same module gives the same file


def save(module: CompiledModule, path: Path) -> None:
    """Writes a compiled module to a file."""
    members: dict[str, str | bytes] = {}
    described = []
    for index, binary in enumerate(module.binaries):
        stem = f"{index}-{binary.chip}"
        members[f"{stem}.ptx"] = binary.ptx
        if (cubin := binary.known("cubin")) is not None:
            members[f"{stem}.cubin"] = cubin
        described.append(_describe_binary(binary, stem))
    manifest = {
        "format": _FORMAT,
        "version": _VERSION,
        "kvcache": __version__,
        "output": module.format,
        "binaries": described,
    }
    with zipfile.ZipFile(path, "w") as file:
        for name, data in {
            "manifest.json": json.dumps(manifest, indent=1),
            **members,
        }.items():
            file.writestr(zipfile.ZipInfo(name, _DATE), data, zipfile.ZIP_DEFLATED)


def load(path: Path) -> CompiledModule:
    """Reads an artifact that ``CompiledModule.save`` has written.

    Raises ``ArtifactError`` if the file is something else, damaged, or of another
    version of the format.
    """
    try:
        with zipfile.ZipFile(path) as file:
            manifest = json.loads(file.read("manifest.json"))
            _check_version(manifest, path)
            binaries = [
                _read_binary(description, file) for description in manifest["binaries"]
            ]
            return CompiledModule(binaries, manifest["output"])
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ArtifactError(
            f"{os.fspath(path)}: not an artifact, or damaged: {error}"
        ) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ArtifactError):
            raise
        raise ArtifactError(f"{os.fspath(path)}: not an artifact: {error!r}") from error


def _check_version(manifest: dict[str, Any], path: Path) -> None:
    if manifest["format"] != _FORMAT:
        raise ArtifactError(f"{os.fspath(path)}: not an artifact of kvcache")
    if manifest["version"] != _VERSION:
        raise ArtifactError(
            f"{os.fspath(path)}: has version {manifest['version']} of the format, "
            f"written by kvcache {manifest['kvcache']}; kvcache {__version__} reads "
            f"version {_VERSION}"
        )


def _describe_binary(binary: Binary, stem: str) -> dict[str, Any]:
    resources = binary.known("resources")
    return {
        "module": binary.module,
        "chip": binary.chip,
        "opt_level": binary.opt_level,
        "files": stem,
        "resources": resources
        and {name: asdict(facts) for name, facts in resources.items()},
        "instructions": binary.known("instructions"),
        "kernels": [
            {
                "name": kernel.name,
                "parameters": list(map(asdict, kernel.parameters)),
                "block_size": kernel.block_size,
                "dynamic_shared_memory": kernel.dynamic_shared_memory,
                "descriptors": list(map(asdict, kernel.descriptors)),
            }
            for kernel in binary.kernels
        ],
    }


def _read_descriptor(fields: dict[str, Any]) -> Descriptor:
    lists = {name: tuple(fields[name]) for name in ("dims", "strides", "box")}
    return Descriptor(**(fields | lists))


def _read_binary(description: dict[str, Any], file: zipfile.ZipFile) -> Binary:
    stem = description["files"]
    binary = Binary(
        description["module"],
        description["chip"],
        file.read(f"{stem}.ptx").decode(),
        description["opt_level"],
    )
    binary.kernels += [
        Kernel(
            kernel["name"],
            tuple(Parameter(**parameter) for parameter in kernel["parameters"]),
            tuple(kernel["block_size"]) if kernel["block_size"] else None,
            kernel["dynamic_shared_memory"],
            tuple(_read_descriptor(fields) for fields in kernel["descriptors"]),
            binary,
        )
        for kernel in description["kernels"]
    ]
    if f"{stem}.cubin" in file.namelist():
        binary.cubin = file.read(f"{stem}.cubin")
    if description["resources"] is not None:
        binary.resources = {
            name: Resources(**facts) for name, facts in description["resources"].items()
        }
    if description["instructions"] is not None:
        binary.instructions = description["instructions"]
    return binary
