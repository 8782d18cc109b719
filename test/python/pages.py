"""Pages of the documentation: their fenced blocks, and what their programs print."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A number on its own: those of ops, chips and places are part of a name.
_NUMBER = re.compile(r"(?<![\w.:@#-])\d+(?![\w.:])")
_TOLERANCE = 0.1


def read(name):
    return (ROOT / name).read_text()


def fences(text, language):
    return [match[2] for match in _FENCE.finditer(text) if match[1] == language]


def run_programs(name):
    """Runs the Python blocks of a page as one program.

    Returns pairs of the text block behind a block that prints and of what it prints.
    """
    text, names, results = read(name), {}, []
    for match in _FENCE.finditer(text):
        if match[1] == "text":
            results[-1][0] = match[2]
        if match[1] != "python":
            continue
        lines_before = "\n" * (text.count("\n", 0, match.start()) + 1)
        with redirect_stdout(StringIO()) as printed:
            exec(compile(lines_before + match[2], name, "exec"), names)
        if printed.getvalue():
            results.append(["", printed.getvalue()])
    return results


def agree(shown, printed):
    """Whether texts are the same but for numbers, which another ptxas may change a bit."""
    if _NUMBER.sub("N", shown) != _NUMBER.sub("N", printed):
        return False
    numbers = (map(int, _NUMBER.findall(text)) for text in (shown, printed))
    return all(abs(a - b) <= _TOLERANCE * max(a, b) for a, b in zip(*numbers, strict=True))
