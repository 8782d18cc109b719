"""Tests that pages are short and plain: words by kind, tables, lists, sentences, links, and results of records."""

import re
import sys

import pytest
from places import ROOT

sys.path.insert(0, str(ROOT / "docs" / "site"))

import page_examples
import results

# Words of prose by folder or page; generated tables and code do not count.
LIMITS = {
    "README.md": 900,
    "docs/how-to": 800,
    "docs/tutorial": 2000,
    "docs/explanation": 2000,
    "docs/results": 2000,
    "docs/reference": 2000,
    "docs/glossary.md": 2000,
    "benchmarks": 1500,
    "CHANGELOG.md": 1500,
    "CONTRIBUTING.md": 2000,
    "emulator/README.md": 900,
    "emulator/docs/find-a-bug-in-your-kernel.md": 800,
    "emulator": 2000,
}
COLUMNS = 8
ITEM_WORDS = 60
SENTENCE_WORDS = 30

FENCE = re.compile(r"^( *)```.*?^ *```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
LIST_ITEM = re.compile(r"^ *(?:[-*]|\d+\.) +", re.MULTILINE)
SENTENCE_END = re.compile(r"(?<=[.!?])\)?\s+(?=[A-Z`\[*(])")


def name(path):
    return path.relative_to(ROOT).as_posix()


def find_limit(path):
    return next((limit for start, limit in LIMITS.items() if name(path).startswith(start)), None)


def without_code(text):
    return FENCE.sub("", text)


def read_prose(path):
    """The page without code and generated tables."""
    return COMMENT.sub("", without_code(results.without_results(path.read_text())))


def split_blocks(text):
    """The paragraphs and list items of a page, without headings and tables."""
    lines = [line for line in text.splitlines() if not line.startswith(("#", "|", "!["))]
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines)):
        starts = [match.start() for match in LIST_ITEM.finditer(paragraph)]
        for start, end in zip([0, *starts], [*starts, len(paragraph)]):
            block = paragraph[start:end].strip()
            if block:
                yield bool(LIST_ITEM.match(block)), LIST_ITEM.sub("", block)


def split_sentences(block):
    plain = LINK.sub(r"\1", " ".join(block.split()))
    plain = re.sub(r"`[^`]*`", "Code", plain)
    return SENTENCE_END.split(plain)


def find_anchors(path):
    """The anchors of a page, as GitHub makes them."""
    headings = HEADING.findall(without_code(path.read_text()))
    plain = (LINK.sub(r"\1", heading).lower().strip() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


PAGES = [path for path in results.pages() if find_limit(path)]
LINKED = page_examples.PAGES + [path for path in PAGES if path not in page_examples.PAGES]
FILLED = [path for path in results.pages() if "<!-- results: " in path.read_text()]


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_page_keeps_word_limit(path):
    assert len(read_prose(path).split()) <= find_limit(path)


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_tables_have_few_columns(path):
    rows = [line for line in without_code(path.read_text()).splitlines() if line.startswith("|")]
    wide = [row for row in rows if len(re.findall(r"(?<!\\)\|", row)) - 1 > COLUMNS]
    assert wide == []


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_list_items_and_sentences_are_short(path):
    long = []
    for is_item, block in split_blocks(read_prose(path)):
        if is_item and len(block.split()) > ITEM_WORDS:
            long.append(block)
        long += [sentence for sentence in split_sentences(block) if len(sentence.split()) > SENTENCE_WORDS]
    assert long == []


@pytest.mark.parametrize("path", LINKED, ids=name)
def test_links_resolve(path):
    broken = []
    for _, target in LINK.findall(without_code(path.read_text())):
        place, _, anchor = target.partition("#")
        if re.match(r"\w+:", place):
            continue
        page = path.parent / place if place else path
        if not page.exists() or anchor and page.suffix == ".md" and anchor not in find_anchors(page):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("path", FILLED, ids=name)
def test_results_equal_the_records(path):
    text = path.read_text()
    assert results.fill(text) == text


def test_records_name_the_source_of_figures():
    records = [results.read_record(path.stem) for path in sorted(results.RECORDS.glob("*.json"))]
    assert records
    for record in records:
        assert {"date", "commit", "device", "software", "command", "tables"} <= record.keys()
        assert record["date"] or record["published"].keys() == {"date", "commit"}
        for table in record["tables"].values():
            assert all(len(row) == len(table["columns"]) for row in table["rows"])


def test_every_record_is_shown():
    shown = {match["record"] for path in FILLED for match in results._REGION.finditer(path.read_text())}
    assert shown == {path.stem for path in results.RECORDS.glob("*.json")}


@pytest.mark.parametrize("folder", ["explanation"])
def test_index_links_to_every_page(folder):
    pages = {path.name for path in (ROOT / "docs" / folder).glob("*.md")} - {"index.md"}
    text = (ROOT / "docs" / folder / "index.md").read_text()
    linked = {target for _, target in LINK.findall(text) if not target.startswith("..")}
    assert linked == pages


def test_columns_and_rows_of_a_record_can_be_chosen():
    table = {
        "columns": [{"title": "work"}, {"title": "a, b", "format": "{} us"}, {"title": "c"}],
        "rows": [["x", 1, 2], ["y, z", 3, None]],
    }
    chosen = results.render_table(table, ["work", "a, b -> time"], ["y, z"])
    assert chosen == "| work | time |\n| --- | --: |\n| y, z | 3 us |\n"
    whole = "| work | a, b | c |\n| --- | --: | --: |\n| x | 1 us | 2 |\n| y, z | 3 us |  |\n"
    assert results.render_table(table, [], []) == whole
