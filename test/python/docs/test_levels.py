"""Tests that the levels of docs/explanation/attention-in-levels.md are what the passes print."""

import functools
import re
import subprocess

import pytest
from places import EXAMPLES, OPT, ROOT

import kvcache

PAGE = (ROOT / "docs/explanation/attention-in-levels.md").read_text()
ALIASES = dict(re.findall(r"^(!\w+) = (.*)$", PAGE, re.MULTILINE))
BLOCKS = re.findall(r"<!-- level: (\w+) -->\n\n```text\n(.*?)```", PAGE, re.DOTALL)
PASSES = {
    "op": [],
    "plan": ["--kvcache-plan-attention=chip=sm_90a"],
    "split": ["--kvcache-plan-attention=chip=sm_90a", "--kvcache-split-attention", "--cse", "--canonicalize"],
    "tile": ["--kvcache-tile-attention=chip=sm_90a", "--cse"],
    "schedule": ["--kvcache-to-ptx=chip=sm_90a", "--mlir-print-ir-after=kvcache-schedule-attention"],
    "fragments": ["--kvcache-to-ptx=chip=sm_90a", "--mlir-print-ir-after=kvcache-lower-fragments"],
}


def get_source(level):
    """The example; the level of splits adds a workspace to it."""
    source = (EXAMPLES / "attention_op.mlir").read_text()
    if level != "split":
        return source
    for before, after in [
        ("%out: !rows)", "%out: !rows, %workspace: memref<?xi8>)"),
        ("outs(%out)", "outs(%out) workspace %workspace"),
        ("f32, !rows\n", "f32, !rows, memref<?xi8>\n"),
    ]:
        assert before in source
        source = source.replace(before, after)
    return source


@functools.cache
def run(level):
    result = subprocess.run(
        [OPT, "-", *PASSES[level]], input=get_source(level), capture_output=True, text=True, check=True
    )
    return result.stderr if level in ("schedule", "fragments") else result.stdout


def normalize(text):
    """The lines, with one name for all values and results."""
    text = re.sub(r"%[\w#]+(:\d+)?", "%", text)
    text = re.sub(r"^\s*(%, )*% = ", "% = ", text, flags=re.MULTILINE)
    return [" ".join(line.split()) for line in text.splitlines()]


def make_pattern(line):
    for alias, type in ALIASES.items():
        line = re.sub(rf"{alias}\b", lambda _, type=type: type, line)
    return re.compile(".*".join(re.escape(part) for part in line.split("…")))


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_block_has_lines_of_the_level_in_order(number):
    level, block = BLOCKS[number]
    lines = iter(normalize(run(level)))
    for line in normalize(block):
        pattern = make_pattern(line)
        assert any(pattern.match(found) for found in lines), f"no line after the others is {line!r}"


def test_page_has_all_levels():
    assert [level for level, _ in BLOCKS if level] and list(dict.fromkeys(level for level, _ in BLOCKS)) == list(PASSES)


@pytest.mark.long
@pytest.mark.parametrize("level", PASSES)
def test_a_kernel_may_start_at_any_level(level):
    """The PTX is that of the op, but for names and line numbers."""
    text = run(level)
    if level in ("schedule", "fragments"):
        text = text.split("//----- //")[1]
    ptx = [
        [
            re.sub(r"\b\w*attend\w*|^\s*//.*", "", kernel.ptx, flags=re.MULTILINE)
            for kernel in kvcache.compile(source, target="sm_90a").kernels.values()
        ]
        for source in (get_source(level), text)
    ]
    assert ptx[0] == ptx[1] and len(ptx[0]) == (2 if level == "split" else 1)
