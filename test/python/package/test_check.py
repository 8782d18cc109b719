"""Tests of the choice of cases by ``scripts/check``."""

from collections import Counter
from types import SimpleNamespace

import pytest
from places import ROOT


@pytest.fixture
def conftest(pytestconfig):
    """The module at the root; folders have others of this name."""
    return pytestconfig.pluginmanager.get_plugin(str(ROOT / "conftest.py"))


def test_drawn_cases_are_the_same_in_each_run(conftest):
    counts = {"test/python/data/test_a.py::test_many": 40, "test/python/manager/test_b.py::test_one": 1}
    page = "test/python/docs/test_pages.py::test_page"
    items = [
        SimpleNamespace(nodeid=f"{name}[{case}]")
        for name, count in {**counts, page: 5}.items()
        for case in range(count)
    ]
    drawn = conftest.draw_cases(items, 2)
    assert drawn == conftest.draw_cases(items, 2)
    assert Counter(map(conftest.name_test, drawn)) == {**dict(zip(counts, (2, 1))), page: 5}
    assert len({item.nodeid for item in drawn}) == len(drawn)


def test_drawn_cases_have_as_many_values_as_possible(conftest):
    items = [SimpleNamespace(nodeid=f"test.py::test[{a}-{b}]") for a in range(4) for b in "xyz"]
    drawn = set().union(*map(conftest.list_values, conftest.draw_cases(items, 4)))
    assert drawn == {(0, str(a)) for a in range(4)} | {(1, b) for b in "xyz"}
