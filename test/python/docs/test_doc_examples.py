"""Tests that examples in the documentation parse, verify and lower, and programs and commands run."""

import doctest
import importlib
import re
import sys

import pytest
from places import ROOT

sys.path.insert(0, str(ROOT / "docs" / "site"))

import page_examples
from page_examples import PAGES, TABLES

DEFINITION = re.compile(r"^def (\w+)", re.MULTILINE)
EXAMPLES = [example for path in TABLES + PAGES for example in page_examples.examples_of(path, "mlir")]
COMMANDS = [path for path in PAGES if page_examples.commands_of(path)]
PROGRAMS = [path for path in PAGES if page_examples.examples_of(path, "python")]
TABLED = [path for path in PAGES if page_examples.has_tables(path)]
SLOW = {"docs/tutorial/tuned-kernel.md"}
DOCTESTED = [
    ".".join(path.relative_to(ROOT / "python").with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "python" / "kvcache").rglob("*.py"))
    if ">>> " in path.read_text()
]


def place(example):
    return example.place


def documented(kind):
    """The definitions of a kind, `Op` or `Type` or `Attr`, and whether each has an example."""
    for path in TABLES:
        text = path.read_text()
        starts = [*DEFINITION.finditer(text)]
        for start, end in zip(starts, [*starts[1:], None]):
            body = text[start.start() : end.start() if end else len(text)]
            if start.group(1).endswith(kind) and "let summary" in body:
                yield start.group(1), "```mlir\n" in body


@pytest.mark.parametrize("kind", ["Op", "Type", "Attr"])
def test_every_definition_has_an_example(kind):
    found = dict(documented(kind))
    assert found
    assert [name for name, has_example in found.items() if not has_example] == []


def test_every_op_is_listed():
    names = {name for name, _ in documented("Op")}
    mnemonics = set(re.findall(r'def \w+ : KVCache_\w*Op<\s*"(\w+)"', "".join(path.read_text() for path in TABLES)))
    assert len(names) == len(mnemonics)
    used = {name for example in EXAMPLES for name in re.findall(r"\bkvcache\.(\w+)", example.text)}
    assert mnemonics - used == set()
    assert len(EXAMPLES) >= len(mnemonics)


@pytest.mark.parametrize("example", EXAMPLES, ids=place)
def test_example_verifies(example):
    assert page_examples.why_not_verified(example.text) == ""


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.has_functions], ids=place)
def test_example_lowers(example):
    assert page_examples.why_not_lowered(example.text) == ""


def test_programs_and_commands_are_found():
    assert {"README.md", "docs/how-to/manage-pages.md"} <= {page_examples.name_of(path) for path in PROGRAMS}
    assert {"README.md", "emulator/docs/how-it-works.md"} <= {page_examples.name_of(path) for path in COMMANDS}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(path, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
        for path, name in zip(PROGRAMS, map(page_examples.name_of, PROGRAMS))
    ],
)
def test_programs_of_a_page_print_its_output(page):
    assert page_examples.check_programs(page) == ""


@pytest.mark.parametrize("page", COMMANDS, ids=page_examples.name_of)
def test_commands_of_a_page_run(page):
    assert page_examples.check_commands(page) == ""


@pytest.mark.parametrize("name", DOCTESTED)
def test_examples_of_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_numbers_are_exact_with_pinned_tools(monkeypatch):
    for is_pinned in (True, False):
        monkeypatch.setattr(page_examples, "is_pinned", lambda: is_pinned)
        assert page_examples.agree("100 of sm_90a\n", "100 of sm_90a\n")
        assert page_examples.agree("100 of sm_90a\n", "101 of sm_90a\n") != is_pinned
        assert not page_examples.agree("100 of sm_90a\n", "120 of sm_90a\n")
        assert not page_examples.agree("100 of sm_90a\n", "100 of sm_80\n")


def test_tools_are_pinned_by_version_and_place(monkeypatch):
    page_examples.is_pinned.cache_clear()
    monkeypatch.setenv("PTXAS", sys.executable)
    assert not page_examples.is_pinned()
    page_examples.is_pinned.cache_clear()


PAGE = """One of {one}.

```python
print("one:", {value})
```

```text
one: 3
```

| a |
| - |
| 1 |

Made by `benchmarks/table.py --markdown`.
"""


def test_pages_contain_printed_output(tmp_path, monkeypatch):
    monkeypatch.setattr(page_examples, "ROOT", tmp_path)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "table.py").write_text("print('| a |\\n| - |\\n| 2 |')")
    page = tmp_path / "page.md"
    page.write_text(PAGE.format(one=3, value=5))
    monkeypatch.setattr(page_examples, "is_pinned", lambda: True)
    assert page_examples.check_programs(page) == "page.md:7: what is printed is\none: 5\n"
    assert "page.md:11: what is printed is\n| a |\n| - |\n| 2 |\n" == page_examples.check_tables(page)
    page_examples.update(page)
    assert page.read_text() == PAGE.format(one=3, value=5).replace("one: 3", "one: 5").replace("| 1 |", "| 2 |")
    assert page_examples.check_programs(page) == page_examples.check_tables(page) == ""


@pytest.mark.slow
@pytest.mark.parametrize("page", TABLED, ids=page_examples.name_of)
def test_tables_of_a_page_equal_command_output(page):
    assert page_examples.check_tables(page) == ""
