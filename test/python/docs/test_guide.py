"""The guide shows what is in its files, and the PTX that its command prints."""

import re
import subprocess

import pages
import pytest

GUIDE = pages.read("docs/guide.md")
STEPS = {int(path.name.split("-")[0]): path for path in (pages.ROOT / "examples" / "guide").glob("*.mlir")}
SECTION = re.compile(r"^## (\d+)\. .*\n", re.MULTILINE)


def test_sources_are_those_of_their_files():
    files = STEPS[1], pages.ROOT / "examples/attention_op.mlir"
    for path, source in zip(files, pages.fences(GUIDE, "mlir"), strict=True):
        assert path.read_text().endswith("\n\n" + source)


def test_every_step_has_a_file_and_a_section():
    assert [int(number) for number in SECTION.findall(GUIDE)] == sorted(STEPS) == list(range(1, 11))
    for path in STEPS.values():
        assert f"(../examples/guide/{path.name})" in GUIDE


@pytest.mark.parametrize("step", range(2, 11))
def test_changes_lead_from_a_file_to_the_next(step):
    _, section = re.split(rf"^## {step}\. .*\n", GUIDE, flags=re.MULTILINE)
    (change,) = pages.fences(SECTION.split(section)[0], "diff")
    # fp8 starts again from the short loop.
    origin = 5 if step == 7 else step - 1
    before, after = (STEPS[number].read_text().splitlines() for number in (origin, step))
    for line in change.splitlines():
        there, not_there = (before, after) if line[0] == "-" else (after, before)
        assert line[1:] in there
        assert line[1:] not in not_there


def test_ptx_is_what_the_command_prints():
    (command,) = pages.fences(GUIDE, "sh")
    result = subprocess.run(command, shell=True, cwd=pages.ROOT, capture_output=True, text=True, check=True)
    (shown,) = pages.fences(GUIDE, "ptx")
    assert shown in result.stdout
