"""The guide says what its programs print, and shows what is in its files."""

import re
import subprocess
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "guide.md").read_text()
STEPS = {int(path.name.split("-")[0]): path for path in (ROOT / "examples" / "guide").glob("*.mlir")}

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^## (\d+)\. .*\n", re.MULTILINE)
# A number is one of its own: that of an op or a chip is part of a name.
NUMBER = re.compile(r"(?<![\w.:@#-])\d+(?![\w.])")
TOLERANCE = 0.1


def fences(language, text=GUIDE):
    return [match[2] for match in FENCE.finditer(text) if match[1] == language]


def agree(shown, printed):
    """Whether two texts are the same but for numbers, which another ptxas may change a bit."""
    if NUMBER.sub("N", shown) != NUMBER.sub("N", printed):
        return False
    pairs = zip(map(int, NUMBER.findall(shown)), map(int, NUMBER.findall(printed)), strict=True)
    return all(abs(a - b) <= TOLERANCE * max(a, b) for a, b in pairs)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [("105 loads of sm_90a", True), ("150 loads of sm_90a", False), ("100 loads of sm_80", False), ("100 stores", False)],
)
def test_numbers_may_differ_a_bit(printed, expected):
    assert agree("100 loads of sm_90a", printed) == expected


@pytest.mark.slow
def test_programs_print_what_the_page_shows(monkeypatch):
    monkeypatch.chdir(ROOT)
    names, printed, shown = {}, [], []
    for match in FENCE.finditer(GUIDE):
        if match[1] == "python":
            lines_before = "\n" * (GUIDE.count("\n", 0, match.start()) + 1)
            with redirect_stdout(StringIO()) as out:
                exec(compile(lines_before + match[2], "docs/guide.md", "exec"), names)
            if out.getvalue():
                printed.append(out.getvalue())
        elif match[1] == "text":
            shown.append(match[2])
    assert len(shown) == len(printed)
    assert [pair for pair in zip(shown, printed) if not agree(*pair)] == []


def test_first_kernel_is_that_of_its_file():
    (kernel,) = fences("mlir")
    assert STEPS[1].read_text().endswith("\n\n" + kernel)


def test_every_step_has_a_file_and_a_section():
    assert [int(number) for number in SECTION.findall(GUIDE)] == sorted(STEPS) == list(range(1, 11))
    for path in STEPS.values():
        assert f"(../examples/guide/{path.name})" in GUIDE


@pytest.mark.parametrize("step", range(2, 11))
def test_changes_lead_from_a_file_to_the_next(step):
    _, section = re.split(rf"^## {step}\. .*\n", GUIDE, flags=re.MULTILINE)
    (change,) = fences("diff", SECTION.split(section)[0])
    before, after = (STEPS[number].read_text().splitlines() for number in (origin(step), step))
    for line in change.splitlines():
        assert line[1:] in (before if line[0] == "-" else after), line
        assert line[1:] not in (after if line[0] == "-" else before), line


def origin(step):
    """The step whose source a step changes: fp8 starts again from the short loop."""
    return {7: 5}.get(step, step - 1)


def test_ptx_is_what_the_command_prints():
    (command,) = [text for text in fences("sh") if "--emit-ptx" in text]
    result = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    (shown,) = fences("ptx")
    assert shown in result.stdout
