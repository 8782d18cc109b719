"""Tests that the tables of MAX's types name existing ops, and all of them."""

import re

import pages
import pytest

PAGE = pages.read("docs/explanation/coming-from-max.md")
NAMED = set(re.findall(r"`kvcache\.(\w+)", PAGE))
TABLES = pages.ROOT / "include" / "kvcache" / "IR"
OWN = {"extent", "page_id"}  # MAX has no such methods


def list_ops(pattern):
    text = "".join(path.read_text() for path in TABLES.glob(pattern))
    return set(re.findall(r'KVCache_\w*Op<\s*"(\w+)"', text))


def test_named_ops_exist():
    assert NAMED
    assert NAMED - list_ops("*.td") == set()


@pytest.mark.parametrize("family", ["Access", "PageTable", "Part", "Quantization", "Query", "Scales", "View"])
def test_every_op_on_a_cache_has_its_method(family):
    ops = list_ops(f"{family}Ops.td")
    assert ops
    assert ops - OWN - NAMED == set()
