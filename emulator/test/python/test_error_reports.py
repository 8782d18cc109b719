# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reports that pages of the emulator show are those that its lit tests expect."""

import functools
import re

import pytest
from places import ROOT

PAGES = sorted((ROOT / "emulator/docs").glob("*.md"))
TESTS = sorted((ROOT / "emulator/test").rglob("*.mlir"))
REPORT = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXPECTED = re.compile(r"^\s*// [A-Z]+(?:-[A-Z]+)*: (.*)$", re.MULTILINE)
# The line of a place, or what FileCheck matches or substitutes.
VARIABLE = re.compile(r"(?:\[\[(?:FILE|SOURCE)\]\])?(?::?(?:\{\{.*?\}\}|\[\[#.*?\]\]))+(?::\d+)*|\[\[.*?\]\]")
NUMBER = r"-?(?:0x[0-9a-f]+|\d+)"
NAME = re.compile(r"@[\w$.]+|\b0x[0-9a-f]+\b|-?\b\d+\b")


def generalize(text):
    """A pattern for a text with other numbers and other names of variables."""
    pattern, end = "", 0
    for match in NAME.finditer(text):
        pattern += re.escape(text[end : match.start()])
        pattern += r"@[\w$.]+" if match[0].startswith("@") else NUMBER
        end = match.end()
    return pattern + re.escape(text[end:])


@functools.cache
def list_expected():
    """Patterns for the messages that lit tests expect."""
    lines = {line for path in TESTS for line in EXPECTED.findall(path.read_text())}
    return [re.compile(".*?".join(map(generalize, VARIABLE.split(line)))) for line in lines if " " in line]


def find_messages():
    """The messages about a `kernel.mlir`, each on one line."""
    for report in (report for path in PAGES for report in REPORT.findall(path.read_text())):
        if "kernel.mlir:" in report:
            yield from (" ".join(message.split()) for message in re.split(r"\n  (?=threads? \d)", report))


@pytest.mark.parametrize("message", find_messages())
def test_message_of_a_page_is_expected_by_a_test(message):
    assert any(pattern.fullmatch(message) for pattern in list_expected())


def test_other_message_is_not_expected():
    messages = list(find_messages())
    assert len(messages) > 30
    changed = messages[0].replace("reads", "writes nothing of")
    assert not any(pattern.fullmatch(changed) for pattern in list_expected())
