"""The tutorials show what is in the files of their steps, and the PTX that their command prints."""

import re
import subprocess

import pages
import pytest

FIRST = pages.read("docs/tutorial/first-kernel.md")
TUNED = pages.read("docs/tutorial/tuned-kernel.md")
STEPS = {int(path.name.split("-")[0]): path for path in (pages.ROOT / "examples" / "guide").glob("*.mlir")}
SECTION = re.compile(r"^## (?:(\d+)\. )?.*\n", re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "path"), [(FIRST, STEPS[1]), (TUNED, pages.ROOT / "examples/attention_op.mlir")], ids=["first", "tuned"]
)
def test_sources_equal_their_files(page, path):
    (source,) = pages.fences(page, "mlir")
    assert path.read_text().endswith("\n\n" + source)


def test_every_step_has_a_file_and_a_section():
    assert [int(number) for number in SECTION.findall(TUNED) if number] == sorted(STEPS) == list(range(1, 11))
    for path in STEPS.values():
        assert f"(../../examples/guide/{path.name})" in TUNED


@pytest.mark.parametrize("step", range(2, 11))
def test_changes_lead_from_a_file_to_the_next(step):
    _, section = re.split(rf"^## {step}\. .*\n", TUNED, flags=re.MULTILINE)
    (change,) = pages.fences(SECTION.split(section)[0], "diff")
    # fp8 starts again from the short loop.
    origin = 5 if step == 7 else step - 1
    before, after = (STEPS[number].read_text().splitlines() for number in (origin, step))
    for line in change.splitlines():
        there, not_there = (before, after) if line[0] == "-" else (after, before)
        assert line[1:] in there
        assert line[1:] not in not_there


def test_ptx_equals_the_command_s_output():
    (command,) = pages.fences(FIRST, "sh")
    result = subprocess.run(command, shell=True, cwd=pages.ROOT, capture_output=True, text=True, check=True)
    (shown,) = pages.fences(FIRST, "ptx")
    assert shown in result.stdout
