"""The index of how-tos has each of them."""

import re

import pages

HOW_TO = pages.ROOT / "docs" / "how-to"


def test_index_links_every_how_to_once():
    links = re.findall(r"\]\(([\w-]+\.md)\)", (HOW_TO / "index.md").read_text())
    assert sorted(links) == sorted(path.name for path in HOW_TO.glob("*.md") if path.name != "index.md")


def test_examples_are_programs_not_pseudocode():
    """Each how-to shows code in a language that a test runs, verifies, or quotes from a file."""
    languages = re.compile(r"^```(?:python|py|mlir|sh)$", re.MULTILINE)
    pages_without = [
        path.name for path in HOW_TO.glob("*.md") if path.name != "index.md" and not languages.search(path.read_text())
    ]
    assert pages_without == []
