"""The folders of the compiler are levels: each uses only those before it."""

import re
import sys

import pytest
from places import ROOT

sys.path.append(str(ROOT / "scripts"))
import structure  # noqa: E402

LEVELS = structure.levels()


def test_every_folder_has_a_level():
    folders = {path.name for path in (ROOT / "lib").iterdir() if path.is_dir()}
    assert folders == set(LEVELS)


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_uses_only_levels_before_it(level):
    files = structure.files_of(level)
    assert files
    after = set(LEVELS[LEVELS.index(level) + 1 :])
    used = {str(path): structure.uses_of(path) & after for path in files}
    assert not {path: wrong for path, wrong in used.items() if wrong}


def test_headers_of_other_folders_are_public():
    """No file reaches into the private headers of another folder of lib/."""
    wrong = [
        f"{path}: {include}"
        for level in LEVELS
        for path in structure.files_of(level)
        for include in re.findall(r'#include "(\.\./[^"]+)"', path.read_text())
        if not (path.parent / include).resolve().is_relative_to(ROOT / "lib" / level)
    ]
    assert not wrong
