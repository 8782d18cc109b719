"""Tests that the folders of the compiler are levels: each uses only those before it."""

import ast
import graphlib
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
    files = structure.list_files(level)
    assert files
    after = set(LEVELS[LEVELS.index(level) + 1 :])
    used = {str(path): structure.list_includes(path) & after for path in files}
    assert not {path: wrong for path, wrong in used.items() if wrong}


def test_headers_of_other_folders_are_public():
    """No file includes private headers of another folder of lib/."""
    wrong = [
        f"{path}: {include}"
        for level in LEVELS
        for path in structure.list_files(level)
        for include in re.findall(r'#include "(\.\./[^"]+)"', path.read_text())
        if not (path.parent / include).resolve().is_relative_to(ROOT / "lib" / level)
    ]
    assert not wrong


def list_folders(level):
    """The folders of a level in the order of its CMakeLists.txt: of its subdirectories, or its sources."""
    text = (ROOT / "lib" / level / "CMakeLists.txt").read_text()
    return list(dict.fromkeys(re.findall(r"^ *(?:add_subdirectory\()?(\w+)(?:/\w+\.cpp|\))$", text, re.M)))


@pytest.mark.parametrize("level", LEVELS)
def test_folders_of_a_level_use_only_those_before_them(level):
    base = ROOT / "lib" / level
    folders = list_folders(level)
    assert {path.name for path in base.iterdir() if path.is_dir()} <= set(folders)
    wrong = [
        f"{path.relative_to(base)}: {include}"
        for number, folder in enumerate(folders)
        for path in (base / folder).rglob("*.*")
        for include in re.findall(r'#include "\.\./(\w+/[^"]+)"', path.read_text())
        if include.split("/")[0] not in folders[:number]
    ]
    assert not wrong


def test_compiler_includes_nothing_of_the_emulator():
    headers = {
        path.relative_to(ROOT / "emulator/include").as_posix()
        for path in (ROOT / "emulator/include").rglob("*")
    }
    assert "kvcache/Emulator/Emulator.h" in headers
    files = [path for level in LEVELS for path in structure.list_files(level)]
    files += (ROOT / "include/kvcache-c").glob("*.h")
    wrong = [
        f"{path}: {include}"
        for path in files
        for include in re.findall(r'include "([^"]+)"', path.read_text())
        if include in headers or include.startswith(("kvcache/Emulator/", "kvcache/Import/"))
    ]
    assert not wrong


PACKAGE = ROOT / "python" / "kvcache"


def run_time_imports(path):
    """The modules of the package that a module imports, at the top or in a function."""
    folder = path.relative_to(PACKAGE).parent.parts
    pending, found = [ast.parse(path.read_text())], set()
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        pending.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.ImportFrom) and node.level:
            base = PACKAGE.joinpath(*folder[: len(folder) - node.level + 1])
            base = base.joinpath(*(node.module or "").split("."))
            for name in [base, *(base / alias.name for alias in node.names)]:
                found |= {name.with_suffix(".py"), name / "__init__.py"}
    return {other for other in found if other.exists()} - {PACKAGE / "__init__.py"}


def test_python_modules_import_no_circles():
    graph = {path: run_time_imports(path) for path in PACKAGE.rglob("*.py")}
    assert any(graph.values())
    list(graphlib.TopologicalSorter(graph).static_order())


def test_programs_and_modules_of_tests_have_distinct_names():
    """Tests import from all of these folders, by name alone."""
    folders = "benchmarks", "examples", "test/python/support"
    names = [path.name for folder in folders for path in (ROOT / folder).glob("*.py")]
    assert names and not [name for name in names if names.count(name) > 1]


def test_tests_import_no_tests():
    """Shared code is in test/python/support."""
    imports = re.compile(r"^ *(?:from|import) test_", re.MULTILINE)
    files = list((ROOT / "test/python").rglob("*.py"))
    assert files and not [path.name for path in files if imports.search(path.read_text())]


# Each folder of the package, and the modules next to them, use only those before it. The only exception is the
# manager, which draws itself.
FOLDERS = ["", "ir", "cache", "devices", "compilation", "execution", "pages", "pictures"]
FOLDERS += ["ops", "tuning", "transfer", "events", "stores", "torch", "transformers", "vllm", "vllm/testing", "sglang"]
ENTRIES = {"__init__.py", "__main__.py", "jax.py"}


def test_python_folders_are_levels():
    folders = {str(p.parent.relative_to(PACKAGE)) for p in PACKAGE.rglob("*.py")} - {"."}
    assert folders == set(FOLDERS) - {""}
    wrong = set()
    for path in PACKAGE.rglob("*.py"):
        user = str(path.parent.relative_to(PACKAGE)).removeprefix(".")
        if user == "" and path.name in ENTRIES:
            continue
        for other in run_time_imports(path):
            used = str(other.parent.relative_to(PACKAGE)).removeprefix(".")
            if FOLDERS.index(used) > FOLDERS.index(user):
                wrong.add((str(path.relative_to(PACKAGE)), str(other.relative_to(PACKAGE))))
    assert wrong == {("pages/manager.py", "pictures/pages.py")}
