"""Pages of the documentation, and their fenced blocks."""

import re

from places import ROOT

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def read(name):
    return (ROOT / name).read_text()


def fences(text, language):
    return [match[2] for match in _FENCE.finditer(text) if match[1] == language]
