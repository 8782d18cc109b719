"""The folders of the compiler are levels: each uses only those before it."""

import re
from pathlib import Path

import pytest
from places import ROOT

LEVELS = re.findall(
    r"^add_subdirectory\((\w+)\)$", (ROOT / "lib" / "CMakeLists.txt").read_text(), re.M
)


def files_of(level: str) -> list[Path]:
    folders = [ROOT / "lib" / level, ROOT / "include" / "kvcache" / level]
    return [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in (".h", ".cpp", ".td")
    ]


def uses_of(path: Path) -> set[str]:
    return set(re.findall(r'include "kvcache/(\w+)/', path.read_text()))


def test_every_folder_has_a_level():
    folders = {path.name for path in (ROOT / "lib").iterdir() if path.is_dir()}
    assert folders == set(LEVELS)


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_uses_only_levels_before_it(level):
    files = files_of(level)
    assert files
    after = set(LEVELS[LEVELS.index(level) + 1 :])
    wrong = {str(path): uses_of(path) & after for path in files if uses_of(path) & after}
    assert not wrong


def test_headers_of_other_folders_are_public():
    """No file reaches into the private headers of another folder of lib/."""
    wrong = [
        f"{path}: {include}"
        for level in LEVELS
        for path in files_of(level)
        for include in re.findall(r'#include "(\.\./[^"]+)"', path.read_text())
        if not (path.parent / include).resolve().is_relative_to(ROOT / "lib" / level)
    ]
    assert not wrong
