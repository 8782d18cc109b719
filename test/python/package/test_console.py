"""Tests of the examples' common terminal output (examples/console.py)."""

import subprocess
import sys

import pytest
from places import EXAMPLES

sys.path.insert(0, str(EXAMPLES))

from console import fail, print_table, progress

PROGRAMS = [path for path in sorted(EXAMPLES.glob("*.py")) if path.read_text().startswith("#!")]
ROWS = [("bf16", None, "0.50"), ("i8", 128, "10.25")]


def test_tables_have_text_to_the_left_and_numbers_to_the_right(capsys):
    print_table(("values", "n", "error"), ROWS)
    assert capsys.readouterr().out.splitlines() == [
        "values    n  error",
        "bf16      -   0.50",
        "i8      128  10.25",
    ]


def test_tables_in_markdown_are_aligned_the_same(capsys):
    print_table(("values", "n", "error"), ROWS, markdown=True)
    assert capsys.readouterr().out.splitlines() == [
        "| values |   n | error |",
        "| ------ | --: | ----: |",
        "| bf16   |   - |  0.50 |",
        "| i8     | 128 | 10.25 |",
    ]


def test_progress_passes_every_item_on(capsys):
    assert list(progress("parts", "abc")) == ["a", "b", "c"]
    assert list(progress("parts", iter("ab"), total=2)) == ["a", "b"]
    assert capsys.readouterr().out == ""


def test_failing_is_status_2(capsys):
    with pytest.raises(SystemExit) as exit_:
        fail("no such thing")
    assert exit_.value.code == 2
    assert capsys.readouterr().err == "error: no such thing\n"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_programs_without_a_build_print_how_to_run_them(program):
    # -S: no packages but Python's own.
    result = subprocess.run([sys.executable, "-S", "-E", program], capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr.startswith("error: No module named ")
    assert f"scripts/example {program.stem} " in result.stderr
