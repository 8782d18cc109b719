"""Examples of pages with frameworks run as shown, in the order of their page; so does chat."""

import os
import re
import subprocess
import sys

import pytest
from places import ROOT

PROGRAM = re.compile(r"^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/frameworks.md"])
def test_programs_of_a_page(page):
    programs = PROGRAM.findall((ROOT / page).read_text())
    assert len(programs) == {"README.md": 1, "docs/frameworks.md": 4}[page]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(programs)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    if page == "README.md":
        assert len(programs[0].splitlines()) <= 12
        tokens, nbytes = re.fullmatch(r"\[\[5, 6, 7, (.*)\]\] (\d+)\n", done.stdout).groups()
        assert len(tokens.split(", ")) == 20 and int(nbytes) > 0


@pytest.mark.parametrize("options", [[], ["--dtype", "i8", "--users", "3"]], ids=["f32", "i8"])
def test_chat(options):
    done = subprocess.run(
        [sys.executable, ROOT / "examples/chat.py", "--quick", *options],
        capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^(the model's own|paged), \w+ +(\d+) +(\d+) ", done.stdout, re.MULTILINE)
    own, paged = ([int(number) for number in row[1:]] for row in rows)
    assert paged[0] < own[0] and paged[1] < own[1]  # bytes, tokens of prompts
    if not options:
        assert "32 of 32 answered tokens are the same" in done.stdout
