"""Examples of pages with frameworks run as shown, in the order of their page; so does chat."""

import os
import re
import subprocess
import sys

import pytest
from places import ROOT

PROGRAM = re.compile(r"^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)


PAGES = {"use-with-transformers": 2, "use-with-pytorch-and-jax": 2, "replace-flash-attention": 1}


@pytest.mark.parametrize("page", PAGES)
def test_programs_of_a_page(page):
    programs = PROGRAM.findall((ROOT / "docs" / "how-to" / f"{page}.md").read_text())
    assert len(programs) == PAGES[page]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(programs)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


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
