"""The libraries that compiled files need, and their search paths."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def llvm_tool(name):
    """The path of an LLVM 22 tool or of its GNU counterpart."""
    mlir_dir = os.environ.get("MLIR_DIR")
    candidates = [f"llvm-{name}-22", f"llvm-{name}", name]
    if mlir_dir:
        candidates.insert(0, str(Path(mlir_dir, "../../../bin", f"llvm-{name}")))
    for candidate in candidates:
        path = shutil.which(candidate)
        if path:
            return path
    pytest.fail(f"none of {', '.join(candidates)} found: install llvm-22")


def run_tool(name, *arguments):
    command = [llvm_tool(name), *map(str, arguments)]
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def dynamic_entries(path, tag):
    """The values of a tag of the dynamic section, such as NEEDED or RUNPATH."""
    lines = run_tool("readelf", "--dynamic", "--wide", path).splitlines()
    return [
        line[line.index("[") + 1 : line.rindex("]")]
        for line in lines
        if f"({tag})" in line
    ]


def needed_libraries(path):
    return dynamic_entries(path, "NEEDED")


def search_paths(path):
    """The folders that the loader searches before the system's."""
    entries = dynamic_entries(path, "RUNPATH") + dynamic_entries(path, "RPATH")
    return [folder for entry in entries for folder in entry.split(":")]


def is_elf(path):
    if not path.is_file() or path.is_symlink():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"
