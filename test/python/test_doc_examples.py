"""Every example in the documentation parses, verifies and lowers, and those in Python run."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OPT = ROOT / "build" / "bin" / "kvcache-opt"
TABLES = sorted((ROOT / "include" / "kvcache" / "IR").glob("*.td"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")])

EXAMPLE = re.compile(r"^( *)```mlir\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
DEFINITION = re.compile(r"^def (\w+)", re.MULTILINE)
# No type or op is left after the lowering but checks and descriptors. Attributes may stay.
LEFT_OVER = re.compile(r"[!#]kvcache\.(?!tma_tile\b)\w+|(?<!!)\bkvcache\.(?!(?:check|encode_tensor_map)\b)\w+\b(?! =)")
DEVICE_FUNCTION = re.compile(r"^func\.func (.*?)^\}", re.MULTILINE | re.DOTALL)


def examples_of(path):
    """The examples of a file: its name, the line and the text of each."""
    text = path.read_text()
    for match in EXAMPLE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        indent = match.group(1)
        lines = (code.removeprefix(indent) for code in match.group(2).splitlines())
        yield pytest.param("\n".join(lines) + "\n", id=f"{path.relative_to(ROOT)}:{line}")


def documented(kind):
    """The definitions of a kind, `Op` or `Type` or `Attr`, and whether each has an example."""
    for path in TABLES:
        text = path.read_text()
        starts = [*DEFINITION.finditer(text)]
        for start, end in zip(starts, [*starts[1:], None]):
            body = text[start.start() : end.start() if end else len(text)]
            if start.group(1).endswith(kind) and "let summary" in body:
                yield start.group(1), bool(EXAMPLE.search(body))


EXAMPLES = [example for path in TABLES + PAGES for example in examples_of(path)]


def run_opt(source, *options):
    return subprocess.run([OPT, *options], input=source, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("kind", ["Op", "Type", "Attr"])
def test_every_definition_has_an_example(kind):
    found = dict(documented(kind))
    assert found
    assert [name for name, has_example in found.items() if not has_example] == []


def test_no_op_is_overlooked():
    names = {name for name, _ in documented("Op")}
    mnemonics = set(re.findall(r'def \w+ : KVCache_\w*Op<\s*"(\w+)"', "".join(path.read_text() for path in TABLES)))
    assert len(names) == len(mnemonics)
    used = {name for example in EXAMPLES for name in re.findall(r"\bkvcache\.(\w+)", example.values[0])}
    assert mnemonics - used == set()
    assert len(EXAMPLES) >= len(mnemonics)


@pytest.mark.parametrize("source", EXAMPLES)
def test_example_verifies(source):
    result = run_opt(source, "--verify-roundtrip")
    assert result.returncode == 0, result.stderr


def in_kernels(source):
    """The functions of an example as those of a GPU module for a chip that has all instructions."""
    body = DEVICE_FUNCTION.search(source).group(0).replace("func.func", "gpu.func").replace("  return", "  gpu.return")
    aliases = source[: DEVICE_FUNCTION.search(source).start()]
    return aliases + 'gpu.module @kernels [#nvvm.target<chip = "sm_100a">] {\n' + body + "\n}\n"


@pytest.mark.parametrize("source", [example for example in EXAMPLES if "func" in example.values[0]])
def test_example_lowers(source):
    passes = ["--kvcache-expand-copies", "--convert-kvcache-to-memref"]
    if "kvcache.tma_" in source.replace("!kvcache.tma_tile", ""):
        source = in_kernels(source)
        passes.insert(1, "--convert-kvcache-to-nvvm")
    result = run_opt(source, *passes)
    assert result.returncode == 0, result.stderr
    assert LEFT_OVER.findall(result.stdout) == []


def test_python_examples_run(monkeypatch):
    """Those of the page are one program, from its top to its end."""
    page = ROOT / "docs" / "python.md"
    text = page.read_text()
    names = {}
    monkeypatch.chdir(ROOT)
    for match in PROGRAM.finditer(text):
        lines_before = "\n" * text.count("\n", 0, match.start(1))
        exec(compile(lines_before + match[1], page, "exec"), names)
    assert "manager" in names
